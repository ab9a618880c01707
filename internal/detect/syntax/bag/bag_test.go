package bag

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	a, b := Bag{1, 1, 2, 5}, Bag{1, 2, 2, 7}
	if got := Shared(a, b); got != 2 {
		t.Errorf("shared %d", got)
	}
	if got := Similar(a, b); got != 2.0/6 {
		t.Errorf("similar %g", got)
	}
	if got := Inside(a, b); got != 0.5 {
		t.Errorf("inside %g", got)
	}
	if got := Without(a, b); !slices.Equal(got, Bag{1, 5}) {
		t.Errorf("without %v", got)
	}
	if got := Join(a, b); !slices.Equal(got, Bag{1, 1, 1, 2, 2, 2, 5, 7}) {
		t.Errorf("joined %v", got)
	}
	if a.Count(1) != 2 || a.Count(3) != 0 || !a.Has(5) || a.Has(7) {
		t.Error("counted wrong")
	}
}

// Few hashes are looked up among many in another way; the answer is the same.
func TestFewAmongMany(t *testing.T) {
	var many Bag
	for i := range uint32(1000) {
		many = append(many, 2*i, 2*i)
	}
	few := Bag{0, 0, 0, 3, 500, 1998, 5000}
	if got := Shared(few, many); got != 4 {
		t.Errorf("shared %d, want 4", got)
	}
}

func TestNothing(t *testing.T) {
	if Similar(nil, nil) != 1 || Inside(nil, Bag{1}) != 1 || Inside(Bag{1}, nil) != 0 || len(Without(nil, Bag{1})) != 0 {
		t.Error("nothing is inside of everything, and the same as nothing")
	}
	if last := ^uint32(0); (Bag{1, last}).Count(last) != 1 {
		t.Error("the largest hash is not counted")
	}
}

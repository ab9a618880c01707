package multiset

import (
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	a, b := Hashes{1, 1, 2, 5}, Hashes{1, 2, 2, 7}
	if got := Overlap(a, b); got != 2 {
		t.Errorf("shared %d", got)
	}
	if got := Jaccard(a, b); got != 2.0/6 {
		t.Errorf("similar %g", got)
	}
	if got := Containment(a, b); got != 0.5 {
		t.Errorf("inside %g", got)
	}
	if got := Difference(a, b); !slices.Equal(got, Hashes{1, 5}) {
		t.Errorf("without %v", got)
	}
	if got := Sum(a, b); !slices.Equal(got, Hashes{1, 1, 1, 2, 2, 2, 5, 7}) {
		t.Errorf("joined %v", got)
	}
	if a.Count(1) != 2 || a.Count(3) != 0 || !a.Has(5) || a.Has(7) {
		t.Error("counted wrong")
	}
}

// The binary search for few hashes among many returns the same as the merge.
func TestFewAmongMany(t *testing.T) {
	var many Hashes
	for i := range uint32(1000) {
		many = append(many, 2*i, 2*i)
	}
	few := Hashes{0, 0, 0, 3, 500, 1998, 5000}
	if got := Overlap(few, many); got != 4 {
		t.Errorf("shared %d, want 4", got)
	}
}

func TestNothing(t *testing.T) {
	if Jaccard(nil, nil) != 1 || Containment(nil, Hashes{1}) != 1 || Containment(Hashes{1}, nil) != 0 ||
		len(Difference(nil, Hashes{1})) != 0 {
		t.Error("nothing is inside of everything, and the same as nothing")
	}
	if last := ^uint32(0); (Hashes{1, last}).Count(last) != 1 {
		t.Error("the largest hash is not counted")
	}
}

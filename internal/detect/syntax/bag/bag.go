// Package bag compares pieces of code by the hashes of their tokens.
package bag

import "slices"

// Bag is a sorted list of hashes of tokens, with repetition. Texts are compared
// by it: the order of statements and the layout do not count.
type Bag []uint32

// Shared counts what two bags have both.
func Shared(a, b Bag) int {
	if len(b) < len(a) {
		a, b = b, a
	}
	n := 0
	if len(b) > 16*len(a) { // look the few up among the many
		for len(a) > 0 {
			at, _ := slices.BinarySearch(b, a[0])
			b = b[at:]
			if len(b) > 0 && b[0] == a[0] {
				n++
				b = b[1:]
			}
			a = a[1:]
		}
		return n
	}
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n++
			a, b = a[1:], b[1:]
		}
	}
	return n
}

// Similar is how much of two bags is the same, between 0 and 1.
func Similar(a, b Bag) float64 {
	n := Shared(a, b)
	if all := len(a) + len(b) - n; all > 0 {
		return float64(n) / float64(all)
	}
	return 1
}

// Inside is how much of a is in b, between 0 and 1. Nothing is inside of
// everything.
func Inside(a, b Bag) float64 {
	if len(a) == 0 {
		return 1
	}
	return float64(Shared(a, b)) / float64(len(a))
}

// Without is what a has more than b.
func Without(a, b Bag) Bag {
	var rest Bag
	for len(a) > 0 {
		switch {
		case len(b) == 0 || a[0] < b[0]:
			rest = append(rest, a[0])
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return rest
}

// Join makes one bag of two.
func Join(a, b Bag) Bag {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return all
}

// Count is how often a hash is in the bag.
func (b Bag) Count(h uint32) int {
	from, _ := slices.BinarySearch(b, h)
	to, _ := slices.BinarySearch(b, h+1)
	if h+1 == 0 {
		to = len(b)
	}
	return to - from
}

// Has tells whether a hash is in the bag.
func (b Bag) Has(h uint32) bool {
	_, ok := slices.BinarySearch(b, h)
	return ok
}

// Beyond is what a list has more of each than another one, by a key; the last of those
// with the same key.
func Beyond[T any, K comparable](all, others []T, key func(T) K) []T {
	count := make(map[K]int)
	for _, o := range others {
		count[key(o)]++
	}
	var rest []T
	for _, e := range all {
		if count[key(e)]--; count[key(e)] < 0 {
			rest = append(rest, e)
		}
	}
	return rest
}

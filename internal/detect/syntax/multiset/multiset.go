// Package multiset compares code as multisets of token hashes.
package multiset

import "slices"

// Hashes is a multiset of token hashes: a sorted list with repetitions. It ignores the
// order of statements and the layout of the code.
type Hashes []uint32

// Overlap returns the size of the intersection of two multisets.
func Overlap(a, b Hashes) int {
	if len(b) < len(a) {
		a, b = b, a
	}
	n := 0
	if len(b) > 16*len(a) { // binary search instead of a merge
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

// Jaccard returns the Jaccard similarity of two multisets, 1 for two empty ones.
func Jaccard(a, b Hashes) float64 {
	n := Overlap(a, b)
	if all := len(a) + len(b) - n; all > 0 {
		return float64(n) / float64(all)
	}
	return 1
}

// Containment returns the share of a that is also in b; 1 if a is empty.
func Containment(a, b Hashes) float64 {
	if len(a) == 0 {
		return 1
	}
	return float64(Overlap(a, b)) / float64(len(a))
}

// Difference returns the elements of a that are not in b, counting repetitions.
func Difference(a, b Hashes) Hashes {
	var rest Hashes
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

// Sum returns the multiset with the elements of both.
func Sum(a, b Hashes) Hashes {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return all
}

// Set returns the multiset of a list with each hash once. It sorts the list.
func Set(list Hashes) Hashes {
	slices.Sort(list)
	return slices.Compact(list)
}

// Count returns how many times a hash occurs.
func (b Hashes) Count(h uint32) int {
	from, _ := slices.BinarySearch(b, h)
	n := 0
	for n < len(b)-from && b[from+n] == h {
		n++
	}
	return n
}

// Has reports whether a hash occurs.
func (b Hashes) Has(h uint32) bool {
	_, ok := slices.BinarySearch(b, h)
	return ok
}

// Excess returns the elements of all that others has fewer of, compared by key. Of several
// elements with the same key it returns the last ones.
func Excess[T any, K comparable](all, others []T, key func(T) K) []T {
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

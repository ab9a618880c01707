package handoff

import (
	"slices"
	"time"
)

// entries has the functions that compare and change the entries of a list.
type entries[T any] struct {
	// same reports whether two entries of checkpoints are the same one.
	same func(a, b T) bool
	// shows reports whether an entry of a checkpoint is that of the ledger.
	shows func(shown, full T) bool
	// text returns the name of an entry in changes.
	text func(T) string
	// update merges the changes between base and theirs into the ledger's entry.
	update func(full, base, theirs T) (T, bool)
	// newer reports whether theirs, which is not in base, is newer than the ledger's
	// entry; nil for always.
	newer func(full, theirs T) bool
	// adopt prepares an entry that is new to the ledger.
	adopt func(T) T
	// Checkpoints show the first entries of a list with front, the last ones of others.
	front bool
	// Other programs can change the order of a list with ordered.
	ordered bool
}

func plainStrings() entries[string] {
	return entries[string]{
		same:   func(a, b string) bool { return a == b },
		shows:  shows,
		text:   func(s string) string { return s },
		update: func(full, _, _ string) (string, bool) { return full, false },
		adopt:  func(s string) string { return s },
	}
}

func sameStep(a, b Step) bool { return a.Step == b.Step && a.Timestamp.Equal(b.Timestamp) }

func stepEntries(when time.Time) entries[Step] {
	return entries[Step]{
		same:  sameStep,
		shows: func(a, b Step) bool { return shows(a.Step, b.Step) && sameSecond(a.Timestamp, b.Timestamp, when) },
		text:  func(s Step) string { return s.Step },
		update: func(full, base, theirs Step) (Step, bool) {
			var a, b, c, d bool
			full.FilesCreated, a = mergeSet(full.FilesCreated, base.FilesCreated, theirs.FilesCreated)
			full.FilesModified, b = mergeSet(full.FilesModified, base.FilesModified, theirs.FilesModified)
			if c = base.RunAgain != theirs.RunAgain && full.RunAgain != theirs.RunAgain; c {
				full.RunAgain = theirs.RunAgain
			}
			full.Extra, d = mergeExtra(full.Extra, base.Extra, theirs.Extra)
			return full, a || b || c || d
		},
		adopt: func(s Step) Step {
			if s.Timestamp.IsZero() {
				s.Timestamp = when
			}
			return s
		},
	}
}

func decisionEntries(when time.Time) entries[Decision] {
	return entries[Decision]{
		same: func(a, b Decision) bool { return a.Decision == b.Decision && a.Timestamp.Equal(b.Timestamp) },
		shows: func(a, b Decision) bool {
			return shows(a.Decision, b.Decision) && sameSecond(a.Timestamp, b.Timestamp, when)
		},
		text: func(d Decision) string { return d.Decision },
		update: func(full, base, theirs Decision) (Decision, bool) {
			var a, b bool
			full.Rationale, a = newText(full.Rationale, base.Rationale, theirs.Rationale)
			full.Extra, b = mergeExtra(full.Extra, base.Extra, theirs.Extra)
			return full, a || b
		},
		adopt: func(d Decision) Decision {
			if d.Timestamp.IsZero() {
				d.Timestamp = when
			}
			return d
		},
	}
}

func approachEntries() entries[FailedApproach] {
	return entries[FailedApproach]{
		same:  func(a, b FailedApproach) bool { return a.What == b.What },
		shows: func(a, b FailedApproach) bool { return shows(a.What, b.What) },
		text:  func(a FailedApproach) string { return a.What },
		update: func(full, base, theirs FailedApproach) (FailedApproach, bool) {
			var a, b, c bool
			full.Outcome, a = newText(full.Outcome, base.Outcome, theirs.Outcome)
			full.Why, b = newText(full.Why, base.Why, theirs.Why)
			full.Extra, c = mergeExtra(full.Extra, base.Extra, theirs.Extra)
			return full, a || b || c
		},
		adopt: func(a FailedApproach) FailedApproach { return a },
	}
}

// resultEntries compares results, of which each activity has one. Those of other programs
// become results of an agent.
func resultEntries() entries[Result] {
	return entries[Result]{
		same:  func(a, b Result) bool { return a.Activity == b.Activity },
		shows: func(a, b Result) bool { return shows(a.Activity, b.Activity) },
		text:  func(r Result) string { return r.Activity },
		update: func(full, base, theirs Result) (Result, bool) {
			claimed := theirs.Status != base.Status && theirs.Status != full.Status ||
				!theirs.RunAt.Equal(base.RunAt) && !sameSecond(theirs.RunAt, full.RunAt, time.Time{})
			if claimed {
				full.Status, full.RunAt, full.RanBy = theirs.Status, theirs.RunAt, RanByAgent
			}
			var other bool
			full.Extra, other = mergeExtra(full.Extra, base.Extra, theirs.Extra)
			return full, claimed || other
		},
		newer: func(full, theirs Result) bool { return theirs.RunAt.IsZero() || theirs.RunAt.After(full.RunAt) },
		adopt: func(r Result) Result {
			r.RanBy = RanByAgent
			return r
		},
	}
}

// sameSecond compares a time of a checkpoint with one of a ledger, which has fractions.
// missing replaces a time that is missing in the checkpoint, as in the adoption.
func sameSecond(shown, full, missing time.Time) bool {
	return shown.Equal(full) || seconds(full).Equal(seconds(shown)) ||
		shown.IsZero() && seconds(full).Equal(seconds(missing))
}

// newText returns theirs if they changed it and the ledger does not have it already.
func newText(full, base, theirs string) (string, bool) {
	if theirs == base || theirs != "" && shows(theirs, full) || theirs == full {
		return full, false
	}
	return theirs, true
}

// mergeSet adds and removes the strings that they added and removed; the order stays.
func mergeSet(full, base, theirs []string) ([]string, bool) {
	merged := slices.Clone(full)
	merged = slices.DeleteFunc(merged,
		func(s string) bool { return slices.Contains(base, s) && !slices.Contains(theirs, s) })
	changed := len(merged) != len(full)
	for _, s := range theirs {
		if !slices.Contains(base, s) && !slices.Contains(merged, s) {
			merged = append(merged, s)
			changed = true
		}
	}
	return merged, changed
}

func mergeExtra(full, base, theirs Extra) (Extra, bool) {
	var m adoption
	merged := m.extra("", full, base, theirs)
	return merged, len(m.changes) > 0
}

// mergeList returns the list of a ledger with their changes.
func mergeList[T any](m *adoption, field string, lists three[T], e entries[T]) []T {
	s := &listMerge[T]{three: lists, entries: e}
	s.pair()
	removed := s.changeAndRemove(m, field)
	if e.ordered {
		s.reorder(m, field)
	}
	return s.insert(m, field, removed)
}

// three are the sides of a merge: the ledger's list, that of the last checkpoint, and
// that of the checkpoint in the file.
type three[T any] struct{ full, base, theirs []T }

type listMerge[T any] struct {
	three[T]
	entries[T]
	inBase []int // for each of theirs: its place in base, -1 for none
	inFull []int // for each of theirs: its place in the ledger, -1 for none
	ofBase []int // for each of base: its place in the ledger, -1 for none
}

// pair matches the entries of the three lists, each at most once.
func (s *listMerge[T]) pair() {
	s.full = slices.Clone(s.full)
	usedFull := make([]bool, len(s.full))
	next := 0 // entries that look alike are matched in order, so the search begins behind the last match
	locate := func(entry T) int {
		for i := range s.full {
			step := (next + i) % len(s.full)
			at := s.from(step, len(s.full))
			if !usedFull[at] && s.shows(entry, s.full[at]) {
				usedFull[at] = true
				next = step + 1
				return at
			}
		}
		return -1
	}
	s.ofBase = make([]int, len(s.base))
	for i := range s.base {
		at := s.from(i, len(s.base))
		s.ofBase[at] = locate(s.base[at])
	}
	usedBase := make([]bool, len(s.base))
	s.inBase, s.inFull = make([]int, len(s.theirs)), make([]int, len(s.theirs))
	for i, t := range s.theirs {
		s.inBase[i], s.inFull[i] = -1, -1
		for j, b := range s.base {
			if !usedBase[j] && s.same(b, t) {
				usedBase[j] = true
				s.inBase[i], s.inFull[i] = j, s.ofBase[j]
				break
			}
		}
	}
	next = 0
	for i, t := range s.theirs {
		if s.inBase[i] < 0 {
			s.inFull[i] = locate(t) // in the ledger already, or -1
		}
	}
}

// from returns the index of entry i of n, counted from the end that checkpoints show.
func (s *listMerge[T]) from(i, n int) int {
	if s.front {
		return i
	}
	return n - 1 - i
}

// changeAndRemove updates the kept entries and returns the indexes of the removed ones.
func (s *listMerge[T]) changeAndRemove(m *adoption, field string) map[int]bool {
	kept := make(map[int]bool)
	for i, t := range s.theirs {
		var base T
		if j := s.inBase[i]; j >= 0 {
			kept[j] = true
			base = s.base[j]
		}
		at := s.inFull[i]
		if at < 0 || s.inBase[i] < 0 && s.newer != nil && !s.newer(s.full[at], t) {
			continue
		}
		if updated, changed := s.update(s.full[at], base, t); changed {
			m.note(Change{Field: field, Kind: Modified, Old: s.text(s.full[at]), New: s.text(t)})
			s.full[at] = updated
		}
	}
	removed := make(map[int]bool)
	for j := range s.base {
		if at := s.ofBase[j]; !kept[j] && at >= 0 {
			removed[at] = true
			m.note(Change{Field: field, Kind: Removed, Old: s.text(s.full[at])})
		}
	}
	return removed
}

// reorder sorts the kept entries in their order; entries that the checkpoint did not show
// are not moved.
func (s *listMerge[T]) reorder(m *adoption, field string) {
	var places []int
	for i := range s.theirs {
		if s.inBase[i] >= 0 && s.inFull[i] >= 0 {
			places = append(places, s.inFull[i])
		}
	}
	slots := slices.Sorted(slices.Values(places))
	if slices.Equal(slots, places) {
		return
	}
	before := slices.Clone(s.full)
	moved := make(map[int]int, len(slots))
	for i, slot := range slots {
		s.full[slot] = before[places[i]]
		moved[places[i]] = slot
	}
	for i, at := range s.inFull {
		if to, ok := moved[at]; ok && s.inBase[i] >= 0 {
			s.inFull[i] = to
		}
	}
	m.note(Change{Field: field, Kind: Modified, New: "another order"})
}

// insert adds their new entries, each after the one that it follows there, and drops the
// removed ones.
func (s *listMerge[T]) insert(m *adoption, field string, removed map[int]bool) []T {
	behind := make(map[int][]T) // new entries by the index of the entry before
	last := s.beforeFirst()
	for i, t := range s.theirs {
		if s.inFull[i] >= 0 {
			last = s.inFull[i]
			continue
		}
		if s.inBase[i] >= 0 {
			continue // not in the ledger any more
		}
		t = s.adopt(t)
		m.note(Change{Field: field, Kind: Added, New: s.text(t)})
		behind[last] = append(behind[last], t)
	}
	if len(behind) == 0 && len(removed) == 0 {
		return s.full
	}
	merged := slices.Clone(behind[-1])
	for i, f := range s.full {
		if !removed[i] {
			merged = append(merged, f)
		}
		merged = append(merged, behind[i]...)
	}
	return merged
}

// beforeFirst returns the index after which their first entries are inserted: before the
// first one that the ledger has, else at its end.
func (s *listMerge[T]) beforeFirst() int {
	for _, at := range s.inFull {
		if at >= 0 {
			return at - 1
		}
	}
	return len(s.full) - 1
}

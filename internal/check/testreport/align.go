package testreport

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/volatile"
)

// Varies is how the identity of a test differs between two runs of the same files.
type Varies string

// Kinds of unstable identities. Zero: the identity is stable, as far as is known.
const (
	// InNumbers: only numbers, addresses, times and the like differ.
	InNumbers Varies = "numbers"
	// InWords: words differ; Test.Frame has what stays.
	InWords Varies = "words"
	// InPresence: the test was in one run only.
	InPresence Varies = "presence"
	// NotKnown: the test is not in the baseline, so nothing is known about its identity.
	NotKnown Varies = "not known"
)

// LooksUnstable reports whether the name of a test may differ in the next run: it has a
// time, a port, an address, a random ID or another large number in it.
func (r *Report) LooksUnstable() bool {
	return slices.ContainsFunc(r.Tests, func(t Test) bool { return volatile.IsSuspect(t.ID) })
}

// MarkUnstable returns the first report with those tests marked whose identities differ in
// a second run of the same files, which ended at now. A second run that did not end, or
// that has less than half of the tests, shows nothing: then the first report is returned.
func MarkUnstable(first, second *Report, now time.Time) *Report {
	if !second.Complete || len(second.Broken) > len(first.Broken) || 2*len(second.Tests) < len(first.Tests) {
		return first
	}
	marked := *first
	marked.Tests, marked.Repeated = slices.Clone(first.Tests), true
	for i := range marked.Tests {
		if t := &marked.Tests[i]; volatile.IsSuspect(t.ID) && volatile.HoldsNow(t.ID, now) {
			t.Varies = InNumbers
		}
	}
	only, others := apart(marked.Tests, slices.Clone(second.Tests))
	only, others = pairBy(only, others, ofID(volatile.Shape), func(t, _ *Test) { t.Varies = InNumbers })
	only, _ = pairSimilar(only, others, func(t, other *Test) {
		t.Varies, t.Frame = InWords, frameOf(t.ID, other.ID)
	})
	for _, t := range only {
		t.Varies = InPresence
	}
	return &marked
}

// Align returns a later report in which unstable tests of the baseline have the identities
// that they had there, so that they can be compared. What counts as the same test:
//
//   - tests whose names differ only in parts that are volatile by their form (a time, an
//     address), unless two runs of the baseline had the same name;
//   - tests whose names differed between two runs of the baseline, as far as they differed
//     then;
//   - tests with similar names if the baseline is itself a report that was aligned, and they
//     were new then.
//
// Tests with the same form are counted: of three, of which one was removed, one is
// missing. Stable tests only match by their whole identity.
func Align(baseline, now *Report) *Report {
	aligned := *now
	aligned.Tests = slices.Clone(now.Tests)
	before := slices.Clone(baseline.Tests)
	sortEqual(before, aligned.Tests)
	keepMarks(before, aligned.Tests)
	lost, fresh := apart(before, aligned.Tests)
	rename := func(t, n *Test) { n.ID, n.Suite, n.Varies, n.Frame = t.ID, t.Suite, t.Varies, t.Frame }
	lost, fresh = pairBy(lost, fresh, ofID(volatile.Untimed), rename)
	if !baseline.Repeated {
		lost, fresh = pairBy(lost, fresh, ofID(volatile.Steady), rename)
	}
	unstable := slices.DeleteFunc(lost, func(t *Test) bool { return t.Varies == "" })
	unstable, fresh = pairBy(unstable, fresh, ofID(volatile.Shape), rename)
	for _, t := range unstable {
		at := slices.IndexFunc(fresh, func(n *Test) bool { return fits(t, n) })
		if at >= 0 {
			rename(t, fresh[at])
			fresh = slices.Delete(fresh, at, at+1)
		}
	}
	for _, n := range fresh {
		n.Varies = NotKnown
	}
	return &aligned
}

// keepMarks copies the marks of the baseline to tests with the same identity.
func keepMarks(before, now []Test) {
	marked := make(map[string]*Test)
	for i := range before {
		if before[i].Varies != "" {
			marked[before[i].ID] = &before[i]
		}
	}
	for i := range now {
		if t := marked[now[i].ID]; t != nil {
			now[i].Varies, now[i].Frame = t.Varies, t.Frame
		}
	}
}

// apart returns the tests that only one of two lists has, as pointers into them.
func apart(a, b []Test) (onlyA, onlyB []*Test) {
	only := func(list, other []Test) []*Test {
		ids := make(map[string]bool, len(other))
		for i := range other {
			ids[other[i].ID] = true
		}
		var tests []*Test
		for i := range list {
			if !ids[list[i].ID] {
				tests = append(tests, &list[i])
			}
		}
		return tests
	}
	return only(a, b), only(b, a)
}

// pairBy calls do for pairs of tests with equal keys, first those that ended equally, and
// returns the tests that are left.
func pairBy(a, b []*Test, key func(t *Test) string, do func(a, b *Test)) (leftA, leftB []*Test) {
	a, b = pairEqual(a, b, func(t *Test) string { return key(t) + "\x00" + string(t.Outcome) }, do)
	return pairEqual(a, b, key, do)
}

func pairEqual(a, b []*Test, key func(t *Test) string, do func(a, b *Test)) (leftA, leftB []*Test) {
	if len(a) == 0 || len(b) == 0 {
		return a, b
	}
	byKey := make(map[string][]*Test)
	for _, t := range b {
		byKey[key(t)] = append(byKey[key(t)], t)
	}
	paired := make(map[*Test]bool)
	for _, t := range a {
		if list := byKey[key(t)]; len(list) > 0 {
			do(t, list[0])
			paired[list[0]] = true
			byKey[key(t)] = list[1:]
		} else {
			leftA = append(leftA, t)
		}
	}
	return leftA, slices.DeleteFunc(slices.Clone(b), func(t *Test) bool { return paired[t] })
}

// ofID is a key of tests: their identity, changed by a function.
func ofID(replace func(id string) string) func(t *Test) string {
	memo := make(map[*Test]string) // before a pair is renamed
	return func(t *Test) string {
		if _, known := memo[t]; !known {
			memo[t] = replace(t.ID)
		}
		return memo[t]
	}
}

// maxSimilar limits the tests of a suite that are searched for similar names.
const maxSimilar = 200

// pairSimilar calls do for pairs of tests of the same suite, each with the most similar
// name that is left.
func pairSimilar(a, b []*Test, do func(a, b *Test)) (leftA, leftB []*Test) {
	for _, t := range a {
		at, most := -1, -1
		for i, n := range b[:min(len(b), maxSimilar)] {
			frame := frameOf(t.ID, n.ID)
			if size := len(frame[0]) + len(frame[1]); volatile.Shape(n.Suite) == volatile.Shape(t.Suite) && size > most {
				at, most = i, size
			}
		}
		if at < 0 {
			leftA = append(leftA, t)
			continue
		}
		do(t, b[at])
		b = slices.Delete(slices.Clone(b), at, at+1)
	}
	return leftA, b
}

// frameOf returns the beginning and the end that two identities share, in whole words.
func frameOf(a, b string) [2]string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < min(len(a), len(b))-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	begin, end := a[:n], a[len(a)-m:]
	begin = begin[:strings.LastIndexAny(begin, " [(/:")+1]
	at := strings.IndexAny(end, " ])/:")
	if at < 0 {
		at = len(end)
	}
	return [2]string{begin, strings.TrimLeft(end[at:], " ")}
}

// fits reports whether a test may be an unstable one of the baseline with other words.
func fits(t, n *Test) bool {
	return (t.Varies == InWords || t.Varies == NotKnown) && volatile.Shape(t.Suite) == volatile.Shape(n.Suite) &&
		len(n.ID) >= len(t.Frame[0])+len(t.Frame[1]) && strings.HasPrefix(n.ID, t.Frame[0]) &&
		strings.HasSuffix(n.ID, t.Frame[1])
}

// sortEqual exchanges the identities of tests with the same name (x, x#2), so that they end
// as in the baseline as far as possible: their order may be random.
func sortEqual(before, now []Test) {
	was, is := equalNames(before), equalNames(now)
	for name, list := range was {
		others := is[name]
		if len(list) < 2 || len(others) < 2 {
			continue
		}
		var ids []string
		for _, n := range others {
			ids = append(ids, n.ID)
		}
		byID := make(map[string]Outcome, len(list))
		for _, t := range list {
			byID[t.ID] = t.Outcome
		}
		left := slices.Clone(others)
		for i, id := range ids {
			at := slices.IndexFunc(left, func(n *Test) bool { return n.Outcome == byID[id] })
			if at >= 0 {
				left[at].ID = id
				left, ids[i] = slices.Delete(left, at, at+1), ""
			}
		}
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" })
		for i, n := range left {
			n.ID = ids[i]
		}
	}
}

// equalNames returns the tests by their identity without the number of its repetition, if
// a test has that identity.
func equalNames(tests []Test) map[string][]*Test {
	groups := make(map[string][]*Test)
	for i := range tests {
		if t := &tests[i]; !isNumbered(t.ID) {
			groups[t.ID] = append(groups[t.ID], t)
		}
	}
	for i := range tests {
		t := &tests[i]
		if name := t.ID[:max(strings.LastIndexByte(t.ID, '#'), 0)]; isNumbered(t.ID) && groups[name] != nil {
			groups[name] = append(groups[name], t)
		}
	}
	return groups
}

// isNumbered reports whether an identity ends with the number of a repetition.
func isNumbered(id string) bool {
	_, err := strconv.Atoi(id[strings.LastIndexByte(id, '#')+1:])
	return err == nil && strings.Contains(id, "#")
}

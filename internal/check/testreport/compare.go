package testreport

import (
	"slices"
	"strings"
)

// Verdict is the result of comparing a test, or a whole run.
type Verdict string

// Verdicts, from good to bad.
const (
	// Clean: as good as in the baseline.
	Clean Verdict = "clean"
	// FixedBaseline: failed in the baseline and passes now.
	FixedBaseline Verdict = "fixed baseline"
	// BaselineBroken: failed in the baseline and still does, or could not run then.
	BaselineBroken Verdict = "baseline broken"
	// Regressed: worse than in the baseline.
	Regressed Verdict = "regressed"
)

// Change is a test whose outcome changed.
type Change struct {
	ID string `json:"id"`
	// Before and Now are the outcomes; empty where the test did not exist.
	Before Outcome `json:"before,omitempty"`
	Now    Outcome `json:"now,omitempty"`
	// File is the test's file, if known.
	File string `json:"file,omitempty"`
	// Message is the current message of the test; for one that did not run, that of its
	// suite.
	Message string `json:"message,omitempty"`
	// Verdict is the verdict of this change.
	Verdict Verdict `json:"verdict"`
}

// Diff is the difference between the baseline's report and a later one. The lists are
// sorted by identity and disjoint. Tests that pass, or are disabled, in both are in none
// of them.
type Diff struct {
	// Lost tests are in the baseline and not in the report, although their suite ran. A
	// renamed test is among them, with the new name among New; other packages match them.
	Lost []Change `json:"lost,omitempty"`
	// Unrun tests are not in the report because their suite did not build or load, crashed,
	// or did not finish.
	Unrun []Change `json:"unrun,omitempty"`
	// NewlySkipped tests counted in the baseline and are disabled now: skipped, marked as
	// expected to fail, or marked as to do.
	NewlySkipped []Change `json:"newly_skipped,omitempty"`
	// NewlyFailing tests passed in the baseline.
	NewlyFailing []Change `json:"newly_failing,omitempty"`
	// StillFailing tests failed in the baseline, too.
	StillFailing []Change `json:"still_failing,omitempty"`
	// Fixed tests failed in the baseline and pass.
	Fixed []Change `json:"fixed,omitempty"`
	// Enabled tests were disabled in the baseline and count now, whether they pass or fail.
	Enabled []Change `json:"enabled,omitempty"`
	// New tests are not in the baseline.
	New []Change `json:"new,omitempty"`
	// Flaky tests failed and passed on the same code; otherwise they would be among
	// NewlyFailing or StillFailing.
	Flaky []Change `json:"flaky,omitempty"`
	// Broken are the suites that could not run now; NewlyBroken is set if one of them could
	// in the baseline.
	Broken      []Broken `json:"broken,omitempty"`
	NewlyBroken bool     `json:"newly_broken,omitempty"`
	// Incomplete is why the report lacks the runner's end record; empty if it has it.
	Incomplete string `json:"incomplete,omitempty"`
	// Before and Now count the tests of both reports. FewerExecuted is how many fewer tests
	// were executed than in the baseline, at least 0.
	Before        Counts `json:"before"`
	Now           Counts `json:"now"`
	FewerExecuted int    `json:"fewer_executed,omitempty"`
	// Verdict is that of the whole run: regressed if a test is, a suite is newly broken, or
	// the end record is newly missing; else baseline broken if something failed before and
	// still does; else fixed baseline if something was fixed; else clean. Failing new tests
	// do not change it.
	Verdict Verdict `json:"verdict"`
}

// Compare compares the tests of the baseline with a later report, in which unstable tests
// are found by Align. It changes neither report; the same reports give the same result.
func Compare(baseline, now *Report) Diff {
	now = Align(baseline, now)
	d := Diff{Before: baseline.Counts(), Now: now.Counts(), Broken: slices.Clone(now.Broken), Incomplete: now.Reason}
	d.FewerExecuted = max(d.Before.Executed-d.Now.Executed, 0)
	d.NewlyBroken = newlyBroken(baseline, now)
	present := make(map[string]*Test, len(now.Tests))
	for i := range now.Tests {
		present[now.Tests[i].ID] = &now.Tests[i]
	}
	known := make(map[string]bool, len(baseline.Tests))
	gone := newAbsence(now.Broken)
	for i := range baseline.Tests {
		t := &baseline.Tests[i]
		known[t.ID] = true
		if n := present[t.ID]; n != nil {
			d.both(t, n)
		} else {
			d.absent(t, gone)
		}
	}
	for i := range now.Tests {
		if t := &now.Tests[i]; !known[t.ID] {
			d.New = append(d.New, change(t.ID, "", t, Clean))
		}
	}
	for _, list := range d.lists() {
		sortByID(*list)
	}
	d.Verdict = d.overall(baseline)
	return d
}

func (d *Diff) lists() []*[]Change {
	return []*[]Change{&d.Lost, &d.Unrun, &d.NewlySkipped, &d.NewlyFailing, &d.StillFailing, &d.Fixed, &d.Enabled,
		&d.New, &d.Flaky}
}

// Regressed returns the changes that count as regressions, sorted by identity.
func (d *Diff) Regressed() []Change {
	var all []Change
	for _, list := range d.lists() {
		for _, c := range *list {
			if c.Verdict == Regressed {
				all = append(all, c)
			}
		}
	}
	sortByID(all)
	return all
}

func sortByID(list []Change) {
	slices.SortFunc(list, func(a, b Change) int { return strings.Compare(a.ID, b.ID) })
}

func change(id string, before Outcome, now *Test, v Verdict) Change {
	c := Change{ID: id, Before: before, Verdict: v}
	if now != nil {
		c.Now, c.File, c.Message = now.Outcome, now.File, now.Message
	}
	return c
}

// both classifies a test that is in both reports.
func (d *Diff) both(before, now *Test) {
	put := func(list *[]Change, v Verdict) { *list = append(*list, change(now.ID, before.Outcome, now, v)) }
	was, is := before.Outcome, now.Outcome
	switch {
	case now.Flaky && is.Guards() && was.Guards():
		put(&d.Flaky, Clean)
	case was.Guards() && !is.Guards():
		put(&d.NewlySkipped, Regressed)
	case !was.Guards() && is.Guards():
		put(&d.Enabled, Clean)
	case was == Passed && is.Fails():
		put(&d.NewlyFailing, Regressed)
	case was.Fails() && is == Passed:
		put(&d.Fixed, FixedBaseline)
	case was.Fails() && is.Fails():
		put(&d.StillFailing, BaselineBroken)
	}
}

// absent classifies a test that only the baseline has.
func (d *Diff) absent(t *Test, gone absence) {
	if t.Varies == InPresence {
		return // it was absent in the baseline, too
	}
	c := change(t.ID, t.Outcome, nil, Regressed)
	c.File = t.File
	if why := gone.of(t); why != nil {
		c.Message = why.Message
		d.Unrun = append(d.Unrun, c)
		return
	}
	d.Lost = append(d.Lost, c)
}

// absence holds the suites whose tests may be missing for another reason than their
// deletion.
type absence map[string]*Broken

func newAbsence(broken []Broken) absence {
	a := make(absence, len(broken))
	for i := range broken {
		if b := &broken[i]; a[b.Suite] == nil && b.Kind != Exit {
			a[b.Suite] = b // a suite that failed at its end ran all its tests
		}
	}
	return a
}

// of returns the broken suite that a test belongs to: its own, its file, one that
// contains its suite (tests.test_a contains tests.test_a.TestC), or the whole run.
func (a absence) of(t *Test) *Broken {
	if len(a) == 0 {
		return nil
	}
	for _, name := range [...]string{t.Suite, t.File} {
		if b := a[name]; name != "" && b != nil {
			return b
		}
	}
	for name := t.Suite; ; {
		cut := strings.LastIndexByte(name, '.')
		if cut < 0 {
			return a[""]
		}
		name = name[:cut]
		if b := a[name]; b != nil {
			return b
		}
	}
}

func newlyBroken(baseline, now *Report) bool {
	before := make(map[string]bool, len(baseline.Broken))
	for _, b := range baseline.Broken {
		before[b.Suite] = true
	}
	for _, b := range now.Broken {
		if !before[b.Suite] && !before[""] {
			return true
		}
	}
	return false
}

func (d *Diff) overall(baseline *Report) Verdict {
	switch {
	case len(d.Regressed()) > 0, d.NewlyBroken, d.Incomplete != "" && baseline.Complete:
		return Regressed
	case len(d.StillFailing) > 0, len(d.Broken) > 0:
		return BaselineBroken
	case len(d.Fixed) > 0, len(baseline.Broken) > 0:
		return FixedBaseline
	}
	return Clean
}

// MarkFlaky returns the first report with those tests marked as flaky that ended
// differently in a repetition on the same code. A test that is disabled or missing in the
// repetition is not flaky.
func MarkFlaky(first *Report, again ...*Report) *Report {
	seen := make(map[string][2]bool) // identity to: passed, failed
	for i, r := range append([]*Report{first}, again...) {
		if i > 0 {
			r = Align(first, r)
		}
		for i := range r.Tests {
			t := &r.Tests[i]
			s := seen[t.ID]
			s[0] = s[0] || t.Outcome == Passed || t.Flaky
			s[1] = s[1] || t.Outcome.Fails() || t.Flaky
			seen[t.ID] = s
		}
	}
	marked := *first
	marked.Tests = slices.Clone(first.Tests)
	for i := range marked.Tests {
		t := &marked.Tests[i]
		t.Flaky = t.Flaky || (t.Outcome.Guards() && seen[t.ID] == [2]bool{true, true})
	}
	return &marked
}

// MarkNotRun returns the report of a command that ended after a failure without running
// everything (Maven's modules after one that failed, the second of two runners): suites
// of the baseline that it does not name become broken ones, so that their tests do not
// count as deleted. Inside is set if the command may also end within a suite (pytest -x):
// then no missing test counts as deleted. Use it only for failed commands of that kind;
// why is their message.
func MarkNotRun(baseline, now *Report, inside bool, why string) *Report {
	named := make(map[string]bool)
	for i := range now.Tests {
		named[now.Tests[i].Suite] = true
	}
	for _, b := range now.Broken {
		named[b.Suite] = true
	}
	marked := *now
	marked.Broken = slices.Clone(now.Broken)
	if inside {
		marked.Broken = append(marked.Broken, Broken{Kind: NotRun, Message: why})
		return &marked
	}
	for i := range baseline.Tests {
		if suite := baseline.Tests[i].Suite; suite != "" && !named[suite] {
			named[suite] = true
			marked.Broken = append(marked.Broken, Broken{Suite: suite, Kind: NotRun, Message: why})
		}
	}
	return &marked
}

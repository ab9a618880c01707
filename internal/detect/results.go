package detect

import (
	"cmp"
	"fmt"
)

// Results are test results of both versions, compared by the caller: baseline tests by
// what became of them. A test that Run finds under another name does not count as missing
// if that name was executed.
type Results struct {
	// Finished is false if the run ended without the test runner's end record; an exit code
	// is no proof. Why is the evidence.
	Finished bool
	Why      string
	// Missing tests were not executed, Skipped ones are newly skipped, Failing ones passed
	// before.
	Missing, Skipped, Failing []TestName
	// Executed are the tests that ran; may be nil if none is missing.
	Executed []TestName
	// Lost are files with lines that were covered, still exist, and are no longer covered.
	Lost []LostLines
}

// LostLines are the lines of a file that lost their coverage.
type LostLines struct {
	File string
	// Line is the first of them, Count their number.
	Line, Count int
	// Percent is their share of the file's covered lines that still exist. From Threshold
	// on it is a finding; 0 is DefaultLost.
	Percent, Threshold float64
}

// Shares of covered lines, in percent, from which a loss is a finding; SensitiveLost is
// for sensitive paths.
const (
	DefaultLost   = 2.0
	SensitiveLost = 0.5
)

// results turns test results into findings.
func (r *run) results() {
	in := r.in.Results
	if in == nil {
		return
	}
	if !in.Finished {
		r.add(Finding{Message: "test run did not finish: its report has no end record", Evidence: in.Why}, runUnfinished)
	}
	executed := make(map[TestName]bool)
	for _, t := range in.Executed {
		executed[t] = true
	}
	excused := make(map[TestName]bool)
	for i := range r.report.Moved {
		m := &r.report.Moved[i]
		if m.To.Name == "" || executed[m.To] || executed[TestName{Name: m.To.Name}] {
			excused[m.From] = true
		}
	}
	for _, t := range in.Missing {
		if !excused[t] {
			r.add(Finding{File: t.File, Subject: t.Name, Evidence: t.Name}, resultMissing)
		}
	}
	for _, t := range in.Skipped {
		r.add(Finding{File: t.File, Subject: t.Name, Evidence: t.Name}, resultSkipped)
	}
	for _, t := range in.Failing {
		r.add(Finding{File: t.File, Subject: t.Name, Evidence: t.Name}, resultFailing)
	}
	for _, l := range in.Lost {
		if l.Percent >= cmp.Or(l.Threshold, DefaultLost) {
			r.add(Finding{File: l.File, Line: l.Line, Subject: l.File,
				Evidence: fmt.Sprintf("%d lines, %.1f %% of the file's", l.Count, l.Percent),
				Message:  fmt.Sprintf("%d lines no longer covered by tests", l.Count)}, coverageLost)
		}
	}
}

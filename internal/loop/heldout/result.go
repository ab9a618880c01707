package heldout

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/workspace"
)

// State is how a run of the check ended.
type State string

// States of a run.
const (
	Passed State = "passed"
	Failed State = "failed"
	// NotRun: it is not known whether the work passes, for a reason. It never counts as passed.
	NotRun State = "not_run"
)

// Result is one run of the check for an iteration.
type Result struct {
	Iteration int `json:"iteration"`
	// Snapshot is the version of the files that was checked.
	Snapshot workspace.ID `json:"snapshot"`
	State    State        `json:"state"`
	// Why is the reason if the check was not run.
	Why string `json:"why,omitempty"`
	// Visible and HeldOut are the shares of passing tests of the completion command and of the check,
	// in percent, and Gap is their difference in points; nil if the check was not run. ByName is set
	// if the tests of both are known; otherwise the commands as a whole count.
	ByName  bool     `json:"by_name"`
	Visible float64  `json:"visible_percent"`
	HeldOut float64  `json:"held_out_percent"`
	Gap     *float64 `json:"gap_points"`
	// Tests and Passing count the tests of the check, Failing names some of those that fail.
	Tests   int      `json:"tests"`
	Passing int      `json:"passing"`
	Failing []string `json:"failing,omitempty"`
	// Exit is the exit status, Output the end of the output.
	Exit   int    `json:"exit"`
	Output string `json:"output,omitempty"`
	// Open is why the check ran without a sandbox: code of the agent that it runs could then leave
	// what it reads for the agent.
	Open string `json:"without_sandbox,omitempty"`
	// Exposed is why the files of the check are not hidden from the agent; empty if they are.
	Exposed string `json:"not_hidden,omitempty"`

	TookMS int64     `json:"took_ms"`
	At     time.Time `json:"timestamp"`
}

const (
	maxFailing = 20
	percents   = 100
)

// Run is what a run of a command came to.
type Run struct {
	Passed bool
	// Report has the test results; nil if only the exit status is known.
	Report *testreport.Report
}

// Compare sets the state and the gap of a result.
func (r *Result) Compare(visible, held *Run) {
	r.State = Failed
	if held.Passed {
		r.State = Passed
	}
	seen, passingSeen := count(visible.Report)
	r.Tests, r.Passing = count(held.Report)
	r.ByName = seen > 0 && r.Tests > 0
	if r.ByName {
		r.Visible = percents * float64(passingSeen) / float64(seen)
		r.HeldOut = percents * float64(r.Passing) / float64(r.Tests)
	} else {
		r.Visible, r.HeldOut = whole(visible.Passed), whole(held.Passed)
	}
	r.Gap = new(r.Visible - r.HeldOut)
	if held.Report == nil {
		return
	}
	for _, t := range held.Report.Failing() {
		if len(r.Failing) < maxFailing {
			r.Failing = append(r.Failing, t.ID)
		}
	}
}

func whole(passed bool) float64 {
	if passed {
		return percents
	}
	return 0
}

// count counts the tests of a report that a failure counts of, and those of them that pass. A suite
// that could not run counts as a test that fails.
func count(report *testreport.Report) (tests, passing int) {
	if report == nil {
		return 0, 0
	}
	c := report.Counts()
	return c.Passed + c.Failed + c.BrokenRuns, c.Passed
}

// Over reports whether the gap is larger than a limit, or not known.
func (r *Result) Over(limit float64) bool { return r.Gap == nil || *r.Gap > limit }

// Text describes the result in a few words.
func (r *Result) Text() string {
	switch {
	case r.State == NotRun:
		return "not run: " + r.Why
	case r.ByName:
		return fmt.Sprintf("%s: %d of %s (%.0f %%), the visible check %.0f %%: gap %.0f points", r.State, r.Passing,
			human.Count(int64(r.Tests), "test"), r.HeldOut, r.Visible, *r.Gap)
	}
	return fmt.Sprintf("%s (exit status %d), compared as a whole: gap %.0f points", r.State, r.Exit, *r.Gap)
}

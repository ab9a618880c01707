package testreport

import (
	"time"
)

// Outcome is how a test ended.
type Outcome string

// The outcomes. A test guards while its failure would count: passed, failed
// and unfinished ones do, all others are switched off in some way.
const (
	// Passed tests ran and succeeded.
	Passed Outcome = "passed"
	// Failed tests ran and did not; errors outside of assertions included, and
	// strict expected failures that passed.
	Failed Outcome = "failed"
	// Unfinished tests began and have no end in the report.
	Unfinished Outcome = "unfinished"
	// Skipped tests did not run.
	Skipped Outcome = "skipped"
	// XFail tests failed, as they are marked to do.
	XFail Outcome = "xfail"
	// XPass tests are marked to fail (or as work to be done) and passed.
	XPass Outcome = "xpass"
	// Todo tests are marked as work to be done; whether they ran depends on the
	// runner, and their failure does not count.
	Todo Outcome = "todo"
)

// Guards tells whether a failure of a test with this outcome counts.
func (o Outcome) Guards() bool { return o == Passed || o.Fails() }

// Fails tells whether the outcome is a failure.
func (o Outcome) Fails() bool { return o == Failed || o == Unfinished }

// Executed tells whether the test's code ran.
func (o Outcome) Executed() bool {
	return o.Guards() || o == XFail || o == XPass
}

// Test is one test of a report.
type Test struct {
	// ID is the identity; unique within a report. See the package comment.
	ID string `json:"id"`
	// Outcome is how it ended.
	Outcome Outcome `json:"outcome"`
	// Suite is what holds the test as its runner names it: the package, class,
	// file or binary. Name is the test's name in there, as filters of the
	// runner take it.
	Suite string `json:"suite,omitempty"`
	Name  string `json:"name"`
	// File is the file of the test, relative to the workspace when it is inside;
	// empty when the runner does not tell.
	File string `json:"file,omitempty"`
	// Duration is what the runner measured; 0 when it does not tell.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Message is the beginning of what a test that failed or was skipped told,
	// without colours, at most Config.MaxMessage bytes.
	Message string `json:"message,omitempty"`
	// Flaky tells that attempts of the same code ended differently: the runner
	// repeated the test, or MarkFlaky saw other outcomes.
	Flaky bool `json:"flaky,omitempty"`
}

// Kind is why a suite could not run as a whole.
type Kind string

// The kinds of broken suites.
const (
	// Build failures: the suite did not compile, or its setup failed before.
	Build Kind = "build"
	// Load failures: the file could not be loaded, collected or set up.
	Load Kind = "load"
	// Crash: the process ended in the middle of the tests.
	Crash Kind = "crash"
	// Timeout: the runner ended the process after its limit of time.
	Timeout Kind = "timeout"
	// Exit: the suite failed and no test of it did.
	Exit Kind = "exit"
	// Incomplete: the end record is missing.
	Incomplete Kind = "incomplete"
	// NotRun: the command ended before it came to the suite. Only MarkNotRun
	// says so.
	NotRun Kind = "not run"
)

// Broken is a suite whose tests, or some of them, could not run. Their absence
// proves nothing.
type Broken struct {
	// Suite is that of the tests; empty for the whole run.
	Suite string `json:"suite,omitempty"`
	// Kind says what happened.
	Kind Kind `json:"kind"`
	// Message is the beginning of what was told, at most Config.MaxMessage
	// bytes.
	Message string `json:"message,omitempty"`
}

// Report is what one run of the tests said. It is a value to store and to
// compare; nothing in it refers to the input.
type Report struct {
	// Format is that of the input; empty after a merge of different ones.
	Format Format `json:"format,omitempty"`
	// Tests are in the order in which the report named them first.
	Tests []Test `json:"tests"`
	// Complete tells whether the runner's end record was seen and agrees with
	// the tests. Reason says why not; it is empty when Complete is true.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"`
	// Broken are the suites that could not run.
	Broken []Broken `json:"broken,omitempty"`
	// Ignored counts the lines that belong to no format (other output between).
	Ignored int `json:"ignored,omitempty"`
}

// Counts are the numbers of tests by outcome.
type Counts struct {
	Tests      int `json:"tests"`
	Passed     int `json:"passed"`
	Failed     int `json:"failed"` // unfinished ones included
	Skipped    int `json:"skipped"`
	XFail      int `json:"xfail,omitempty"`
	XPass      int `json:"xpass,omitempty"`
	Todo       int `json:"todo,omitempty"`
	Flaky      int `json:"flaky,omitempty"`
	Executed   int `json:"executed"`
	BrokenRuns int `json:"broken,omitempty"` // suites that could not run
}

// Counts counts the tests by outcome.
func (r *Report) Counts() Counts {
	c := Counts{Tests: len(r.Tests), BrokenRuns: len(r.Broken)}
	for i := range r.Tests {
		t := &r.Tests[i]
		switch t.Outcome {
		case Passed:
			c.Passed++
		case Failed, Unfinished:
			c.Failed++
		case Skipped:
			c.Skipped++
		case XFail:
			c.XFail++
		case XPass:
			c.XPass++
		case Todo:
			c.Todo++
		}
		if t.Outcome.Executed() {
			c.Executed++
		}
		if t.Flaky {
			c.Flaky++
		}
	}
	return c
}

// Failing returns the tests that failed and are not known as flaky, in the
// report's order: those to run again.
func (r *Report) Failing() []Test {
	var failing []Test
	for _, t := range r.Tests {
		if t.Outcome.Fails() && !t.Flaky {
			failing = append(failing, t)
		}
	}
	return failing
}

// OK tells whether the run proves what it should: complete, nothing broken, no
// test failing, flaky ones included.
func (r *Report) OK() bool {
	if !r.Complete || len(r.Broken) > 0 {
		return false
	}
	for i := range r.Tests {
		if r.Tests[i].Outcome.Fails() {
			return false
		}
	}
	return true
}

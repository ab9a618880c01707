package testreport

import "time"

// Outcome is how a test ended.
type Outcome string

// Outcomes. A test guards if its failure would count: passed, failed and unfinished ones
// do, all others are disabled in some way.
const (
	// Passed tests ran and succeeded.
	Passed Outcome = "passed"
	// Failed tests ran and failed; this includes errors outside of assertions, and strict
	// expected failures that passed.
	Failed Outcome = "failed"
	// Unfinished tests began and have no end in the report.
	Unfinished Outcome = "unfinished"
	// Skipped tests did not run.
	Skipped Outcome = "skipped"
	// XFail tests failed as expected.
	XFail Outcome = "xfail"
	// XPass tests are marked to fail (or as to do) and passed.
	XPass Outcome = "xpass"
	// Todo tests are marked as to do; whether they ran depends on the runner, and their
	// failure does not count.
	Todo Outcome = "todo"
)

// Guards reports whether a failure of a test with this outcome counts.
func (o Outcome) Guards() bool { return o == Passed || o.Fails() }

// Fails reports whether the outcome is a failure.
func (o Outcome) Fails() bool { return o == Failed || o == Unfinished }

// Executed reports whether the test's code ran.
func (o Outcome) Executed() bool {
	return o.Guards() || o == XFail || o == XPass
}

// Test is one test of a report.
type Test struct {
	// ID is the identity, unique within a report. See the package comment.
	ID string `json:"id"`
	// Outcome is the result.
	Outcome Outcome `json:"outcome"`
	// Suite is the test's container as its runner names it: the package, class, file or
	// binary. Name is the test's name in it, as the runner's filters accept it.
	Suite string `json:"suite,omitempty"`
	Name  string `json:"name"`
	// File is the file of the test, relative to the workspace if it is inside; empty if the
	// runner does not name it.
	File string `json:"file,omitempty"`
	// Duration is the time measured by the runner; 0 if there is none.
	Duration time.Duration `json:"duration_ns,omitempty"`
	// Message is the beginning of the output of a failed or skipped test, without colours,
	// at most Config.MaxMessage bytes.
	Message string `json:"message,omitempty"`
	// Flaky is set if attempts of the same code ended differently: the runner repeated the
	// test, or MarkFlaky found other outcomes.
	Flaky bool `json:"flaky,omitempty"`
	// Varies is set if the identity differs between runs of the same files. Frame is the
	// beginning and the end of an identity that differs in words. See MarkUnstable.
	Varies Varies    `json:"varies,omitempty"`
	Frame  [2]string `json:"frame,omitzero"`
}

// Kind is why a suite could not run as a whole.
type Kind string

// Kinds of broken suites.
const (
	// Build failures: the suite did not compile, or its setup failed before.
	Build Kind = "build"
	// Load failures: the file could not be loaded, collected or set up.
	Load Kind = "load"
	// Crash: the process ended during the tests.
	Crash Kind = "crash"
	// Timeout: the runner ended the process at its time limit.
	Timeout Kind = "timeout"
	// Exit: the suite failed and no test of it did.
	Exit Kind = "exit"
	// Incomplete: the end record is missing.
	Incomplete Kind = "incomplete"
	// NotRun: the command ended before the suite. Only MarkNotRun sets it.
	NotRun Kind = "not run"
)

// Broken is a suite whose tests, or some of them, could not run. Their absence from the
// report does not mean that they were deleted.
type Broken struct {
	// Suite is the suite of the tests; empty for the whole run.
	Suite string `json:"suite,omitempty"`
	// Kind is the cause.
	Kind Kind `json:"kind"`
	// Message is the beginning of the output, at most Config.MaxMessage bytes.
	Message string `json:"message,omitempty"`
}

// Report is the result of one run of the tests. It holds no reference to the input.
type Report struct {
	// Format is the format of the input; empty after a merge of different ones.
	Format Format `json:"format,omitempty"`
	// Tests are in the order of their first occurrence.
	Tests []Test `json:"tests"`
	// Complete is set if the runner's end record was found and agrees with the tests.
	// Otherwise Reason is why not.
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"`
	// Broken are the suites that could not run.
	Broken []Broken `json:"broken,omitempty"`
	// Repeated is set if a second run of the same files showed which identities are
	// unstable; the others are stable.
	Repeated bool `json:"repeated,omitempty"`
	// Ignored counts the lines that do not belong to the format (other output in between).
	Ignored int `json:"ignored,omitempty"`
}

// Counts are the numbers of tests by outcome.
type Counts struct {
	Tests      int `json:"tests"`
	Passed     int `json:"passed"`
	Failed     int `json:"failed"` // including unfinished ones
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

// Failing returns the tests that failed and are not known as flaky, in the report's
// order: those to rerun.
func (r *Report) Failing() []Test {
	var failing []Test
	for _, t := range r.Tests {
		if t.Outcome.Fails() && !t.Flaky {
			failing = append(failing, t)
		}
	}
	return failing
}

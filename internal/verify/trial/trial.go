package trial

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/verify/mutate"
	"github.com/perdure/perdure/internal/workspace"
)

// Result is what a trial found out about a test.
type Result string

const (
	// Killed: a mutation made the test fail.
	Killed Result = "killed"
	// Survived: the test passes with every mutation.
	Survived Result = "survived"
	// Undetermined: it is not known, for a reason.
	Undetermined Result = "undetermined"
)

// Trial is the result for one test.
type Trial struct {
	// Test is the identity of the test, File its file.
	Test   string `json:"test"`
	File   string `json:"file"`
	Result Result `json:"result"`
	// Why is the reason why nothing is known.
	Why string `json:"why,omitempty"`
	// Mutation is the one that the test failed with, or the first of those that it passed with, and
	// Tried the number of mutations that it ran with.
	Mutation *mutate.Mutation `json:"mutation,omitempty"`
	Tried    int              `json:"tried,omitempty"`
}

// Text says what a test that survived did not notice.
func (t *Trial) Text() string {
	m := t.Mutation
	text := fmt.Sprintf("the test %q passes although line %d of %s is changed from %q to %q", t.Test, m.Line, m.Path,
		m.Before, m.After)
	if t.Tried > 1 {
		text += fmt.Sprintf(", and with %s of the lines that the iteration changed",
			human.Count(int64(t.Tried-1), "other change"))
	}
	return text + ": it does not test this work"
}

// Survivors returns the text of each test that survived.
func Survivors(trials []Trial) []string {
	var texts []string
	for i := range trials {
		if trials[i].Result == Survived {
			texts = append(texts, trials[i].Text())
		}
	}
	return texts
}

const (
	// maxMutations is how many mutations tests are tried with at most.
	maxMutations = 8
	// maxTests is how many new or changed tests of an iteration are tried.
	maxTests = 100
)

// Config is an iteration and how its tests are run.
type Config struct {
	Files *workspace.Workspace
	// Between are the snapshots before and after the iteration, and Report its test results; nil if
	// only the exit status is known.
	Between *evidence.Between
	Report  *testreport.Report
	// Copy makes the copy in which the tests run, in a sandbox; Run runs some tests in it, and
	// returns the results, nil if there are none. Their errors are those of the machine and of the
	// context. A limit of 0 is none.
	Copy func(ctx context.Context) (*cleancheck.Place, error)
	Run  func(ctx context.Context, at *cleancheck.Place, tests []testreport.Test, limit time.Duration) (
		*testreport.Report, error)
	// Budget is the time for all of it.
	Budget time.Duration
}

// errBudget is why a trial ended early.
var errBudget = errors.New("no time was left")

// Do tries the tests that an iteration added or changed; without any it returns nothing. Errors are
// those of the snapshots and of the context.
func Do(ctx context.Context, cfg *Config) ([]Trial, error) {
	if cfg.Report == nil {
		return nil, nil
	}
	files, err := read(ctx, cfg)
	if err != nil {
		return nil, err
	}
	tests := newTests(cfg.Report, files)
	if len(tests) == 0 {
		return nil, nil
	}
	t := &trials{cfg: cfg, files: files, tests: tests, mutations: mutations(files), all: make([]Trial, len(tests))}
	for i := range tests {
		t.all[i] = Trial{Test: tests[i].ID, File: tests[i].File, Result: Undetermined}
	}
	timed, stop := context.WithTimeoutCause(ctx, cfg.Budget, errBudget)
	defer stop()
	why, err := t.run(timed)
	if errors.Is(context.Cause(timed), errBudget) && ctx.Err() == nil {
		why, err = errBudget.Error(), nil
	}
	t.conclude(why)
	return t.all, err
}

// trials is the state of Do.
type trials struct {
	cfg       *Config
	files     map[string]*changed
	tests     []testreport.Test
	all       []Trial
	mutations []mutate.Mutation
}

// mutations returns those to try: of each file in turn.
func mutations(files map[string]*changed) []mutate.Mutation {
	var lists [][]mutate.Mutation
	for _, path := range slices.Sorted(maps.Keys(files)) {
		lists = append(lists, files[path].mutations(path))
	}
	var all []mutate.Mutation
	for k := range maxMutations {
		for _, of := range lists {
			if k < len(of) && len(all) < maxMutations {
				all = append(all, of[k])
			}
		}
	}
	return all
}

// run runs the tests with one mutation after the other. why is the reason why it ended early.
func (t *trials) run(ctx context.Context) (why string, err error) {
	if len(t.mutations) == 0 {
		return "no line of code changed that can be mutated", nil
	}
	at, err := t.cfg.Copy(ctx)
	if err != nil {
		return refusal(err)
	}
	defer func() { _ = at.Close() }()                    // the next copy removes what is left
	at.Env = append(at.Env, "PYTHONDONTWRITEBYTECODE=1") // compiled files are looked up by their second
	began := time.Now()
	report, err := t.cfg.Run(ctx, at, t.tests, 0)
	if err != nil {
		return refusal(err)
	}
	passes := outcomes(report)
	for i := range t.tests {
		if !passes[t.tests[i].ID] {
			return "the tests do not pass in a copy", nil
		}
	}
	limit := time.Second + 3*time.Since(began)
	for i := range t.mutations {
		rest := t.alive()
		if len(rest) == 0 {
			break
		}
		if err := t.mutate(ctx, at, i, rest, limit); err != nil {
			return refusal(err)
		}
	}
	return "", nil
}

// refusal returns the reason of an error that is no fault of perdure.
func refusal(err error) (string, error) {
	if refused, ok := errors.AsType[*sandbox.Error](err); ok {
		return "mutated code runs in a sandbox only: " + refused.Error(), nil
	}
	return err.Error(), err
}

// mutate runs tests with one mutation.
func (t *trials) mutate(ctx context.Context, at *cleancheck.Place, i int, tests []testreport.Test,
	limit time.Duration) error {
	m := &t.mutations[i]
	source := t.files[m.Path].source
	name := filepath.Join(at.Root, filepath.FromSlash(m.Path))
	step := time.Duration(2*i) * time.Second // build tools compare seconds
	if err := rewrite(name, m.Apply(source), step); err != nil {
		return err
	}
	report, err := t.cfg.Run(ctx, at, tests, limit)
	if err != nil {
		return err
	}
	t.note(m, outcomes(report))
	return rewrite(name, source, step+time.Second)
}

// rewrite replaces the content of a file, with a time of change of its own.
func rewrite(name, text string, later time.Duration) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(text), info.Mode().Perm()); err != nil {
		return err
	}
	at := time.Now().Add(later)
	return os.Chtimes(name, at, at)
}

// note records what the tests did with a mutation. Those without a result were not run: the mutated
// code does not compile, or another test ended the run.
func (t *trials) note(m *mutate.Mutation, passes map[string]bool) {
	for k := range t.all {
		trial := &t.all[k]
		passed, ran := passes[trial.Test]
		switch {
		case !ran || trial.Result == Killed:
			continue
		case !passed:
			trial.Result, trial.Mutation = Killed, m
		case trial.Mutation == nil:
			trial.Mutation = m
		}
		trial.Tried++
	}
}

// outcomes returns by identity whether a test passed, of those that ran.
func outcomes(report *testreport.Report) map[string]bool {
	passes := make(map[string]bool)
	if report == nil {
		return passes
	}
	for i := range report.Tests {
		switch o := report.Tests[i].Outcome; o {
		case testreport.Passed:
			passes[report.Tests[i].ID] = true
		case testreport.Failed:
			passes[report.Tests[i].ID] = false
		}
	}
	return passes
}

// alive returns the tests that have not failed.
func (t *trials) alive() []testreport.Test {
	var tests []testreport.Test
	for i := range t.all {
		if t.all[i].Result != Killed {
			tests = append(tests, t.tests[i])
		}
	}
	return tests
}

// conclude decides about the tests that did not fail. why is empty if all mutations were tried.
func (t *trials) conclude(why string) {
	for i := range t.all {
		trial := &t.all[i]
		switch {
		case trial.Result == Killed:
		case why != "":
			trial.Why, trial.Mutation = why, nil
		case trial.Tried == 0:
			trial.Why = "no mutation of the changed lines could be run"
		case !t.covers(trial):
			trial.Why, trial.Mutation = "too few mutations of the changed lines could be run", nil
		default:
			trial.Result = Survived
		}
	}
}

// covers reports whether a test ran with enough mutations to say that it notices none.
func (t *trials) covers(trial *Trial) bool { return 2*trial.Tried >= len(t.mutations) }

package cleancheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/verify/decider"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/verify/machine"
	"github.com/perdure/perdure/internal/workspace"
)

// State is the result of a clean-copy check.
type State string

// States of a clean-copy check.
const (
	// Passed: what passes in the workspace passes in a clean copy.
	Passed State = "passed"
	// Partly: it passes together with ignored files that were made during the loop and are
	// probably needed; they are named.
	Partly State = "partly"
	// Failed: it does not pass, which is a regression.
	Failed State = "failed"
	// Impossible: even the baseline does not reach its own result in a copy, or it does not
	// show whether the check can pass there.
	Impossible State = "impossible"
)

// Verdict is the result of a clean-copy check, with its reasons.
type Verdict struct {
	State State `json:"state"`
	// Why is the reason; empty if it passed.
	Why string `json:"why,omitempty"`
	// Type is the type of the regression if it failed, Tests and Files its subjects, at
	// most maxNamed of each.
	Type  detect.Type `json:"regression_type,omitempty"`
	Tests []string    `json:"tests,omitempty"`
	Files []string    `json:"files,omitempty"`
	// Machine is set if it failed because of programs, caches or settings of the machine.
	Machine bool `json:"machine,omitempty"`
	// Unconfirmed is set if the check is impossible because it fails, and because the baseline
	// does not show whether it can pass in a copy: it has nothing that passes.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Differs says what differs from the workspace; nil unless it failed only in the copy.
	Differs *Differences `json:"differs,omitempty"`
	// Held are folders of ignored files that were copied although they were added or
	// changed during the loop, with the number of such files.
	Held map[string]int `json:"held,omitempty"`
	// Overlay are the baseline files that were laid over; Notes are tests that did not fit,
	// and other remarks.
	Overlay []string `json:"overlay,omitempty"`
	Notes   []string `json:"notes,omitempty"`
	// Deciders is the result of a run with the version before of the files that decide what the
	// check runs: Passed, Failed (which is a regression) or Impossible; empty if there was none.
	Deciders State `json:"deciders,omitempty"`
	// Isolation says what separated the check from the rest of the machine; nil in verdicts
	// of older versions.
	Isolation *Isolation `json:"isolation,omitempty"`
	// Runs is how often the command ran; CopyMS and TookMS are the times of the copies and
	// of everything, Copied and Bytes the size of the first copy.
	Runs   int   `json:"runs"`
	Copied int   `json:"files_copied"`
	Bytes  int64 `json:"bytes_copied"`
	CopyMS int64 `json:"copy_ms"`
	TookMS int64 `json:"took_ms"`
	// Of is the snapshot that was checked.
	Of workspace.ID `json:"snapshot,omitempty"`
}

const maxNamed = 50

// Result is the result of one run of the completion command.
type Result struct {
	// Passed is set if it succeeded, by its exit status and by its test results.
	Passed bool
	// Report has the test results; nil if only the exit status is known.
	Report *testreport.Report
	// Output is the end of its output.
	Output string
}

// Config configures the check.
type Config struct {
	// Files is the workspace. Required.
	Files *workspace.Workspace
	// Temp is the folder for copies; empty is the system's.
	Temp string
	// Env is the environment of the check, from which a copy takes all variables except those
	// of folders that it has itself. Required. Pass are patterns of such variables that are
	// passed nevertheless, as in loop.env; their folders can be written.
	Env, Pass []string
	// Machine is what the check used at the loop's start; nil if it is not known.
	Machine *Machine
	// Hidden are folders that the check cannot see in a sandbox, besides the workspace.
	Hidden []string
	// Open, if set, is why no sandbox is used: [BaselineNeedsMore] in an earlier check.
	Open string
	// Run runs the completion command in a copy. Required. than are the expected results:
	// tests that passed there and fail now may be run again. Errors are those of the
	// machine and of the context.
	Run func(ctx context.Context, at *Place, than *testreport.Report) (*Result, error)
	// Setup, if set, prepares in a copy what the check needs; no ignored files are copied
	// then. problem is why it failed.
	Setup func(ctx context.Context, at *Place) (problem string, err error)
}

// Candidate is the work to check.
type Candidate struct {
	// Of is its snapshot, Now the result of the command in the workspace.
	Of  workspace.ID
	Now Result
	// Since are the changes since the trusted snapshot, and Found the findings in them;
	// Found may be nil.
	Since *evidence.Between
	Found *detect.Report
	// Baseline is the result of the command for the trusted snapshot: its Report may be
	// nil. Kept is the record that [Keep] returned then.
	Baseline Result
	Kept     []byte
	// Whole is set if the baseline's tests have to be among those that run.
	Whole bool
	// Deciders are the changed files that decide what the check runs; may be nil.
	Deciders *decider.Found
}

// sealing is the state of one Check.
type sealing struct {
	Config
	c     *Candidate
	drift *drift
	v     *Verdict
	// env is the environment of copies, caches are those that they share.
	env    []string
	caches []machine.Cache
	// replaced are the names of variables with another value in copies.
	replaced []string
	// excluded are changed files in caches that are not shared, changedSettings those of
	// settings, which copies never use.
	excluded, changedSettings []string
	// confined is set while commands run in a sandbox.
	confined bool
	// withCaches is set while caches in the workspace are part of a copy.
	withCaches bool
}

// Check runs a clean-copy check. Errors are those of the context and of the snapshots; a
// machine on which no copy can be made makes the check impossible.
func Check(ctx context.Context, cfg Config, c *Candidate) (*Verdict, error) {
	began := time.Now()
	s := newSealing(cfg, c)
	err := s.checkAll(ctx)
	s.v.TookMS = time.Since(began).Milliseconds()
	var machine *copyError
	if errors.As(err, &machine) && ctx.Err() == nil {
		s.impossible("make copy: " + machine.Error())
		return s.v, nil
	}
	return s.v, err
}

func newSealing(cfg Config, c *Candidate) *sealing {
	s := &sealing{Config: cfg, c: c, env: slices.Clone(cfg.Env), confined: cfg.Open == ""}
	s.v = &Verdict{State: Passed, Of: c.Of, Isolation: &Isolation{Home: true, Environment: true, Network: s.confined,
		Writes: s.confined, Setup: cfg.Setup != nil, Why: cfg.Open}}
	return s
}

// CompareMachine only compares the machine with the loop's start, where an earlier check was
// impossible for the reason why.
func CompareMachine(ctx context.Context, cfg Config, c *Candidate, why string) (*Verdict, error) {
	began := time.Now()
	s := newSealing(cfg, c)
	if err := s.compareMachine(ctx); err != nil {
		return nil, err
	}
	if s.v.State == Passed {
		s.impossible(why)
		s.failIfExcluded()
	}
	s.v.TookMS = time.Since(began).Milliseconds()
	return s.v, nil
}

// checkAll compares the machine, and runs the check in a sandbox and, if need be, without.
func (s *sealing) checkAll(ctx context.Context) error {
	if err := s.compareMachine(ctx); err != nil || s.v.State != Passed {
		return err
	}
	if err := s.check(ctx); err != nil {
		return err
	}
	s.failIfExcluded() // before the sandbox is turned off: without it the check could download
	return s.checkOpen(ctx)
}

// copyError is the error of a copy that could not be made.
type copyError struct{ error }

// Unwrap returns the cause.
func (e *copyError) Unwrap() error { return e.error }

func (s *sealing) check(ctx context.Context) error {
	s.drift = &drift{}
	if s.Setup == nil {
		now, err := s.Files.Excluded(ctx)
		if errors.Is(err, workspace.ErrLimit) {
			return &copyError{err}
		}
		if err == nil {
			s.drift, err = since(s.c.Kept, now, s.c.Since.Changes)
		}
		if err != nil {
			return err
		}
	}
	clean, err := s.run(ctx, s.c.Of, s.c.Now.Report, nil, s.drift.same)
	if err != nil {
		return err
	}
	worse := s.lacks(clean)
	if len(worse) > 0 {
		if clean, err = s.explain(ctx, clean, worse); err != nil || clean == nil {
			return err
		}
	}
	if err := s.overlay(ctx, clean); err != nil {
		return err
	}
	return s.resetDeciders(ctx, clean)
}

// impossible sets a verdict that is not a regression.
func (s *sealing) impossible(why string) { s.v.State, s.v.Why = Impossible, why }

// failed sets a verdict that is a regression.
func (s *sealing) failed(kind detect.Type, why string, tests, files []string) {
	s.v.State, s.v.Type, s.v.Why = Failed, kind, why
	s.v.Tests, s.v.Files = tests[:min(len(tests), maxNamed)], files[:min(len(files), maxNamed)]
}

// outcome is a run in a copy; problem, if set, is why there was none.
type outcome struct {
	Result
	problem string
}

// run makes a copy of a snapshot with files of the workspace added, and runs the command
// in it; change, if set, changes the copy before.
func (s *sealing) run(ctx context.Context, of workspace.ID, than *testreport.Report, change func(at *Place) error,
	beside []workspace.Excluded) (*outcome, error) {
	began := time.Now()
	at, err := s.makeCopy(ctx, of, beside)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }() // the next check removes what is left
	if change != nil {
		err = change(at)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &copyError{err}
	}
	s.v.CopyMS += time.Since(began).Milliseconds()
	failpoint.Hit("sealed.copied")
	return s.command(ctx, at, than)
}

// command runs the setup command and the completion command in a copy.
func (s *sealing) command(ctx context.Context, at *Place, than *testreport.Report) (*outcome, error) {
	if s.Setup != nil {
		problem := ""
		err := s.unlessRefused(at, func() (err error) {
			problem, err = s.Setup(ctx, at)
			return err
		})
		if err != nil || problem != "" {
			return &outcome{problem: problem}, err
		}
	}
	s.v.Runs++
	var r *Result
	err := s.unlessRefused(at, func() (err error) {
		r, err = s.Run(ctx, at, than)
		return err
	})
	if err != nil {
		return nil, err
	}
	failpoint.Hit("sealed.checked")
	return &outcome{Result: *r}, nil
}

// relink redirects links in a copy from the workspace to the copy.
func (s *sealing) relink(ctx context.Context, of workspace.ID, at *Place) error {
	files, _, err := s.Files.Files(ctx, of)
	if err != nil {
		return err
	}
	for i := range files {
		f := &files[i]
		moved := string(replacePath([]byte(f.Target), s.Files.Root(), at.Root))
		if f.Kind != workspace.KindLink || moved == f.Target {
			continue
		}
		name := filepath.Join(at.Root, filepath.FromSlash(f.Path))
		if err := errors.Join(os.Remove(name), os.Symlink(moved, name)); err != nil {
			return err
		}
	}
	return nil
}

// wholeRun names the command as a whole if no test is known.
const wholeRun = "the command"

// worse returns the tests that pass in the workspace and not in a copy, and baseline
// tests that are missing in the copy only.
func (s *sealing) worse(than *Result, now *outcome) []string {
	switch {
	case now.problem != "", than.Report != nil && now.Report == nil:
		return []string{wholeRun}
	case than.Report == nil && than.Passed && !now.Passed:
		return []string{wholeRun}
	case than.Report == nil:
		return nil
	}
	d := testreport.Compare(than.Report, now.Report)
	var names []string
	for _, list := range [][]testreport.Change{d.Lost, d.Unrun, d.NewlySkipped, d.NewlyFailing} {
		for i := range list {
			names = append(names, list[i].ID)
		}
	}
	switch {
	case len(names) > 0:
		slices.Sort(names)
		return names
	case than.Passed && !now.Passed, than.Report.Complete && !now.Report.Complete, d.NewlyBroken:
		return []string{wholeRun}
	}
	return nil
}

// lacks returns worse, and the baseline tests that the candidate's run did not run.
func (s *sealing) lacks(now *outcome) []string {
	names := s.worse(&s.c.Now, now)
	if !s.c.Whole || now.Report == nil || s.c.Baseline.Report == nil {
		return names
	}
	d := testreport.Compare(s.c.Baseline.Report, now.Report)
	evidence.FindAgain(&d, s.c.Found, now.Report)
	for _, list := range [][]testreport.Change{d.Lost, d.NewlySkipped} {
		for i := range list {
			if !slices.Contains(names, list[i].ID) {
				names = append(names, list[i].ID)
			}
		}
	}
	return names
}

// explain finds out why a candidate fails in a clean copy, as it did in the run clean. It
// returns a run that passed, if there is one.
func (s *sealing) explain(ctx context.Context, clean *outcome, worse []string) (*outcome, error) {
	if held := s.drift.heldFiles(); len(held) > 0 {
		with, err := s.run(ctx, s.c.Of, s.c.Now.Report, nil, slices.Concat(s.drift.same, held))
		if err != nil {
			return nil, err
		}
		if left := s.lacks(with); len(left) == 0 {
			s.hold()
			return with, nil
		}
	}
	if len(s.drift.left)+len(s.drift.caches) > 0 {
		all := slices.Concat(s.drift.same, s.drift.heldFiles(), s.drift.left, s.drift.caches)
		s.withCaches = true
		with, err := s.run(ctx, s.c.Of, s.c.Now.Report, nil, all)
		s.withCaches = false
		if err != nil {
			return nil, err
		}
		if left := s.lacks(with); len(left) == 0 {
			files := paths(slices.Concat(s.drift.left, s.drift.caches))
			s.failed(detect.ValidationBypass, fmt.Sprintf("the check passes only with %s that the loop added or changed: %s. "+
				"In a clean copy without them %s. Track the files that are needed, or let the check create them",
				human.Count(int64(len(files)), "ignored file"), some(files), fails(worse)), tests(worse), files)
			return nil, nil
		}
	}
	return nil, s.compare(ctx, clean, worse)
}

// hold records the additional files that were copied.
func (s *sealing) hold() {
	s.v.State, s.v.Held = Partly, make(map[string]int)
	var names []string
	for _, top := range slices.Sorted(maps.Keys(s.drift.held)) {
		s.v.Held[top] = len(s.drift.held[top])
		names = append(names, fmt.Sprintf("%s (%s)", top, human.Count(int64(len(s.drift.held[top])), "file")))
	}
	s.v.Why = "passes together with ignored files that the loop made: " + some(names)
}

func fails(worse []string) string {
	if tests(worse) == nil {
		return "the command fails"
	}
	verb := "fail"
	if len(worse) == 1 {
		verb = "fails"
	}
	return fmt.Sprintf("%s %s: %s", human.Count(int64(len(worse)), "test"), verb, some(worse))
}

// tests returns those of the names that are tests.
func tests(names []string) []string {
	if len(names) == 1 && names[0] == wholeRun {
		return nil
	}
	return names
}

func paths(files []workspace.Excluded) []string {
	var names []string
	for i := range files {
		names = append(names, files[i].Path)
	}
	return names
}

// some joins the first few of some names.
func some(names []string) string {
	const few = 8
	text := strings.Join(names[:min(len(names), few)], ", ")
	if len(names) > few {
		text += fmt.Sprintf(" and %d more", len(names)-few)
	}
	return text
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// checksCleanCopy reports whether candidates are checked in a clean copy.
func (r *run) checksCleanCopy() bool { return !r.cfg.Plain && r.cfg.Sealed != config.SealOff }

// noteCleanCopy reports that the next step checks the files of an iteration in a clean copy,
// which can take long.
func (r *run) noteCleanCopy(iteration int) {
	if r.checksCleanCopy() && r.state.Ignored != "" && !r.knownImpossible() {
		r.note(EventCleanCopy, map[string]any{"iteration": iteration})
	}
}

// keepIgnored records the current ignored files: they are part of clean copies as
// long as they do not change.
func (r *run) keepIgnored(ctx context.Context) error {
	if !r.checksCleanCopy() {
		return nil
	}
	kept, err := cleancheck.Keep(ctx, r.files)
	if err != nil {
		return refusal(err)
	}
	r.state.Ignored, err = r.saveBlob(ctx, kept)
	return err
}

// recordMachine records what the check uses of the machine.
func (r *run) recordMachine(ctx context.Context) error {
	if !r.checksCleanCopy() {
		return nil
	}
	m, err := cleancheck.RecordMachine(ctx, r.copyEnv(), r.files.Root(),
		project.Programs(r.cfg.Until+"\n"+r.cfg.SealedSetup))
	if err != nil {
		return refusal(err)
	}
	r.state.Tools = m.Tools
	r.state.MachineFiles, err = r.saveBlob(ctx, m.Files)
	return err
}

// copyEnv is the environment from which clean copies take theirs.
func (r *run) copyEnv() []string { return environ.Base(os.Environ(), r.cfg.Env) }

// knownMachine returns what the check used of the machine at the loop's start; nil if a
// version started the loop that did not record it.
func (r *run) knownMachine(ctx context.Context) (*cleancheck.Machine, error) {
	if r.state.Tools == nil {
		return nil, nil
	}
	files, err := r.loadBlob(ctx, r.state.MachineFiles)
	return &cleancheck.Machine{Tools: r.state.Tools, Files: files}, err
}

// checkCompletion repeats the check in a clean copy: the loop is completed when it passes
// there, too, or when it is known that no clean copy can pass here.
func checkCompletion(ctx context.Context, r *run) (string, error) {
	r.state.Verdict, r.state.Reason = "", fmt.Sprintf("the check passes after iteration %d", r.state.Run.Number)
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	look, err := r.look(ctx, &state.Outcome{}, out.After) // its warnings were reported when the iteration was judged
	if err != nil {
		return "", err
	}
	if !out.Accepted {
		out.Deciders = keptDeciders(look.deciders)
	}
	if v := out.CleanCopy; v == nil || v.Of != out.After || v.State == cleancheck.Failed && !out.Accepted {
		watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
		v, err = r.checkCleanCopy(watched, out.After, r.state.Run.Check, true, look)
		cause := context.Cause(watched)
		stop()
		if _, ok := errors.AsType[*controlError](cause); ok {
			r.loop.Status = record.Running
			return stepNext, nil // which hears it
		}
		if err != nil {
			return "", err
		}
		earlier := forgetCleanCopy(out)
		out.Regressions = append(out.Regressions, r.cleanCopyRegressions(out, v)...)
		if v != nil || earlier {
			if err := r.amend(ctx, record.IterationKept, func(o *state.Outcome) { *o = *out }); err != nil {
				return "", err
			}
		}
	}
	if v := out.CleanCopy; v != nil && v.State == cleancheck.Failed && !out.Accepted {
		r.loop.Status, r.state.Reason = record.Running, ""
		return r.regressed(ctx, out)
	}
	if gate, err := r.heldOutGate(ctx, out); gate != "" || err != nil {
		return gate, err
	}
	r.state.Verdict = string(record.Completed)
	r.state.Reason += cleanCopyNote(out) + decidersNote(out) + weakenedNote(out)
	return stepSelect, nil
}

// cleanCopyNote describes the result of the clean-copy check of a completed loop.
func cleanCopyNote(out *state.Outcome) string {
	switch v := out.CleanCopy; {
	case v == nil:
	case v.State == cleancheck.Passed:
		return ", in a clean copy too" + v.Isolation.Words()
	case v.State == cleancheck.Partly:
		return ", in a clean copy too" + v.Isolation.Words() + "; it " + v.Why
	case v.Unconfirmed:
		return "; " + notConfirmed(v)
	case v.State == cleancheck.Impossible:
		return "; it could not be checked in a clean copy: " + v.Why
	case v.State == cleancheck.Failed:
		return "; that it does not in a clean copy was approved"
	}
	return ""
}

// sealTurn seals an iteration that ended, whatever its check says, where every one
// was checked in a clean copy.
func (r *run) sealTurn(ctx context.Context, look *look) (*cleancheck.Verdict, error) {
	if r.cfg.Sealed != config.SealAlways {
		return nil, nil
	}
	t := &r.state.Run
	watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
	v, err := r.checkCleanCopy(watched, t.After, t.Check, false, look)
	cause := context.Cause(watched)
	stop()
	if _, ok := errors.AsType[*controlError](cause); ok && err != nil { // it is not waited for
		return nil, nil
	}
	return v, err
}

// sealBest seals the iteration that is left instead of the last one, unless it was
// checked; why says what is wrong with it.
func (r *run) sealBest(ctx context.Context, best *state.Outcome, check *state.Check) (why string, err error) {
	v := best.CleanCopy
	if v == nil {
		if v, err = r.checkCleanCopy(ctx, best.After, check, false, nil); err != nil || v == nil {
			return "", err
		}
	}
	if v.State == cleancheck.Failed && !best.Accepted {
		return "does not pass in a clean copy: " + v.Why, nil
	}
	return "", nil
}

// checkCleanCopy repeats the check of a snapshot in a clean copy. It returns nil when
// clean-copy checks are off. Where they are known to be impossible, only the machine is
// compared. With whole the tests of the baseline must run. look has the findings of the
// snapshot; it may be nil.
func (r *run) checkCleanCopy(ctx context.Context, id workspace.ID, check *state.Check, whole bool, look *look) (
	*cleancheck.Verdict, error) {
	if !r.checksCleanCopy() || id == "" || r.state.Ignored == "" || check.Skipped {
		return nil, nil
	}
	cfg, err := r.cleanCopyConfig(ctx)
	if err != nil {
		return nil, err
	}
	c := &cleancheck.Candidate{Of: id, Now: cleancheck.Result{Passed: check.Passed}, Whole: whole}
	if r.knownImpossible() {
		v, err := cleancheck.CompareMachine(ctx, *cfg, c, r.state.NoCleanCopy)
		return v, refusal(err)
	}
	if c.Now.Report, err = r.savedResults(ctx, check.Results); err != nil {
		return nil, err
	}
	if c.Baseline.Report, err = r.baselineResults(ctx); err != nil {
		return nil, err
	}
	if c.Baseline.Passed, err = r.baselinePassed(ctx); err != nil {
		return nil, err
	}
	if c.Kept, err = r.loadBlob(ctx, r.state.Ignored); err != nil {
		return nil, err
	}
	if look == nil {
		unheard := &state.Outcome{} // its warnings were reported when the iteration was judged
		if look, err = r.look(ctx, unheard, id); err != nil {
			return nil, err
		}
	}
	c.Since, c.Found, c.Deciders = look.since, look.found, look.deciders
	v, err := cleancheck.Check(ctx, *cfg, c)
	if err != nil {
		return nil, refusal(err)
	}
	r.learn(v)
	return v, nil
}

// knownImpossible reports whether it is known that no clean copy is possible here.
func (r *run) knownImpossible() bool {
	return r.state.NoCleanCopy != "" && r.state.FailedSetup == r.cfg.SealedSetup
}

// cleanCopyConfig configures a check in a clean copy.
func (r *run) cleanCopyConfig(ctx context.Context) (*cleancheck.Config, error) {
	cfg := &cleancheck.Config{Files: r.files, Run: r.checkCopy, Env: r.copyEnv(), Pass: r.cfg.Env,
		Open: r.state.NoSandbox}
	if home := filepath.Dir(r.e.cfg.Dir); !strings.HasPrefix(r.files.Root(), home+string(filepath.Separator)) {
		cfg.Hidden = []string{home} // the store
	}
	if r.cfg.SealedSetup != "" {
		cfg.Setup = r.setUpCopy
	}
	var err error
	cfg.Machine, err = r.knownMachine(ctx)
	return cfg, err
}

// baselinePassed reports whether the check passes for the trusted snapshot.
func (r *run) baselinePassed(ctx context.Context) (bool, error) {
	if r.state.Trusted != "" {
		return r.state.TrustedPassed, nil
	}
	first, err := r.outcome(ctx, 0)
	return err == nil && first.Check.Passed, err
}

// learn records what a verdict says about later checks. What is only unconfirmed is checked
// again: otherwise an agent could end the checks of a loop.
func (r *run) learn(v *cleancheck.Verdict) {
	if v.Isolation.Why == cleancheck.BaselineNeedsMore && v.State != cleancheck.Impossible {
		r.state.NoSandbox = v.Isolation.Why
	}
	if v.State != cleancheck.Impossible {
		return
	}
	if !v.Unconfirmed {
		r.state.NoCleanCopy, r.state.FailedSetup = v.Why, r.cfg.SealedSetup
	}
	r.note(EventWarning, map[string]any{"iteration": r.state.Run.Number, "kind": "sealed",
		"message": notConfirmed(v)})
}

// notConfirmed returns the text for a check that was not repeated successfully in a clean
// copy, which is no regression.
func notConfirmed(v *cleancheck.Verdict) string {
	if v.Unconfirmed {
		return "a clean copy does not confirm the check: " + v.Why
	}
	return "the check could not be repeated in a clean copy: " + v.Why
}

// runnerIn runs commands in a copy.
func (r *run) runnerIn(at *cleancheck.Place) *metric.Runner {
	return &metric.Runner{Root: at.Root, Scratch: at.Scratch, Env: r.checkEnv(at.Env),
		Hold: append(slices.Clip(r.e.cfg.Hold), at.Hold), Sandbox: at.Sandbox}
}

// checkCopy runs the completion command in a copy.
func (r *run) checkCopy(ctx context.Context, at *cleancheck.Place, than *testreport.Report) (*cleancheck.Result,
	error) {
	c, err := r.checkAt(ctx, r.runnerIn(at), than, false)
	if err != nil {
		return nil, err
	}
	return &cleancheck.Result{Passed: c.Passed, Report: c.report, Output: c.Output}, nil
}

// setUpCopy runs the command that makes what the check needs.
func (r *run) setUpCopy(ctx context.Context, at *cleancheck.Place) (problem string, err error) {
	in := r.runnerIn(at)
	in.Sandbox = at.WithNetwork()
	ran, err := in.Run(ctx, &project.Command{Script: r.cfg.SealedSetup, Dir: "."}, r.cfg.CheckTimeout)
	if err != nil {
		return "", err
	}
	defer ran.Close()
	switch {
	case ran.TimedOut:
		return fmt.Sprintf("%q did not end in time", r.cfg.SealedSetup), nil
	case ran.Exit != 0:
		return strings.TrimSuffix(fmt.Sprintf("%q ended with exit status %d: %s", r.cfg.SealedSetup, ran.Exit,
			lastLine(ran.End)), ": "), nil
	}
	return "", nil
}

// forgetCleanCopy removes an earlier verdict of an outcome and its regression, because the
// check is repeated. It reports whether there was one.
func forgetCleanCopy(out *state.Outcome) bool {
	v := out.CleanCopy
	if v == nil {
		return false
	}
	out.CleanCopy = nil
	out.Regressions = slices.DeleteFunc(out.Regressions,
		func(g regression.Regression) bool { return v.State == cleancheck.Failed && g.Text == v.Why })
	return true
}

// cleanCopyRegressions records a verdict in an outcome, and returns it as a regression if it
// is one.
func (r *run) cleanCopyRegressions(out *state.Outcome, v *cleancheck.Verdict) []regression.Regression {
	if v == nil {
		return nil
	}
	out.CleanCopy = v
	out.Times.CleanCopy += v.TookMS
	out.Warnings = append(out.Warnings, v.Notes...)
	if v.State != cleancheck.Failed {
		return nil
	}
	severity := hook.High
	if v.Deciders == cleancheck.Failed {
		severity = hook.Critical // a person decides
	}
	return []regression.Regression{{Type: string(v.Type), Severity: string(severity), Text: v.Why, Tests: v.Tests,
		Files: v.Files}}
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/verify/cleancheck"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// seals reports whether candidates are sealed.
func (r *run) seals() bool { return !r.cfg.Plain && r.cfg.Sealed != config.SealOff }

// keepBeside notes which ignored files there are now: they take part in clean
// copies as long as they stay as they are.
func (r *run) keepBeside(ctx context.Context) error {
	if !r.seals() {
		return nil
	}
	kept, err := cleancheck.Keep(ctx, r.files)
	if err != nil {
		return refusal(err)
	}
	r.state.Beside, err = r.saveBlob(ctx, kept)
	return err
}

// seal repeats the check in a clean copy: the loop is completed when it passes
// there, too, or when it is known that nothing can be sealed here.
func seal(ctx context.Context, r *run) (string, error) {
	r.state.Verdict, r.state.Reason = "", fmt.Sprintf("the check passes after iteration %d", r.state.Run.Number)
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	if v := out.Sealed; v == nil || v.Of != out.After || v.State == cleancheck.Failed && !out.Accepted {
		watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
		v, err = r.sealed(watched, out.After, r.state.Run.Check, true, nil)
		cause := context.Cause(watched)
		stop()
		var wish *wishError
		if errors.As(cause, &wish) {
			r.loop.Status = record.Running
			return stepNext, nil // which hears it
		}
		if err != nil {
			return "", err
		}
		out.Regressions = append(out.Regressions, r.unsealed(out, v)...)
		if v != nil {
			if err := r.amend(ctx, record.IterationKept, func(o *state.Outcome) { *o = *out }); err != nil {
				return "", err
			}
		}
	}
	if v := out.Sealed; v != nil && v.State == cleancheck.Failed && !out.Accepted {
		r.loop.Status, r.state.Reason = record.Running, ""
		return r.regressed(ctx, out)
	}
	r.state.Verdict = string(record.Completed)
	r.state.Reason += sealedWords(out)
	return stepSelect, nil
}

// sealedWords say for people how far a completed loop is sealed.
func sealedWords(out *state.Outcome) string {
	switch v := out.Sealed; {
	case v == nil:
	case v.State == cleancheck.Passed:
		return ", in a clean copy too"
	case v.State == cleancheck.Partly:
		return ", in a clean copy too " + v.Why
	case v.State == cleancheck.Impossible:
		return "; it could not be sealed: " + v.Why
	case v.State == cleancheck.Failed:
		return "; that it does not in a clean copy was approved"
	}
	return ""
}

// sealTurn seals an iteration that ended, whatever its check says, where every one
// is sealed.
func (r *run) sealTurn(ctx context.Context, look *look) (*cleancheck.Verdict, error) {
	if r.cfg.Sealed != config.SealAlways {
		return nil, nil
	}
	t := &r.state.Run
	watched, stop := r.watchedFor(ctx, record.Abort, record.Revert)
	v, err := r.sealed(watched, t.After, t.Check, false, look)
	cause := context.Cause(watched)
	stop()
	var wish *wishError
	if err != nil && errors.As(cause, &wish) { // nobody waits for it
		return nil, nil
	}
	return v, err
}

// sealBest seals the iteration that is left instead of the last one, unless it was
// sealed; why says what is wrong with it.
func (r *run) sealBest(ctx context.Context, best *state.Outcome, check *state.Check) (why string, err error) {
	v := best.Sealed
	if v == nil {
		if v, err = r.sealed(ctx, best.After, check, false, nil); err != nil || v == nil {
			return "", err
		}
	}
	if v.State == cleancheck.Failed && !best.Accepted {
		return "does not pass in a clean copy: " + v.Why, nil
	}
	return "", nil
}

// sealed seals a snapshot whose check in the workspace is given; nil where nothing
// is sealed, or where that was tried and is known to be impossible. With whole the
// tests of the baseline have to run. look is what was seen of the snapshot; nil when
// nobody looked.
func (r *run) sealed(ctx context.Context, id workspace.ID, check *state.Check, whole bool, look *look) (*cleancheck.Verdict,
	error) {
	known := r.state.Unsealable != "" && r.state.Unprepared == r.cfg.SealedSetup
	if !r.seals() || known || id == "" || r.state.Beside == "" || check.Skipped {
		return nil, nil
	}
	c := &cleancheck.Candidate{Of: id, Now: cleancheck.Result{Passed: check.Passed}, Whole: whole}
	var err error
	if c.Now.Report, err = r.savedResults(ctx, check.Results); err != nil {
		return nil, err
	}
	if c.Baseline.Report, err = r.baselineResults(ctx); err != nil {
		return nil, err
	}
	first, err := r.outcome(ctx, 0)
	if err != nil {
		return nil, err
	}
	c.Baseline.Passed = first.Check.Passed && r.state.Trusted == ""
	if c.Kept, err = r.loadBlob(ctx, r.state.Beside); err != nil {
		return nil, err
	}
	if look == nil {
		unheard := &state.Outcome{} // what there is to be warned of was told when the iteration was judged
		if look, err = r.look(ctx, unheard, id); err != nil {
			return nil, err
		}
	}
	c.Since, c.Found = look.since, look.found
	cfg := cleancheck.Config{Files: r.files, Run: r.checkCopy}
	if r.cfg.SealedSetup != "" {
		cfg.Setup = r.setUpCopy
	}
	v, err := cleancheck.Check(ctx, cfg, c)
	if err != nil {
		return nil, refusal(err)
	}
	if v.State == cleancheck.Impossible {
		r.state.Unsealable, r.state.Unprepared = v.Why, r.cfg.SealedSetup
		r.note(EventWarning, map[string]any{"iteration": r.state.Run.Number, "kind": "sealed",
			"message": "the check could not be sealed: " + v.Why})
	}
	return v, nil
}

// runnerIn runs commands in a copy.
func (r *run) runnerIn(at *cleancheck.Place) *metric.Runner {
	return &metric.Runner{Root: at.Root, Scratch: at.Scratch, Env: r.checkEnv(at.Env),
		Hold: append(r.e.cfg.Hold[:len(r.e.cfg.Hold):len(r.e.cfg.Hold)], at.Hold)}
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
	ran, err := r.runnerIn(at).Run(ctx, &project.Command{Script: r.cfg.SealedSetup, Dir: "."}, r.cfg.CheckTimeout)
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

// unsealed notes what came of sealing, and returns it as a regression if it is one.
func (r *run) unsealed(out *state.Outcome, v *cleancheck.Verdict) []regression.Regression {
	if v == nil {
		return nil
	}
	out.Sealed = v
	out.Times.Sealed += v.TookMS
	out.Warnings = append(out.Warnings, v.Notes...)
	if v.State != cleancheck.Failed {
		return nil
	}
	return []regression.Regression{{Type: string(v.Type), Severity: string(hook.High), Text: v.Why, Tests: v.Tests, Files: v.Files}}
}

package loop

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/hook"
)

// The built-in handlers: what the loop itself does at a hook, by the names in hook-log.jsonl.
const (
	builtinSnapshot   = "snapshot"
	builtinBaseline   = "baseline"
	builtinReminder   = "reminder"
	builtinRegression = "regression detection"
	builtinQuality    = "quality"
	builtinRecovery   = "recovery"
	builtinBest       = "best iteration"
)

// did writes an invocation of a built-in handler to hook-log.jsonl.
func (r *run) did(name hook.Name, handler string, took time.Duration, v hook.Verdict, changes map[string]any) {
	r.hooks.Record(hook.Record{Time: time.Now().Add(-took).UTC().Truncate(time.Microsecond), Hook: name,
		LoopID: ID(&r.l.Tree), Iteration: r.state.Run.Number, Handler: handler, Kind: hook.KindBuiltin,
		Duration: took.Truncate(time.Microsecond), Verdict: v, StateChanges: changes})
}

// didJudge writes the invocations at the end of an iteration.
func (r *run) didJudge(out *state.Outcome, detection, quality time.Duration) {
	if !r.cfg.Plain { // which detects nothing
		verdict := hook.Allow
		switch {
		case len(out.Regressions) > 0:
			verdict = hook.Block
		case len(out.Findings) > 0:
			verdict = hook.Warn
		}
		r.did(hook.PostIteration, builtinRegression, detection, verdict,
			map[string]any{"regression_detected": len(out.Regressions) > 0})
	}
	if out.Quality != nil {
		r.did(hook.PostIteration, builtinQuality, quality, hook.Allow, map[string]any{"quality_score": *out.Quality})
	}
}

// choose selects the iteration whose files stay.
func choose(ctx context.Context, r *run) (string, error) {
	began := time.Now()
	next, err := restoreSelected(ctx, r)
	if err == nil && !r.cfg.Plain {
		r.did(hook.LoopComplete, builtinBest, time.Since(began), hook.Allow,
			map[string]any{"selected_iteration": r.state.Selected, "selection_reason": r.state.SelectedReason})
	}
	return next, err
}

package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/record"
)

// guardLost reports whether a turn failed because its guard process was killed.
func guardLost(f *agent.Error) bool { return f != nil && f.Kind == agent.KindGuardLost }

// contain reverts an iteration whose agent, or check, killed its guard process. Its
// processes have ended. No check is judged, because nothing of the iteration is used; the
// snapshot of what the agent left is kept for the user.
func contain(ctx context.Context, r *run) (string, error) {
	t := &r.state.Run
	began := time.Now()
	id, stats, err := r.files.Snapshot(ctx)
	if err != nil {
		return "", refusal(err)
	}
	r.lookedAt(&stats)
	changes, err := r.files.Diff(ctx, t.Before, id)
	if err != nil {
		return "", refusal(err)
	}
	if _, err := r.files.Restore(ctx, t.Before); err != nil {
		return "", refusal(err)
	}
	t.After = id
	t.SnapshotMS += time.Since(began).Milliseconds()
	out := &state.Outcome{Iteration: t.Number, Before: t.Before, After: id, GuardLost: true, Agent: r.agentName(),
		AgentText: t.Text, AgentError: t.Failure, Retried: t.Retried, Changed: len(changes),
		Artifacts: names(changes, maxArtifacts), Check: state.Check{Command: r.cfg.Until, Exit: -1, Skipped: true},
		Level: t.Level, Risky: t.Risky, Calls: t.Calls, Sight: t.Sight, Denied: t.Denied, Unpermitted: t.Unpermitted,
		Times: state.Times{Agent: t.AgentMS, Snapshot: t.SnapshotMS, Hooks: t.HooksMS}}
	out.Regressions = slices.Concat(r.repositoryGone(), r.settingsChanged()) // no snapshot has them
	out.Warnings = append(t.Warnings, "the guard process was killed: the iteration is reverted without a check")
	if err := r.usage(ctx, out); err != nil {
		return "", err
	}
	r.endHandoff(ctx, out, nil) // what a reverted iteration recorded is not passed on
	r.hooks.EndIteration(ID(&r.l.Tree), t.Number, time.Duration(t.AgentMS+t.SnapshotMS)*time.Millisecond)
	r.note(EventReverted, map[string]any{"iteration": t.Number, "why": "the guard process was killed",
		"snapshot": t.Before, "files": len(changes)})
	return r.afterIteration(), r.keep(out, record.IterationReverted)
}

// lostText explains a gate of lostGate.
const lostText = `The guard process ends everything that an agent or a check starts.
It does not end by itself. The agent, or a program that it started, killed it.
perdure killed the processes that were left, discarded the iteration without the
result of the check, and restored the files from before it.
Files that git ignores are not restored: examine them before you continue.
`

// lostGate asks a person what to do after contain, also if the loop is unattended: an agent
// that ends its supervision is not retried without a person.
func (r *run) lostGate(ctx context.Context, out *state.Outcome) (string, error) {
	r.state.Reverted = fmt.Sprintf("Iteration %d was reverted, because the guard process of perdure was killed in it. Do "+
		"not end processes that you did not start.", out.Iteration)
	changed := "The iteration had changed no file."
	if out.Changed > 0 {
		changed = fmt.Sprintf("The iteration had changed %s: %s", human.Count(int64(out.Changed), "file"), few(out.Artifacts))
	}
	var more strings.Builder
	for _, g := range out.Regressions {
		more.WriteString("\n- " + g.Text)
	}
	return r.openGate(perdure.GateRecovery, perdure.GateQuestion{
		Title: fmt.Sprintf("guard process killed in iteration %d; the iteration is reverted", out.Iteration),
		Text:  out.AgentError + "\n" + lostText + changed + more.String(),
		Diff:  r.diff(ctx, out),
		Options: []perdure.GateOption{
			{Answer: answerContinue, Effect: "the loop continues with the restored files; the reason (--reason) is added to " +
				"the next prompt"},
			{Answer: answerManual, Effect: "the loop is paused; fix the problem, then resume the loop"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

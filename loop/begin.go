package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// ask asks the handlers of a hook.
func (r *run) ask(ctx context.Context, name hook.Name, content string, inputs map[string]any) (hook.Outcome, error) {
	return r.hooks.Run(ctx, hook.Message{Content: content, Metadata: hook.Metadata{HookName: name, LoopID: ID(&r.l.Tree),
		Iteration: r.state.Run.Number, Inputs: inputs}})
}

// begin takes the snapshot that everything is compared with.
func begin(ctx context.Context, r *run) (string, error) {
	began := time.Now()
	id, stats, err := r.files.Snapshot(ctx)
	if err != nil {
		return "", refusal(err)
	}
	r.did(hook.LoopStart, builtinSnapshot, time.Since(began), hook.Allow, map[string]any{"snapshot": string(id)})
	r.state.Baseline, r.state.Repository = id, r.hasRepository()
	r.lookedAt(&stats)
	if r.cfg.Commit {
		if err := r.startBranch(ctx, id); err != nil {
			return stepBegin, r.pauseForBranch(err)
		}
	}
	out, err := r.ask(ctx, hook.LoopStart, "the loop begins: "+r.cfg.Task,
		map[string]any{"task": r.cfg.Task, "completion_criteria": r.cfg.Until,
			"workspace": r.files.Root(), "configuration": &r.cfg})
	if err != nil {
		return "", err
	}
	if out.Verdict == hook.Block {
		r.state.Verdict, r.state.Reason = string(record.Failed), "a handler of loop_start refused: "+firstReason(out)
		return stepFinish, nil
	}
	r.note(EventStarted, map[string]any{"loop": ID(&r.l.Tree), "snapshot": id, "files": stats.Files,
		"left_out": len(stats.LeftOut)})
	r.noteWithheld()
	r.noteUnset()
	return stepBaseline, nil
}

func firstReason(out hook.Outcome) string {
	if len(out.Reasons) == 0 {
		return "no reason was given"
	}
	return out.Reasons[0].Content
}

// baseline runs the check before the agent does anything: what fails then is
// not the agent's doing.
func baseline(ctx context.Context, r *run) (string, error) {
	began := time.Now().UTC()
	check, metrics, err := r.firstCheck(ctx)
	if err != nil {
		return "", err
	}
	if check.Exit == metric.StatusNotFound || check.Exit == metric.StatusNotRunnable {
		r.pause("%s", cannotRun(&check.Check, ID(&r.l.Tree)))
		return stepBaseline, nil
	}
	r.state.Results = check.Results
	out := &state.Outcome{Timestamp: began, Before: r.state.Baseline, After: r.state.Baseline, Check: check.Check,
		Metrics: metrics, Warnings: r.state.Run.Warnings}
	var same *testreport.Diff // with itself, so that an iteration that changes nothing has the same quality
	if check.report != nil {
		d := testreport.Compare(check.report, check.report)
		same = &d
	}
	rate(out, check.report, same, r.ratedMetrics(metrics))
	if err := r.score(ctx, out); err != nil {
		return "", err
	}
	if text := r.missing(&check.Check); text != "" {
		out.Warnings = append(out.Warnings, text)
		r.note(EventWarning, map[string]any{"iteration": 0, "kind": "environment", "message": text})
	}
	r.noteEvidence(check, out)
	if err := r.noteHeldOut(ctx, &check.Check); err != nil {
		if r.pauseWithoutBook(err) {
			return stepBaseline, nil
		}
		return "", err
	}
	ended := time.Now().UTC()
	it, err := out.Row(record.IterationKept, r.l.Task.ID)
	if err != nil {
		return "", err
	}
	it.StartedAt, it.EndedAt = began, &ended
	r.change.Iteration = it
	r.did(hook.LoopStart, builtinBaseline, ended.Sub(began), hook.Allow, map[string]any{"passed": check.Passed})
	if check.Passed && !r.cfg.EvenIfGreen && !r.cfg.Plain && r.state.Past == nil {
		return r.greenGate()
	}
	return stepNext, nil
}

// greenGate asks whether an agent is to work although the check passes before its first turn.
func (r *run) greenGate() (string, error) {
	return r.openGate(perdure.GateClarification, perdure.GateQuestion{
		Title: "the check already passes, before the first iteration",
		Text:  fmt.Sprintf("%s\nNo agent was started. With --even-if-green, `perdure loop run` does not ask.", r.cfg.Until),
		Options: []perdure.GateOption{
			{Answer: answerContinue, Effect: "the first iteration starts; the reason (--reason) is added to the prompt"},
			{Answer: answerFinish, Effect: "the loop ends as completed; the files are not changed"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

// notFound matches the messages of shells about a program that is not there.
var notFound = lazyregexp.New(`(?m)^(?:.*: )?([^\s:]+): (?:command )?not found\s*$|no such file or directory: (\S+)`)

// cannotRun says why a completion command does not start, and what can be done about it.
func cannotRun(c *state.Check, id string) string {
	why := fmt.Sprintf("the completion command cannot be run (exit status %d): %s", c.Exit, lastLine(c.Output))
	fix := "correct what it reports"
	if m := notFound().FindStringSubmatch(c.Output); m != nil && c.Exit == metric.StatusNotFound {
		program := cmp.Or(m[1], m[2])
		why = fmt.Sprintf("the completion command cannot be run: %s is not installed, or not in PATH (exit status %d)",
			program, c.Exit)
		fix = "install " + program
	}
	return fmt.Sprintf("%[1]s. Either %[2]s and run `perdure loop resume %[3]s`, or change the command by `perdure loop "+
		"resume %[3]s --until COMMAND`, or end the loop by `perdure loop abort %[3]s`", why, fix, id)
}

// baselineResults are the results that others are compared with; nil where there
// are none, and when nothing is to be compared.
func (r *run) baselineResults(ctx context.Context) (*testreport.Report, error) {
	if r.cfg.Plain {
		return nil, nil
	}
	return r.savedResults(ctx, r.state.Results)
}

// next begins an iteration, unless the loop is to end or to wait.
func next(ctx context.Context, r *run) (string, error) {
	if to, decided, err := r.obeyControl(ctx); decided || err != nil {
		return to, err
	}
	if r.loop.Iteration >= r.cfg.MaxIterations {
		r.state.Verdict = string(record.Failed)
		r.state.Reason = fmt.Sprintf("the check does not pass after %s, which is the limit",
			human.Count(int64(r.loop.Iteration), "iteration"))
		return stepSelect, nil
	}
	if r.loop.Iteration > 0 && r.loop.Iteration%sweepEvery == 0 {
		r.sweep(ctx, keptSnapshots)
	}
	if gate, err := r.budget(ctx); gate != "" || err != nil {
		return gate, err
	}
	r.noteUnset()
	r.loop.Iteration++
	r.firstAgent()
	r.state.Run = state.Turn{Number: r.loop.Iteration}
	return stepPrepare, nil
}

// history is the part of the loop's history that handlers of pre_iteration receive.
func (r *run) history(ctx context.Context) map[string]any {
	inputs := map[string]any{"iteration_number": r.state.Run.Number, "task_context": r.cfg.Task}
	if n := len(r.state.Levels); n > 0 {
		inputs["reinforcement_level"] = string(r.state.Levels[n-1].To)
	}
	last, err := r.past(ctx, lookedBack)
	if err != nil {
		return inputs // what is not known is left out
	}
	var qualities []int
	var failures []map[string]any
	for i, o := range slices.Backward(last) {
		if i == 0 {
			inputs["failing_checks"] = o.Check.Failing
			r.tellMetrics(inputs, "baseline_metrics", "metrics", o.Metrics)
		}
		if o.Quality != nil {
			qualities = append(qualities, *o.Quality)
		}
		if text, _ := errorOf(&o); text != "" {
			failures = append(failures, map[string]any{"iteration": o.Iteration, "error": text})
		}
	}
	inputs["quality_trajectory"], inputs["error_history"] = qualities, failures
	return inputs
}

// prepare takes the snapshot to which the iteration can be reverted.
func prepare(ctx context.Context, r *run) (string, error) {
	t := &r.state.Run
	began := time.Now()
	id, stats, err := r.files.Snapshot(ctx)
	if err != nil {
		return "", refusal(err)
	}
	r.lookedAt(&stats)
	t.Before, t.SnapshotMS = id, time.Since(began).Milliseconds()
	r.did(hook.PreIteration, builtinSnapshot, time.Since(began), hook.Allow, map[string]any{"snapshot": string(id)})
	if r.state.Ignored == "" { // what the check of the baseline left is trusted
		if err := r.keepIgnored(ctx); err != nil {
			return "", err
		}
		if err := r.recordMachine(ctx); err != nil {
			return "", err
		}
	}
	ending, err := r.ending(ctx)
	if err != nil {
		return "", err
	}
	began = time.Now()
	out := hook.Outcome{}
	if !ending { // then no handler is asked whether it may begin
		out, err = r.ask(ctx, hook.PreIteration, fmt.Sprintf("iteration %d begins", t.Number), r.history(ctx))
	}
	if err != nil {
		return "", err
	}
	t.HooksMS = time.Since(began).Milliseconds()
	t.Inject = out.Inject
	if out.Verdict == hook.Block {
		r.pause("a handler of pre_iteration refused iteration %d: %s", t.Number, firstReason(out))
		return stepPrepare, nil
	}
	reminding := time.Now()
	if err := r.remind(ctx, out.Level); err != nil {
		return "", err
	}
	r.did(hook.PreIteration, builtinReminder, time.Since(reminding), hook.Allow,
		map[string]any{"reinforcement_level": string(t.Level)})
	r.state.Rejected = false
	r.beginHandoff(ctx)
	first := &state.Outcome{Iteration: t.Number, Timestamp: began.UTC(), Before: id, Agent: r.agentName()}
	it, err := first.Row(record.IterationRunning, r.l.Task.ID)
	if err != nil {
		return "", err
	}
	r.change.Iteration = it
	r.note(EventIteration, map[string]any{"iteration": t.Number, "agent": r.agentName(), "snapshot": id})
	return stepAct, nil
}

package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Confidence of a diagnosis, in percent.
const (
	minConfidence   = 50 // below it a person is asked
	confidenceFacts = 90
)

// diagnose finds out why something got worse, from facts. The agent has stopped
// and a snapshot is taken when it begins: that is the pause.
func diagnose(ctx context.Context, r *run) (string, error) {
	began := time.Now()
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	r.state.Recoveries++
	v := &state.Recovery{Iteration: out.Iteration, Attempt: r.state.Recoveries}
	v.Did("pause", "snapshot "+string(out.After))
	v.Diagnosis, v.Confidence, v.Why = diagnosisOf(out)
	v.Did("diagnose", v.Why)
	r.state.Recovery = v
	r.note(EventRecovery, map[string]any{"iteration": out.Iteration, "attempt": v.Attempt, "diagnosis": v.Diagnosis,
		"confidence": v.Confidence, "why": v.Why})
	next, verdict := stepAdapt, hook.Warn
	if r.mustAsk(out, v) {
		next, verdict = stepEscalate, hook.Block
	}
	r.did(hook.RegressionDetected, builtinRecovery, time.Since(began), verdict,
		map[string]any{"diagnosis": string(v.Diagnosis), "recovery_attempts": v.Attempt})
	return next, nil
}

func diagnosisOf(out *state.Outcome) (state.Diagnosis, int, string) {
	var kinds []string
	if evidence := reinforce.Honest(out.AgentText); evidence != "" {
		return state.GenuineFix, 60, "the agent reports: " + evidence
	}
	for _, g := range out.Regressions {
		kinds = append(kinds, g.Type)
		switch hook.RegressionType(g.Type) {
		case hook.TestDeletion, hook.TestSkipping, hook.ValidationBypass, hook.AssertionWeakening:
			return state.RewardHacking, confidenceFacts, g.Text
		case hook.RunIncomplete:
			return state.TaskComplexity, 60, g.Text
		case hook.TestFailure, hook.CoverageRegression, hook.ErrorSuppression, hook.FeatureRemoval, hook.ProtectedChange:
		}
	}
	if reinforce.Asks(out.AgentText) {
		return state.Ambiguity, 70, "the agent asks: " + lastLine(out.AgentText)
	}
	if strings.Contains(out.AgentError, "context_overflow") {
		return state.CognitiveLoad, 80, "the agent's context was full"
	}
	if len(kinds) == 1 && kinds[0] == string(hook.TestFailure) {
		return state.TaskComplexity, 70, out.Regressions[0].Text
	}
	return state.TaskComplexity, minConfidence, strings.Join(kinds, ", ")
}

// mustAsk reports whether a person has to decide. Without one to ask, the first
// deleted or skipped tests of a loop are restored instead.
func (r *run) mustAsk(out *state.Outcome, v *state.Recovery) bool {
	deleted := has(out, hook.TestDeletion)
	if has(out, hook.TestDeletion, hook.TestSkipping) && r.cfg.Unattended && r.state.Restored == 0 {
		r.state.Restored++
		return false
	}
	again := mark(out)
	twice := v.Attempt > 1 && again == r.state.LastRegression
	twice = r.failedAgain(out) || twice
	r.state.LastRegression = again
	critical := !r.cfg.RetryCritical && regression.Worst(out.Regressions).Severity == string(hook.Critical)
	unclear := v.Diagnosis == state.GenuineFix || v.Diagnosis == state.Ambiguity && !r.cfg.Unattended ||
		v.Confidence < minConfidence
	return deleted || v.Diagnosis == state.RewardHacking || unclear || critical ||
		r.state.Run.Blocked || v.Attempt > max(r.cfg.MaxRetries, 0) || twice
}

// adapt changes how the loop continues, each time in another way: the prompt names the
// regressions; the tests are restored; the best iteration is restored; another agent
// works; the task is split.
func adapt(ctx context.Context, r *run) (string, error) {
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	v := r.state.Recovery
	if onlyInCopy(out) {
		v.Did("adapt", "the prompt says what is different in the clean copy")
		return stepNext, r.retried(ctx, v, copyAdvice(out))
	}
	if v.Attempt == 1 && v.Diagnosis != state.RewardHacking {
		v.Did("adapt", "the prompt names the regressions")
		return stepNext, r.retried(ctx, v, "Fix the regressions of the last iteration first:\n"+
			regressionLines(out)+advice(v.Diagnosis))
	}
	if v.Attempt <= 2 || has(out, hook.TestDeletion, hook.TestSkipping) {
		if files, err := r.lostTests(ctx, out); err != nil || len(files) > 0 {
			return stepNext, errors.Join(err, r.restoreTests(ctx, out, v, files))
		}
		v.Did("adapt", "the iteration is reverted")
		return stepNext, r.revert(ctx, out, v)
	}
	best, err := r.best(ctx)
	if err != nil {
		return "", err
	}
	if v.Attempt == 3 && best != nil && best.Iteration != out.Iteration {
		return stepNext, r.bringBack(ctx, out, best, v)
	}
	if place, ok := r.nextAgent(); ok && v.Attempt <= 4 {
		r.state.Agent = place
		v.Did("adapt", "the iteration is reverted, and "+r.agentName()+" continues")
		return stepNext, r.revert(ctx, out, v)
	}
	v.Did("adapt", "the iteration is reverted, and the task is split")
	err = r.revert(ctx, out, v)
	r.state.Reverted += "\nSplit the task: write down its parts, do the first small one only, and see that the command " +
		"gets no worse."
	return stepNext, err
}

// advice is what helps against a diagnosis.
func advice(d state.Diagnosis) string {
	switch d {
	case state.CognitiveLoad:
		return "\nThere was too much to keep in mind: do one small part of the task, and leave the rest for later."
	case state.TaskComplexity:
		return "\nLook for a simpler way to do it."
	case state.Ambiguity, state.RewardHacking, state.GenuineFix:
	}
	return ""
}

// retried keeps the files as they are; text instructs the agent what to do about them.
func (r *run) retried(ctx context.Context, v *state.Recovery, text string) error {
	v.Outcome = "retried"
	v.Did("retry", "")
	r.state.Reverted = text
	return r.recovered(ctx, v, record.IterationKept)
}

// lostTests returns the changed files that had the tests which the iteration deleted or switched
// off, or that select tests.
func (r *run) lostTests(ctx context.Context, out *state.Outcome) ([]string, error) {
	if !has(out, hook.TestDeletion, hook.TestSkipping) {
		return nil, nil
	}
	changes, err := r.files.Diff(ctx, r.trusted(), out.After)
	if err != nil {
		return nil, refusal(err)
	}
	changes = r.checkFiles.Judged(changes)
	var files []string
	for i := range changes {
		c := &changes[i]
		name := firstOf(c.From, c.Path)
		switch project.Classify(name).Class {
		case project.TestFile, project.RunnerConfig: // of which the latter selects tests
			if c.Kind != workspace.Added {
				files = append(files, name)
			}
		default:
		}
	}
	return files, nil
}

// has reports whether an iteration has a regression of one of the types.
func has(out *state.Outcome, types ...hook.RegressionType) bool {
	return slices.ContainsFunc(out.Regressions,
		func(g regression.Regression) bool { return slices.Contains(types, hook.RegressionType(g.Type)) })
}

// restoreTests brings back the tests as the baseline has them and leaves the rest
// of the work.
func (r *run) restoreTests(ctx context.Context, out *state.Outcome, v *state.Recovery, files []string) error {
	if len(files) == 0 {
		return nil
	}
	v.Did("adapt", "the tests are restored: "+strings.Join(files[:min(len(files), 20)], ", "))
	done, err := r.files.RestoreFiles(ctx, r.trusted(), files)
	if err != nil {
		return refusal(err)
	}
	r.noteRestored(done, "of the baseline")
	return r.retried(ctx, v, "These tests were deleted or switched off, and are as before again. Make them pass; if a "+
		"test is wrong, say which and why:\n"+
		regressionLines(out))
}

// bringBack restores the best iteration.
func (r *run) bringBack(ctx context.Context, out, best *state.Outcome, v *state.Recovery) error {
	v.Did("adapt", fmt.Sprintf("the files of iteration %d are brought back", best.Iteration))
	done, err := r.files.Restore(ctx, best.After)
	if err != nil {
		return refusal(err)
	}
	r.noteRestored(done, fmt.Sprintf("of iteration %d", best.Iteration))
	r.state.FilesOf = best.Iteration
	r.state.Reverted = fmt.Sprintf("The workspace is that of iteration %d again, because the last one made things "+
		"worse:\n%s", best.Iteration, regressionLines(out))
	v.Outcome = "reverted"
	v.Did("retry", "")
	return r.recovered(ctx, v, record.IterationReverted)
}

func regressionLines(out *state.Outcome) string {
	var b strings.Builder
	for _, g := range out.Regressions {
		fmt.Fprintf(&b, "- %s\n", g.Text)
		for _, id := range g.Tests[:min(len(g.Tests), 20)] {
			fmt.Fprintf(&b, "  - %s\n", id)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// revert restores the files from before an iteration.
func (r *run) revert(ctx context.Context, out *state.Outcome, v *state.Recovery) error {
	done, err := r.files.Restore(ctx, out.Before)
	if err != nil {
		return refusal(err)
	}
	r.noteRestored(done, fmt.Sprintf("from before iteration %d", out.Iteration))
	r.state.Reverted = "The last iteration was reverted by the user."
	why := "rejected by the user"
	if len(out.Regressions) > 0 {
		r.state.Reverted = "The last iteration was reverted because of these regressions:\n" + regressionLines(out)
		why = regression.Worst(out.Regressions).Text
	}
	r.note(EventReverted, map[string]any{"iteration": out.Iteration, "why": why, "snapshot": out.Before})
	if v != nil {
		v.Outcome = "reverted"
		v.Did("retry", "")
	}
	return r.recovered(ctx, v, record.IterationReverted)
}

// maxRestored is how many restored files an event names.
const maxRestored = 5

// noteRestored records which files were restored; from says which version.
func (r *run) noteRestored(done workspace.Restored, from string) {
	if len(done.Changes) > 0 {
		r.note(EventRestored, map[string]any{"iteration": r.state.Run.Number, "files": len(done.Changes), "from": from,
			"names": names(done.Changes, maxRestored)})
	}
}

// recovered writes what became of an iteration into its record.
func (r *run) recovered(ctx context.Context, v *state.Recovery, status record.IterationStatus) error {
	r.state.Recovery = nil
	return r.amend(ctx, status, func(out *state.Outcome) {
		if v != nil {
			out.Recoveries = append(out.Recoveries, *v)
		}
	})
}

// amend changes the record of the last iteration.
func (r *run) amend(ctx context.Context, status record.IterationStatus, change func(*state.Outcome)) error {
	old, out, err := r.iteration(ctx, r.state.Run.Number)
	if err != nil {
		return err
	}
	change(out)
	it, err := out.Row(status, old.Task)
	if err != nil {
		return err
	}
	it.StartedAt, it.EndedAt = old.StartedAt, old.EndedAt
	r.change.Iteration = it
	return nil
}

// escalate asks a person.
func escalate(ctx context.Context, r *run) (string, error) {
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	v := r.state.Recovery
	v.Did("escalate", "")
	v.Outcome = "escalated"
	if err := r.recovered(ctx, v, record.IterationKept); err != nil {
		return "", err
	}
	if onlyInCopy(out) {
		return r.copyGate(ctx, out)
	}
	if needsDeciders(out) {
		return r.deciderGate(ctx, out)
	}
	kind := perdure.GateRecovery
	if v.Diagnosis == state.Ambiguity {
		kind = perdure.GateClarification
	}
	return r.openGate(kind, perdure.GateQuestion{
		Title: fmt.Sprintf("regression in iteration %d: %s", out.Iteration, regression.Worst(out.Regressions).Text),
		Text:  fmt.Sprintf("%s\nDiagnosis: %s (%d %%), %s", r.describe(out), v.Diagnosis, v.Confidence, v.Why),
		Diff:  r.diff(ctx, out),
		Options: []perdure.GateOption{
			{Answer: answerApprove, Effect: "the changes are accepted, and the current test results become the baseline"},
			{Answer: answerFalse, Effect: "the changes are accepted, and the findings count as false alarms, which this loop " +
				"ignores from now on"},
			{Answer: answerReject, Effect: "the files from before the iteration are restored, and the loop continues"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// Diagnosis is why an iteration made something worse.
type Diagnosis string

// The diagnoses.
const (
	CognitiveLoad   Diagnosis = "cognitive_load"
	TaskComplexity  Diagnosis = "task_complexity"
	Ambiguity       Diagnosis = "specification_ambiguity"
	RewardHacking   Diagnosis = "reward_hacking"
	GenuineFix      Diagnosis = "genuine_fix"
	minConfidence             = 50 // percent; below it a person is asked
	confidenceFacts           = 90
)

// Recovery is what was done about a regression.
type Recovery struct {
	Iteration int       `json:"iteration"`
	Attempt   int       `json:"attempt"`
	Diagnosis Diagnosis `json:"diagnosis"`
	// Confidence is in percent.
	Confidence int            `json:"confidence"`
	Why        string         `json:"why"`
	Steps      []RecoveryStep `json:"steps"`
	// Outcome is retried, reverted or escalated.
	Outcome string `json:"outcome,omitempty"`
}

// RecoveryStep is one of pause, diagnose, adapt, retry and escalate.
type RecoveryStep struct {
	Step       string    `json:"step"`
	ExecutedAt time.Time `json:"executed_at"`
	Text       string    `json:"text,omitempty"`
}

func (v *Recovery) did(step, text string) {
	v.Steps = append(v.Steps, RecoveryStep{Step: step, ExecutedAt: time.Now().UTC(), Text: text})
}

// diagnose finds out why something got worse, from facts. The agent has stopped
// and a snapshot is taken when it begins: that is the pause.
func diagnose(ctx context.Context, r *run) (string, error) {
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	r.state.Recoveries++
	v := &Recovery{Iteration: out.Iteration, Attempt: r.state.Recoveries}
	v.did("pause", "snapshot "+string(out.After))
	v.Diagnosis, v.Confidence, v.Why = diagnosisOf(out)
	v.did("diagnose", v.Why)
	r.state.Recovery = v
	r.note(EventRecovery, map[string]any{"iteration": out.Iteration, "attempt": v.Attempt, "diagnosis": v.Diagnosis, "confidence": v.Confidence, "why": v.Why})
	if r.mustAsk(out, v) {
		return stepEscalate, nil
	}
	return stepAdapt, nil
}

func diagnosisOf(out *Outcome) (Diagnosis, int, string) {
	var kinds []string
	for _, g := range out.Regressions {
		kinds = append(kinds, g.Type)
		switch hook.RegressionType(g.Type) {
		case hook.TestDeletion, hook.TestSkipping, hook.ValidationBypass, hook.AssertionWeakening:
			return RewardHacking, confidenceFacts, g.Text
		case hook.RunIncomplete:
			return TaskComplexity, 60, g.Text
		case hook.TestFailure, hook.CoverageRegression, hook.ErrorSuppression, hook.FeatureRemoval, hook.ProtectedChange:
		}
	}
	if strings.Contains(out.AgentError, "context_overflow") {
		return CognitiveLoad, 80, "the agent's context was full"
	}
	if len(kinds) == 1 && kinds[0] == string(hook.TestFailure) {
		return TaskComplexity, 70, out.Regressions[0].Text
	}
	return TaskComplexity, minConfidence, strings.Join(kinds, ", ")
}

// mustAsk tells whether a person has to decide. Without one to ask, the first
// deleted tests of a loop are restored instead.
func (r *run) mustAsk(out *Outcome, v *Recovery) bool {
	deleted := false
	for _, g := range out.Regressions {
		deleted = deleted || g.Type == string(hook.TestDeletion)
	}
	if deleted && r.cfg.Unattended && r.state.Restored == 0 {
		r.state.Restored++
		return false
	}
	again := mark(out)
	twice := v.Attempt > 1 && again == r.state.LastRegression
	r.state.LastRegression = again
	critical := !r.cfg.RetryCritical && worst(out.Regressions).Severity == string(hook.Critical)
	return deleted || v.Diagnosis == RewardHacking || v.Confidence < minConfidence || critical ||
		r.state.Run.Blocked || v.Attempt > max(r.cfg.MaxRetries, 0) || twice
}

// adapt changes how the loop goes on, each time in another way: the failing tests
// are named; then the iteration is taken back; then the best one is brought back.
func adapt(ctx context.Context, r *run) (string, error) {
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	v := r.state.Recovery
	switch {
	case v.Attempt == 1 && v.Diagnosis != RewardHacking:
		v.did("adapt", "the tests that got worse are named")
		v.Outcome = "retried"
		v.did("retry", "")
		r.state.Reverted = "What the last iteration made worse has to be made good first:\n" + regressionLines(out)
		return stepNext, r.recovered(ctx, v, record.IterationKept)
	case v.Attempt <= 2:
		v.did("adapt", "the iteration is taken back")
		return stepNext, r.revert(ctx, out, v)
	}
	best, err := r.best(ctx)
	if err != nil {
		return "", err
	}
	if best == nil || best.Iteration == out.Iteration {
		v.did("adapt", "the iteration is taken back; the next one begins with a fresh view")
		return stepNext, r.revert(ctx, out, v)
	}
	v.did("adapt", fmt.Sprintf("the files of iteration %d are brought back", best.Iteration))
	if _, err := r.files.Restore(ctx, best.After); err != nil {
		return "", refusal(err)
	}
	r.state.Reverted = fmt.Sprintf("The workspace is that of iteration %d again, because the last one made things worse:\n%s", best.Iteration, regressionLines(out))
	v.Outcome = "reverted"
	v.did("retry", "")
	return stepNext, r.recovered(ctx, v, record.IterationReverted)
}

func regressionLines(out *Outcome) string {
	var b strings.Builder
	for _, g := range out.Regressions {
		fmt.Fprintf(&b, "- %s\n", g.Text)
		for _, id := range g.Tests[:min(len(g.Tests), 20)] {
			fmt.Fprintf(&b, "  - %s\n", id)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// revert brings back the files of before an iteration.
func (r *run) revert(ctx context.Context, out *Outcome, v *Recovery) error {
	if _, err := r.files.Restore(ctx, out.Before); err != nil {
		return refusal(err)
	}
	r.state.Reverted = "The last iteration was taken back, because it made things worse:\n" + regressionLines(out)
	r.note(EventReverted, map[string]any{"iteration": out.Iteration, "why": worst(out.Regressions).Text, "snapshot": out.Before})
	if v == nil {
		return r.recovered(ctx, nil, record.IterationReverted)
	}
	v.Outcome = "reverted"
	v.did("retry", "")
	return r.recovered(ctx, v, record.IterationReverted)
}

// recovered writes what became of an iteration into its record.
func (r *run) recovered(ctx context.Context, v *Recovery, status record.IterationStatus) error {
	r.state.Recovery = nil
	return r.amend(ctx, status, func(out *Outcome) {
		if v != nil {
			out.Recoveries = append(out.Recoveries, *v)
		}
	})
}

// amend changes the record of the last iteration.
func (r *run) amend(ctx context.Context, status record.IterationStatus, change func(*Outcome)) error {
	list, err := r.e.records.Iterations(ctx, r.l.Tree.ID, r.state.Run.Number, 1)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fail("damaged", "iteration %d has no record", r.state.Run.Number)
	}
	out, err := readOutcome(&list[0])
	if err != nil {
		return err
	}
	change(&out)
	it, err := out.row(status, list[0].Task)
	if err != nil {
		return err
	}
	it.StartedAt, it.EndedAt = list[0].StartedAt, list[0].EndedAt
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
	v.did("escalate", "")
	v.Outcome = "escalated"
	if err := r.recovered(ctx, v, record.IterationKept); err != nil {
		return "", err
	}
	return r.openGate(record.GateRecovery, record.Question{
		Title: fmt.Sprintf("iteration %d made things worse: %s", out.Iteration, worst(out.Regressions).Text),
		Text:  fmt.Sprintf("%s\nDiagnosis: %s (%d %%), %s", r.describe(out), v.Diagnosis, v.Confidence, v.Why),
		Diff:  r.diff(ctx, out),
		Options: []record.Option{
			{Answer: answerApprove, Effect: "the changes are accepted, and the baseline is what the tests say now"},
			{Answer: answerReject, Effect: "the files of before the iteration come back, and the loop goes on"},
			{Answer: answerAbort, Effect: "the loop ends; the files stay as they are"},
		}})
}

package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/regression"
	"github.com/perdure/perdure/internal/loop/reinforce"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// iteration reads the record of an iteration.
func (r *run) iteration(ctx context.Context, number int) (*record.Iteration, *state.Outcome, error) {
	list, err := r.e.records.Iterations(ctx, r.l.Tree.ID, number, 1)
	if err != nil {
		return nil, nil, err
	}
	if len(list) == 0 || list[0].Number != number {
		return nil, nil, fail("damaged", "iteration %d has no record", number)
	}
	o, err := state.ReadOutcome(&list[0])
	return &list[0], &o, err
}

// outcome reads the outcome of an iteration.
func (r *run) outcome(ctx context.Context, number int) (*state.Outcome, error) {
	_, o, err := r.iteration(ctx, number)
	return o, err
}

// broughtBack is the iteration whose files were brought back for this one; nil when
// the files are as the last one left them.
func (r *run) broughtBack(ctx context.Context) (*state.Outcome, error) {
	if r.state.FilesOf == 0 {
		return nil, nil
	}
	return r.outcome(ctx, r.state.FilesOf)
}

// decide examines the iteration that ended and returns the next step.
func decide(ctx context.Context, r *run) (string, error) {
	out, err := r.outcome(ctx, r.state.Run.Number)
	if err != nil {
		return "", err
	}
	r.state.Reverted, r.state.FilesOf = "", 0
	if to, decided, err := r.obeyControl(ctx); decided || err != nil {
		return to, err
	}
	if out.GuardLost {
		return r.lostGate(ctx, out)
	}
	if len(out.Regressions) > 0 {
		return r.regressed(ctx, out)
	}
	if out.Check.Passed { // the clean copy may show a regression
		r.loop.Status = record.Completing
		return stepComplete, nil
	}
	r.state.Recoveries = 0
	if r.cfg.Plain {
		return stepNext, nil
	}
	if r.state.Run.Exhausted {
		return r.chainGate(out)
	}
	if len(r.state.Run.Wanted) > 0 {
		return r.riskGate(out)
	}
	if evidence := reinforce.Honest(out.AgentText); evidence != "" {
		return r.honestGate(out, evidence)
	}
	if out.Changed == 0 && reinforce.Asks(out.AgentText) {
		return r.clarify(out)
	}
	if pattern, why := r.stuck(out); pattern != "" {
		return r.stuckGate(ctx, out, pattern, why)
	}
	return stepNext, nil
}

// clarify passes a question of an agent that changed nothing to the user. In an
// unattended loop the agent is instructed to decide.
func (r *run) clarify(out *state.Outcome) (string, error) {
	if r.cfg.Unattended {
		r.state.Answer = "No user can answer questions now. Decide by the task, record the decision, and continue."
		return stepNext, nil
	}
	return r.openGate(perdure.GateClarification, perdure.GateQuestion{Title: "the agent asks: " + lastLine(out.AgentText),
		Text: out.AgentText, Options: []perdure.GateOption{
			{Answer: answerReply, Effect: "the loop continues; the reply (--reason) is added to the next prompt"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

// honestGate asks a person whether an agent is right that says that the tests are
// wrong, or that the task cannot be done.
func (r *run) honestGate(out *state.Outcome, evidence string) (string, error) {
	return r.openGate(perdure.GateHonestExit,
		perdure.GateQuestion{Title: "the agent reports that the task cannot be done: " + lastLine(evidence),
			Text: evidence + "\n\n" + r.describe(out), Options: []perdure.GateOption{
				{Answer: answerAccept, Effect: "the loop ends with its best iteration; the report is the result"},
				{Answer: answerContinue, Effect: "the loop continues; the reason (--reason) is added to the next prompt"},
				{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
			}})
}

// chainGate asks a person when no agent is left.
func (r *run) chainGate(out *state.Outcome) (string, error) {
	return r.openGate(perdure.GateReassignment,
		perdure.GateQuestion{Title: "no agent of the chain can continue: " + lastLine(out.AgentError),
			Text: r.chain() + "\n\n" + r.describe(out), Options: []perdure.GateOption{
				{Answer: answerRetry, Effect: "all agents are called again, starting with the first; the reason (--reason) is " +
					"added to the next prompt"},
				{Answer: answerManual, Effect: "the loop is paused; fix the problem, then resume the loop"},
				{Answer: answerFinish, Effect: "the loop ends with its best iteration"},
				{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
			}})
}

// regressed calls the handlers and starts the recovery.
func (r *run) regressed(ctx context.Context, out *state.Outcome) (string, error) {
	first := regression.Worst(out.Regressions)
	for i := range out.Regressions {
		g := &out.Regressions[i]
		r.note(EventRegression, map[string]any{"iteration": out.Iteration, "type": g.Type, "severity": g.Severity,
			"text": g.Line()})
	}
	answer, err := r.ask(ctx, hook.RegressionDetected, first.Text, map[string]any{"regressions": out.Regressions,
		"regression_type": first.Type, "severity": first.Severity, "iteration": out.Iteration,
		"details": map[string]any{"diff": first.Files}})
	if err != nil {
		return "", err
	}
	r.state.Run.Blocked = answer.Verdict == hook.Block
	return stepDiagnose, nil
}

// varying is what differs each time in messages of one error.
var varying = lazyregexp.New(`0x[0-9a-fA-F]+|[0-9]+(?:[.:][0-9]+)*(?:ns|µs|us|ms|s|m|h)?\b|(?:/[\w.+~-]+)+`)

// normalised is a message without numbers, times and paths.
func normalised(text string) string { return clip.Bytes(varying().ReplaceAllString(text, "#"), 500) }

// mark is how an iteration failed.
func mark(out *state.Outcome) state.FailureMark {
	m := state.FailureMark{Files: strings.Join(out.Artifacts, "\n")}
	switch {
	case out.AgentError != "":
		m.Error = normalised(out.AgentError)
	case len(out.Check.Failing) > 0:
		m.Error = "failing: " + strings.Join(out.Check.Failing, "\n")
	default:
		m.Error = normalised(lastLine(out.Check.Output))
	}
	m.Error, m.Files = requestHash(m.Error), requestHash(m.Files)
	return m
}

// stuck returns the name of the pattern and the reason why the loop makes no progress;
// both are empty if it does. A loop that finishes several tasks in a row has different
// failures each time and is not stuck.
func (r *run) stuck(out *state.Outcome) (pattern, why string) {
	r.state.AgentErrors++
	if out.AgentError == "" {
		r.state.AgentErrors = 0
	}
	last := mark(out)
	r.state.Errors = append(r.state.Errors, last)
	const keep = 2 * config.DefaultStuckAfter
	if over := len(r.state.Errors) - keep; over > 0 {
		r.state.Errors = slices.Clone(r.state.Errors[over:])
	}
	all, same := r.state.Errors, r.sameErrors()
	swings := len(all) == keep && all[keep-1] != all[keep-2]
	for i := 2; swings && i < keep; i++ {
		swings = all[i] == all[i-2]
	}
	switch {
	case r.state.AgentErrors >= config.DefaultStuckAfter:
		return "agent_errors", fmt.Sprintf("the last %d iterations ended in an error of the agent: %s", r.state.AgentErrors,
			out.AgentError)
	case same >= config.DefaultStuckAfter:
		return "same_error", fmt.Sprintf("the last %d iterations failed with the same error and the same files", same)
	case swings:
		return "oscillation", "the iterations alternate between two states"
	case r.cfg.Planned > 0 && out.Iteration > 2*r.cfg.Planned && !r.state.Overrun:
		r.state.Overrun = true // it is asked once
		return "beyond_plan", fmt.Sprintf("%d iterations were planned, and this was the %d.", r.cfg.Planned, out.Iteration)
	}
	return "", ""
}

// sameErrors counts the latest iterations that failed in the same way.
func (r *run) sameErrors() (n int) {
	all := r.state.Errors
	for _, e := range slices.Backward(all) {
		if e != all[len(all)-1] {
			break
		}
		n++
	}
	return n
}

// stuckGate asks a person; there is no retry before that.
func (r *run) stuckGate(ctx context.Context, out *state.Outcome, pattern, why string) (string, error) {
	if _, err := r.ask(ctx, hook.StuckLoopDetected, why,
		map[string]any{"pattern": pattern, "iteration": r.state.Run.Number,
			"error_count": len(r.state.Errors), "recovery_attempts": r.state.Recoveries}); err != nil {
		return "", err
	}
	r.state.Errors, r.state.AgentErrors = nil, 0
	return r.openGate(perdure.GateStuck,
		perdure.GateQuestion{Title: why, Text: r.describe(out), Options: []perdure.GateOption{
			{Answer: answerContinue, Effect: "the loop continues; the reason (--reason) is added to the next prompt"},
			{Answer: answerManual, Effect: "the loop is paused; fix the problem, then resume the loop"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

// describe returns a text for users about how an iteration ended.
func (r *run) describe(out *state.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Iteration %d: the check %q ", out.Iteration, out.Check.Command)
	switch {
	case out.Check.Passed:
		b.WriteString("passes.")
	case out.Check.Skipped:
		b.WriteString("was not run.")
	case out.Check.TimedOut:
		b.WriteString("did not end in time.")
	default:
		fmt.Fprintf(&b, "fails with exit status %d.", out.Check.Exit)
	}
	if d := out.Diff; d != nil {
		fmt.Fprintf(&b, "\n- tests: %d before, %d now", d.Before.Tests, d.Now.Tests)
	}
	for _, id := range out.Check.Failing[:min(len(out.Check.Failing), 10)] {
		b.WriteString("\n- fails: " + id)
	}
	if text := r.missing(&out.Check); text != "" {
		b.WriteString("\n- " + text)
	}
	for _, g := range out.Regressions {
		fmt.Fprintf(&b, "\n- %s (%s): %s", g.Type, g.Severity, g.Text)
		for _, id := range g.Tests[:min(len(g.Tests), 10)] {
			b.WriteString("\n  - " + id)
		}
	}
	if text := strings.TrimSpace(out.AgentText); text != "" {
		fmt.Fprintf(&b, "\n\nThe agent's last message:\n%s", clip.Suffix(text, maxLastMessage))
	}
	return b.String()
}

// maxLastMessage is how much of the end of the agent's last message a gate shows, in bytes.
const maxLastMessage = 1000

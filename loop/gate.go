package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// The answers that gates take.
const (
	answerApprove  = "approve"
	answerReject   = "reject"
	answerAbort    = "abort"
	answerContinue = "continue"
	answerManual   = "manual"
	answerRaise    = "raise"
	answerFinish   = "finish"
	answerRetry    = "retry"
	answerReply    = "reply"
	answerAccept   = "accept"
	answerFalse    = "whitelist"
)

// openGate asks a person and waits.
func (r *run) openGate(kind perdure.GateKind, q perdure.GateQuestion) (string, error) {
	raw, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	g := &perdure.Gate{Iteration: r.state.Run.Number, Kind: kind, Question: raw, Approver: r.cfg.Approver}
	if g.Approver.TakesToken() {
		r.e.tokens.add(g)
	}
	if r.cfg.GateTimeout > 0 {
		g.ExpiresAt = new(time.Now().Add(r.cfg.GateTimeout).UTC())
	}
	r.change.Gate = g
	r.state.Gate = gateJustOpened
	return stepGate, nil
}

// gateJustOpened is used as the number of a gate that this step opens.
const gateJustOpened = -1

// waitForGate continues when the gate is answered. It calls the handlers first,
// once; they may notify users.
func waitForGate(ctx context.Context, r *run) (string, error) {
	gates, err := r.e.cfg.Store.Gates(ctx, r.l.Tree.ID)
	if err != nil {
		return "", err
	}
	if len(gates) == 0 {
		return stepNext, nil
	}
	g := &gates[len(gates)-1]
	q, err := g.ParseQuestion()
	if err != nil {
		return "", err
	}
	if r.state.Gate == gateJustOpened {
		if err := r.opened(ctx, g, &q); err != nil || g.Answer == "" {
			return stepGate, err
		}
	}
	if g.Answer == "" {
		if to, decided, err := r.obeyControl(ctx); decided || err != nil {
			return to, err
		}
	}
	switch {
	case g.Answer != "":
	case g.ExpiresAt != nil && !g.ExpiresAt.After(time.Now()):
		r.state.Gate = 0
		r.state.Verdict, r.state.Reason = string(record.Aborted), fmt.Sprintf("gate %d was not answered in time", g.Number)
		return stepFinish, nil
	default:
		if err := r.renewToken(ctx, g, true); err != nil {
			return "", err
		}
		r.park(*cmp.Or(g.ExpiresAt, new(farAway())))
		return stepGate, nil
	}
	r.state.Gate = 0
	r.e.tokens.remove(g)
	if err := r.takeBack(ctx, g); err != nil {
		return "", err
	}
	if _, err := r.ask(ctx, hook.GateAnswered, g.Answer,
		map[string]any{"gate_id": strconv.Itoa(g.Number), "kind": string(g.Kind),
			"decision": g.Answer, "decided_by": g.AnsweredBy, "reason": g.Reason}); err != nil {
		return "", err
	}
	return r.answered(ctx, g)
}

// opened makes the token of a new gate and calls the handlers. A loop that does not wait
// leaves its best iteration.
func (r *run) opened(ctx context.Context, g *perdure.Gate, q *perdure.GateQuestion) error {
	if err := r.renewToken(ctx, g, false); err != nil {
		return err
	}
	_, err := r.ask(ctx, hook.GateOpened, q.Title,
		map[string]any{"gate_id": strconv.Itoa(g.Number), "kind": string(g.Kind), "reason": q.Title, "options": q.Options})
	if err == nil && g.Answer == "" && r.cfg.EndsAtGates() {
		err = r.leaveBest(ctx)
	}
	if err == nil {
		r.state.Gate = g.Number // then a process that waits for it can end
	}
	return err
}

// answered does what a person decided.
func (r *run) answered(ctx context.Context, g *perdure.Gate) (string, error) {
	switch g.Answer {
	case answerAbort:
		r.state.Verdict, r.state.Reason = string(record.Aborted), fmt.Sprintf("gate %d was answered with abort", g.Number)
		return stepFinish, nil
	case answerManual:
		r.halt("gate %d was answered with manual: fix it by hand, then resume", g.Number)
		return stepNext, nil
	case answerContinue, answerReply:
		r.state.Answer = g.Reason
		return stepNext, r.continued(ctx, g)
	case answerRetry:
		if g.Kind == perdure.GateRecovery { // the check in a clean copy
			r.loop.Status = record.Completing
			return stepComplete, nil
		}
		// All agents are asked again, from the first.
		r.state.Marks, r.state.Agent, r.state.Answer = nil, 0, g.Reason
		return stepNext, nil
	case answerRaise:
		r.raise()
		return stepNext, nil
	case answerAccept:
		r.state.Verdict = string(record.Failed)
		r.state.Reason = fmt.Sprintf("the agent's report was accepted: the task cannot be done as written (gate %d)",
			g.Number)
		return stepSelect, nil
	case answerFinish:
		if g.Kind == perdure.GateClarification { // the check passed before the first one
			r.state.Verdict, r.state.Reason = string(record.Completed), "the check passed before the first iteration"
			return stepFinish, nil
		}
		r.state.Verdict, r.state.Reason = string(record.Failed), fmt.Sprintf("gate %d was answered with finish", g.Number)
		return stepSelect, nil
	}
	if g.Kind == perdure.GateDestructive { // approved
		r.state.Allowed = append(r.state.Allowed, r.state.Run.Wanted...)
		r.state.Answer = strings.TrimSpace("Allowed now: " + strings.Join(r.state.Run.Wanted, ", ") + "\n" + g.Reason)
		return stepNext, nil
	}
	if g.Kind == perdure.GateHeldOut {
		return r.heldOutAnswered(ctx, g)
	}
	out, err := r.outcome(ctx, g.Iteration)
	if err != nil {
		return "", err
	}
	if g.Answer == answerReject {
		r.state.Answer, r.state.Rejected = g.Reason, true
		r.state.Recoveries = 0
		return stepNext, r.revert(ctx, out, nil)
	}
	if g.Answer == answerFalse {
		r.change.FalseAlarms = out.Marks("")
		for i := range r.change.FalseAlarms {
			r.change.FalseAlarms[i].By, r.change.FalseAlarms[i].Reason = g.AnsweredBy, g.Reason
		}
	}
	r.state.Results, r.state.Recoveries, r.state.Answer, r.state.Trusted = out.Check.Results, 0, g.Reason, out.After
	r.state.TrustedPassed = out.Check.Passed
	if err := r.keepIgnored(ctx); err != nil {
		return "", err
	}
	// An answer to another question does not approve of programs that it did not name.
	if out.CleanCopy != nil && out.CleanCopy.Machine {
		if err := r.recordMachine(ctx); err != nil {
			return "", err
		}
	}
	if err := r.trustMetrics(ctx, out.Metrics, out.After); err != nil {
		return "", err
	}
	if err := r.amend(ctx, record.IterationKept, func(o *state.Outcome) { o.Accepted = true }); err != nil {
		return "", err
	}
	if out.Check.Passed {
		r.loop.Status = record.Completing
		return stepComplete, nil
	}
	return stepNext, nil
}

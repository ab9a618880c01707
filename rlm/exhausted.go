package rlm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// What becomes of a task for which no model is left.
const (
	// OnExhaustedGate has the task wait until a person decides.
	OnExhaustedGate = "gate"
	// OnExhaustedFail fails the task.
	OnExhaustedFail = "fail"
)

// KindSkipped is a task that a person decided to do without.
const KindSkipped = "skipped"

// gateQuestion returns what the gate of a run asks.
func gateQuestion(why string) perdure.GateQuestion {
	return perdure.GateQuestion{Title: "all models of the chain failed", Text: why, Options: []perdure.GateOption{
		{Answer: perdure.AnswerRetry, Effect: "the models are called again for all waiting tasks"},
		{Answer: perdure.AnswerManual, Effect: "one task gets the result that you write (--text or --file)"},
		{Answer: perdure.AnswerSkip, Effect: "the waiting tasks fail, and the run continues by its policy"},
		{Answer: perdure.AnswerAbandon, Effect: "the run is cancelled"},
	}}
}

// waitAtGate suspends the task until a person answers the gate of its tree.
func (a *attempt) waitAtGate(ctx context.Context, why string) error {
	opened, err := a.l.WaitAtGate(ctx, perdure.GateReassignment, gateQuestion(why))
	if err == nil && opened > 0 && a.e.cfg.GateOpened != nil {
		a.e.cfg.GateOpened(context.WithoutCancel(ctx), &a.l.Tree, opened)
	}
	return err
}

// settle is the end of an attempt: the task waits for a person when its models
// failed for good, and the run is to ask then.
func (a *attempt) settle(ctx context.Context, err error) error {
	f, ok := errors.AsType[*attemptError](err)
	if !ok || !a.e.cfg.Gates || ctx.Err() != nil || !a.run.cfg.asks(f) {
		return err
	}
	if f.retry && a.l.Task.Attempts < a.l.Task.MaxAttempts {
		return err
	}
	last, done := lastWrite(ctx)
	defer done()
	return a.waitAtGate(last, f.Error())
}

// asks reports whether a gate opens for a task whose models failed: only for a chain
// of models, because a user who names one model does not wait for another.
// Errors in the configuration open no gate.
func (c *Config) asks(f *attemptError) bool {
	switch {
	case f.asked == "", c.OnExhausted == OnExhaustedFail, f.cause == model.KindAuth, f.cause == model.KindNotFound:
		return false
	case c.OnExhausted == OnExhaustedGate:
		return true
	}
	return len(model.ChainNames(f.asked)) > 1
}

// decided applies the user's decision about the task from while it waited at a gate.
// It returns false if the models are to be called.
func (a *attempt) decided(ctx context.Context) (done bool, err error) {
	if !a.e.cfg.Gates || a.l.Fence() == 1 {
		return false, nil
	}
	answer, err := a.l.GateAnswer(ctx)
	if err != nil {
		return false, err
	}
	by := cmp.Or(strings.TrimSpace(answer.By), "the user")
	switch answer.Answer {
	case perdure.AnswerManual:
		return true, a.byHand(ctx, by, answer.Text)
	case perdure.AnswerSkip:
		return true, failf(KindSkipped, "skipped by %s: %s", by, answer.Why)
	case perdure.AnswerAbandon: // recorded by a version that did not cancel the tree with it
		_, err := a.e.cfg.Store.CancelTree(ctx, a.l.Tree.ID, "abandoned at a gate by "+by)
		if err == nil {
			err = perdure.ErrLeaseLost
		}
		return true, err
	}
	return false, nil
}

// byHand completes the task with the result that a person wrote.
func (a *attempt) byHand(ctx context.Context, by, text string) error {
	data := Data{Notes: []string{fmt.Sprintf("the result of task %q was written by %s", a.l.Task.ID, by)}}
	if s := a.run.shape; s != nil && a.node.Whole {
		value, problems := s.Check(text)
		if len(problems) > 0 {
			return a.waitAtGate(ctx, "the answer by hand is not valid against the schema: "+strings.Join(problems, "; "))
		}
		data.Structured, text = value, string(value)
	}
	return a.complete(ctx, text, &data)
}

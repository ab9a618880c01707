package rlm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
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
func gateQuestion(title, why string) perdure.GateQuestion {
	return perdure.GateQuestion{Title: title, Text: why, Options: []perdure.GateOption{
		{Answer: perdure.AnswerRetry, Effect: "the models are called again for all waiting tasks"},
		{Answer: perdure.AnswerManual, Effect: "one task gets the result that you write (--text or --file)"},
		{Answer: perdure.AnswerSkip, Effect: "the waiting tasks fail, and the run continues by its policy"},
		{Answer: perdure.AnswerAbandon, Effect: "the run is cancelled"},
	}}
}

// waitAtGate suspends the task until a person answers the gate of its tree.
func (a *attempt) waitAtGate(ctx context.Context, kind perdure.GateKind, q perdure.GateQuestion) error {
	opened, err := a.l.WaitAtGate(ctx, kind, q)
	if err == nil && opened > 0 && a.e.cfg.GateOpened != nil {
		a.e.cfg.GateOpened(context.WithoutCancel(ctx), &a.l.Tree, opened)
	}
	return err
}

// settle is the end of an attempt: the task waits for a person when its models
// failed for good, or are to be asked much later, and the run is to ask then.
func (a *attempt) settle(ctx context.Context, err error) error {
	f, ok := errors.AsType[*attemptError](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	wait := a.run.cfg.maxWait()
	long := wait > 0 && f.after > wait
	if long {
		f = f.tooLate(wait)
	}
	if !a.e.cfg.Gates || !long && !a.run.cfg.asks(f) || a.run.cfg.OnExhausted == OnExhaustedFail {
		return f
	}
	if f.retry && a.l.Task.Attempts < a.l.Task.MaxAttempts {
		return f
	}
	last, done := lastWrite(ctx)
	defer done()
	if long {
		return a.waitAtGate(last, perdure.GateRateLimit,
			gateQuestion(fmt.Sprintf("the model is to be asked again in %s", human.Duration(f.after)), f.Error()))
	}
	return a.waitAtGate(last, perdure.GateReassignment, gateQuestion("all models of the chain failed", f.Error()))
}

// maxWait returns the longest wait that a provider may ask for, 0 for any.
func (c *Config) maxWait() time.Duration {
	if c.MaxWait == nil {
		return model.DefaultMaxPause
	}
	return time.Duration(*c.MaxWait)
}

// tooLate returns the failure of an attempt whose model is to be asked again much later: the task
// is not tried again by itself.
func (f *attemptError) tooLate(longest time.Duration) *attemptError {
	late := *f
	late.retry = false
	late.err = fmt.Errorf("%w; it asks to wait %s, until %s, and --max-wait is %s", f.err, human.Duration(f.after),
		time.Now().Add(f.after).UTC().Format("2006-01-02 15:04 MST"), human.Duration(longest))
	return &late
}

// asks reports whether a gate opens for a task whose models failed: only for a chain
// of models, because a user who names one model does not wait for another.
// Errors in the configuration open no gate.
func (c *Config) asks(f *attemptError) bool {
	switch {
	case f.asked == "", f.cause == model.KindAuth, f.cause == model.KindNotFound:
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
	case perdure.AnswerRetry:
		a.run.askAgain(answer.Gate)
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

// askAgain has the models be asked again that were not, because the user said so at a gate.
func (r *run) askAgain(gate int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gate <= r.retried {
		return
	}
	r.retried = gate
	r.faults.Forget()
	for _, m := range r.models {
		model.Resume(m.Model)
	}
	for _, m := range r.agents {
		model.Resume(m.Model)
	}
}

// byHand completes the task with the result that a person wrote.
func (a *attempt) byHand(ctx context.Context, by, text string) error {
	data := Data{Notes: []string{fmt.Sprintf("the result of task %q was written by %s", a.l.Task.ID, by)}}
	if s := a.run.shape; s != nil && a.node.Whole {
		value, problems := s.Check(text)
		if len(problems) > 0 {
			return a.waitAtGate(ctx, perdure.GateReassignment, gateQuestion("the answer by hand is refused",
				"the answer by hand is not valid against the schema: "+strings.Join(problems, "; ")))
		}
		data.Structured, text = value, string(value)
	}
	return a.complete(ctx, text, &data)
}

package rlm

import (
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

// The answers of people about a task that waits at a gate; any other is to ask its
// models again.
const (
	answerManual  = "manual"
	answerSkip    = "skip"
	answerAbandon = "abandon"
)

// Gates are where people decide about tasks for which no model is left.
type Gates interface {
	// Wait gives a leased task back until somebody has decided; why says what keeps
	// it from going on. All tasks of a tree wait at one gate.
	Wait(ctx context.Context, l *perdure.Lease, why string) error
	// Decided returns what was decided of a task, by whom, and the text that goes
	// with it: the result for "manual", else what kept the task from going on. It is
	// empty for a task that never waited, or still does.
	Decided(ctx context.Context, task perdure.TaskID) (answer, by, text string, err error)
}

// settle is the end of an attempt: the task waits for a person when its models
// failed for good, and the run is to ask then.
func (a *attempt) settle(ctx context.Context, err error) error {
	var f *attemptError
	if !errors.As(err, &f) || a.e.cfg.Gates == nil || ctx.Err() != nil || !a.run.cfg.asks(f) {
		return err
	}
	if f.retry && a.l.Task.Attempts < a.l.Task.MaxAttempts {
		return err
	}
	last, done := lastWrite(ctx)
	defer done()
	return a.e.cfg.Gates.Wait(last, a.l, f.Error())
}

// asks tells whether a person is asked about a task whose models failed: where a
// chain of them was given, because somebody who names one model waits for no
// other. What is wrong in the configuration is no question.
func (c *Config) asks(f *attemptError) bool {
	switch {
	case f.asked == "", c.OnExhausted == OnExhaustedFail, f.cause == model.KindAuth, f.cause == model.KindNotFound:
		return false
	case c.OnExhausted == OnExhaustedGate:
		return true
	}
	return len(model.ChainNames(f.asked)) > 1
}

// decided does what a person decided of the task while it waited at a gate. It is
// not done when its models are to be asked.
func (a *attempt) decided(ctx context.Context) (done bool, err error) {
	if a.e.cfg.Gates == nil || a.l.Fence() == 1 {
		return false, nil
	}
	answer, by, text, err := a.e.cfg.Gates.Decided(ctx, a.l.Task.ID)
	if err != nil {
		return false, err
	}
	if by = strings.TrimSpace(by); by == "" {
		by = "somebody"
	}
	switch answer {
	case answerManual:
		return true, a.byHand(ctx, by, text)
	case answerSkip:
		return true, failf(KindSkipped, "skipped by %s: %s", by, text)
	case answerAbandon:
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
			return a.e.cfg.Gates.Wait(ctx, a.l, "the answer by hand is not valid against the schema: "+
				strings.Join(problems, "; "))
		}
		data.Structured, text = value, string(value)
	}
	return a.complete(ctx, text, &data)
}

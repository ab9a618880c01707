package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/perdure/perdure"
)

// EventPanic reports a handler that panicked; its data has the value and the
// stack.
const EventPanic perdure.EventKind = "task.panicked"

// maxStackBytes bounds the stack in the event of a panic.
const maxStackBytes = 16 << 10

// errUnsettled is the failure of a handler with a bug.
var errUnsettled = &Failure{Kind: KindUnsettled, Err: errors.New("handler returned without settling its task")}

// attempt runs the handler and settles what it left unsettled. It reports
// whether the handler says that it did so itself.
func (w *Worker) attempt(ctx context.Context, l *perdure.Lease) (settled bool) {
	log := w.cfg.Logger
	log.Debug("task begins", "task_id", l.Task.ID.String(), "attempt", l.Task.Attempts)
	begun := time.Now()
	err := w.handle(ctx, l)
	log.Debug("handler returned", "task_id", l.Task.ID.String(), "duration_ms", time.Since(begun).Milliseconds(),
		"error", err)
	if err == nil {
		return true
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, perdure.ErrLeaseLost) || errors.Is(err, perdure.ErrLeaseLost) {
		log.Info("lease lost, attempt abandoned", "task_id", l.Task.ID.String())
		return false
	}
	last, done := context.WithTimeout(context.WithoutCancel(ctx), w.cfg.SettleTimeout)
	defer done()
	switch {
	case cause != nil:
		w.settle(last, debt{lease: l})
	case w.cfg.Patience >= 0 && storeRefused(err):
		w.giveUp(err) // first: it must not be claimed again here
		w.settle(last, debt{lease: l})
	default:
		w.settle(last, debt{lease: l, cause: err})
	}
	return false
}

func (w *Worker) fail(ctx context.Context, l *perdure.Lease, cause error) error {
	if p, ok := errors.AsType[*panicError](cause); ok {
		note := map[string]string{"value": p.value, "stack": p.stack}
		if err := l.AppendEvent(ctx, EventPanic, note); err != nil {
			return err
		}
	}
	f := failureOf(cause)
	if f.Retry {
		if f.After <= 0 {
			f.After = backoff(l.Task.Attempts)
		}
		f.After = within(&l.Tree, time.Now(), f.After)
	}
	_, err := l.Fail(ctx, f)
	return err
}

// handle calls the handler and turns a panic into an error.
func (w *Worker) handle(ctx context.Context, l *perdure.Lease) (err error) {
	defer func() {
		if v := recover(); v != nil {
			stack := debug.Stack()
			p := &panicError{value: fmt.Sprint(v), stack: string(stack[:min(len(stack), maxStackBytes)])}
			w.cfg.Logger.Error("handler panicked", "task_id", l.Task.ID.String(), "error", p.value, "stack", p.stack)
			err = p
		}
	}()
	return w.cfg.Handlers[l.Tree.Kind].Handle(ctx, l)
}

// panicError is the panic of a handler.
type panicError struct{ value, stack string }

func (p *panicError) Error() string { return "handler panicked: " + p.value }

func (p *panicError) Failure() perdure.Failure {
	return perdure.Failure{Kind: KindPanic, Message: p.Error(), Retry: true}
}

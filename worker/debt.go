package worker

import (
	"context"
	"errors"

	"github.com/perdure/perdure"
)

// debt is the end of an attempt that has to be written: a failure, or without
// a cause the way back to the queue.
type debt struct {
	lease *perdure.Lease
	cause error
}

// settle writes the end of an attempt. What the store refuses is owed: as long
// as this process lives, no other process may end the task.
func (w *Worker) settle(ctx context.Context, d debt) {
	err := w.pay(ctx, d)
	if err == nil {
		return
	}
	w.cfg.Logger.Warn("settle task", "task_id", d.lease.Task.ID.String(), "error", err)
	w.mu.Lock()
	w.owed = append(w.owed, d)
	w.mu.Unlock()
}

func (w *Worker) pay(ctx context.Context, d debt) error {
	var err error
	if d.cause == nil {
		err = d.lease.Release(ctx)
	} else {
		err = w.fail(ctx, d.lease, d.cause)
	}
	if errors.Is(err, perdure.ErrLeaseLost) {
		return nil
	}
	return err
}

// payDebts writes what is owed, until the store refuses again.
func (w *Worker) payDebts(ctx context.Context) error {
	for {
		w.mu.Lock()
		if len(w.owed) == 0 {
			w.mu.Unlock()
			return nil
		}
		d := w.owed[0]
		w.mu.Unlock()
		if err := w.pay(ctx, d); err != nil {
			return err
		}
		w.mu.Lock()
		w.owed = w.owed[1:]
		w.mu.Unlock()
	}
}

// giveUp makes Run end with err.
func (w *Worker) giveUp(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		w.fault = err
		w.stop()
	}
}

func (w *Worker) gaveUp() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fault
}

// storeRefused reports whether an attempt came to nothing because the store
// cannot be written, or is damaged, and not because of the task.
func storeRefused(err error) bool {
	var whole interface{ Failure() perdure.Failure }
	if errors.As(err, &whole) {
		return false // the handler says what it is
	}
	var own *perdure.Error
	if !errors.As(err, &own) {
		return false
	}
	return own.Code == perdure.CodeUnavailable || own.Code == perdure.CodeDamaged
}

package worker

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/perdure/perdure"
)

// How often lost leases are looked for: soon after a change of the store, not
// at each of many changes, and now and then without one.
const (
	watchSoon   = 200 * time.Millisecond
	watchAlways = time.Second
)

// claimRetry is the wait after the store could not be reached for a claim.
const claimRetry = 500 * time.Millisecond

// claimLoop claims as many tasks as there are free places and starts each,
// until ctx ends or the store is of no use any more. It is the only one of its
// worker that claims: several would take turns at the same rows.
func (w *Worker) claimLoop(ctx context.Context, start func(*perdure.Lease)) error {
	var refused time.Time // since when the store has been refusing
	for ctx.Err() == nil {
		// Tasks that ended in one transaction end together: let them all give
		// back their places, and claim for all of them at once.
		runtime.Gosched()
		ready := w.cfg.Store.Ready()
		free := w.free()
		leases, err := w.claim(ctx, free)
		if fault := w.gaveUp(); fault != nil {
			for _, l := range leases {
				w.settle(ctx, debt{lease: l})
			}
			return fault
		}
		for _, l := range leases {
			start(l)
		}
		switch {
		case err == nil && free <= 0:
			w.idle(ctx, nil, 0)
		case err == nil && len(leases) > 0:
		case err == nil:
			w.idle(ctx, ready, 0)
		case ctx.Err() != nil:
		case !errors.Is(err, perdure.ErrUnavailable) || w.lostPatience(refused):
			return err
		default:
			if refused.IsZero() {
				refused = time.Now()
			}
			w.cfg.Logger.Warn("retrying claim", "error", err)
			w.idle(ctx, nil, claimRetry)
			continue
		}
		refused = time.Time{}
	}
	return nil
}

func (w *Worker) lostPatience(refused time.Time) bool {
	return w.cfg.Patience >= 0 && !refused.IsZero() && time.Since(refused) >= w.cfg.Patience
}

// claim writes what is owed first: a worker that cannot end a task must not begin
// another.
func (w *Worker) claim(ctx context.Context, limit int) ([]*perdure.Lease, error) {
	if err := w.payDebts(ctx); err != nil || limit <= 0 {
		return nil, err
	}
	req := perdure.ClaimRequest{Max: limit, Allow: w.allow}
	if w.cfg.Trees != nil {
		req.Trees = w.cfg.Trees()
		if len(req.Trees) == 0 {
			return nil, nil
		}
	}
	return w.cfg.Session.Claim(ctx, req)
}

func (w *Worker) allow(t perdure.Tree) bool {
	if w.cfg.Handlers[t.Kind] == nil {
		return false
	}
	return w.cfg.Allow == nil || w.cfg.Allow(t)
}

// idle waits until a slot is free or the worker is woken, until ready
// fires, for d when it is not 0, or until ctx ends.
func (w *Worker) idle(ctx context.Context, ready <-chan struct{}, d time.Duration) {
	var late <-chan time.Time
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-ctx.Done():
	case <-w.wake:
	case <-ready:
	case <-late:
	}
}

// watchLeases looks after the leases until ctx ends.
func (w *Worker) watchLeases(ctx context.Context) {
	for {
		changed := w.cfg.Store.Changed()
		w.checkLeases(ctx)
		if !pause(ctx, nil, watchSoon) || !pause(ctx, changed, watchAlways) {
			return
		}
	}
}

// pause waits for d, shorter when ch fires, and reports whether ctx is still active.
func pause(ctx context.Context, ch <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-ch:
	case <-timer.C:
	}
	return true
}

// checkLeases cancels the work of leases that were lost, and fails tasks that
// are still leased although their handler returned without an error: no other worker
// would ever end them.
func (w *Worker) checkLeases(ctx context.Context) {
	w.mu.Lock()
	leases := make([]*perdure.Lease, 0, len(w.running)+len(w.ended))
	for l := range w.running {
		leases = append(leases, l)
	}
	ended := w.ended
	w.ended = nil
	w.mu.Unlock()
	leases = append(leases, ended...)
	if len(leases) == 0 {
		return
	}
	lost, err := w.cfg.Session.Lost(ctx, leases)
	if err != nil {
		w.mu.Lock()
		w.ended = append(w.ended, ended...)
		w.mu.Unlock()
		if ctx.Err() == nil {
			w.cfg.Logger.Warn("look for lost leases", "error", err)
		}
		return
	}
	gone := make(map[*perdure.Lease]bool, len(lost))
	w.mu.Lock()
	for _, l := range lost {
		gone[l] = true
		if r, ok := w.running[l]; ok {
			r.cancel(perdure.ErrLeaseLost)
		}
	}
	w.mu.Unlock()
	for _, l := range ended {
		if !gone[l] {
			w.settle(ctx, debt{lease: l, cause: errUnsettled})
		}
	}
}

package perdure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// maxBatch bounds the operations of one transaction, so that a write of
// another process never waits for long.
const maxBatch = 512

// busyRetries is how often a transaction is tried again after the database
// refused it for reasons of concurrency.
const busyRetries = 5

// op is one change of the store, decided and made inside a transaction that it
// shares with others. apply first checks everything that could refuse the
// operation and returns an *Error then, having changed nothing. Any other error
// is unexpected and undoes the whole transaction.
type op interface {
	apply(ctx context.Context, b *batch) error
}

// undo carries the refusal of an operation that had already changed something:
// the transaction has to be undone.
type undo struct{ err error }

// Error returns the refusal's text. There is no Unwrap: the refusal must not be
// found by those who look for one that changed nothing.
func (u *undo) Error() string { return u.err.Error() }

// opFunc is an operation for rare writes.
type opFunc func(ctx context.Context, b *batch) error

func (f opFunc) apply(ctx context.Context, b *batch) error {
	// Rare writes look at rows with any statement: nothing may be outstanding.
	if err := b.flushParents(ctx); err != nil {
		return err
	}
	if err := b.forgetVars(ctx); err != nil {
		return err
	}
	return f(ctx, b)
}

type request struct {
	op   op
	done chan error
}

// writer is the one goroutine of a process that writes. It takes all operations
// that wait and commits them as one transaction, so that many callers share one
// disk flush; a caller returns when its own operation is durable or refused.
type writer struct {
	s     *Store
	queue chan *request
	pool  sync.Pool

	closing   sync.RWMutex // held for reading while an operation is handed over
	closed    bool         // guarded by closing
	committed atomic.Int64 // the number of the last transaction of this process

	cache      cache
	insertions *insertions
}

func newWriter(s *Store) *writer {
	return &writer{s: s, cache: cache{seq: seqRow{tx: -1}}, queue: make(chan *request, maxBatch),
		insertions: newInsertions(),
		pool:       sync.Pool{New: func() any { return &request{done: make(chan error, 1)} }}}
}

// do hands an operation over and waits until it is durable or refused. The
// context is looked at before, not after: what was handed over has an outcome.
func (w *writer) do(ctx context.Context, op op) error {
	if err := ctx.Err(); err != nil {
		return &Error{Code: CodeCanceled, Op: "write", Err: err}
	}
	r, _ := w.pool.Get().(*request)
	r.op = op
	w.closing.RLock()
	if w.closed {
		w.closing.RUnlock()
		return &Error{Code: CodeUnavailable, Op: "write", Msg: "the store is closed"}
	}
	w.queue <- r
	w.closing.RUnlock()
	err := <-r.done
	r.op = nil
	w.pool.Put(r)
	return err
}

func (w *writer) close() {
	w.closing.Lock()
	defer w.closing.Unlock()
	if !w.closed {
		w.closed = true
		close(w.queue)
	}
}

func (w *writer) run(ctx context.Context) {
	batch := make([]*request, 0, maxBatch)
	for r := range w.queue {
		batch = append(batch[:0], r)
	gather:
		for len(batch) < maxBatch {
			select {
			case more, ok := <-w.queue:
				if !ok {
					break gather
				}
				batch = append(batch, more)
			default:
				break gather
			}
		}
		w.commit(ctx, batch)
	}
}

// commit makes the operations durable together. When something unexpected
// happens to the transaction, each operation gets one of its own, so that one
// bad operation cannot fail its neighbours.
func (w *writer) commit(ctx context.Context, reqs []*request) {
	errs := make([]error, len(reqs))
	err := w.transact(ctx, reqs, errs)
	switch code := CodeOf(err); {
	case err == nil:
	case len(reqs) == 1, code == CodeUnavailable, code == CodeDamaged:
		// Not the doing of one of them: alone they would wait and fail as well,
		// or, when the server went away in a commit, be done twice.
		for i := range errs {
			errs[i] = err
		}
	default:
		for i := range reqs {
			one := errs[i : i+1]
			if err := w.transact(ctx, reqs[i:i+1], one); err != nil {
				one[0] = err
			}
		}
	}
	for i, r := range reqs {
		r.done <- errs[i]
	}
}

// transact runs one transaction, again when the database was busy.
func (w *writer) transact(ctx context.Context, reqs []*request, errs []error) error {
	for try := 1; ; try++ {
		tx, err := w.s.db.Begin(ctx)
		if err != nil {
			return wrap("write", err) // it has waited long enough
		}
		again, err := w.attempt(ctx, tx, reqs, errs)
		var u *undo
		if errors.As(err, &u) {
			err = u.err
		}
		if err == nil || try == busyRetries || !again && !errors.Is(err, sqldb.ErrBusy) {
			return wrap("write", err)
		}
	}
}

// attempt runs one transaction. After an error again tells that it rested on
// the cache, which is empty now.
func (w *writer) attempt(ctx context.Context, tx *sqldb.Tx, reqs []*request, errs []error) (again bool, err error) {
	b := &batch{tx: tx, s: w.s, now: tx.Now, cache: &w.cache, in: w.insertions}
	if err := b.run(ctx, reqs, errs); err != nil {
		w.cache.clear()
		return b.cached, errors.Join(err, tx.Rollback(ctx))
	}
	failpoint.Hit("tx.before_commit")
	if err := tx.Commit(ctx); err != nil {
		w.cache.clear()
		return false, err
	}
	failpoint.Hit("tx.after_commit")
	if !tx.Changed {
		w.s.known.update(b.emptied, nil)
		return false, nil
	}
	w.committed.Store(w.cache.seq.tx)
	w.s.recent.put(b.fresh)
	w.s.known.update(b.emptied, b.ready)
	w.s.changed.fire()
	if len(b.ready) > 0 {
		w.s.ready.fire()
	}
	return false, nil
}

package perdure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// maxBatch bounds the operations of one transaction, so that other processes never wait
// long for their turn to write.
const maxBatch = 512

// busyRetries bounds the attempts at a transaction that conflicts with other processes.
const busyRetries = 5

// op is one change of the store, made inside a transaction that it shares with other
// operations. apply returns an *Error to refuse the operation, before it changes
// anything. Any other error is unexpected and rolls back the whole transaction.
type op interface {
	apply(ctx context.Context, b *batch) error
}

// undo is the refusal of an operation that has already changed rows: the transaction has
// to be rolled back.
type undo struct{ err error }

// Error returns the refusal's text. There is no Unwrap, because errors.As must not find
// the *Error of a refusal that changed nothing.
func (u *undo) Error() string { return u.err.Error() }

// opFunc is an operation for rare writes.
type opFunc func(ctx context.Context, b *batch) error

func (f opFunc) apply(ctx context.Context, b *batch) error {
	// Rare writes use any statements, so pending rows are written first.
	if err := b.flushParents(ctx); err != nil {
		return err
	}
	if err := b.flushTrees(ctx); err != nil {
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

// writer is the goroutine of a process that writes. It takes all waiting operations and
// commits them as one transaction, so that many callers share one disk flush; a caller
// returns when its own operation is durable or refused.
type writer struct {
	s     *Store
	queue chan *request
	pool  sync.Pool

	closing   sync.RWMutex // held for reading while an operation is queued
	closed    bool         // guarded by closing
	committed atomic.Int64 // the number of the last transaction of this process

	cache      cache
	insertions *insertions
	pending    pendingRows
}

func newWriter(s *Store) *writer {
	return &writer{s: s, cache: newCache(), queue: make(chan *request, maxBatch), insertions: newInsertions(),
		pool: sync.Pool{New: func() any { return &request{done: make(chan error, 1)} }}}
}

// do passes an operation to the writer and waits until it is durable or refused. The
// context is checked only before: the writer decides every operation it receives.
func (w *writer) do(ctx context.Context, op op) error {
	if err := ctx.Err(); err != nil {
		return &Error{Code: CodeCanceled, Op: "write", Err: err}
	}
	if w.s.cfg.ReadOnly {
		return wrap("write", sqldb.ErrReadOnly)
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
		// Only this goroutine receives, so a queue that is not empty does not block.
		for len(w.queue) > 0 && len(batch) < maxBatch {
			batch = append(batch, <-w.queue)
		}
		w.commit(ctx, batch)
	}
}

// commit makes the operations durable together. After an unexpected error, each
// operation gets a transaction of its own, so that a bad operation does not fail the
// others.
func (w *writer) commit(ctx context.Context, reqs []*request) {
	errs := make([]error, len(reqs))
	err := w.transact(ctx, reqs, errs)
	switch code := CodeOf(err); {
	case err == nil:
	case len(reqs) == 1, code == CodeUnavailable, code == CodeDamaged:
		// No single operation caused it: alone each would fail as well or, if the
		// connection broke during the commit, be applied twice.
		for i := range errs {
			errs[i] = err
		}
	default:
		for i := range reqs {
			if err := w.transact(ctx, reqs[i:i+1], errs[i:i+1]); err != nil {
				errs[i] = err
			}
		}
	}
	for i, r := range reqs {
		r.done <- errs[i]
	}
}

// transact runs one transaction and repeats it when the database was busy.
func (w *writer) transact(ctx context.Context, reqs []*request, errs []error) error {
	for try := 1; ; try++ {
		tx, err := w.s.db.Begin(ctx)
		if errors.Is(err, sqldb.ErrRemoved) && w.s.keeper.isStarted() && try < busyRetries {
			w.cache.clear()
			if err = w.s.keeper.putBack(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return wrap("write", err) // Begin has waited
		}
		again, err := w.attempt(ctx, tx, reqs, errs)
		if u, ok := errors.AsType[*undo](err); ok {
			err = u.err
		}
		if err == nil || try == busyRetries || !again && !errors.Is(err, sqldb.ErrBusy) {
			return wrap("write", err)
		}
	}
}

// attempt runs one transaction. After an error, again reports whether the transaction
// used the cache without checking it; the cache is empty now.
func (w *writer) attempt(ctx context.Context, tx *sqldb.Tx, reqs []*request, errs []error) (again bool, err error) {
	b := w.newBatch(tx)
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
	if w.s.heads != nil {
		w.s.heads.add(b.heads, b.over)
	}
	if len(b.ready) > 0 {
		w.s.ready.fire()
	}
	if b.freed {
		w.s.freed.fire()
	}
	return false, nil
}

package perdure

import (
	"context"
	"database/sql"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/storage/chain"
)

// HoldWriter stops the store's writer inside a transaction, so that operations
// begun meanwhile wait in its queue and are then made in one transaction, in
// the order in which they came. release lets it go on and waits until its
// transaction is over.
func HoldWriter(ctx context.Context, s *Store) (release func() error) {
	entered, leave, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		ended <- s.w.do(ctx, opFunc(func(context.Context, *batch) error {
			once.Do(func() { close(entered) })
			<-leave
			return nil
		}))
	}()
	<-entered
	return func() error {
		close(leave)
		return <-ended
	}
}

// WaitQueued waits until n operations wait in the queue of the writer that [HoldWriter] holds.
func WaitQueued(s *Store, n int) {
	for len(s.w.queue) < n {
		runtime.Gosched()
	}
}

// TryCall is BeginCall without waiting: waits reports whether the call has to wait.
func TryCall(ctx context.Context, l *Lease, spec CallSpec) (call Call, replayed, waits bool, err error) {
	c := l.newCall(spec)
	if err := l.s.w.do(ctx, c); err != nil {
		return Call{}, false, reserved(err), err
	}
	call, replayed, err = l.begun(ctx, c)
	return call, replayed, false, err
}

// InQueue returns how many operations wait for the writer.
func InQueue(s *Store) int { return len(s.w.queue) }

// LookAgain makes the next claim look at all trees and for dead sessions.
func LookAgain(s *Store) { s.polled.Store(0) }

// ClaimKnown claims from the trees of which this process knows.
func (ss *Session) ClaimKnown(ctx context.Context, limit int) ([]*Lease, error) {
	return ss.claimKnown(ctx, &ClaimRequest{Max: limit})
}

// ClaimTree claims ready tasks of one tree, as one operation of the writer.
func (ss *Session) ClaimTree(ctx context.Context, id TreeID, limit int) ([]*Lease, error) {
	tree, err := ss.s.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	ss.s.remember(tree) // a stale owner would make two operations of it
	return ss.claimTree(ctx, tree.key, 0, &ClaimRequest{Max: limit}, limit)
}

// Die ends the session as the death of its process does: the lock is gone, and
// nothing was written. On a server that takes a moment; Die waits for it.
func (ss *Session) Die(ctx context.Context) error {
	var errs []error
	ss.once.Do(func() {
		ss.stop()
		ss.wg.Wait()
		ss.s.mu.Lock()
		delete(ss.s.sessions, ss.key)
		ss.s.mu.Unlock()
		if ss.file != nil {
			errs = append(errs, ss.file.Close())
			return
		}
		errs = append(errs, ss.lock.Close())
		for tick := time.Tick(time.Millisecond); ; <-tick {
			alive, err := ss.s.alive(ctx, ss.key)
			if err != nil || !alive {
				errs = append(errs, err)
				return
			}
		}
	})
	return errors.Join(errs...)
}

// ForgetTree does the first step of a tree's removal.
func ForgetTree(ctx context.Context, s *Store, id TreeID) error {
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return err
	}
	return s.forgetTree(ctx, tree.key)
}

// Dump returns the rows of every table as text, without the count of
// transactions: what a refused operation must not change.
func Dump(ctx context.Context, s *Store) ([]string, error) {
	tables := []string{"session", "tree", "tree_stat", "task_hot", "task", "task_end", "task_output", "call",
		"event", "event_block", "state", "variable", "variable_past", "mutation", "checkpoint", "task_vars", "payload",
		"blob_ref", "blob_chunk", "context", "unused_task", "repl_block"}
	rows, err := s.Fetch(ctx, `SELECT event, tree, task, call, session FROM seq`)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		more, err := s.Fetch(ctx, "SELECT * FROM "+table)
		if err != nil {
			return nil, err
		}
		slices.Sort(more)
		for _, row := range more {
			rows = append(rows, table+" "+row)
		}
	}
	return rows, nil
}

// Fetch returns the rows of a query as text.
func (s *Store) Fetch(ctx context.Context, query string) ([]string, error) {
	rows, err := s.db.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []string
	for rows.Next() {
		dest := make([]any, len(names))
		for i := range dest {
			dest[i] = &sql.NullString{}
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		row := make([]string, len(names))
		for i := range dest {
			row[i] = names[i] + "=" + dest[i].(*sql.NullString).String
		}
		all = append(all, strings.Join(row, " "))
	}
	return all, rows.Err()
}

// Change runs a statement of the tests on the database.
func (s *Store) Change(ctx context.Context, statement string) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		_, err := b.tx.Exec(ctx, statement)
		return err
	}))
}

// ReadEvent reads the event with a number.
func (s *Store) ReadEvent(ctx context.Context, seq string, e *chain.Event) error {
	return s.db.QueryRow(ctx, "SELECT seq, at, tree, task, kind, data FROM event WHERE seq = "+seq, nil, &e.Seq, &e.At,
		&e.Tree, &e.Task, &e.Kind, &e.Data)
}

// RecordHeads records the heads of the log now.
func RecordHeads(ctx context.Context, s *Store) { s.heads.record(ctx) }

// ForgetCache clears the cache of the writer.
func ForgetCache(ctx context.Context, s *Store) {
	_ = s.w.do(ctx, opFunc(func(_ context.Context, b *batch) error {
		clear(b.cache.stats)
		clear(b.dirty)
		return nil
	}))
}

// IncrMany increments a variable so many times, many in a transaction.
func IncrMany(ctx context.Context, s *Store, ref StateRef, name string, n int) error {
	key, err := ref.key("test")
	if err != nil {
		return err
	}
	for n > 0 {
		k := min(n, 500)
		err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			for range k {
				c := &varChange{ref: ref, key: key, spec: VarSpec{Name: name}, by: "1", kind: changeIncr}
				if err := c.apply(ctx, b); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// SetTreeIDs replaces the source of the IDs of new trees.
func SetTreeIDs(s *Store, next func() TreeID) { s.treeID = next }

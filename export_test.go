package perdure

import (
	"context"
	"errors"
	"runtime"
	"sync"
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

// InQueue returns how many operations wait for the writer.
func InQueue(s *Store) int { return len(s.w.queue) }

// ClaimTree claims ready tasks of one tree, as one operation of the writer.
func (ss *Session) ClaimTree(ctx context.Context, id TreeID, limit int) ([]*Lease, error) {
	tree, err := ss.s.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
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
		for {
			alive, err := ss.s.alive(ctx, ss.key)
			if err != nil || !alive {
				errs = append(errs, err)
				return
			}
			runtime.Gosched()
		}
	})
	return errors.Join(errs...)
}

// Fetch returns a row of a query of the tests as text.
func (s *Store) Fetch(ctx context.Context, query string, each func(columns []any)) error {
	rows, err := s.db.Query(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values := make([]any, len(names))
		dest := make([]any, len(names))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		each(values)
	}
	return rows.Err()
}

package perdure

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// waitReserved passes an operation that reserves to the writer. While the rest of a limit
// is reserved for calls in flight, it waits. The calls it waits for must not wait for
// anything that a waiting one has: see [Lease.BeginCall].
func (l *Lease) waitReserved(ctx context.Context, o op) error {
	for {
		freed := l.s.freed.wait()
		err := l.s.w.do(ctx, o)
		if !reserved(err) {
			return err
		}
		if closed, err := l.s.closeLostCalls(ctx, l.Tree.key); err != nil {
			return err
		} else if closed {
			continue
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return &Error{Code: CodeCanceled, Op: "begin call", Err: ctx.Err()}
		}
	}
}

// reserved reports whether an error is errReserved itself: errors.Is compares codes.
func reserved(err error) bool {
	own, ok := errors.AsType[*Error](err)
	return ok && own == errReserved
}

const (
	sqlReleasedCalls = `SELECT c.task, h.fence + 1 FROM task_hot h JOIN call c ON c.task = h.id
		WHERE h.tree = $1 AND h.ready_at IS NOT NULL AND c.state = ` + sqldb.SQLCallStarted
	sqlSessionCalls = `SELECT c.task, h.fence + $3 FROM task_hot h JOIN call c ON c.task = h.id
		WHERE h.session = $2 AND h.tree = $1 AND c.state = ` + sqldb.SQLCallStarted + ` AND c.fence < h.fence + $3`
)

// lostCalls are the open calls of a task by leases below a fencing token, which can no
// longer settle them.
type lostCalls struct{ task, below int64 }

// closeLostCalls makes the open calls of a tree uncertain whose leases have ended: of
// released tasks, of earlier leases, and of dead sessions. Otherwise a process with a
// single worker would wait for their reservations for ever.
func (s *Store) closeLostCalls(ctx context.Context, tree int64) (closed bool, err error) {
	lost, err := s.lostCalls(ctx, sqlReleasedCalls, tree)
	if err != nil {
		return false, err
	}
	st, err := loadStat(ctx, s.db.QueryRow, tree)
	if err != nil {
		return false, wrap("begin call", err)
	}
	for _, h := range st.holds {
		alive, err := s.alive(ctx, h.session)
		if err != nil {
			return false, err
		}
		more, err := s.lostCalls(ctx, sqlSessionCalls, tree, h.session, boolInt(!alive))
		if err != nil {
			return false, err
		}
		lost = append(lost, more...)
	}
	if len(lost) == 0 {
		return false, nil
	}
	return true, s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		st, err := b.stat(ctx, tree)
		for _, c := range lost {
			if err == nil {
				err = b.closeCalls(ctx, st, c.task, c.below)
			}
		}
		return err
	}))
}

func (s *Store) lostCalls(ctx context.Context, query string, args ...any) ([]lostCalls, error) {
	lost, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (c lostCalls, err error) {
		err = scan(&c.task, &c.below)
		return c, err
	}, query, args...)
	return lost, wrap("begin call", err)
}

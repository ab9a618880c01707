package perdure

import (
	"context"
	"errors"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// SpawnLeased creates a child of the task and leases it to the same session, in one
// transaction, and returns the lease of the child; the task itself stays leased. It is for a
// child whose work the caller does at once: no other process can claim it, and the two writes
// of the task's wait are saved. The task cannot be completed before the child is terminal. After
// a crash the session's end frees both.
//
// It fails with CodeConflict for a sequential task, whose children wait for each other, and when
// the tree was reopened since the task was claimed: the child would be done with the previous
// configuration. [Lease.Spawn] ends the lease, and the next one has the new one.
// Otherwise it fails like Spawn.
func (l *Lease) SpawnLeased(ctx context.Context, spec TaskSpec) (*Lease, error) {
	children, err := l.s.prepareChildren(ctx, []TaskSpec{spec})
	if err != nil {
		return nil, err
	}
	children.parent, children.tasks[0].leased = int64(l.Task.ID), true
	c := &spawnLeased{l: l, children: children}
	if err := l.s.w.do(ctx, c); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // the claim is durable, so complete the lease
	if err := l.s.fill(ctx, c.child); err != nil {
		return nil, errors.Join(err, c.child.Release(ctx))
	}
	return c.child, nil
}

type spawnLeased struct {
	l        *Lease
	children *createChildren
	child    *Lease
}

const (
	sqlReopened = `SELECT reopened FROM tree WHERE id = $1`
	sqlClaimNew = `UPDATE task_hot SET state = ` + dbRunning + `, session = $2, fence = fence + 1, claimed_at = $3, started_at = $3
		WHERE id = $1 RETURNING ` + leaseColumns
)

func (c *spawnLeased) apply(ctx context.Context, b *batch) error {
	const op = "spawn task"
	if err := b.held(ctx, c.l, op); err != nil {
		return err
	}
	if c.l.flags&sqldb.FlagSequential != 0 {
		return conflictf(op, "the children of task %q run one after another", c.l.Task.ID)
	}
	var reopened int
	if err := b.tx.QueryRow(ctx, sqlReopened, []any{c.l.Tree.key}, &reopened); err != nil {
		return err
	}
	if reopened != c.l.Tree.Reopened {
		return conflictf(op, "tree %q was reopened since task %q was claimed", c.l.Tree.ID, c.l.Task.ID)
	}
	if err := c.children.apply(ctx, b); err != nil {
		return err
	}
	if err := b.flushTasks(ctx); err != nil {
		return err
	}
	claimed := &claim{session: c.l.session, tree: c.l.Tree}
	err := sqldb.Each(ctx, b.tx.Query, func(scan sqldb.Scan) (err error) {
		c.child, _, err = claimed.scan(scan, b)
		return err
	}, sqlClaimNew, int64(c.children.ids[0]), c.l.session.key, b.now)
	if err != nil {
		return err
	}
	claimed.leases = []*Lease{c.child}
	return claimed.count(ctx, b)
}

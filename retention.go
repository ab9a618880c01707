package perdure

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/dbblob"
	"github.com/perdure/perdure/internal/storage/gc"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// RetentionPolicy is how long trees are kept after their end.
type RetentionPolicy struct {
	// Completed is for completed and cancelled trees. Defaults to 7 days.
	Completed time.Duration
	// Failed is for failed and partial trees, which are then listed, and removed only with
	// IncludeFailed. Defaults to 30 days.
	Failed        time.Duration
	IncludeFailed bool
	// Checkpoints is the number of checkpoints of a state that are kept. Defaults to 10.
	Checkpoints int
	// Handoffs is how long a handoff ledger is kept after its end. Defaults to 30
	// days.
	Handoffs time.Duration
}

// PruneRequest is a request to [Store.Prune].
type PruneRequest struct {
	Policy RetentionPolicy
	// DryRun removes nothing and lists the trees to remove.
	DryRun bool
}

// PrunedTree is a tree that Prune removes.
type PrunedTree struct {
	ID      TreeID    `json:"tree_id"`
	State   State     `json:"state"`
	Tasks   int64     `json:"tasks"`
	EndedAt time.Time `json:"ended_at"`
}

// PruneReport lists and counts what Prune removed. Due are failed and partial trees whose time is
// over and that are kept until the user removes them.
type PruneReport struct {
	DryRun bool         `json:"dry_run"`
	Trees  []PrunedTree `json:"trees"`
	Due    []PrunedTree `json:"due_failed"`
	Blobs  int64        `json:"blobs"`
	// Variables and States (temporary ones) count those whose time to live was over,
	// Checkpoints those in excess of the policy.
	Variables   int64 `json:"variables"`
	States      int64 `json:"states"`
	Checkpoints int64 `json:"checkpoints"`
	// Values counts long values that no variable and no history has.
	Values int64 `json:"values"`
	// Handoffs counts ended ledgers.
	Handoffs int64 `json:"handoffs"`
	// Bytes sums the blobs removed and an estimate of the rows.
	Bytes int64 `json:"bytes"`
}

const (
	// blobGrace protects blobs that a running writer is about to refer to.
	blobGrace = time.Hour
	// pruneChunk bounds the rows of a table that one transaction removes, so
	// that a large tree does not block other writers.
	pruneChunk = 2000
	// rowBytes is the estimated size of a task with its events and indexes.
	rowBytes = 1500
)

func (p RetentionPolicy) withDefaults() RetentionPolicy {
	const day = 24 * time.Hour
	p.Completed = cmp.Or(p.Completed, 7*day)
	p.Failed = cmp.Or(p.Failed, 30*day)
	p.Checkpoints = cmp.Or(p.Checkpoints, 10)
	p.Handoffs = cmp.Or(p.Handoffs, 30*day)
	return p
}

const sqlExpired = `SELECT t.id, t.name, s.state, s.partial, s.total, s.ended_at
	FROM tree t JOIN tree_stat s ON s.tree = t.id
	WHERE s.state >= ` + dbCompleted + ` AND ((s.state <> ` + dbFailed +
	` AND s.partial = 0 AND s.ended_at <= $1 AND COALESCE(t.imported_at, 0) <= $1)
		OR ((s.state = ` + dbFailed + ` OR s.partial = 1) AND s.ended_at <= $2 AND COALESCE(t.imported_at, 0) <= $2)) ORDER BY t.id`

type expiredTree struct {
	PrunedTree
	key int64
}

// Prune removes trees whose time is over, blobs without references, and the other rows
// that [PruneReport] counts. It never removes a tree that is not terminal. If the process
// is killed, readers do not find a tree that is removed in part, and the next Prune
// removes the rest.
func (s *Store) Prune(ctx context.Context, req PruneRequest) (PruneReport, error) {
	p := req.Policy.withDefaults()
	report := PruneReport{DryRun: req.DryRun, Trees: []PrunedTree{}, Due: []PrunedTree{}}
	now, err := s.db.Now(ctx)
	if err != nil {
		return report, wrap("prune store", err)
	}
	expired, err := s.expired(ctx, now-p.Completed.Microseconds(), now-p.Failed.Microseconds())
	if err != nil {
		return report, err
	}
	for _, t := range expired {
		if (t.State == Failed || t.State == Partial) && !p.IncludeFailed {
			report.Due = append(report.Due, t.PrunedTree)
			continue
		}
		report.Trees = append(report.Trees, t.PrunedTree)
		report.Bytes += t.Tasks * rowBytes
		if req.DryRun {
			continue
		}
		if err := s.forgetTree(ctx, t.key); err != nil {
			return report, err
		}
	}
	if err := s.sweepStates(ctx, &report, now, p.Checkpoints); err != nil {
		return report, err
	}
	if err := s.sweepLedgers(ctx, &report, now-p.Handoffs.Microseconds()); err != nil {
		return report, err
	}
	if !req.DryRun {
		if err := errors.Join(s.sweepRows(ctx), s.sweepSessions(ctx), s.keeper.forget(report.Trees)); err != nil {
			return report, err
		}
	}
	err = s.sweepBlobs(ctx, &report, now-blobGrace.Microseconds())
	return report, err
}

func (s *Store) expired(ctx context.Context, completed, failed int64) ([]expiredTree, error) {
	all, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (t expiredTree, err error) {
		var state, partial, ended int64
		err = scan(&t.key, (*string)(&t.ID), &state, &partial, &t.Tasks, &ended)
		t.State, t.EndedAt = treeStateOf(state, partial), micros(ended)
		return t, err
	}, sqlExpired, completed, failed)
	return all, wrap("prune store", err)
}

const (
	sqlForgetTree = `DELETE FROM tree WHERE id = $1`
	sqlForgetRefs = `DELETE FROM blob_ref WHERE tree = $1`
	sqlForgetStat = `DELETE FROM tree_stat WHERE tree = $1`

	// The counters of a removed tree stay until its last row is removed.
	sqlGone = `SELECT s.tree FROM tree_stat s WHERE NOT EXISTS (SELECT 1 FROM tree t WHERE t.id = s.tree)`

	sqlSweepRefs     = `DELETE FROM blob_ref WHERE tree = 0 AND created_at <= $1`
	sqlSweepContexts = `DELETE FROM context WHERE NOT EXISTS (SELECT 1 FROM blob_ref r WHERE r.hash = context.pack)
		OR NOT EXISTS (SELECT 1 FROM blob_ref r WHERE r.hash = context.manifest)`
)

// forgetTree removes the tree and its references in one transaction, after which readers
// do not find it; sweepTree removes the rows of its tasks in small steps.
func (s *Store) forgetTree(ctx context.Context, key int64) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		clear(b.cache.states) // may have states of the tree
		st, err := b.stat(ctx, key)
		if errors.Is(err, ErrNotFound) || err == nil && !stateOf(st.state).Terminal() {
			return nil // removed, or retried meanwhile
		}
		if err != nil {
			return err
		}
		data, err := removedData(ctx, b, key)
		if err != nil {
			return err
		}
		if n, err := b.tx.Exec(ctx, sqlForgetTree, key); n == 0 || err != nil {
			return err
		}
		b.event(0, 0, EventTreeRemoved, data)
		_, err = b.tx.Exec(ctx, sqlForgetRefs, key)
		return err
	}))
}

const sqlRemoved = `SELECT t.name, s.events, s.head FROM tree t JOIN tree_stat s ON s.tree = t.id WHERE t.id = $1`

// removedData returns the data of the event for a tree that is removed: the end of its
// chain.
func removedData(ctx context.Context, b *batch, key int64) (string, error) {
	var name, head string
	var events int64
	err := b.tx.QueryRow(ctx, sqlRemoved, []any{key}, &name, &events, &head)
	return `{"tree_id":` + quote(name) + `,"tree":` + itoa(key) + `,"events":` + itoa(events) +
		`,"head":` + quote(head) + `}`, ignoreNoRows(err)
}

// sweepRows removes the rows of removed trees.
func (s *Store) sweepRows(ctx context.Context) error {
	gone, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[int64], sqlGone)
	if err != nil {
		return wrap("sweep rows", err)
	}
	for _, key := range gone {
		if err := s.sweepTree(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sweepTree(ctx context.Context, key int64) error {
	for _, step := range gc.Tree() {
		for n := int64(pruneChunk); n == pruneChunk; {
			err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) (err error) {
				for _, q := range step {
					if n, err = b.tx.Exec(ctx, q, key, pruneChunk); err != nil {
						return err
					}
				}
				return nil
			}))
			if err != nil {
				return err
			}
			failpoint.Hit("prune.after_step")
		}
	}
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		delete(b.cache.stats, key)
		delete(b.dirty, key)
		delete(b.cache.blocks, key)
		_, err := b.tx.Exec(ctx, sqlForgetStat, key)
		return err
	}))
}

const sqlRefCount = `SELECT COUNT(*) FROM blob_ref WHERE hash = $1`

// sweepBlobs removes blobs without references that are older than the grace period.
func (s *Store) sweepBlobs(ctx context.Context, report *PruneReport, before int64) error {
	if !report.DryRun {
		err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			if _, err := b.tx.Exec(ctx, sqlSweepRefs, before); err != nil {
				return err
			}
			_, err := b.tx.Exec(ctx, sqlSweepContexts)
			return err
		}))
		if err != nil {
			return err
		}
	}
	if s.blobs == nil {
		return s.sweepChunks(ctx, report)
	}
	for info, err := range s.blobs.Walk(ctx) {
		if err != nil {
			return wrap("sweep blobs", err)
		}
		if info.ModTime.UnixMicro() > before {
			continue
		}
		if err := s.sweepBlob(ctx, report, info.Hash, info.Size, before); err != nil {
			return err
		}
	}
	if report.DryRun {
		return nil
	}
	return wrap("sweep blobs", s.blobs.Sweep(ctx, time.UnixMicro(before)))
}

// sweepBlob removes one file inside the transaction that checks that no row refers to it.
// No other transaction can add a reference meanwhile.
func (s *Store) sweepBlob(ctx context.Context, report *PruneReport, hash string, size, before int64) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		var refs int64
		if err := b.tx.QueryRow(ctx, sqlRefCount, []any{hash}, &refs); err != nil || refs > 0 {
			return err
		}
		info, err := s.blobs.Stat(hash)
		if errors.Is(err, os.ErrNotExist) || err == nil && info.ModTime.UnixMicro() > before {
			return nil // put again just now
		}
		if err == nil && !report.DryRun {
			err = s.blobs.Remove(hash)
		}
		if err != nil {
			return err
		}
		report.Blobs++
		report.Bytes += size
		return nil
	}))
}

func (s *Store) sweepChunks(ctx context.Context, report *PruneReport) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		unused, err := dbblob.Unused(ctx, b.tx)
		if err != nil {
			return err
		}
		for _, ref := range unused {
			report.Blobs++
			report.Bytes += ref.Size
			if report.DryRun {
				continue
			}
			if err := dbblob.Drop(ctx, b.tx, ref.Hash); err != nil {
				return err
			}
		}
		return nil
	}))
}

// sweepLedgers removes the handoff ledgers that ended before an instant.
func (s *Store) sweepLedgers(ctx context.Context, report *PruneReport, before int64) error {
	ended, err := gc.EndedLedgers(ctx, s.db, before, pruneChunk)
	if err != nil {
		return wrap("sweep ledgers", err)
	}
	for _, l := range ended {
		report.Handoffs++
		if report.Bytes += l.Bytes; report.DryRun {
			continue
		}
		err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			if err := b.logRemoved(chain.KindHandoff, l.ID); err != nil {
				return err
			}
			return gc.DropLedger(ctx, b.tx, l.ID)
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/gc"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

const (
	sqlExpiredVars   = `SELECT state, name FROM variable WHERE expires_at <= $1 LIMIT $2 + 0`
	sqlExpiredStates = `SELECT id FROM state WHERE scope = ` + sqldb.SQLScopeTemporary + ` AND expires_at <= $1`
	sqlDropChecks    = `DELETE FROM checkpoint WHERE state = $1
		AND id NOT IN (SELECT id FROM checkpoint WHERE state = $1 ORDER BY id DESC LIMIT $2 + 0)`
)

// sweepStates removes variables and temporary states whose time to live is over, all but
// the last checkpoints, and long values without references.
func (s *Store) sweepStates(ctx context.Context, report *PruneReport, now int64, keep int) error {
	if err := s.sweepVars(ctx, report, now); err != nil {
		return err
	}
	if err := s.sweepTemporary(ctx, report, now); err != nil {
		return err
	}
	if err := s.sweepCheckpoints(ctx, report, keep); err != nil {
		return err
	}
	return s.sweepValues(ctx, report)
}

func (s *Store) sweepVars(ctx context.Context, report *PruneReport, now int64) error {
	for {
		list, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (v stateVar, err error) {
			err = scan(&v.state, &v.name)
			return v, err
		}, sqlExpiredVars, now, pruneChunk)
		if err != nil {
			return wrap("sweep variables", err)
		}
		report.Variables += int64(len(list))
		if report.DryRun || len(list) == 0 {
			return nil
		}
		err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return b.dropExpired(ctx, list, now) }))
		if err != nil {
			return err
		}
	}
}

func (b *batch) dropExpired(ctx context.Context, list []stateVar, now int64) error {
	if err := b.flushStates(ctx); err != nil {
		return err
	}
	clear(b.cache.states)
	for _, v := range list {
		st := b.states[v.state]
		if st == nil {
			st = &varState{}
			if err := b.tx.QueryRow(ctx, sqlStateByID, []any{v.state}, st.dest()...); err != nil {
				return ignoreNoRows(err)
			}
		}
		old, _, err := b.current(ctx, st, v.name)
		if err != nil {
			return err
		}
		if old == nil || old.expiresAt == nil || *old.expiresAt > now {
			continue // set anew meanwhile
		}
		if err := b.dropVar(ctx, st, old, &mutationRow{operation: mutDelete, source: "ttl"}); err != nil {
			return err
		}
	}
	return b.flushStates(ctx)
}

func (s *Store) sweepTemporary(ctx context.Context, report *PruneReport, now int64) error {
	ids, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[int64], sqlExpiredStates, now)
	if err != nil {
		return wrap("sweep states", err)
	}
	report.States += int64(len(ids))
	if report.DryRun {
		return nil
	}
	for _, id := range ids {
		err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			clear(b.cache.states)
			for _, q := range []string{sqlForgetVars, sqlForgetPast, sqlForgetMutations, sqlForgetCheckpoints, sqlForgetState} {
				if _, err := b.tx.Exec(ctx, q, id); err != nil {
					return err
				}
			}
			if err := b.logRemoved(chain.KindState, id); err != nil {
				return err
			}
			for _, q := range []string{sqlForgetPayloads, sqlForgetRefs} { // see varState.payloads
				if _, err := b.tx.Exec(ctx, q, -id); err != nil {
					return err
				}
			}
			return nil
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	sqlForgetVars        = `DELETE FROM variable WHERE state = $1`
	sqlForgetPast        = `DELETE FROM variable_past WHERE state = $1`
	sqlForgetMutations   = `DELETE FROM mutation WHERE state = $1`
	sqlForgetCheckpoints = `DELETE FROM checkpoint WHERE state = $1`
	sqlForgetState       = `DELETE FROM state WHERE id = $1`
	sqlForgetPayloads    = `DELETE FROM payload WHERE tree = $1`
)

const sqlManyCheckpoints = `SELECT id FROM state WHERE checkpoints > $1`

func (s *Store) sweepCheckpoints(ctx context.Context, report *PruneReport, keep int) error {
	ids, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[int64], sqlManyCheckpoints, keep)
	if err != nil {
		return wrap("sweep states", err)
	}
	for _, id := range ids {
		err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			if err := b.flushStates(ctx); err != nil {
				return err
			}
			st := &varState{}
			if err := b.tx.QueryRow(ctx, sqlStateByID, []any{id}, st.dest()...); err != nil {
				return ignoreNoRows(err)
			}
			report.Checkpoints += max(st.checkpoints-int64(keep), 0)
			if report.DryRun {
				return nil
			}
			clear(b.cache.states)
			n, err := b.tx.Exec(ctx, sqlDropChecks, id, keep)
			if err != nil {
				return err
			}
			st.checkpoints -= n
			b.touch(st)
			if err := b.dropPast(ctx, st, st.compacted); err != nil {
				return err
			}
			return b.flushStates(ctx)
		}))
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepValues removes long values of states outside of trees that no variable and no
// history has. Those of trees are removed with their tree.
func (s *Store) sweepValues(ctx context.Context, report *PruneReport) error {
	for owner := int64(gc.First); ; {
		next, err := gc.Owner(ctx, s.db, owner)
		if err != nil || next == 0 {
			return wrap("sweep values", err)
		}
		owner = next
		err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
			n, bytes, err := gc.Values(ctx, b.tx, gc.Long{Owner: owner, Marks: [2]string{payloadRef, blobRef},
				Inline: MaxInlineBytes, Dry: report.DryRun})
			report.Values, report.Bytes = report.Values+n, report.Bytes+bytes
			return err
		}))
		if err != nil {
			return err
		}
	}
}

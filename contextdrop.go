package perdure

import (
	"context"
	"errors"
	"os"

	"github.com/perdure/perdure/internal/storage/dbblob"
)

const (
	sqlTreesOfContext = `SELECT COUNT(*) FROM blob_ref p JOIN blob_ref m ON m.tree = p.tree AND m.hash = $2
		WHERE p.hash = $1 AND p.tree <> 0`
	sqlDropContext   = `DELETE FROM context WHERE id = $1`
	sqlContextsOf    = `SELECT COUNT(*) FROM context WHERE pack = $1 OR manifest = $1`
	sqlForgetContext = `DELETE FROM blob_ref WHERE hash = $1 AND tree = 0`
)

// DropContext removes a context that [Store.PutContext] created and no tree needs, with its blobs.
// It reports false and removes nothing if the context was not new, or was put again meanwhile:
// another process is about to refer to it.
func (s *Store) DropContext(ctx context.Context, c Context) (dropped bool, err error) {
	if !c.New {
		return false, nil
	}
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		dropped = false
		now, err := scanContext(ctx, b.tx.QueryRow, c.ID)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		var refs int64
		if err == nil {
			err = b.tx.QueryRow(ctx, sqlTreesOfContext, []any{now.Pack, now.Manifest}, &refs)
		}
		if err != nil || refs > 0 || !now.CreatedAt.Equal(c.CreatedAt) {
			return err
		}
		if _, err := b.tx.Exec(ctx, sqlDropContext, c.ID); err != nil {
			return err
		}
		dropped = true
		for _, hash := range []string{now.Pack, now.Manifest} {
			if err := b.dropBlob(ctx, hash, c); err != nil {
				return err
			}
		}
		return nil
	}))
	return dropped, err
}

// dropBlob removes a blob of a context that was removed, unless something else refers to it or it was
// put again since. What stays is removed by [Store.Prune].
func (b *batch) dropBlob(ctx context.Context, hash string, c Context) error {
	var n int64
	if err := b.tx.QueryRow(ctx, sqlContextsOf, []any{hash}, &n); err != nil || n > 0 {
		return err
	}
	if _, err := b.tx.Exec(ctx, sqlForgetContext, hash); err != nil {
		return err
	}
	if err := b.tx.QueryRow(ctx, sqlRefCount, []any{hash}, &n); err != nil || n > 0 {
		return err
	}
	if b.s.blobs == nil {
		return dbblob.Drop(ctx, b.tx, hash)
	}
	info, err := b.s.blobs.Stat(hash)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.ModTime.After(c.CreatedAt) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.s.blobs.Remove(hash)
}

package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/sqldb"
)

// Snapshot reads a tree on one snapshot of the store with queries of this
// module's own packages (internal/survey); its argument cannot be made outside
// the module. A tree that is not there is an error with CodeNotFound.
func (s *Store) Snapshot(ctx context.Context, id TreeID, read func(*sqldb.Snapshot) error) error {
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return err
	}
	now, err := s.db.Now(ctx)
	if err != nil {
		return wrap("read tree", err)
	}
	text := func(ctx context.Context, column string) (string, error) { return s.load(ctx, tree.key, column) }
	alive := func(ctx context.Context, session int64) (bool, error) {
		if session == 0 {
			return false, nil
		}
		return s.alive(ctx, session)
	}
	return wrap("read tree", s.db.Snapshot(ctx, sqldb.Snapshot{Tree: tree.key, Text: text, Alive: alive, Now: now}, read))
}

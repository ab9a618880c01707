package perdure

import (
	"context"
	"database/sql"
	"errors"

	"github.com/perdure/perdure/internal/invariant"
	"github.com/perdure/perdure/internal/sqldb"
)

// Problem is something in the store that must not be.
type Problem struct {
	// Kind is a word for programs; Detail is for people.
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// Check looks for what must not be: broken structure of the database, tasks,
// counters, calls and references that contradict each other, blobs that are
// missing. It reads the whole store, on one snapshot; a living store stays
// usable meanwhile. An empty result means sound.
func (s *Store) Check(ctx context.Context) ([]Problem, error) {
	var problems []Problem
	faults, err := s.db.IntegrityCheck(ctx)
	if errors.Is(err, sqldb.ErrDamaged) {
		faults, err = append(faults, err.Error()), nil
	}
	if err != nil {
		return nil, wrap("check store", err)
	}
	for _, f := range faults {
		problems = append(problems, Problem{"database", f})
	}
	if len(problems) > 0 {
		return problems, nil // what is read from a broken structure tells nothing more
	}
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		found, err := invariant.Find(ctx, tx)
		for _, f := range found {
			problems = append(problems, Problem(f))
		}
		if err != nil {
			return err
		}
		missing, err := s.missingBlobs(ctx, tx)
		problems = append(problems, missing...)
		return err
	})
	return problems, wrap("check store", err)
}

// missingBlobs finds references to content that is not there.
func (s *Store) missingBlobs(ctx context.Context, tx *sql.Tx) ([]Problem, error) {
	var problems []Problem
	hashes, err := invariant.Blobs(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		b, err := s.OpenBlob(ctx, hash)
		if err != nil {
			problems = append(problems, Problem{"blob_missing", "blob " + hash})
			continue
		}
		if err := b.Close(); err != nil {
			return nil, err
		}
	}
	return problems, nil
}

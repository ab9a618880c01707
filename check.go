package perdure

import (
	"context"
	"database/sql"
	"errors"

	"github.com/perdure/perdure/internal/storage/blob"
	"github.com/perdure/perdure/internal/storage/invariant"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Problem is a fault of the store.
type Problem struct {
	// Kind is for programs; Detail is for people.
	Kind   string `json:"kind"`
	Detail string `json:"detail"`
}

// Check returns the faults of the store: damage to the structure of the database;
// inconsistent tasks, counters, calls and references; missing or damaged blobs. It reads
// the whole store on one snapshot; other processes can use the store meanwhile.
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
		return problems, nil // rows of a damaged database are not reliable
	}
	err = s.db.View(ctx, func(tx *sql.Tx) error {
		found, err := invariant.Find(ctx, tx)
		for _, f := range found {
			problems = append(problems, Problem(f))
		}
		if err != nil {
			return err
		}
		bad, err := s.badBlobs(ctx, tx)
		problems = append(problems, bad...)
		return err
	})
	return problems, wrap("check store", err)
}

// badBlobs finds references to blobs that are missing or damaged.
func (s *Store) badBlobs(ctx context.Context, tx *sql.Tx) ([]Problem, error) {
	var problems []Problem
	hashes, err := invariant.Blobs(ctx, tx)
	if err != nil {
		return nil, err
	}
	for _, hash := range hashes {
		err := s.verifyBlob(ctx, hash)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil, err
		case errors.Is(err, blob.ErrDamaged):
			problems = append(problems, Problem{"blob_damaged", "blob " + hash})
		default:
			problems = append(problems, Problem{"blob_missing", "blob " + hash})
		}
	}
	return problems, nil
}

func (s *Store) verifyBlob(ctx context.Context, hash string) error {
	if s.blobs != nil {
		return s.blobs.Verify(ctx, hash)
	}
	b, err := s.OpenBlob(ctx, hash)
	if err != nil {
		return err
	}
	return b.Close()
}

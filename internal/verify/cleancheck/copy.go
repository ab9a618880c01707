package cleancheck

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"github.com/perdure/perdure/internal/verify/machine"
	"github.com/perdure/perdure/internal/workspace"
)

// Copy makes a copy of a snapshot in which the caller changes files and runs commands: with the
// ignored files that the workspace has now, other than caches, and without a comparison of the
// machine. cfg.Run and cfg.Setup are not used. The caller closes the copy.
func Copy(ctx context.Context, cfg Config, of workspace.ID) (*Place, error) {
	s := newSealing(cfg, &Candidate{Of: of})
	s.withCaches = true // compiled files next to installed packages
	s.caches = machine.Existing(machine.Caches(s.env))
	ignored, err := s.Files.Excluded(ctx)
	if err != nil {
		return nil, err
	}
	return s.makeCopy(ctx, of, slices.DeleteFunc(ignored, func(f workspace.Excluded) bool {
		kind, _ := classOf(f.Path)
		return kind == cache
	}))
}

// makeCopy makes a copy of a snapshot with files of the workspace added.
func (s *sealing) makeCopy(ctx context.Context, of workspace.ID, beside []workspace.Excluded) (*Place, error) {
	at, err := newPlace(cmp.Or(s.Temp, os.TempDir()), s.Files.Root())
	if err != nil {
		return nil, &copyError{err}
	}
	if err := s.fill(ctx, at, of, beside); err != nil {
		_ = at.Close() // the next check removes what is left
		return nil, err
	}
	return at, nil
}

// fill writes the home folder and the files of a copy.
func (s *sealing) fill(ctx context.Context, at *Place, of workspace.ID, beside []workspace.Excluded) error {
	if err := s.prepareHome(ctx, at); err != nil {
		return &copyError{err}
	}
	copied, err := s.Files.CopyTo(ctx, of, at.Root, nil)
	if err != nil && !errors.Is(err, workspace.ErrDiskFull) {
		return err
	}
	var bytes int64
	if err == nil {
		err = s.relink(ctx, of, at)
	}
	if err == nil {
		bytes, err = Bring(ctx, s.Files.Root(), at.Root, beside)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &copyError{err}
	}
	if s.v.Runs == 0 {
		s.v.Copied, s.v.Bytes = copied.Files+len(beside), copied.Bytes+bytes
	}
	return nil
}

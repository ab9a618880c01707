package ledger

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/handoff"
)

// readOps are ops with the content of the files that they touched.
type readOps struct {
	ops  []Op
	left []string // touched files that are not sources
	// notes are for people.
	notes []string
	err   error
}

// nothing returns no ops.
func nothing() *readOps { return &readOps{} }

// readFiles begins to read the files that ops touched; git takes as long as reading
// the ledger does meanwhile. The caller must call wait, which returns the result.
func (r *Recorder) readFiles(ctx context.Context, ops []Op) (wait func() *readOps) {
	done := make(chan *readOps, 1)
	go func() {
		read := &readOps{ops: slices.Clone(ops)}
		for i := range read.ops {
			if read.err = r.readTouched(ctx, read, &read.ops[i]); read.err != nil {
				break
			}
		}
		done <- read
	}()
	return sync.OnceValue(func() *readOps { return <-done })
}

// readTouched records the content of the files that an op touched, without those
// that are not sources, and makes its paths relative.
func (r *Recorder) readTouched(ctx context.Context, read *readOps, op *Op) error {
	op.ContractFile = r.placed(op.ContractFile)
	if len(op.Created)+len(op.Modified) == 0 {
		return nil
	}
	created, err := r.relative(op.Created)
	if err != nil {
		return err
	}
	modified, err := r.relative(op.Modified)
	if err != nil {
		return err
	}
	sources, others, err := handoff.Sources(ctx, r.Location.Root, slices.Concat(created, modified))
	if err != nil {
		return err
	}
	read.left = append(read.left, others...)
	other := func(path string) bool { return slices.Contains(others, path) }
	op.Created, op.Modified = slices.DeleteFunc(created, other), slices.DeleteFunc(modified, other)
	for _, path := range sources {
		entry, err := handoff.Record(ctx, r.Location.Root, path)
		if err != nil && ctx.Err() == nil {
			return invalid("name files by their paths in the project", "%v", err)
		}
		if err != nil {
			return err
		}
		if !entry.Exists {
			read.notes = append(read.notes, "the file "+path+" does not exist; it is recorded as absent")
		}
		op.Files = append(op.Files, entry)
	}
	return nil
}

// placed returns a file relative to the root of the work if it is in it.
func (r *Recorder) placed(file string) string {
	if rel, err := filepath.Rel(r.Location.Root, file); err == nil && filepath.IsAbs(file) && filepath.IsLocal(rel) {
		file = rel
	}
	return filepath.ToSlash(file)
}

// relative makes paths relative to the root of the work.
func (r *Recorder) relative(paths []string) ([]string, error) {
	var list []string
	for _, path := range paths {
		clean := filepath.Clean(filepath.FromSlash(path))
		if filepath.IsAbs(clean) {
			clean = r.below(clean)
		}
		if !filepath.IsLocal(clean) {
			return nil, invalid("record work outside of this folder without paths, with --run-again",
				"the file %q is not in %q", path, r.Location.Root)
		}
		list = append(list, strings.ReplaceAll(clean, "\\", "/"))
	}
	return list, nil
}

// below returns an absolute path relative to the root of the work; of the folders of both, links
// are followed if it is not below the root without that.
func (r *Recorder) below(path string) string {
	rel, err := filepath.Rel(r.Location.Root, path)
	if err == nil && filepath.IsLocal(rel) {
		return rel
	}
	root, err := filepath.EvalSymlinks(r.Location.Root)
	if err != nil {
		return path
	}
	rest := filepath.Base(path)
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			if rel, err = filepath.Rel(root, filepath.Join(target, rest)); err != nil {
				return path
			}
			return rel
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest) // the folder does not exist
	}
}

package workspace

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Restored is the result of a restore.
type Restored struct {
	// Before are the snapshots of the files before they were changed: one, or two if the
	// restore changed .gitignore files and more files are no longer ignored. To undo the
	// restore, restore them.
	Before []ID
	// Changes are the differences from the files before to those now.
	Changes []Change
}

// Restore makes the files of the workspace those of a snapshot: contents, modes, links and
// folders; files that are not in the snapshot are removed. It takes a snapshot of the files
// first. It does not change paths that git ignores (by the rules of the snapshot, or when it
// was taken), paths that the snapshot left out, and .git and .perdure. It reads the written
// files back and compares them.
//
// Restore may be interrupted at any point, and is then run again with the same result; no
// file is ever written partly. Errors match ErrNotFound, ErrDamaged (nothing was changed),
// ErrInTheWay (nothing was changed), ErrDiskFull and ErrVerify. A missing workspace is
// created if the snapshots are elsewhere.
func (w *Workspace) Restore(ctx context.Context, id ID) (Restored, error) {
	return w.restore(ctx, &restore{w: w, id: id})
}

// RestoreFiles is Restore for the files at some paths only. Missing folders above them are
// created; a file that is not in the snapshot is removed.
func (w *Workspace) RestoreFiles(ctx context.Context, id ID, paths []string) (Restored, error) {
	only := make(map[string]bool, len(paths))
	for _, p := range paths {
		for p = path.Clean(p); p != "." && p != "/"; p = path.Dir(p) {
			only[p] = true
		}
	}
	return w.restore(ctx, &restore{w: w, id: id, only: only})
}

func (w *Workspace) restore(ctx context.Context, r *restore) (Restored, error) {
	err := w.exclusive(ctx, func() error { return r.run(ctx) })
	return r.done, Wrap(restoring, string(r.id), err)
}

const restoring = "restore snapshot"

// restore is the state of one restore.
type restore struct {
	w      *Workspace
	id     ID
	target *manifest
	wanted map[string]*File
	spare  spared
	// only are the paths that are restored; nil for all.
	only map[string]bool
	done Restored

	here *manifest // the workspace, as last listed
	root *os.Root
	// modes are the modes that folders get at the end.
	modes map[string]fs.FileMode
}

func (r *restore) run(ctx context.Context) error {
	if err := r.prepare(); err != nil {
		return err
	}
	defer r.root.Close()
	changes, err := r.next(ctx)
	if err != nil {
		return err
	}
	r.done.Changes = renames(slices.Clone(changes))
	if slices.ContainsFunc(changes, ruleChange) {
		// The rules of the snapshot decide which files may be removed, so everything is
		// written before anything is removed.
		written := slices.DeleteFunc(slices.Clone(changes),
			func(c Change) bool { return c.Kind == Deleted && !ruleChange(c) && !r.replaced(c.Path) })
		if err := r.apply(ctx, written); err != nil {
			return err
		}
		failpoint.Hit("workspace.restore.rules")
		if changes, err = r.next(ctx); err != nil {
			return err
		}
	}
	return r.apply(ctx, changes)
}

// prepare reads the snapshot and opens the workspace.
func (r *restore) prepare() error {
	var err error
	if r.target, err = r.w.load(restoring, r.id); err != nil {
		return err
	}
	r.wanted = r.target.byPath()
	r.spare.left = leftPaths(r.target.left)
	if r.spare.ignored, err = r.w.wasIgnored(r.id); err != nil {
		return err
	}
	r.spare.outside = r.w.outside
	if err := atomicfile.MkdirAll(r.w.cfg.Root, 0o777); err != nil {
		return err
	}
	r.root, err = r.w.openRoot(restoring)
	return err
}

// changes returns the changes that make the listed files those of the snapshot.
func (r *restore) changes(l *listing) []Change {
	r.here = &l.manifest
	return slices.DeleteFunc(differences(r.here, r.target), func(c Change) bool {
		return r.only != nil && !r.only[c.Path] || c.Kind == Deleted && r.spare.has(c.Path) && !r.replaced(c.Path)
	})
}

// next takes a snapshot of the workspace and returns the changes to make, if all of them are
// possible.
func (r *restore) next(ctx context.Context) ([]Change, error) {
	l, before, err := r.w.take(ctx, restoring, r.wanted)
	if err != nil {
		return nil, err
	}
	failpoint.Hit("workspace.restore.before")
	changes := r.changes(l)
	if err := r.possible(l, changes); err != nil {
		return nil, err
	}
	if !slices.Contains(r.done.Before, before) {
		r.done.Before = append(r.done.Before, before)
	}
	for _, p := range l.temps {
		if err := r.root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return changes, nil
}

// ruleChange reports whether a change affects which paths are ignored.
func ruleChange(c Change) bool { return path.Base(c.Path) == ".gitignore" }

// replaced reports whether a path is below one that is not a folder in the snapshot.
func (r *restore) replaced(p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if f := r.wanted[dir]; f != nil && f.Kind != KindFolder {
			return true
		}
	}
	return false
}

// possible checks that all contents are stored, and that no file would be overwritten that is
// in no snapshot.
func (r *restore) possible(l *listing, changes []Change) error {
	for _, c := range changes {
		if c.New == nil || c.New.Kind != KindFile {
			continue
		}
		if _, ok := r.w.contents.index[c.New.Hash]; !ok {
			return &Error{Kind: ErrDamaged, Op: restoring, Name: c.Path,
				Msg: "the content of the file is missing; nothing was changed"}
		}
	}
	var blocked []string
	for _, p := range slices.Concat(l.ignored, l.hidden, slices.Collect(maps.Keys(leftPaths(l.left)))) {
		if r.wanted[p] != nil || r.replaced(p) {
			blocked = append(blocked, p)
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	slices.Sort(blocked)
	const few = 5
	shown := strings.Join(blocked[:min(few, len(blocked))], ", ")
	return &Error{Kind: ErrInTheWay, Op: restoring, Name: string(r.id), Msg: shown + " (nothing was changed)",
		Hint: "move them out of the workspace: they are ignored or cannot be part of a snapshot"}
}

// apply makes changes and checks them. They are sorted by path, so folders come before their
// entries.
func (r *restore) apply(ctx context.Context, changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	r.modes = map[string]fs.FileMode{}
	if err := r.unlock(changes); err != nil {
		return err
	}
	for _, c := range slices.Backward(changes) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.remove(c); err != nil {
			return err
		}
	}
	for _, c := range changes {
		if err := r.folder(c); err != nil {
			return err
		}
	}
	if err := r.files(ctx, changes); err != nil {
		return err
	}
	failpoint.Hit("workspace.restore.before_modes")
	if err := r.setModes(); err != nil {
		return err
	}
	if err := r.flush(changes); err != nil {
		return err
	}
	failpoint.Hit("workspace.restore.before_verify")
	return r.verify(ctx, changes)
}

// setModes sets the modes of folders, the deepest first, except of removed and replaced ones.
func (r *restore) setModes() error {
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(r.modes))) {
		if f := r.wanted[p]; f != nil && f.Kind != KindFolder || r.replaced(p) {
			continue
		}
		if err := r.root.Chmod(p, r.modes[p]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unlock makes the folders of changes writable for the owner. They get their modes back at
// the end.
func (r *restore) unlock(changes []Change) error {
	const owner = 0o700
	seen := map[string]bool{".": true}
	for _, c := range changes {
		dir := path.Dir(c.Path)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		now := r.here.find(dir)
		if now == nil || now.Kind != KindFolder || now.Mode&owner == owner {
			continue // a new folder is made writable
		}
		r.modes[dir] = now.FileMode()
		if f := r.wanted[dir]; f != nil && f.Kind == KindFolder {
			r.modes[dir] = f.FileMode()
		}
		if err := r.root.Chmod(dir, now.FileMode()|owner); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the old file of a change, unless a rename replaces it.
func (r *restore) remove(c Change) error {
	if c.Old == nil || c.New != nil && (c.New.Kind == c.Old.Kind || c.New.Kind != KindFolder && c.Old.Kind != KindFolder) {
		return nil
	}
	err := r.root.Remove(c.Path)
	failpoint.Hit("workspace.restore.removed")
	if c.New == nil && c.Old.Kind == KindFolder && !errors.Is(err, fs.ErrNotExist) && err != nil && !r.empty(c.Path) {
		return nil // it has entries that are not part of snapshots
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *restore) empty(p string) bool {
	dir, err := r.root.OpenRoot(p)
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := namesIn(dir)
	return err == nil && len(names) == 0
}

// folder creates a folder, which gets its mode at the end.
func (r *restore) folder(c Change) error {
	if c.New == nil || c.New.Kind != KindFolder {
		return nil
	}
	r.modes[c.Path] = c.New.FileMode()
	if c.Old != nil && c.Old.Kind == KindFolder {
		return nil
	}
	err := r.root.Mkdir(c.Path, 0o700)
	failpoint.Hit("workspace.restore.folder")
	return err
}

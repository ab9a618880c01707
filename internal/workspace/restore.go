package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Restored tells what a restore did.
type Restored struct {
	// Before are the snapshots of what was there, taken before it was changed:
	// one, or two if the restore brought other .gitignore files, by whose rules
	// more came to light. Restoring them is the way back.
	Before []ID
	// Changes are the differences from what was there to what is there now.
	Changes []Change
	// Took is how long it took, waiting for others included.
	Took time.Duration
}

// Restore makes the files of the workspace those of a snapshot: contents, modes,
// links, folders, and what was not there is removed. A snapshot of what is there
// is taken first. Not touched are what git ignores (by the rules of the snapshot,
// or when it was taken), what the snapshot left out, and .git and .perdure. What
// was written is read back and compared.
//
// Restore may be interrupted at any point, and is then run again: it ends the
// same, and no file is ever half written. Errors match ErrNotFound, ErrDamaged
// (nothing was changed), ErrInTheWay (nothing was changed), ErrDiskFull and
// ErrVerify. A workspace that is gone is made again if the snapshots are
// elsewhere.
func (w *Workspace) Restore(ctx context.Context, id ID) (Restored, error) {
	started := time.Now()
	var done Restored
	err := w.exclusive(ctx, func() error {
		r := &restore{w: w, id: id}
		err := r.run(ctx)
		done = r.done
		return err
	})
	done.Took = time.Since(started)
	return done, wrap(restoring, string(id), err)
}

// RestoreFiles is Restore for some files only, by their paths: all others stay as
// they are. Folders above them are made where they are missing; a file that the
// snapshot does not have is removed.
func (w *Workspace) RestoreFiles(ctx context.Context, id ID, paths []string) (Restored, error) {
	started := time.Now()
	only := make(map[string]bool, len(paths))
	for _, p := range paths {
		for p = path.Clean(p); p != "." && p != "/"; p = path.Dir(p) {
			only[p] = true
		}
	}
	var done Restored
	err := w.exclusive(ctx, func() error {
		r := &restore{w: w, id: id, only: only}
		err := r.run(ctx)
		done = r.done
		return err
	})
	done.Took = time.Since(started)
	return done, wrap(restoring, string(id), err)
}

// Preview returns what a restore would change, sorted by path, and changes
// nothing. It goes by the .gitignore files that are there: if the restore brings
// others, it may remove more or less.
func (w *Workspace) Preview(ctx context.Context, id ID) ([]Change, error) {
	var changes []Change
	err := w.exclusive(ctx, func() error {
		r := &restore{w: w, id: id}
		if err := r.read(); err != nil {
			return err
		}
		l, err := w.scan(ctx, restoring, r.wanted, nil)
		if err != nil {
			return err
		}
		w.learn(l)
		changes = r.changes(l)
		if err := r.possible(l, changes); err != nil {
			return err
		}
		changes = renames(changes)
		return nil
	})
	return changes, wrap(restoring, string(id), err)
}

const restoring = "restore snapshot"

// restore is one restore that is under way.
type restore struct {
	w      *Workspace
	id     ID
	target *manifest
	wanted map[string]*File
	spare  spared
	// only, when set, are the paths that are restored.
	only map[string]bool
	done Restored

	here *manifest // what is there, as last seen
	root *os.Root
	// modes are those that folders get in the end.
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
		// What may be removed is told by the rules of the snapshot: they come
		// first, with all else that is written.
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

// prepare reads what is to be restored and opens the workspace.
func (r *restore) prepare() error {
	if err := r.read(); err != nil {
		return err
	}
	if err := atomicfile.MkdirAll(r.w.cfg.Root, 0o777); err != nil {
		return err
	}
	var err error
	r.root, err = r.w.openRoot(restoring)
	return err
}

// read reads what is to be restored.
func (r *restore) read() error {
	var err error
	if r.target, err = r.w.load(restoring, r.id); err != nil {
		return err
	}
	r.wanted = r.target.byPath()
	r.spare.left = leftPaths(r.target.left)
	r.spare.ignored, err = r.w.wasIgnored(r.id)
	return err
}

// changes are what is to be done to what is there.
func (r *restore) changes(l *look) []Change {
	r.here = &l.manifest
	return slices.DeleteFunc(differences(r.here, r.target), func(c Change) bool {
		return r.only != nil && !r.only[c.Path] || c.Kind == Deleted && r.spare.has(c.Path) && !r.replaced(c.Path)
	})
}

// next takes a snapshot of what is there and returns what is to be changed, if
// all of it can be.
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

// ruleChange tells whether a change is one of what is ignored.
func ruleChange(c Change) bool { return path.Base(c.Path) == ".gitignore" }

// replaced tells whether a path lies below one that is no folder in the
// snapshot.
func (r *restore) replaced(p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if f := r.wanted[dir]; f != nil && f.Kind != KindFolder {
			return true
		}
	}
	return false
}

// possible checks that all contents are there, and that no file comes where
// something stands that no snapshot has.
func (r *restore) possible(l *look, changes []Change) error {
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
	for _, p := range slices.Concat(l.ignored, l.hidden, leftNames(l.left)) {
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
		Hint: "move it out of the workspace: it is ignored or cannot be part of a snapshot, so it would be lost"}
}

func leftNames(left []LeftOut) []string {
	names := make([]string, len(left))
	for i, l := range left {
		names[i] = l.Path
	}
	return names
}

// apply makes changes and checks them. They are sorted by path, so folders come
// before what they hold.
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

// setModes gives folders their modes. A folder that went, or whose place
// something else has, is none any more.
func (r *restore) setModes() error {
	for _, p := range sortedKeys(r.modes) {
		if f := r.wanted[p]; f != nil && f.Kind != KindFolder || r.replaced(p) {
			continue
		}
		if err := r.root.Chmod(p, r.modes[p]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sortedKeys has the deepest paths first.
func sortedKeys(m map[string]fs.FileMode) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	slices.Reverse(keys)
	return keys
}

// unlock lets the owner write in the folders that are changed and may not be
// written in. They get their modes back in the end.
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
			continue // what is not there yet is made writable
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

// remove takes away what a change does not leave, unless a rename replaces it.
func (r *restore) remove(c Change) error {
	if c.Old == nil || c.New != nil && (c.New.Kind == c.Old.Kind || c.New.Kind != KindFolder && c.Old.Kind != KindFolder) {
		return nil
	}
	err := r.root.Remove(c.Path)
	failpoint.Hit("workspace.restore.removed")
	if c.New == nil && c.Old.Kind == KindFolder && !errors.Is(err, fs.ErrNotExist) && err != nil && !r.empty(c.Path) {
		return nil // something that is no part of snapshots is in it
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

// folder makes a folder, which gets its mode in the end.
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

package workspace

import (
	"context"
	"path"
	"slices"
)

// ChangeKind is the kind of a change of a path.
type ChangeKind string

// The kinds of a [Change].
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed" // content, mode, kind or target
	Deleted ChangeKind = "deleted"
	Renamed ChangeKind = "renamed" // a file with the content of a deleted one
)

// Change is a difference between two snapshots, or a snapshot and the workspace.
type Change struct {
	Kind ChangeKind
	// Path is the new path; the old one if it was deleted.
	Path string
	// From is the old path of a renamed file.
	From string
	// Old and New are the entries before and after; nil for none.
	Old, New *File
}

// Diff returns the changes from snapshot a to snapshot b, sorted by path. The files of Old and
// New are shared and must not be changed.
func (w *Workspace) Diff(ctx context.Context, a, b ID) ([]Change, error) {
	const op = "compare snapshots"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	before, err := w.recall(op, a)
	if err != nil {
		return nil, Wrap(op, string(a), err)
	}
	after, err := w.recall(op, b)
	if err != nil {
		return nil, Wrap(op, string(b), err)
	}
	return renames(differences(before, after)), nil
}

// DiffNow returns the changes from a snapshot to the workspace, sorted by path. Nothing is
// stored. Paths that the snapshot left out are not compared.
func (w *Workspace) DiffNow(ctx context.Context, a ID) ([]Change, error) {
	const op = "compare workspace"
	var changes []Change
	err := w.exclusive(ctx, func() error {
		before, err := w.load(op, a)
		if err != nil {
			return err
		}
		l, err := w.scan(ctx, op, before.byPath(), nil)
		if err != nil {
			return err
		}
		w.learn(l)
		spare := spared{left: leftPaths(before.left)}
		changes = slices.DeleteFunc(differences(before, &l.manifest), func(c Change) bool { return spare.has(c.Path) })
		changes = renames(changes)
		return nil
	})
	return changes, Wrap(op, w.cfg.Root, err)
}

func (m *manifest) byPath() map[string]*File {
	set := make(map[string]*File, len(m.files))
	for i := range m.files {
		set[m.files[i].Path] = &m.files[i]
	}
	return set
}

// differences compares two sorted lists.
func differences(before, after *manifest) []Change {
	var list []Change
	i, j := 0, 0
	a, b := before.files, after.files
	for i < len(a) || j < len(b) {
		switch {
		case j == len(b) || i < len(a) && a[i].Path < b[j].Path:
			list = append(list, Change{Kind: Deleted, Path: a[i].Path, Old: &a[i]})
			i++
		case i == len(a) || b[j].Path < a[i].Path:
			list = append(list, Change{Kind: Added, Path: b[j].Path, New: &b[j]})
			j++
		default:
			if a[i] != b[j] {
				list = append(list, Change{Kind: Changed, Path: b[j].Path, Old: &a[i], New: &b[j]})
			}
			i++
			j++
		}
	}
	return list
}

// renames joins deleted files with added ones of the same content, except empty ones.
func renames(list []Change) []Change {
	deleted := map[Hash][]int{}
	for i, c := range list {
		if c.Kind == Deleted && c.Old.Kind == KindFile && c.Old.Size > 0 {
			deleted[c.Old.Hash] = append(deleted[c.Old.Hash], i)
		}
	}
	joined := map[int]bool{}
	for i, c := range list {
		if c.Kind != Added || c.New.Kind != KindFile || len(deleted[c.New.Hash]) == 0 {
			continue
		}
		at := deleted[c.New.Hash][0]
		deleted[c.New.Hash] = deleted[c.New.Hash][1:]
		joined[at] = true
		list[i] = Change{Kind: Renamed, Path: c.Path, From: list[at].Path, Old: list[at].Old, New: c.New}
	}
	kept := list[:0]
	for i, c := range list {
		if !joined[i] {
			kept = append(kept, c)
		}
	}
	return kept
}

// spared are paths that a restore does not change, with all paths below them.
type spared struct {
	left, ignored map[string]bool
	outside       Outside // nil for none
}

func leftPaths(left []LeftOut) map[string]bool {
	set := make(map[string]bool, len(left))
	for _, l := range left {
		set[l.Path] = true
	}
	return set
}

// has reports whether the path or a folder above it is one of them.
func (s spared) has(p string) bool {
	if len(s.left)+len(s.ignored) == 0 || s.outside != nil && s.outside.Gave(p) {
		return false
	}
	for ; p != "."; p = path.Dir(p) {
		if s.left[p] || s.ignored[p] {
			return true
		}
	}
	return false
}

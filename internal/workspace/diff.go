package workspace

import (
	"context"
	"slices"
	"strings"
)

// ChangeKind is what happened to a path.
type ChangeKind string

// The kinds of a [Change].
const (
	Added   ChangeKind = "added"
	Changed ChangeKind = "changed" // content, mode, kind or target
	Deleted ChangeKind = "deleted"
	Renamed ChangeKind = "renamed" // a file that went is there under another name, with the same content
)

// Change is a difference between two trees.
type Change struct {
	Kind ChangeKind
	// Path is where it is now; where it was, if it was deleted.
	Path string
	// From is where a renamed file was.
	From string
	// Old and New are nil when there is none.
	Old, New *File
}

// Diff returns what changed from snapshot a to snapshot b, sorted by path. What
// Old and New point to is shared and must not be changed.
func (w *Workspace) Diff(ctx context.Context, a, b ID) ([]Change, error) {
	const op = "compare snapshots"
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	before, err := w.recall(op, a)
	if err != nil {
		return nil, wrap(op, string(a), err)
	}
	after, err := w.recall(op, b)
	if err != nil {
		return nil, wrap(op, string(b), err)
	}
	return renames(differences(before, after)), nil
}

// DiffNow returns what changed from a snapshot to the workspace as it is, sorted
// by path. Nothing is stored. Paths that the snapshot left out are not compared.
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
	return changes, wrap(op, w.cfg.Root, err)
}

func (m *manifest) byPath() map[string]*File {
	set := make(map[string]*File, len(m.files))
	for i := range m.files {
		set[m.files[i].Path] = &m.files[i]
	}
	return set
}

// differences walks two sorted lists side by side.
func differences(before, after *manifest) []Change {
	var list []Change
	i, j := 0, 0
	for i < len(before.files) || j < len(after.files) {
		order := 0
		switch {
		case i == len(before.files):
			order = 1
		case j == len(after.files):
			order = -1
		default:
			order = strings.Compare(before.files[i].Path, after.files[j].Path)
		}
		switch {
		case order < 0:
			list = append(list, Change{Kind: Deleted, Path: before.files[i].Path, Old: &before.files[i]})
			i++
		case order > 0:
			list = append(list, Change{Kind: Added, Path: after.files[j].Path, New: &after.files[j]})
			j++
		default:
			if before.files[i] != after.files[j] {
				list = append(list, Change{Kind: Changed, Path: after.files[j].Path, Old: &before.files[i], New: &after.files[j]})
			}
			i++
			j++
		}
	}
	return list
}

// renames joins files that went with files that came of the same content. Empty
// files say nothing.
func renames(list []Change) []Change {
	went := map[Hash][]int{}
	for i, c := range list {
		if c.Kind == Deleted && c.Old.Kind == KindFile && c.Old.Size > 0 {
			went[c.Old.Hash] = append(went[c.Old.Hash], i)
		}
	}
	joined := map[int]bool{}
	for i, c := range list {
		if c.Kind != Added || c.New.Kind != KindFile || len(went[c.New.Hash]) == 0 {
			continue
		}
		at := went[c.New.Hash][0]
		went[c.New.Hash] = went[c.New.Hash][1:]
		joined[at] = true
		list[i] = Change{Kind: Renamed, Path: c.Path, From: list[at].Path, Old: list[at].Old, New: c.New}
	}
	result := list[:0]
	for i, c := range list {
		if !joined[i] {
			result = append(result, c)
		}
	}
	return result
}

// spared are paths that are left alone with all below them.
type spared struct {
	left, ignored map[string]bool
}

func leftPaths(left []LeftOut) map[string]bool {
	set := make(map[string]bool, len(left))
	for _, l := range left {
		set[l.Path] = true
	}
	return set
}

// has tells whether the path or a folder above it is one of them.
func (s spared) has(p string) bool {
	if len(s.left)+len(s.ignored) == 0 {
		return false
	}
	for {
		if s.left[p] || s.ignored[p] {
			return true
		}
		i := strings.LastIndexByte(p, '/')
		if i < 0 {
			return false
		}
		p = p[:i]
	}
}

package handoff

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FileState is the state of a touched file compared with its record.
type FileState string

// The states.
const (
	// Fresh: the content is the recorded one, or the file is still absent.
	Fresh FileState = "fresh"
	// Changed: the content is another one.
	Changed FileState = "changed"
	// Deleted: the file existed and does not exist any more.
	Deleted FileState = "deleted"
	// Missing: nothing was recorded of the file, and it does not exist.
	Missing FileState = "missing"
	// New: the file was absent and exists now.
	New FileState = "new"
	// Unknown: the file exists, but its content was not recorded or cannot be read.
	Unknown FileState = "unknown"
)

// Summary is the verdict on a whole checkpoint.
type Summary string

// The verdicts.
const (
	// AllFresh: every touched file is fresh.
	AllFresh Summary = "fresh"
	// Stale: at least one file is changed, deleted, missing or new.
	Stale Summary = "stale"
	// NotKnown: no file is known to have changed, but not all could be compared.
	NotKnown Summary = "unknown"
)

// FileVerdict is the state of one file.
type FileVerdict struct {
	Path  string    `json:"path"`
	State FileState `json:"state"`
}

// Verdict is the result of comparing a checkpoint with the files.
type Verdict struct {
	Summary Summary `json:"verdict"`
	// Files are the compared files, by path.
	Files []FileVerdict `json:"files"`
	// Unlisted counts touched files that a checkpoint does not name; without
	// the ledger they cannot be compared.
	Unlisted int `json:"unlisted,omitempty"`
	// Read counts the files whose content was read.
	Read int `json:"-"`
}

// Moved returns the files that are not fresh.
func (v *Verdict) Moved() []FileVerdict {
	return slices.DeleteFunc(slices.Clone(v.Files), func(f FileVerdict) bool { return f.State == Fresh })
}

// Staleness compares the files that the ledger's steps touched with those in the folder
// root, by content. It fails only if root cannot be opened or ctx ends.
func (l *Ledger) Staleness(ctx context.Context, root string) (Verdict, error) {
	return Judge(ctx, root, withUnrecorded(l.Files, l.Touched()))
}

// Staleness compares the hashes that a checkpoint lists with the files. Touched files
// without a hash are unknown, never fresh.
func (c *Checkpoint) Staleness(ctx context.Context, root string) (Verdict, error) {
	var entries []FileEntry
	unlisted := 0
	if c.Files != nil {
		unlisted = max(0, c.Files.Rest)
		for path, mark := range c.Files.Listed {
			e := FileEntry{Path: path}
			if mark != absentMark {
				e.Exists, e.Size, e.Hash = true, -1, strings.ToLower(mark)
			}
			entries = append(entries, e)
		}
	}
	if c.Cut != nil {
		unlisted = max(unlisted, c.Cut.Files)
	}
	v, err := Judge(ctx, root, withUnrecorded(entries, c.Touched()))
	if err != nil {
		return Verdict{}, err
	}
	v.Unlisted = unlisted
	v.summarize()
	return v, nil
}

// withUnrecorded adds empty entries for the paths without an entry.
func withUnrecorded(entries []FileEntry, touched []string) []FileEntry {
	known := make(map[string]bool, len(entries))
	for _, e := range entries {
		known[e.Path] = true
	}
	all := slices.Clone(entries)
	for _, path := range touched {
		if !known[path] {
			all = append(all, FileEntry{Path: path, Exists: true, Size: -1})
		}
	}
	return all
}

// Judge compares recorded files with those in the folder root. A file is fresh only if
// its content is the recorded one, whenever it was written. The content is not read if
// the size differs or [FileEntry.Stamp] is equal. Of several entries with one path the
// last is used.
func Judge(ctx context.Context, root string, entries []FileEntry) (Verdict, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return Verdict{}, &Error{Kind: ErrNotFound, Op: "judge files", File: root, Err: err}
	}
	defer dir.Close()
	last := make(map[string]FileEntry, len(entries))
	for _, e := range entries {
		last[e.Path] = e
	}
	v := Verdict{Files: []FileVerdict{}}
	for _, path := range slices.Sorted(maps.Keys(last)) {
		state, read := judge(ctx, dir, last[path])
		if err := ctx.Err(); err != nil {
			return Verdict{}, &Error{Op: "judge files", File: root, Err: err}
		}
		v.Files = append(v.Files, FileVerdict{path, state})
		if read {
			v.Read++
		}
	}
	v.summarize()
	return v, nil
}

func (v *Verdict) summarize() {
	v.Summary = AllFresh
	if v.Unlisted > 0 {
		v.Summary = NotKnown
	}
	for _, f := range v.Files {
		switch f.State {
		case Fresh:
		case Unknown:
			v.Summary = NotKnown
		default:
			v.Summary = Stale
			return
		}
	}
}

// judge returns the state of a file, and whether its content was read.
func judge(ctx context.Context, dir *os.Root, e FileEntry) (state FileState, read bool) {
	recorded := wellFormed(e.Hash)
	info, err := dir.Stat(filepath.FromSlash(e.Path))
	switch {
	case absent(err) && !e.Exists:
		return Fresh, false
	case absent(err) && recorded:
		return Deleted, false
	case absent(err):
		return Missing, false
	case err != nil:
		return Unknown, false
	case !e.Exists:
		return New, false
	case !recorded:
		return Unknown, false
	case !info.Mode().IsRegular():
		return Changed, false
	case e.Size >= 0 && info.Size() != e.Size:
		return Changed, false
	case e.Stamp != "" && stampOf(info) == e.Stamp:
		return Fresh, false
	}
	now, err := record(ctx, dir, e.Path)
	switch {
	case err != nil:
		return Unknown, true
	case !now.Exists:
		return Deleted, true
	case strings.HasPrefix(now.Hash, e.Hash):
		return Fresh, true
	}
	return Changed, true
}

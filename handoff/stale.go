package handoff

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// FileState is what became of a touched file since it was recorded.
type FileState string

// The states.
const (
	// Fresh: the content is the recorded one, or the file is absent as it was.
	Fresh FileState = "fresh"
	// Changed: there is another content.
	Changed FileState = "changed"
	// Deleted: the file was there and is not any more.
	Deleted FileState = "deleted"
	// Missing: nothing was recorded of the file, and it is not there.
	Missing FileState = "missing"
	// New: the file was absent and is there now.
	New FileState = "new"
	// Unknown: the file is there, but nothing that can be compared was
	// recorded, or it cannot be read.
	Unknown FileState = "unknown"
)

// Summary is a judgement of a whole checkpoint.
type Summary string

// The judgements.
const (
	// AllFresh: every touched file is fresh.
	AllFresh Summary = "fresh"
	// Stale: at least one is changed, deleted, missing or new.
	Stale Summary = "stale"
	// NotKnown: none is seen to have changed, but not all could be judged.
	NotKnown Summary = "unknown"
)

// FileVerdict is the judgement of one file.
type FileVerdict struct {
	Path  string    `json:"path"`
	State FileState `json:"state"`
}

// Verdict says whether a checkpoint still fits the files.
type Verdict struct {
	Summary Summary `json:"verdict"`
	// Files are all that were judged, by path.
	Files []FileVerdict `json:"files"`
	// Unlisted counts touched files that a checkpoint does not name; without
	// the ledger they cannot be judged.
	Unlisted int `json:"unlisted,omitempty"`
	// Read counts the files whose content had to be read.
	Read int `json:"-"`
}

// Moved returns the files that are not fresh.
func (v *Verdict) Moved() []FileVerdict {
	var moved []FileVerdict
	for _, f := range v.Files {
		if f.State != Fresh {
			moved = append(moved, f)
		}
	}
	return moved
}

// Staleness judges the files that the ledger's steps touched against those in
// the folder root, by content. It fails only when root cannot be opened or ctx
// ends.
func (l *Ledger) Staleness(ctx context.Context, root string) (Verdict, error) {
	return Judge(ctx, root, withUnrecorded(l.Files, l.Touched()))
}

// Staleness judges what a checkpoint alone tells of the touched files: the
// hashes that are listed in it. What it does not say is unknown, never fresh.
func (c *Checkpoint) Staleness(ctx context.Context, root string) (Verdict, error) {
	var entries []FileEntry
	unlisted := 0
	if c.Files != nil {
		unlisted = max(0, c.Files.Rest)
		for path, mark := range c.Files.Listed {
			if mark == absentMark {
				entries = append(entries, FileEntry{Path: path})
				continue
			}
			entries = append(entries, FileEntry{Path: path, Exists: true, Size: -1, Hash: strings.ToLower(mark)})
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

// withUnrecorded adds entries that say nothing for the paths that have none.
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

// Judge compares recorded files with those in the folder root. A file is fresh
// only when its content is the recorded one; when it was written does not
// matter. A content need not be read when the size differs, or when the file
// system vouches for it by an equal [FileEntry.Stamp]. Of several entries with
// one path the last counts.
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

// judge returns what became of a file, and whether its content was read.
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

package handoff

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// FileName is the name of the file.
const FileName = "builder-state.json"

// folders are the folders that are searched in each folder.
func folders() []string { return []string{".", "docs", ".opencode"} }

// Location is the place of a file.
type Location struct {
	// File is the path of builder-state.json.
	File string
	// Root is the folder that the paths of touched files are relative to: the
	// repository's root, else the folder in which (or in whose docs or
	// .opencode) the file is.
	Root string
}

// Find searches builder-state.json in dir and the folders above it up to the root of the
// repository (or of the project, which has a .perdure folder), and in their folders docs
// and .opencode. Outside of a repository or project it searches only dir. If there is no
// file, the error matches [ErrNotFound].
func Find(dir string) (Location, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Location{}, &Error{Op: "find file", Err: err}
	}
	root := repositoryRoot(dir)
	for at := dir; ; at = filepath.Dir(at) {
		for _, folder := range folders() {
			file := filepath.Join(at, folder, FileName)
			_, err := os.Stat(file)
			switch {
			case err == nil:
				return Location{File: file, Root: cmp.Or(root, at)}, nil
			case !absent(err):
				return Location{}, &Error{Op: "find file", File: file, Err: err}
			}
		}
		if root == "" || at == root || at == filepath.Dir(at) {
			break
		}
	}
	return Location{}, &Error{Kind: ErrNotFound, Op: "find file", Msg: fmt.Sprintf("no %s in %q or above", FileName, dir),
		Hint: "create it with `perdure handoff start`, or name a file with --file"}
}

// RootOf returns the root of a named file, as in [Location].
func RootOf(file string) string {
	dir := filepath.Dir(file)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if root := repositoryRoot(dir); root != "" {
		return root
	}
	if slices.Contains(folders()[1:], filepath.Base(dir)) {
		return filepath.Dir(dir)
	}
	return dir
}

// repositoryRoot returns the root of the repository or project of a folder, "" if it is
// in none.
func repositoryRoot(dir string) string { return folderWith(dir, ".git", ".perdure") }

// folderWith returns the nearest folder, from dir upwards, that has one of the names; ""
// if there is none.
func folderWith(dir string, names ...string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, name := range names {
			if _, err := os.Stat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// Skeleton is the content of a new builder-state.json. Empty fields get a default that
// makes the file valid.
type Skeleton struct {
	// SessionID defaults to "perdure".
	SessionID string
	// Now is the first heartbeat; required.
	Now time.Time
	// Place is the place of the checkpoint. Defaults to [PRD].
	Place Place
	// PRD, File, Branch and Story are those of activePrd; PRD defaults to "prd".
	PRD, File, Branch, Story string
	// Description is that of an ad-hoc item.
	Description string
}

// Create creates a minimal valid builder-state.json that can hold a checkpoint at the
// skeleton's place. If the file exists, it is not changed and the error matches
// [ErrConflict].
func Create(ctx context.Context, path string, s Skeleton) error {
	text, err := s.text()
	if err != nil {
		return err
	}
	lock, err := takeLock(ctx, path, newMode(path))
	if err != nil {
		return err
	}
	return errors.Join(createLocked(path, text), lock.release())
}

func createLocked(path string, text []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return &Error{Kind: ErrConflict, Op: "create", File: path, Msg: "the file exists already"}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return &Error{Op: "create", File: path, Err: err}
	}
	if err := atomicfile.WriteFile(path, text, newMode(path)); err != nil {
		return &Error{Op: "create", File: path, Err: err}
	}
	return nil
}

// newMode returns the mode of a new file: other users can read it in a project, and not in a
// folder of perdure.
func newMode(path string) fs.FileMode {
	if within(filepath.ToSlash(path), []string{".perdure"}) {
		return 0o600
	}
	return 0o644
}

// FillPRD replaces an activePrd that is null by that of the skeleton, so that it can hold a
// checkpoint, and reports whether it did. Another file is not changed. Errors are those of
// [Lock] and [File.Write].
func FillPRD(ctx context.Context, path string, s Skeleton) (filled bool, err error) {
	f, err := Lock(ctx, path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	d := f.Document()
	null := d.root.Get("activePrd")
	if null == nil || !null.IsNull() {
		return false, nil
	}
	text, err := jsontree.Marshal(s.prd(), "")
	if err != nil {
		return false, err
	}
	next, err := Parse(d.name, apply(d.data, []edit{{null.Start, null.End(), d.styleOf(d.root).value(text)}}))
	if err != nil {
		return false, err
	}
	return true, f.Write(next, nil)
}

// skeletonPRD is the activePrd of a new file.
type skeletonPRD struct {
	ID     string  `json:"id"`
	File   string  `json:"file"`
	Branch string  `json:"branch"`
	Story  *string `json:"currentStory"`
}

func (s Skeleton) prd() *skeletonPRD {
	p := &skeletonPRD{ID: cmp.Or(s.PRD, "prd"), File: s.File, Branch: s.Branch}
	if s.Story != "" {
		p.Story = &s.Story
	}
	return p
}

func (s Skeleton) text() ([]byte, error) {
	type item struct {
		ID          string `json:"id"`
		Description string `json:"description"`
		Status      string `json:"status"`
	}
	doc := struct {
		SessionID string       `json:"sessionId"`
		Heartbeat time.Time    `json:"lastHeartbeat"`
		PRD       *skeletonPRD `json:"activePrd"`
		Queue     []item       `json:"adhocQueue"`
	}{SessionID: cmp.Or(s.SessionID, "perdure"), Heartbeat: s.Now.UTC().Truncate(time.Second), Queue: []item{}}
	place, err := ParsePlace(string(cmp.Or(s.Place, PRD)))
	if err != nil {
		return nil, err
	}
	if id, adhoc := strings.CutPrefix(string(place), adhocPrefix); adhoc {
		doc.Queue = append(doc.Queue, item{id, cmp.Or(s.Description, id), "in_progress"})
	} else {
		doc.PRD = s.prd()
	}
	return jsontree.Marshal(doc, "  ")
}

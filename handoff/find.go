package handoff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// FileName is what the file is called.
const FileName = "builder-state.json"

// folders are where the file may be in each folder that is searched.
func folders() []string { return []string{".", "docs", ".opencode"} }

// Location is where a file was found.
type Location struct {
	// File is the path of builder-state.json.
	File string
	// Root is the folder that the paths of touched files are relative to: the
	// repository's root, else the folder in which (or in whose docs or
	// .opencode) the file is.
	Root string
}

// Find looks for builder-state.json in dir and the folders above it up to the
// root of the repository (or of the project that has a .perdure folder), in each
// also under docs and .opencode. Outside of both it looks in dir only. When
// there is none, the error matches [ErrNotFound].
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
				return Location{File: file, Root: orElse(root, at)}, nil
			case !absent(err):
				return Location{}, &Error{Op: "find file", File: file, Err: err}
			}
		}
		if root == "" || at == root || at == filepath.Dir(at) {
			break
		}
	}
	return Location{}, &Error{Kind: ErrNotFound, Op: "find file", Msg: fmt.Sprintf("no %s in %q or above", FileName, dir),
		Hint: "make one with: perdure handoff start; or name the file with --file"}
}

// RootOf returns the folder that the paths of touched files are relative to,
// for a file that was named and not found: see [Location].
func RootOf(file string) string {
	dir := filepath.Dir(file)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if root := repositoryRoot(dir); root != "" {
		return root
	}
	for _, folder := range folders()[1:] {
		if filepath.Base(dir) == folder {
			return filepath.Dir(dir)
		}
	}
	return dir
}

// repositoryRoot returns the nearest folder, from dir upwards, that is the root
// of a repository or project; "" when there is none.
func repositoryRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, mark := range []string{".git", ".perdure"} {
			if _, err := os.Stat(filepath.Join(at, mark)); err == nil {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// Skeleton is what a new builder-state.json says. Zero fields get a value that
// makes the file valid.
type Skeleton struct {
	// SessionID is "perdure" when it is empty.
	SessionID string
	// Now is the first heartbeat; required.
	Now time.Time
	// Place is where a checkpoint is to stand: [PRD] when it is empty.
	Place Place
	// PRD, File, Branch and Story are those of activePrd; PRD is "prd" when it
	// is empty.
	PRD, File, Branch, Story string
	// Description is that of an ad-hoc item.
	Description string
}

// Create makes a minimal valid builder-state.json that can hold a checkpoint at
// the skeleton's place. A file that is there is left alone: the error matches
// [ErrConflict].
func Create(ctx context.Context, path string, s Skeleton) error {
	text, err := s.text()
	if err != nil {
		return err
	}
	lock, err := takeLock(ctx, path, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(createLocked(path, text), lock.release())
}

func createLocked(path string, text []byte) error {
	if _, err := os.Lstat(path); err == nil {
		return &Error{Kind: ErrConflict, Op: "create", File: path, Msg: "the file is there already"}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return &Error{Op: "create", File: path, Err: err}
	}
	if err := atomicfile.WriteFile(path, text, 0o644); err != nil {
		return &Error{Op: "create", File: path, Err: err}
	}
	return nil
}

func (s Skeleton) text() ([]byte, error) {
	var b bytes.Buffer
	line := func(indent int, name string, value any, end string) {
		text, err := marshal(value)
		if err != nil {
			text = []byte("null") // texts and times of this century always marshal
		}
		fmt.Fprintf(&b, "%s%q: %s%s\n", strings.Repeat("  ", indent), name, text, end)
	}
	b.WriteString("{\n")
	line(1, "sessionId", orElse(s.SessionID, "perdure"), ",")
	line(1, "lastHeartbeat", s.Now.UTC().Truncate(time.Second), ",")
	id, adhoc := strings.CutPrefix(string(s.Place), adhocPrefix)
	switch {
	case adhoc && id != "":
		line(1, "activePrd", nil, ",")
		b.WriteString("  \"adhocQueue\": [\n    {\n")
		line(3, "id", id, ",")
		line(3, "description", orElse(s.Description, id), ",")
		line(3, "status", "in_progress", "")
		b.WriteString("    }\n  ]\n")
	case s.Place == PRD || s.Place == "":
		b.WriteString("  \"activePrd\": {\n")
		line(2, "id", orElse(s.PRD, "prd"), ",")
		line(2, "file", s.File, ",")
		line(2, "branch", s.Branch, ",")
		var story any
		if s.Story != "" {
			story = s.Story
		}
		line(2, "currentStory", story, "")
		b.WriteString("  },\n  \"adhocQueue\": []\n")
	default:
		_, err := ParsePlace(string(s.Place))
		return nil, err
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

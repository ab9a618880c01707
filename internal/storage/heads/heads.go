// Package heads keeps the heads of the hash chains of stores in files outside of the stores
// and of the workspaces of agents.
package heads

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/storage/userdir"
)

// Line is the state of a tree's chain at a time.
type Line struct {
	// Store is the ID of the store.
	Store string `json:"store"`
	// Tree is the tree's ID, empty for the events of no tree; Key is its number.
	Tree   string    `json:"tree,omitempty"`
	Key    int64     `json:"key"`
	Events int64     `json:"events"`
	Head   string    `json:"head"`
	At     time.Time `json:"at"`
	// Accepted is set if the user accepted this state after a restore: earlier lines of the
	// tree count no more. Events is 0 if the restored store does not have the tree.
	Accepted bool `json:"accepted,omitempty"`
	// Replaces is set if the user accepted this store in the place of earlier ones: their lines
	// before this one count no more.
	Replaces bool `json:"replaces,omitempty"`
}

// treeKey names a tree of a store.
type treeKey struct {
	store string
	key   int64
}

func (l *Line) tree() treeKey { return treeKey{l.Store, l.Key} }

// Folder returns the folder of the files of a user: perdure/heads in the user's state
// folder. It returns "" if there is none.
func Folder(getenv func(string) string) string {
	dir := userdir.State(getenv)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "heads")
}

// Path returns the file of the store at a location, such as its folder.
func Path(folder, location string) string {
	sum := sha256.Sum256([]byte(location))
	return filepath.Join(folder, hex.EncodeToString(sum[:16])+".jsonl")
}

// compactBytes is what is appended to a file before it is compacted again: a file with many
// trees stays long.
const compactBytes = 4 << 20

// Append appends lines to a file, which it creates if it is missing. Lines are not flushed
// to the disk: they only add to what the store has.
func Append(path string, lines []Line) (err error) {
	if len(lines) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := filelock.Lock(lock); err != nil {
		return err
	}
	before, after, err := appendTo(path, lines)
	if err != nil || before/compactBytes == after/compactBytes {
		return err
	}
	return compact(path)
}

// appendTo returns the size of the file before and after.
func appendTo(path string, lines []Line) (before, after int64, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	before, err = f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, err
	}
	var buf bytes.Buffer
	last := []byte{'\n'}
	if before > 0 {
		if _, err := f.ReadAt(last, before-1); err != nil {
			return 0, 0, err
		}
	}
	if last[0] != '\n' { // the end of a line is missing after a crash
		buf.WriteByte('\n')
	}
	if err := encode(&buf, lines); err != nil {
		return 0, 0, err
	}
	n, err := f.Write(buf.Bytes())
	return before, before + int64(n), err
}

func encode(w io.Writer, lines []Line) error {
	enc := json.NewEncoder(w)
	for i := range lines {
		if err := enc.Encode(&lines[i]); err != nil {
			return err
		}
	}
	return nil
}

// Read returns the lines of a file in their order, none if there is no file. It skips what
// is not a line, which a crash can leave, and lines before an accepted one of their tree.
func Read(path string) ([]Line, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var lines []Line
	for text := range bytes.Lines(raw) {
		var l Line
		if json.Unmarshal(text, &l) == nil && l.Store != "" {
			lines = append(lines, l)
		}
	}
	return current(lines), err
}

// current returns the lines without those that a later accepted line replaces. An accepted
// line of a tree that is gone only removes the lines before it.
func current(lines []Line) []Line {
	accepted := make(map[treeKey]int)
	first := 0 // the last line that replaces other stores
	for i := range lines {
		if lines[i].Accepted {
			accepted[lines[i].tree()] = i
		}
		if lines[i].Replaces {
			first = i
		}
	}
	var kept []Line
	for i := range lines {
		if i < first && lines[i].Store != lines[first].Store {
			continue
		}
		from, ok := accepted[lines[i].tree()]
		if !ok || i > from || i == from && lines[i].Events > 0 {
			kept = append(kept, lines[i])
		}
	}
	return kept
}

// compact rewrites a file with fewer lines.
func compact(path string) error {
	lines, err := Read(path)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, 0o600, func(w io.Writer) error { return encode(w, thin(lines)) })
}

// thin keeps the first line of each tree, and of the others those whose distance from the
// last one is a power of two: each states all events before it, so that old lines find what
// was changed before the recent ones were recorded.
func thin(lines []Line) []Line {
	count := make(map[treeKey]int)
	for i := range lines {
		count[lines[i].tree()]++
	}
	seen := make(map[treeKey]int)
	var kept []Line
	for i := range lines {
		t := lines[i].tree()
		seen[t]++
		rest := count[t] - seen[t]
		if seen[t] == 1 || rest&(rest-1) == 0 {
			kept = append(kept, lines[i])
		}
	}
	return kept
}

package agentconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir"
	"github.com/perdure/perdure/internal/text/jsonc"
	"github.com/perdure/perdure/internal/workspace/diff"
)

// Change is a change of a file.
type Change struct {
	Path string
	// Before is the content before the change, After the one after it; nil without a file.
	Before, After []byte
	// Whole is set for a file that perdure writes as a whole.
	Whole bool
	// base is the content without what perdure adds, nil without a file; edits make After of it,
	// one after the other.
	base  []byte
	edits []jsonc.Edit
	// plain is set for a change that is not recorded.
	plain bool
}

// Kind returns created, changed, removed or unchanged.
func (c *Change) Kind() string {
	switch {
	case c.Before == nil && c.After == nil, c.Before != nil && c.After != nil && bytes.Equal(c.Before, c.After):
		return "unchanged"
	case c.Before == nil:
		return "created"
	case c.After == nil:
		return "removed"
	}
	return "changed"
}

// Diff returns the change as a diff; it is empty without a change.
func (c *Change) Diff() string {
	if c.Kind() == "unchanged" {
		return ""
	}
	file := func(text []byte) *diff.File {
		if text == nil {
			return nil
		}
		path := strings.TrimPrefix(filepath.ToSlash(c.Path), "/")
		return &diff.File{Path: path, Mode: 0o600, Size: int64(len(text)), Text: text}
	}
	return diff.Unified(file(c.Before), file(c.After), diff.Config{Context: 1, LineBytes: 1000})
}

// record is what perdure knows of a file that it changed. It has no text of the user.
type record struct {
	Path string `json:"path"`
	// Created is set if there was no file; Dirs are folders that were created for it.
	Created bool     `json:"created"`
	Dirs    []string `json:"dirs,omitempty"`
	// Before and After are hashes of the file, Added are the edits, one after the other.
	Before string       `json:"before"`
	After  string       `json:"after"`
	Added  []jsonc.Edit `json:"added"`
	At     time.Time    `json:"installed_at"`
}

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// recordPath returns the file of the record of a file.
func (p Place) recordPath(path string) (string, error) {
	dir := userdir.State(p.Getenv)
	if dir == "" {
		return "", errors.New("neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	return filepath.Join(dir, "installs", hash([]byte(path))[:32]+".json"), nil
}

// recorded returns the record of a file; nil without one.
func (p Place) recorded(path string) *record {
	name, err := p.recordPath(path)
	if err != nil {
		return nil
	}
	var r record
	if text, err := os.ReadFile(name); err != nil || json.Unmarshal(text, &r) != nil || r.Path != path {
		return nil
	}
	return &r
}

// exact returns the file as it was before perdure changed it, if it was not changed since.
func (r *record) exact(text []byte) (base []byte, ok bool) {
	if r == nil || hash(text) != r.After {
		return nil, false
	}
	base = text
	for _, e := range slices.Backward(r.Added) {
		if e.At < 0 || e.At+len(e.New) > len(base) || string(base[e.At:e.At+len(e.New)]) != e.New {
			return nil, false
		}
		base = jsonc.Apply(base, []jsonc.Edit{{At: e.At, Old: e.New, New: e.Old}})
	}
	if hash(base) != r.Before {
		return nil, false
	}
	if r.Created {
		return nil, true
	}
	return append([]byte{}, base...), true // not nil if it is empty
}

// readFile returns the content of a file, nil if there is none.
func readFile(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && text == nil {
		text = []byte{}
	}
	return text, err
}

// write makes a change and records it; a change of another program in the meantime is an
// error.
func (p Place) write(c *Change) error {
	if c.Kind() == "unchanged" {
		return nil
	}
	now, err := readFile(c.Path)
	if err == nil && ((now == nil) != (c.Before == nil) || !bytes.Equal(now, c.Before)) {
		err = errors.New("the file was changed in the meantime")
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	if c.plain {
		return atomicfile.WriteFile(c.Path, c.After, 0o600)
	}
	name, err := p.recordPath(c.Path)
	if err != nil {
		return err
	}
	if c.After == nil || len(c.edits) == 0 {
		return p.restore(c, name)
	}
	r := record{Path: c.Path, Created: c.base == nil, Before: hash(c.base), After: hash(c.After), Added: c.edits,
		At: time.Now().UTC().Truncate(time.Second)}
	if old := p.recorded(c.Path); old != nil {
		r.Dirs = old.Dirs
	}
	r.Dirs = append(r.Dirs, missing(filepath.Dir(c.Path))...)
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = atomicfile.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = atomicfile.WriteFile(name, append(text, '\n'), 0o600)
	}
	if err == nil {
		err = atomicfile.MkdirAll(filepath.Dir(c.Path), 0o700)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", c.Path, err)
	}
	return atomicfile.WriteFile(c.Path, c.After, 0o600)
}

// restore writes a file without what perdure added, and removes the record and the folders
// that were created for it.
func (p Place) restore(c *Change, recordName string) error {
	r := p.recorded(c.Path)
	if c.After != nil {
		if err := atomicfile.WriteFile(c.Path, c.After, 0o600); err != nil {
			return err
		}
	} else if err := os.Remove(c.Path); err != nil {
		return err
	}
	if r != nil && c.After == nil {
		for _, dir := range r.Dirs {
			_ = os.Remove(dir) // unless it is in use
		}
	}
	if err := os.Remove(recordName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// missing returns the folders that do not exist, the deepest first.
func missing(dir string) []string {
	var dirs []string
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dirs
		}
		dirs = append(dirs, dir)
		dir = filepath.Dir(dir)
	}
}

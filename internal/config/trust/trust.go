// Package trust keeps the records of the .perdure folders in which settings and stored
// trees may execute, connect and redirect. The records are in the user's configuration
// folder, one file for each .perdure folder, so that a folder cannot contain its own.
package trust

import (
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
)

// Record says what the user trusts in a .perdure folder.
type Record struct {
	// Dir is the folder's path without links.
	Dir string `json:"dir"`
	// Settings is the hash of the settings that act, empty if none is trusted.
	Settings string `json:"settings,omitempty"`
	// Each has a hash of each of these settings, to show what has changed since. It does not
	// decide what is trusted.
	Each map[string]string `json:"each,omitempty"`
	// Store identifies the file of the store, empty if none is trusted; see [StoreID].
	Store string `json:"store,omitempty"`
	// At is when the record was last changed.
	At time.Time `json:"trusted_at"`
}

// Records is the folder of the records.
type Records struct{ folder string }

// Open returns the records of the user: perdure/trust in $XDG_CONFIG_HOME, or else in
// $HOME/.config. Nothing is created.
func Open(getenv func(string) string) (Records, error) {
	dir := userdir.Config(getenv)
	if !filepath.IsAbs(dir) {
		return Records{}, errors.New("neither XDG_CONFIG_HOME nor HOME is an absolute path")
	}
	return Records{filepath.Join(dir, "trust")}, nil
}

// Read returns the record of a .perdure folder; it is empty if there is none.
func (r Records) Read(dir string) (Record, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("read trust record: %w", err)
	}
	rec, err := read(r.file(real))
	if errors.Is(err, fs.ErrNotExist) || err == nil && rec.Dir != real {
		return Record{Dir: real}, nil
	}
	return rec, err
}

// Write stores a record that [Records.Read] returned and the caller changed.
func (r Records) Write(rec Record) error {
	rec.At = time.Now().UTC().Truncate(time.Second)
	raw, err := json.MarshalIndent(rec, "", "  ")
	if err == nil {
		err = atomicfile.MkdirAll(r.folder, 0o700)
	}
	if err == nil {
		err = atomicfile.WriteFile(r.file(rec.Dir), append(raw, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write trust record: %w", err)
	}
	return nil
}

// Remove removes the record of a .perdure folder and reports whether there was one.
func (r Records) Remove(dir string) (bool, error) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	err := os.Remove(r.file(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// List returns all records in the order of their folders. Files that are not records are
// left out.
func (r Records) List() ([]Record, error) {
	entries, err := os.ReadDir(r.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Record
	for _, entry := range entries {
		rec, err := read(filepath.Join(r.folder, entry.Name()))
		if err == nil && r.file(rec.Dir) == filepath.Join(r.folder, entry.Name()) {
			all = append(all, rec)
		}
	}
	slices.SortFunc(all, func(a, b Record) int { return strings.Compare(a.Dir, b.Dir) })
	return all, nil
}

func (r Records) file(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(r.folder, hex.EncodeToString(sum[:16])+".json")
}

func read(name string) (rec Record, err error) {
	raw, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(raw, &rec)
	}
	if err != nil {
		return Record{}, fmt.Errorf("read trust record: %w", err)
	}
	return rec, nil
}

// StoreID identifies the database file of a .perdure folder by device, file number and
// time of creation. Another file at the same path, such as one from a repository or a
// backup, has another ID. It is "" if there is no file.
func StoreID(dir string) (string, error) {
	id, err := fileID(filepath.Join(dir, "perdure.db"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return id, err
}

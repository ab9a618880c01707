package copies

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/filelock"
)

// Names in the folder of a copy.
const (
	// FilesName is the folder with the files, DatabaseName the database.
	FilesName    = "files"
	DatabaseName = "perdure.db"

	recordName = "copy.json"
	liveName   = "live"
	turnName   = "turn"
)

// Record describes a copy.
type Record struct {
	// Dir is the folder of the store, Store its ID.
	Dir   string `json:"dir"`
	Store string `json:"store"`
	// File identifies the database file of the store that the copy belongs to, Log its log while a
	// process uses the copy, and Earlier the files that it replaced, because they had been removed.
	File    string   `json:"file"`
	Log     string   `json:"log,omitempty"`
	Earlier []string `json:"earlier,omitempty"`
	// CopiedAt is when the database was copied last.
	CopiedAt time.Time `json:"copied_at,omitzero"`
}

// Read returns the record of a folder; fs.ErrNotExist if it has no copy.
func Read(folder string) (r Record, err error) {
	raw, err := os.ReadFile(filepath.Join(folder, recordName))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	return r, err
}

// Write replaces the record of a folder.
func (r *Record) Write(folder string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(folder, recordName), append(raw, '\n'), 0o600)
}

// Database returns the path of the database of a copy, and whether it is there.
func Database(folder string) (path string, exists bool) {
	path = filepath.Join(folder, DatabaseName)
	info, err := os.Stat(path)
	return path, err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// Use marks a folder as used by this process until the file is closed: it will put the store back if
// its files are removed.
func Use(folder string) (*os.File, error) {
	if err := atomicfile.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(folder, liveName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.LockShared(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Used reports whether a process uses a folder.
func Used(folder string) bool {
	f, err := os.OpenFile(filepath.Join(folder, liveName), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	err = filelock.TryLock(f)
	if err == nil {
		_ = filelock.Unlock(f) // cannot fail on a descriptor that holds it
	}
	return errors.Is(err, filelock.ErrLocked)
}

// Exclusive runs do while no other process changes the copy in a folder.
func Exclusive(folder string, do func() error) error {
	f, err := os.OpenFile(filepath.Join(folder, turnName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := filelock.Lock(f); err != nil {
		return err
	}
	defer func() { _ = filelock.Unlock(f) }()
	return do()
}

// RemovedInUse reports whether the database at a path is not the one of its copy, although a process
// uses the copy: the files were removed or replaced, and the process puts them back.
func RemovedInUse(folder, database string) bool {
	r, err := Read(folder)
	if err != nil || r.File == "" {
		return false
	}
	if isFile(database, r.File) && (r.Log == "" || isFile(database+"-wal", r.Log)) {
		return false
	}
	return Used(folder)
}

// isFile reports whether the file at a path has an ID.
func isFile(path, id string) bool {
	info, err := os.Stat(path)
	return err == nil && FileID(info) == id
}

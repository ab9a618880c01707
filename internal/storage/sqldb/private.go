package sqldb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// private is the mode of the files of a database.
const private fs.FileMode = 0o600

// makePrivate creates a missing database file for its owner only, whatever the umask is, and
// takes the permissions of other users from existing files. SQLite gives a new log and a new
// shared memory the mode of the database.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, private)
	switch {
	case err == nil:
		if err := errors.Join(f.Chmod(private), f.Close()); err != nil {
			return fmt.Errorf("create database: %w", err)
		}
	case !errors.Is(err, fs.ErrExist): // a read-only folder, a full disk
		return fmt.Errorf("create database: %w", err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm", path + "-journal"} {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&^private == 0 {
			continue
		}
		// A file of another user, or a file system without modes: then the folder protects it.
		_ = os.Chmod(name, private)
	}
	return nil
}

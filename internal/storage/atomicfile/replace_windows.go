package atomicfile

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// replace writes a temporary file in the folder of path, flushes it and renames it to
// path.
func replace(path string, perm fs.FileMode, content func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"*")
	if err != nil {
		return err
	}
	err = content(f)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if info, statErr := os.Stat(path); statErr == nil {
		perm = info.Mode().Perm()
	}
	if err == nil {
		err = os.Chmod(f.Name(), perm)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error is returned
	}
	return err
}

// SyncDir does nothing: Windows has no flush of a folder.
func SyncDir(string) error { return nil }

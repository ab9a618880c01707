//go:build !windows

package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// replace writes a temporary file in the folder of path, flushes it and renames it to
// path; the folder is not flushed yet.
func replace(path string, perm fs.FileMode, content func(io.Writer) error) (err error) {
	f, err := renameio.NewPendingFile(path,
		renameio.WithTempDir(filepath.Dir(path)),
		renameio.WithPermissions(perm),
		renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer func() {
		if cleanErr := f.Cleanup(); err == nil {
			err = cleanErr
		}
	}()
	if err := content(f); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}

// SyncDir flushes the folder dir, which makes names created, renamed or removed in it
// durable. It returns no error for file systems that cannot flush a folder.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flush folder: %w", err)
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("flush folder: %w", err)
	}
	return nil
}

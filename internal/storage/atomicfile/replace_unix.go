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

// replace writes a temporary file beside path, flushes it and renames it over
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

// SyncDir flushes the folder dir, so that names made, renamed or removed in it
// before are durable. File systems that cannot flush a folder are not an error:
// there is nothing more that could be done.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flush folder: %w", err)
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("flush folder: %w", err)
	}
	return nil
}

// Package atomicfile replaces files as a whole: a program that opens the file, now or
// after a crash or a power loss, reads either the old content or the new one, never a part
// of it.
//
// A write goes to a temporary file in the same folder, which is flushed, renamed
// over the file and made durable by flushing the folder. On Windows a folder
// cannot be flushed; there the rename is as durable as the file system makes it.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteFile replaces the file at path with data. See [Write].
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return Write(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Write replaces the file at path with the bytes that content writes. The folder must
// exist. An existing file keeps its permissions; a new one gets perm less the umask. A
// symbolic link at path stays, and the file that it points to is replaced. What is not a
// regular file, such as a device, is not replaced: that is an error.
//
// When Write returns nil, the new content survives kill -9 and power loss. When
// it returns an error, the old file is unchanged and the temporary file is removed;
// an error of content is wrapped. (Exception: when only the last flush of the folder
// fails, the file has the new content, which a power loss may undo.) Concurrent writers of
// one path do not disturb each other; the last rename wins.
func Write(path string, perm fs.FileMode, content func(io.Writer) error) error {
	target, err := resolve(path)
	if err != nil {
		return fmt.Errorf("write file %q: %w", path, err)
	}
	if err := replace(target, perm, content); err != nil {
		return fmt.Errorf("write file %q: %w", path, err)
	}
	if err := SyncDir(filepath.Dir(target)); err != nil {
		return fmt.Errorf("write file %q: %w", path, err)
	}
	return nil
}

// resolve follows the links at path to the file to replace, which need not exist.
func resolve(path string) (string, error) {
	const maxLinks = 40
	for range maxLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode().IsRegular() {
			return path, nil
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return "", errors.New("it is not a regular file")
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", errors.New("too many symbolic links")
}

// MkdirAll makes the folder dir and its missing parents with permissions perm less the
// umask, and makes them durable. Existing folders are not changed.
func MkdirAll(dir string, perm fs.FileMode) error {
	dir = filepath.Clean(dir)
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("make folder %q: there is a file of that name", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("make folder: %w", err)
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(parent, perm); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make folder: %w", err)
	}
	return SyncDir(parent)
}

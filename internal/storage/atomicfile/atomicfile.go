// Package atomicfile replaces files as a whole: whoever opens the file, now or
// after a crash or a power loss, finds either the old content or the new one,
// never a part and never nothing.
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

// Write replaces the file at path with what content writes. The folder has to
// exist. A file that is already there keeps its permissions; a new one gets perm
// less the umask. A symbolic link at path is followed, so that the file it
// points to is replaced and the link stays.
//
// When Write returns nil, the new content survives kill -9 and power loss. When
// it returns an error, the old file is as it was and the temporary file is gone;
// an error of content is wrapped. (The one exception: when only the last flush
// of the folder fails, the new content is in place but may be lost with the
// power.) Writers of one path do not disturb each other; the last rename wins.
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

// resolve follows the links at path to the file that is to be replaced, which
// need not exist.
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
		if info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
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

// MkdirAll makes the folder dir and the missing ones above it with permissions
// perm less the umask, and makes them durable. Folders that are there are left
// as they are.
func MkdirAll(dir string, perm fs.FileMode) error {
	dir = filepath.Clean(dir)
	switch info, err := os.Stat(dir); {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("make folder %q: a file of that name is in the way", dir)
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

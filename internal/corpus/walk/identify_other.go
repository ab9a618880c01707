//go:build !unix

package walk

import (
	"io/fs"
	"path/filepath"
)

// fileID identifies a file or folder under all its names.
type fileID struct{ path string }

func identify(path string, _ fs.FileInfo) fileID {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return fileID{path: path}
}

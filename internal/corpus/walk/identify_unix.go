//go:build unix

package walk

import (
	"io/fs"
	"syscall"
)

// fileID identifies a file or folder under all its names.
type fileID struct {
	device, inode uint64
	path          string // if the file system has no inodes
}

func identify(path string, info fs.FileInfo) fileID {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Ino != 0 {
		return fileID{device: uint64(st.Dev), inode: uint64(st.Ino)} //nolint:unconvert // the types differ between systems
	}
	return fileID{path: path}
}

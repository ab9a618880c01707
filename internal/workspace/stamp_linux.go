package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openFlags open a pipe that replaced a file without waiting.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

func sysStamp(info fs.FileInfo) (stamp, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, false
	}
	return stamp{
		dev: uint64(st.Dev), ino: st.Ino, size: info.Size(), modified: info.ModTime().UnixNano(), //nolint:unconvert // their types differ between machines
		changed: int64(st.Ctim.Sec)*1e9 + int64(st.Ctim.Nsec), //nolint:unconvert // the same
	}, true
}

func notDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

// syncAll flushes the file system of dir, which is cheaper for many files than one flush each.
func syncAll(dir *os.File) error { return unix.Syncfs(int(dir.Fd())) }

const canSyncAll = true

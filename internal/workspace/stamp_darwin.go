package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// openFlags open a pipe that replaced a file without waiting.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

func sysStamp(info fs.FileInfo) (stamp, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stamp{}, false
	}
	return stamp{
		dev: uint64(st.Dev), ino: st.Ino, size: info.Size(), modified: info.ModTime().UnixNano(),
		changed: st.Ctimespec.Sec*1e9 + st.Ctimespec.Nsec,
	}, true
}

func notDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

func syncAll(*os.File) error { return nil }

const canSyncAll = false

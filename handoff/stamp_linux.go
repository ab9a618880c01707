package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when the file's content or attributes last changed; programs
// cannot set it back.
func changeTime(info fs.FileInfo) (time.Time, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec)), true //nolint:unconvert // their types differ between machines
}

// stampOf is "" where the file system does not say enough.
func stampOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	changed, _ := changeTime(info)
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano(), changed.UnixNano())
}

func notDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

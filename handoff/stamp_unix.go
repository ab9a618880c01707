//go:build linux || darwin

package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns the time of the last change of a file's content or attributes, which
// programs cannot set.
func changeTime(info fs.FileInfo) (time.Time, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return time.Time{}, false
	}
	changed := changeSpec(st)
	return time.Unix(changed.Unix()), true
}

// stampOf returns the stamp of a file, "" if the file system does not support it.
func stampOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	changed, _ := changeTime(info)
	return fmt.Sprintf("%d:%d:%d:%d:%d", st.Dev, st.Ino, info.Size(), info.ModTime().UnixNano(), changed.UnixNano())
}

func notDirectory(err error) bool { return errors.Is(err, syscall.ENOTDIR) }

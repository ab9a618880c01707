//go:build linux || darwin

package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

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

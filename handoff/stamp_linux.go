package handoff

import (
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

//go:build unix

package handoff

import (
	"io"
	"io/fs"
	"syscall"
)

// keepOwner gives a new file the owner of the one it replaces, where the system
// allows it: the group may change when the owner cannot.
func keepOwner(w io.Writer, old fs.FileInfo) {
	st, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if f, ok := w.(interface{ Chown(uid, gid int) error }); ok {
		if f.Chown(int(st.Uid), int(st.Gid)) != nil {
			_ = f.Chown(-1, int(st.Gid)) // who may not keeps what the system gave
		}
	}
}

//go:build unix

package handoff

import (
	"io"
	"io/fs"
	"syscall"
)

// keepOwner sets the owner and group of a new file to those of the one it replaces, or
// only the group, if the system allows it.
func keepOwner(w io.Writer, old fs.FileInfo) {
	st, ok := old.Sys().(*syscall.Stat_t)
	f, canChown := w.(interface{ Chown(uid, gid int) error })
	if ok && canChown && f.Chown(int(st.Uid), int(st.Gid)) != nil {
		_ = f.Chown(-1, int(st.Gid)) // without permission, those of the system stay
	}
}

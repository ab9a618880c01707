package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// diskOf returns the kind of a folder's file system and the bytes that are free for this
// user.
func diskOf(dir string) (kind string, free int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", 0, fmt.Errorf("query the disk of %q: %w", dir, err)
	}
	return unix.ByteSliceToString(st.Fstypename[:]), int64(st.Bavail) * int64(st.Bsize), nil //nolint:gosec // no disk has 2^63 bytes
}

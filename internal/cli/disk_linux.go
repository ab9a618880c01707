package cli

import (
	"cmp"
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
	return fileSystem(int64(uint32(st.Type))), int64(st.Bavail) * st.Bsize, nil //nolint:gosec // the kind is a number of 32 bits; no disk has 2^63 bytes
}

// fileSystem returns the name of a common file system by its number (linux/magic.h).
func fileSystem(magic int64) string {
	names := map[int64]string{unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs",
		unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs (lost on restart)",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs"}
	return cmp.Or(names[magic], fmt.Sprintf("file system 0x%x", magic))
}

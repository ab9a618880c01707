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
	return fileSystem(int64(uint32(st.Type))), int64(st.Bavail) * st.Bsize, nil //nolint:gosec // the kind is a number of 32 bits; no disk has 2^63 bytes
}

// fileSystem returns the name of a common file system by its number (linux/magic.h).
func fileSystem(magic int64) string {
	switch magic {
	case unix.EXT4_SUPER_MAGIC:
		return "ext4"
	case unix.XFS_SUPER_MAGIC:
		return "xfs"
	case unix.BTRFS_SUPER_MAGIC:
		return "btrfs"
	case unix.TMPFS_MAGIC:
		return "tmpfs (lost on restart)"
	case unix.OVERLAYFS_SUPER_MAGIC:
		return "overlay"
	case 0x2fc12fc1:
		return "zfs"
	case 0xf2f52010:
		return "f2fs"
	}
	return fmt.Sprintf("file system 0x%x", magic)
}

package sqldb

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// checkFileSystem refuses file systems on which file locks or shared memory do
// not work between machines, because both the turnstile and the WAL need them.
// The numbers are the kernel's (linux/magic.h, fs/fuse/virtio_fs.c).
func checkFileSystem(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("stat file system of %q: %w", dir, err)
	}
	return refuseFileSystem(dir, int64(uint32(st.Type))) //nolint:gosec // the kind is a number of 32 bits
}

func refuseFileSystem(dir string, magic int64) error {
	names := map[int64]string{
		0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2",
		0x01021997: "9p", 0x6a656a63: "virtiofs", 0x00c36400: "Ceph", 0x5346414f: "AFS",
	}
	if name, bad := names[magic]; bad {
		return fmt.Errorf("%w: %q is on %s, where locks are not reliable", ErrNetworkFS, dir, name)
	}
	return nil
}

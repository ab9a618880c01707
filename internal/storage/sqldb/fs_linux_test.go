package sqldb

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRefuseNetworkFileSystems(t *testing.T) {
	t.Parallel()
	for magic, name := range map[int64]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
		unix.SMB2_SUPER_MAGIC: "SMB2", unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS",
	} {
		err := refuseFileSystem("/data", magic)
		if !errors.Is(err, ErrNetworkFS) || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "/data") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, magic := range map[string]int64{
		"ext4": unix.EXT4_SUPER_MAGIC, "btrfs": unix.BTRFS_SUPER_MAGIC, "xfs": unix.XFS_SUPER_MAGIC,
		"tmpfs": unix.TMPFS_MAGIC, "overlay": unix.OVERLAYFS_SUPER_MAGIC,
	} {
		if err := refuseFileSystem("/data", magic); err != nil {
			t.Errorf("%s is refused: %v", name, err)
		}
	}
	if err := checkFileSystem(t.TempDir()); err != nil {
		t.Errorf("the folder of this test is refused: %v", err)
	}
}

package trust

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileID identifies a file. A link is not followed. Some file systems have no time of
// creation, which is 0 then.
func fileID(name string) (string, error) {
	var s unix.Statx_t
	const mask = unix.STATX_INO | unix.STATX_BTIME
	if err := unix.Statx(unix.AT_FDCWD, name, unix.AT_SYMLINK_NOFOLLOW, mask, &s); err != nil {
		return "", fmt.Errorf("identify %s: %w", name, err)
	}
	created := int64(0)
	if s.Mask&unix.STATX_BTIME != 0 {
		created = s.Btime.Sec*1e9 + int64(s.Btime.Nsec)
	}
	return fmt.Sprintf("%d.%d:%d:%d", s.Dev_major, s.Dev_minor, s.Ino, created), nil
}

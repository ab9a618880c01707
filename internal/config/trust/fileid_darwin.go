package trust

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// fileID identifies a file. A link is not followed.
func fileID(name string) (string, error) {
	var s unix.Stat_t
	if err := unix.Lstat(name, &s); err != nil {
		return "", fmt.Errorf("identify %s: %w", name, err)
	}
	return fmt.Sprintf("%d:%d:%d", s.Dev, s.Ino, s.Btim.Nano()), nil
}

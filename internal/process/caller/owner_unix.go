//go:build unix

package caller

import (
	"os"
	"syscall"
)

// Owner returns the user that a file belongs to, as this process's user namespace shows it,
// and -1 if it is not known.
func Owner(name string) int {
	info, err := os.Stat(name)
	if err != nil {
		return -1
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(s.Uid)
}

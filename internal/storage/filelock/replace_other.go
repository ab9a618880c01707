//go:build unix && !linux

package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Replace makes f another name of the open file description of fresh, with its locks.
func Replace(f, fresh *os.File) error {
	if err := unix.Dup2(int(fresh.Fd()), int(f.Fd())); err != nil {
		return err
	}
	unix.CloseOnExec(int(f.Fd()))
	return nil
}

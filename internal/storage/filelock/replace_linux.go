package filelock

import (
	"os"

	"golang.org/x/sys/unix"
)

// Replace makes f another name of the open file description of fresh, with its locks.
func Replace(f, fresh *os.File) error { return unix.Dup3(int(fresh.Fd()), int(f.Fd()), unix.O_CLOEXEC) }

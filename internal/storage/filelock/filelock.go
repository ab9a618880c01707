// Package filelock takes advisory locks of the operating system on open files.
//
// A lock belongs to the open file description: the kernel releases it when the
// last descriptor that refers to it is closed, also when the process is killed.
// So a lock shows reliably that a process on this host is alive; leases and the write
// turnstile use that. Two opens of one file conflict even inside one process.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked is returned by TryLock when the lock is held already.
var ErrLocked = errors.New("file is locked")

// Held reports whether the lock is held on another open file description than f. It takes
// a shared lock for a moment, which other callers of Held do not take for a lock. f must
// not hold the lock itself.
func Held(f *os.File) (bool, error) {
	err := tryShared(f)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// Closing f is not enough: a child process that is being started may have
	// inherited the descriptor for a moment.
	return false, Unlock(f)
}

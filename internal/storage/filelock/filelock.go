// Package filelock takes advisory locks of the operating system on open files.
//
// A lock belongs to the open file description: the kernel drops it when the
// last descriptor that refers to it is closed, also when the process is killed.
// That makes a lock the one trustworthy sign that a process on this host is
// alive, which is what leases and the write turnstile rest on. Two opens of one
// file conflict even inside one process.
package filelock

import (
	"errors"
	"os"
)

// ErrLocked is returned by TryLock when somebody else holds the lock.
var ErrLocked = errors.New("file is locked")

// Held tells whether somebody holds the lock on f through another opening of
// the file. It takes nothing that another caller of Held could take for a lock;
// it must not be asked of an f that holds the lock itself.
func Held(f *os.File) (bool, error) {
	err := tryShared(f)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// Not left to a close: a child process that is being started may have
	// inherited the descriptor for a moment.
	return false, Unlock(f)
}

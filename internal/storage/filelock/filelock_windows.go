//go:build windows

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Lock waits until it holds the exclusive lock on f.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// LockShared waits until it holds a shared lock on f.
func LockShared(f *os.File) error { return lock(f, 0) }

// TryLock takes the exclusive lock on f or returns ErrLocked at once.
func TryLock(f *os.File) error { return try(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

func tryShared(f *os.File) error { return try(f, 0) }

func try(f *os.File, flags uint32) error {
	err := lock(f, flags|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// Unlock releases the lock on f.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, new(windows.Overlapped))
}

func lock(f *os.File, flags uint32) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
}

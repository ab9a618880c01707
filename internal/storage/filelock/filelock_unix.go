//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock waits until it holds the exclusive lock on f.
func Lock(f *os.File) error { return flock(f, unix.LOCK_EX) }

// LockShared waits until it holds a shared lock on f.
func LockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

// TryLock takes the exclusive lock on f or returns ErrLocked at once.
func TryLock(f *os.File) error { return try(f, unix.LOCK_EX) }

func tryShared(f *os.File) error { return try(f, unix.LOCK_SH) }

func try(f *os.File, how int) error {
	err := flock(f, how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Unlock releases the lock on f.
func Unlock(f *os.File) error { return flock(f, unix.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

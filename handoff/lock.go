package handoff

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
)

// lockFile is a lock of the operating system on a file in the folder of the one it
// protects. The file is removed with the lock; that of a killed process is reused.
type lockFile struct {
	path string
	file *os.File
}

// takeLock waits for the lock until ctx ends.
func takeLock(ctx context.Context, target string, perm fs.FileMode) (*lockFile, error) {
	l := &lockFile{path: filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".lock")}
	const shortest, longest = 200 * time.Microsecond, 10 * time.Millisecond
	wait := shortest
	for {
		err := l.try(perm)
		if err == nil {
			return l, nil
		}
		if !errors.Is(err, filelock.ErrLocked) {
			return nil, lockError(target, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, &Error{Kind: ErrConflict, Op: "lock", File: target, Msg: "another process is writing the file",
				Err:  ctx.Err(),
				Hint: "retry; the lock ends with the process that holds it"}
		}
		wait = min(2*wait, longest)
	}
}

func lockError(target string, err error) error {
	e := &Error{Op: "lock", File: target, Err: pathless(err)}
	if errors.Is(err, fs.ErrPermission) {
		e.Kind, e.Hint = ErrReadOnly, "make the folder writable: the file is replaced, not changed"
	}
	if absent(err) {
		e.Kind, e.Msg = ErrNotFound, "the folder does not exist"
	}
	return e
}

// try takes the lock or returns [filelock.ErrLocked].
func (l *lockFile) try(perm fs.FileMode) error {
	f, err := l.open(perm | 0o600)
	if err != nil {
		return err
	}
	if err := filelock.TryLock(f); err != nil {
		_ = f.Close() // nothing was written
		return err
	}
	// The previous holder of the lock could have removed the file: the lock on a removed
	// file protects nothing.
	mine, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(l.path); err == nil && os.SameFile(mine, there) {
			l.file = f
			return nil
		}
	}
	_ = f.Close() // releases the lock
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return filelock.ErrLocked
	}
	return err
}

// open opens or creates the file. That of another user is opened for reading, which is
// enough to wait for its lock.
func (l *lockFile) open(perm fs.FileMode) (*os.File, error) {
	const mine = os.O_CREATE | os.O_RDWR
	f, err := os.OpenFile(l.path, mine, perm)
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	if f, err := os.Open(l.path); !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return os.OpenFile(l.path, mine, perm) // it was just removed, or the folder is read-only
}

// release removes the file and releases the lock.
func (l *lockFile) release() error {
	_ = os.Remove(l.path) // fails on Windows; the next process uses the file again
	return l.file.Close()
}

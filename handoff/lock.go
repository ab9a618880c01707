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

// lockFile is a lock of the operating system on a file beside the one it
// protects. The file is removed with the lock, so that nothing is left in a
// repository; one that a killed process left is taken over.
type lockFile struct {
	path string
	file *os.File
}

// takeLock waits for the lock as long as ctx allows.
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
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, &Error{Kind: ErrConflict, Op: "lock", File: target, Msg: "another process is writing the file",
				Err:  ctx.Err(),
				Hint: "try again; the lock ends with the process that holds it"}
		}
		wait = min(2*wait, longest)
	}
}

func lockError(target string, err error) error {
	e := &Error{Op: "lock", File: target, Err: pathless(err)}
	if errors.Is(err, fs.ErrPermission) {
		e.Kind, e.Hint = ErrReadOnly, "the folder has to be writable: the file is replaced as a whole"
	}
	if absent(err) {
		e.Kind, e.Msg = ErrNotFound, "there is no such folder"
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
	// Whoever held the lock before may have removed the file meanwhile: a lock
	// on a file that nobody can find protects nothing.
	mine, err := f.Stat()
	if err == nil {
		var there fs.FileInfo
		if there, err = os.Stat(l.path); err == nil && os.SameFile(mine, there) {
			l.file = f
			return nil
		}
	}
	_ = f.Close() // gives the lock back
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return filelock.ErrLocked
	}
	return err
}

// open opens or makes the file. For that of another user, reading is enough to
// wait for it.
func (l *lockFile) open(perm fs.FileMode) (*os.File, error) {
	const mine = os.O_CREATE | os.O_RDWR
	f, err := os.OpenFile(l.path, mine, perm)
	if !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	if f, err := os.Open(l.path); !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	return os.OpenFile(l.path, mine, perm) // removed just now, or the folder is read-only
}

// release removes the file while the lock is held, and gives the lock back.
func (l *lockFile) release() error {
	_ = os.Remove(l.path) // not on Windows; the next one takes it as it is
	return l.file.Close()
}

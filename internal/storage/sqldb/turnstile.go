package sqldb

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
)

// turnstile makes processes write in turn: each locks "next", then "main", unlocks
// "next", writes, and unlocks "main". A process that writes in a tight loop has to
// queue at "next" behind a process that already waits for "main", so every process waits
// for one transaction only.
//
// A nil turnstile (PostgreSQL) does nothing.
type turnstile struct {
	next, main *os.File
	// token identifies this turnstile; "main" holds the token of the last one that
	// was entered.
	token [8]byte
}

// tokenAt is the offset of the token in "main".
const tokenAt = 16

func openTurnstile(dir string) (*turnstile, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create lock folder: %w", err)
	}
	open := func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE, 0o600)
	}
	next, err := open("write.next")
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	main, err := open("write.main")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open lock: %w", err), next.Close())
	}
	t := &turnstile{next: next, main: main}
	_, err = rand.Read(t.token[:])
	return t, err
}

// enter waits for this process's turn, at most for the given time. alone reports whether
// no other turnstile was entered since this one was last.
func (t *turnstile) enter(ctx context.Context, timeout time.Duration) (alone bool, err error) {
	if t == nil {
		return false, nil
	}
	if err := lockWithin(ctx, &t.next, timeout); err != nil {
		return false, err
	}
	err = lockWithin(ctx, &t.main, timeout)
	if err := errors.Join(err, filelock.Unlock(t.next)); err != nil {
		return false, err
	}
	alone, err = t.sign()
	if err != nil {
		t.leave()
	}
	return alone, err
}

// sign writes the token before any other write, so that other processes notice the entry
// wherever this one dies.
func (t *turnstile) sign() (alone bool, err error) {
	var last [len(t.token)]byte
	if n, _ := t.main.ReadAt(last[:], tokenAt); n == len(last) && last == t.token {
		return true, nil
	}
	if _, err := t.main.WriteAt(t.token[:], tokenAt); err != nil {
		return false, fmt.Errorf("sign turnstile: %w", err)
	}
	return false, nil
}

// usedMark is at the beginning of "main" once a store was created.
const usedMark = "store\n"

// used reports whether a store was created in the folder of the locks.
func (t *turnstile) used() (bool, error) {
	buf := make([]byte, len(usedMark))
	n, err := t.main.ReadAt(buf, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read lock: %w", err)
	}
	return string(buf[:n]) == usedMark, nil
}

// markUsed records that a store was created: if its database is missing later, it is
// damaged, not new.
func (t *turnstile) markUsed() error {
	if t == nil {
		return nil
	}
	used, err := t.used()
	if err != nil || used {
		return err
	}
	if _, err := t.main.WriteAt([]byte(usedMark), 0); err != nil {
		return fmt.Errorf("mark store: %w", err)
	}
	return t.main.Sync()
}

func (t *turnstile) leave() {
	if t != nil {
		_ = filelock.Unlock(t.main) // cannot fail on a descriptor that holds it
	}
}

func (t *turnstile) close() error { return errors.Join(t.next.Close(), t.main.Close()) }

// lockWithin takes the lock at once if it is free, and else waits in a second thread. A
// thread that waits in the kernel cannot be interrupted, so after a timeout the descriptor
// stays with that thread and f is opened again.
func lockWithin(ctx context.Context, f **os.File, timeout time.Duration) error {
	err := filelock.TryLock(*f)
	if !errors.Is(err, filelock.ErrLocked) {
		return err
	}
	waiting := *f
	got := make(chan error, 1)
	go func() { got <- filelock.Lock(waiting) }()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case err = <-got:
		return err
	case <-timer.C:
		err = fmt.Errorf("%w: another process has been writing for %s", ErrBusy, timeout)
	case <-ctx.Done():
		err = ctx.Err()
	}
	fresh, openErr := os.OpenFile(waiting.Name(), os.O_RDWR, 0o600)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	*f = fresh
	go func() {
		<-got               //nolint:errcheck // the caller has returned
		_ = waiting.Close() // releases the lock
	}()
	return err
}

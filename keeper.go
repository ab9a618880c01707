package perdure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
)

const (
	// copyInterval is the shortest time between two copies of the database in the background.
	copyInterval = time.Second
	// copyShare is how much longer than a copy takes the next one waits: at most one part in fifty of
	// the time goes into copies.
	copyShare = 50
	// longCopy is the duration from which on a copy is left out if there was one just before.
	longCopy = 200 * time.Millisecond
	// maxEarlier bounds the database files that a record remembers.
	maxEarlier = 20
)

// keeper keeps a copy of an SQLite store outside of its folder while this process works for programs
// that may remove the folder, and puts the store back from its open connection if they do.
type keeper struct {
	s      *Store
	folder string

	active   atomic.Bool // from the first copy on until the store is closed
	putBacks atomic.Int64

	mu     sync.Mutex // guards the fields below
	live   *os.File   // nil until it is started
	ended  bool
	copied int64 // the last transaction in the copy
	took   time.Duration
	at     time.Time
}

func newKeeper(s *Store) *keeper {
	if s.cfg.Copies == "" || s.cfg.DSN != "" || s.cfg.ReadOnly {
		return nil
	}
	return &keeper{s: s, folder: copies.Folder(s.cfg.Copies, s.cfg.Dir)}
}

// CopyFolder returns the folder of the copies of this store's files outside of [Config].Dir, "" if
// there is none.
func (s *Store) CopyFolder() string {
	if s.keeper == nil {
		return ""
	}
	return s.keeper.folder
}

// KeepCopy makes the copy of the store current, see [Config].Copies. From the first call on this process
// puts the store back if its files are removed. Without such a folder it does nothing.
func (s *Store) KeepCopy(ctx context.Context) error {
	if s.keeper == nil {
		return nil
	}
	return wrap("copy store", s.keeper.keep(ctx, true))
}

// CheckFiles puts the files of the store back if they were removed or replaced, and returns how often this
// process put them back since the store was opened: each write does. It fails with CodeUnavailable if they
// cannot be put back. It asks the file system only.
func (s *Store) CheckFiles(ctx context.Context) (putBacks int64, err error) {
	if s.db.Removed() {
		err = s.w.do(ctx, opFunc(func(context.Context, *batch) error { return nil }))
	}
	if s.keeper != nil {
		putBacks = s.keeper.putBacks.Load()
	}
	return putBacks, wrap("check store", err)
}

// Removed returns a channel that is closed when the files of the store were removed or replaced and this
// process does not put them back. Reads and writes fail from then on.
func (s *Store) Removed() <-chan struct{} { return s.removed }

// checkRemoved ends the use of files that were removed.
func (s *Store) checkRemoved() {
	if s.keeper.isStarted() || !s.db.Removed() {
		return
	}
	s.removing.Do(func() {
		s.db.Refuse()
		close(s.removed)
	})
}

// refuseReplaced returns an error for files that are not those of the store of a process that puts them
// back: nothing may be written to them, or created in their place.
func (s *Store) refuseReplaced() error {
	if s.cfg.Copies == "" || s.cfg.DSN != "" {
		return nil
	}
	if copies.RemovedInUse(copies.Folder(s.cfg.Copies, s.cfg.Dir), filepath.Join(s.cfg.Dir, copies.DatabaseName)) {
		return sqldb.ErrRemoved
	}
	return nil
}

func (k *keeper) isStarted() bool {
	return k != nil && k.active.Load()
}

// keep copies what changed. Without now it does so only if the last copy is old enough.
func (k *keeper) keep(ctx context.Context, now bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.start(ctx); err != nil || k.ended {
		return err
	}
	var tx int64
	if err := k.s.db.QueryRow(ctx, sqlTxCount, nil, &tx); err != nil {
		return err
	}
	if k.s.db.Removed() {
		return nil
	}
	wait := k.took * copyShare
	if now && k.took < longCopy {
		wait = 0
	} else if !now {
		wait = max(wait, copyInterval)
	}
	if now {
		if err := copies.Exclusive(k.folder, k.fill); err != nil {
			return err
		}
	}
	if tx == k.copied || time.Since(k.at) < wait {
		return nil
	}
	began := time.Now()
	err := copies.Exclusive(k.folder, func() error {
		if err := k.s.db.WriteCopy(ctx, filepath.Join(k.folder, copies.DatabaseName), false); err != nil {
			return err
		}
		return errors.Join(k.fill(), k.note(func(r *copies.Record) { r.CopiedAt = time.Now().UTC() }))
	})
	k.took, k.at = time.Since(began), time.Now()
	if err == nil {
		k.copied = tx
	}
	return err
}

// fill copies the files of the store except its database.
func (k *keeper) fill() error {
	return copies.Fill(k.s.cfg.Dir, filepath.Join(k.folder, copies.FilesName), storeFile)
}

// putBackBlob puts a blob back from the copy, and reports whether it did.
func (k *keeper) putBackBlob(hash string) bool {
	if k == nil || len(hash) < 3 {
		return false
	}
	rel := filepath.Join("blobs", hash[:2])
	err := copies.Fill(filepath.Join(k.folder, copies.FilesName, rel), filepath.Join(k.s.cfg.Dir, rel),
		func(name string, _ bool) copies.Class {
			if name == hash[2:] {
				return copies.Immutable
			}
			return copies.Skip
		})
	return err == nil
}

// storeFile returns how a file of a store is copied. The folders of loops are not: the loops copy what
// they need.
func storeFile(rel string, folder bool) copies.Class {
	first, rest, nested := strings.Cut(rel, "/")
	switch {
	case first == "blobs" && folder:
		return copies.Bulky
	case first == "blobs":
		if dir, name := path.Split(rest); len(dir) == 3 && len(name) == 62 {
			return copies.Bulky
		}
	case first == "handoffs", !nested && !folder && path.Ext(rel) == ".yaml":
		return copies.Changing
	}
	return copies.Skip
}

// start marks the copy as used by this process. The copy of another store, which was here before, is
// kept under another name.
func (k *keeper) start(ctx context.Context) error {
	if k.live != nil {
		return nil
	}
	id, err := k.s.newID(ctx)
	if err != nil {
		return err
	}
	if old, err := copies.Read(k.folder); err == nil && old.Store != id && old.Store != "" && !copies.Used(k.folder) {
		aside := k.folder + "-" + old.Store[:min(8, len(old.Store))]
		if err := errors.Join(os.RemoveAll(aside), os.Rename(k.folder, aside)); err != nil {
			return fmt.Errorf("keep the copy of another store: %w", err)
		}
	}
	live, err := copies.Use(k.folder)
	if err != nil {
		return err
	}
	err = copies.Exclusive(k.folder, func() error {
		return k.note(func(r *copies.Record) {
			r.Dir, r.Store = k.s.location(), id
			k.take(r)
		})
	})
	if err != nil {
		return errors.Join(err, live.Close())
	}
	k.live = live
	k.active.Store(true)
	k.s.wg.Go(func() { k.s.repeat(k.s.background, copyInterval, k.follow) })
	return nil
}

// follow copies what changed meanwhile, also by other processes.
func (k *keeper) follow(ctx context.Context) {
	if err := k.keep(ctx, false); err != nil {
		k.s.log.Warn("copy store", "folder", k.folder, "error", err)
	}
}

// take makes the open database file the one of the record, unless it was removed.
func (k *keeper) take(r *copies.Record) {
	if k.s.db.Removed() {
		return
	}
	file, log := k.s.db.Files()
	replaceFile(r, copies.FileID(file))
	r.Log = copies.FileID(log)
}

// replaceFile makes another database file the one of a record.
func replaceFile(r *copies.Record, id string) {
	if r.File != "" && r.File != id {
		r.Earlier = append(r.Earlier, r.File)
		r.Earlier = r.Earlier[max(0, len(r.Earlier)-maxEarlier):]
	}
	r.File, r.Log = id, ""
}

// note changes the record.
func (k *keeper) note(change func(*copies.Record)) error {
	r, err := copies.Read(k.folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r = copies.Record{} // a damaged record is written anew
	}
	change(&r)
	return r.Write(k.folder)
}

// close ends the use of the copy, after a last one.
func (k *keeper) close(ctx context.Context) {
	if !k.isStarted() {
		return
	}
	if err := k.keep(ctx, true); err != nil {
		k.s.log.Warn("copy store", "folder", k.folder, "error", err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.active.Store(false)
	_ = k.live.Close() // releases the lock
}

// putBack puts the removed store back, or opens the one that another process put back meanwhile. The
// writer calls it.
func (k *keeper) putBack(ctx context.Context) error {
	failpoint.Hit("store.removed")
	err := k.s.db.Reopen(ctx, func() error { return copies.Exclusive(k.folder, func() error { return k.place(ctx) }) })
	if err != nil {
		return k.cannot(err)
	}
	failpoint.Hit("store.put_back.opened")
	err = copies.Exclusive(k.folder, func() error { return k.note(k.take) })
	if err := errors.Join(err, k.s.lockSessions()); err != nil {
		return k.cannot(err)
	}
	failpoint.Hit("store.put_back.locked")
	k.putBacks.Add(1)
	if k.s.cfg.Replaced != nil {
		k.s.cfg.Replaced()
	}
	k.s.log.Info("the files of the store had been removed and were put back", "dir", k.s.cfg.Dir)
	return nil
}

// cannot returns the error of a store that was removed and cannot be put back.
func (k *keeper) cannot(err error) error {
	e, ok := errors.AsType[*Error](err)
	if ok && e.Code == CodeUnavailable {
		return e
	}
	return &Error{Code: CodeUnavailable, Op: "put back store", Err: fmt.Errorf("%w: %w", sqldb.ErrRemoved, err),
		Msg: fmt.Sprintf("the files in %s were removed or replaced and cannot be put back (%s); a copy is in %s",
			k.s.cfg.Dir, err, k.folder),
		Hint: fmt.Sprintf("`perdure restore --copy %s` in the project's folder puts the copy back", k.folder)}
}

// place puts the files of the store in their place.
func (k *keeper) place(ctx context.Context) error {
	dir := k.s.cfg.Dir
	r, err := copies.Read(k.folder)
	if err != nil {
		return err
	}
	target := filepath.Join(dir, copies.DatabaseName)
	file, _ := k.s.db.Files()
	if own := copies.FileID(file); r.File != own {
		info, err := os.Stat(target)
		if err == nil && copies.FileID(info) == r.File && slices.Contains(r.Earlier, own) {
			return nil // another process put it back
		}
		return sqldb.ErrRemoved // what this process has open is not the newest
	}
	copied := filepath.Join(k.folder, copies.DatabaseName)
	if err := k.s.db.WriteCopy(ctx, copied, true); err != nil {
		return err
	}
	failpoint.Hit("store.put_back.copied")
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := k.s.prepareDir(); err != nil {
		return err
	}
	if info, err := os.Stat(target); err == nil && os.SameFile(info, file) { // only its log was removed
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if err := copies.PutBack(k.folder, dir); err != nil {
		return err
	}
	failpoint.Hit("store.put_back.placed")
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	replaceFile(&r, copies.FileID(info))
	r.CopiedAt = time.Now().UTC()
	return r.Write(k.folder)
}

// forget removes the copies of the loops that were removed from the store.
func (k *keeper) forget(trees []PrunedTree) error {
	if k == nil {
		return nil
	}
	var errs []error
	for _, t := range trees {
		_, digits, _ := strings.Cut(string(t.ID), "-")
		loops, err := filepath.Glob(filepath.Join(k.folder, copies.FilesName, "loops", "*-"+digits))
		errs = append(errs, err)
		for _, dir := range loops {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return wrap("remove copies", errors.Join(errs...))
}

// lockSessions locks the files of the open sessions anew, if they were removed.
func (s *Store) lockSessions() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		if err := ss.lockAnew(); err != nil {
			return err
		}
	}
	return nil
}

func (ss *Session) lockAnew() error {
	if ss.file == nil {
		return nil
	}
	open, err := ss.file.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(ss.file.Name()); err == nil && os.SameFile(open, named) {
		return nil
	}
	f, err := os.OpenFile(ss.file.Name(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	// Programs that are started later inherit the new file under the number of the old one.
	return errors.Join(filelock.TryLock(f), filelock.Replace(ss.file, f), f.Close())
}

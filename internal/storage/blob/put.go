package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/filelock"
)

const tmpDir = "tmp"

// Put stores the content of r and returns its name. When it returns without an
// error, the blob is durable. Content that is stored already is not stored again;
// its time is renewed, so that retention by age keeps it. When r or the disk
// fails, or ctx ends, nothing is left behind.
func (s *Store) Put(ctx context.Context, r io.Reader) (Ref, error) {
	ref, err := s.put(ctx, r)
	if err != nil {
		return Ref{}, fmt.Errorf("put blob: %w", err)
	}
	return ref, nil
}

func (s *Store) put(ctx context.Context, r io.Reader) (ref Ref, err error) {
	if err := ctx.Err(); err != nil {
		return ref, err
	}
	s.sweepOnce.Do(func() { _ = s.Sweep(ctx, time.Time{}) }) // what stays is swept later
	f, err := s.createTemp()
	if errors.Is(err, fs.ErrNotExist) {
		s.forgetDir(s.dir)
		f, err = s.createTemp()
	}
	if err != nil {
		return ref, err
	}
	defer func() {
		_ = f.Close()           // place may have closed it
		_ = os.Remove(f.Name()) // place may have renamed it; Sweep removes what stays
	}()
	sum := sha256.New()
	ref.Size, err = io.CopyBuffer(io.MultiWriter(f, sum), &ctxReader{ctx: ctx, r: r}, make([]byte, 256<<10))
	if err != nil {
		return ref, err
	}
	ref.Hash = hex.EncodeToString(sum.Sum(nil))
	return ref, s.place(f, ref)
}

func (s *Store) createTemp() (*os.File, error) {
	if err := s.makeDir(s.dir); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, tmpDir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	for {
		f, err := os.CreateTemp(dir, "blob-*") // mode 0600
		if err != nil {
			return nil, err
		}
		// The lock shows that the writer lives. Sweep may have removed the file before.
		err = filelock.Lock(f)
		if _, gone := os.Stat(f.Name()); err == nil && gone == nil {
			return f, nil
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, errors.Join(err, os.Remove(f.Name()))
		}
	}
}

// place makes the content of a temporary file durable under its hash.
func (s *Store) place(f *os.File, ref Ref) error {
	path, err := s.path(ref.Hash)
	if err != nil {
		return err
	}
	shard := filepath.Dir(path)
	if err := s.makeDir(shard); err != nil {
		return err
	}
	if s.renew(path, ref) {
		return atomicfile.SyncDir(shard) // the process that renamed it may have died before this
	}
	failpoint.Hit("blob.before_sync")
	if err := f.Sync(); err != nil {
		return err
	}
	failpoint.Hit("blob.after_sync")
	if now := time.Now(); os.Chtimes(f.Name(), now, now) != nil { // closed it has no lock until the rename
		return fmt.Errorf("%s was removed", f.Name())
	}
	if err := f.Close(); err != nil { // Windows renames only closed files
		return err
	}
	err = os.Rename(f.Name(), path)
	if errors.Is(err, fs.ErrNotExist) { // the folder was removed since this process made it
		s.forgetDir(shard)
		if err := s.makeDir(shard); err != nil {
			return err
		}
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	failpoint.Hit("blob.after_rename")
	return atomicfile.SyncDir(shard)
}

// renew reports whether the content is stored already, and renews its time so
// that retention by age does not remove a blob that a caller is about to refer to. A
// file of the wrong size was damaged; it is written again.
func (s *Store) renew(path string, ref Ref) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if !info.Mode().IsRegular() || info.Size() != ref.Size {
		s.log.Warn("blob had the wrong size and is written again", "hash", ref.Hash, "size", info.Size())
		return false
	}
	now := time.Now()
	return os.Chtimes(path, now, now) == nil // false if it was removed just now
}

// ctxReader ends a long copy when ctx ends.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *ctxReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

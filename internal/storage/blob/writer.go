package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// errClosed is the error of a writer used after its end.
var errClosed = errors.New("blob writer is closed")

// Writer receives the content of one blob whose hash is not known yet. It is
// used by one goroutine, which calls either Commit or Discard at its end;
// Discard after Commit does nothing, so it can be deferred.
type Writer struct {
	ctx   context.Context // the caller's, for the length of the writing only
	store *Store
	file  *os.File // nil after the end
	sum   hash.Hash
	size  int64
	named bool  // the file has its final name
	err   error // the first failure; Commit refuses after it
}

// Create starts a blob that is written piece by piece. When ctx ends, Write and
// Commit fail.
func (s *Store) Create(ctx context.Context) (*Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create blob: %w", err)
	}
	dir := filepath.Join(s.dir, tmpDir)
	f, err := s.createTemp(dir)
	if errors.Is(err, fs.ErrNotExist) {
		s.forgetDir(dir)
		s.forgetDir(s.dir)
		f, err = s.createTemp(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("create blob: %w", err)
	}
	return &Writer{ctx: ctx, store: s, file: f, sum: sha256.New()}, nil
}

func (s *Store) createTemp(dir string) (*os.File, error) {
	if err := s.makeDir(s.dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.CreateTemp(dir, "blob-*") // mode 0600
}

// Write implements [io.Writer]. After an error the writer can only be discarded.
func (w *Writer) Write(p []byte) (int, error) {
	if w.file == nil {
		return 0, errClosed
	}
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := w.file.Write(p)
	w.sum.Write(p[:n])
	w.size += int64(n)
	if err != nil {
		w.err = fmt.Errorf("write blob: %w", err)
	}
	return n, w.err
}

// Size is the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Commit makes the blob durable under its hash. After an error nothing is left
// behind. It ends the writer either way.
func (w *Writer) Commit() (Ref, error) {
	if w.file == nil {
		return Ref{}, errClosed
	}
	defer w.Discard()
	if w.err == nil {
		w.err = w.ctx.Err()
	}
	if w.err != nil {
		return Ref{}, fmt.Errorf("commit blob: %w", w.err)
	}
	ref := Ref{Hash: hex.EncodeToString(w.sum.Sum(nil)), Size: w.size}
	if err := w.commit(ref); err != nil {
		return Ref{}, fmt.Errorf("commit blob %q: %w", ref.Hash, err)
	}
	return ref, nil
}

func (w *Writer) commit(ref Ref) error {
	path, err := w.store.path(ref.Hash)
	if err != nil {
		return err
	}
	shard := filepath.Dir(path)
	if err := w.store.makeDir(shard); err != nil {
		return err
	}
	if w.store.renew(path, ref) {
		return atomicfile.SyncDir(shard) // whoever renamed it may have died before this
	}
	failpoint.Hit("blob.before_sync")
	if err := w.file.Sync(); err != nil {
		return err
	}
	failpoint.Hit("blob.after_sync")
	if err := w.rename(path); err != nil {
		return err
	}
	failpoint.Hit("blob.after_rename")
	return atomicfile.SyncDir(shard)
}

// renew reports whether the content is there already, and renews its time so
// that retention by age does not take what a caller is about to refer to. A file
// of the wrong size was damaged from outside; writing it again mends it.
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
	return os.Chtimes(path, now, now) == nil // false when it was removed just now
}

// rename gives the flushed file its name.
func (w *Writer) rename(path string) error {
	f := w.file
	if err := f.Close(); err != nil { // Windows renames only closed files
		return err
	}
	err := os.Rename(f.Name(), path)
	if errors.Is(err, fs.ErrNotExist) { // the folder was removed since this process made it
		shard := filepath.Dir(path)
		w.store.forgetDir(shard)
		if err := w.store.makeDir(shard); err != nil {
			return err
		}
		err = os.Rename(f.Name(), path)
	}
	w.named = err == nil
	return err
}

// Discard drops what was written. It does nothing after Commit.
func (w *Writer) Discard() {
	if w.file == nil {
		return
	}
	_ = w.file.Close() // nothing of it is kept; twice is harmless
	if !w.named {
		_ = os.Remove(w.file.Name()) // what stays is swept later
	}
	w.file = nil
}

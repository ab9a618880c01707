// Package blob keeps large values as files named by the SHA-256 of their
// content: DIR/ab/cdef…, where ab are the first two of the 64 hexadecimal digits.
//
// A blob is written to DIR/tmp, flushed, renamed to its name and made durable by
// flushing the folders, so that a file named by a hash always holds the whole content,
// also after kill -9 or a power loss at any instant. [Store.Sweep] removes the files
// that a crash leaves in DIR/tmp.
//
// Blobs never change. The package does not know which rows refer to them: a caller
// writes the blob before the row that names it, and removes a blob only when no row
// names it.
package blob

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Errors that callers distinguish. A missing blob is [fs.ErrNotExist], a full disk is
// syscall.ENOSPC.
var (
	// ErrBadHash is returned for a hash that is not 64 lower-case hexadecimal
	// digits.
	ErrBadHash = errors.New("not a sha-256 in lower-case hexadecimal")
	// ErrDamaged is returned by Verify when the hash of the content is not the name.
	ErrDamaged = errors.New("content does not match its hash")
)

// Ref names a blob.
type Ref struct {
	// Hash is the SHA-256 of the content, 64 lower-case hexadecimal digits.
	Hash string `json:"hash"`
	// Size is the number of bytes.
	Size int64 `json:"size"`
}

// Info describes a stored blob.
type Info struct {
	Ref
	// ModTime is when the content was last put, also if it was stored already.
	ModTime time.Time
}

// Store reads and writes the blobs of one folder. It is safe for concurrent use,
// by any number of processes on the same folder.
type Store struct {
	dir string
	log *slog.Logger

	sweepOnce sync.Once // of the first write

	mu sync.Mutex // guards durable
	// durable holds the folders whose names this process knows to be durable. Other
	// folders may exist and not be durable: the process that made one may have been
	// killed before the flush.
	durable map[string]bool
}

// New returns the store of the folder dir, which the first write creates. log receives
// warnings about damaged blobs.
func New(dir string, log *slog.Logger) (*Store, error) {
	if dir == "" {
		return nil, errors.New("blob store: folder is empty")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("blob store: %w", err)
	}
	return &Store{dir: dir, log: log, durable: map[string]bool{}}, nil
}

// path returns the path of a blob's file.
func (s *Store) path(hash string) (string, error) {
	if !validHash(hash) {
		return "", fmt.Errorf("blob %q: %w", hash, ErrBadHash)
	}
	return filepath.Join(s.dir, hash[:2], hash[2:]), nil
}

func validHash(hash string) bool { return len(hash) == 2*sha256.Size && isLowerHex(hash) }

func isLowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// File is an open blob. ReadAt may be called concurrently.
type File struct {
	io.ReaderAt
	io.Closer
	size int64
}

// Size returns the number of bytes of the blob.
func (f *File) Size() int64 { return f.size }

// Open opens a blob for reading. The content is not verified; see [Store.Verify].
// The caller closes it. A blob removed meanwhile stays readable until then
// (except on Windows, where it cannot be removed).
func (s *Store) Open(hash string) (*File, error) {
	path, err := s.path(hash)
	if err != nil {
		return nil, err
	}
	return openFile(path)
}

func openFile(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return &File{ReaderAt: f, Closer: f, size: info.Size()}, nil
}

// Stat returns the size and time of a blob without reading it.
func (s *Store) Stat(hash string) (Info, error) {
	path, err := s.path(hash)
	if err != nil {
		return Info{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return Info{}, fmt.Errorf("stat blob: %w", err)
	}
	return Info{Ref: Ref{Hash: hash, Size: info.Size()}, ModTime: info.ModTime()}, nil
}

// Verify reads a blob and compares it with its name: [ErrDamaged] when they
// differ.
func (s *Store) Verify(ctx context.Context, hash string) error {
	f, err := s.Open(hash)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	r := &ctxReader{ctx: ctx, r: io.NewSectionReader(f, 0, f.size)}
	if _, err := io.CopyBuffer(h, r, make([]byte, 256<<10)); err != nil {
		return fmt.Errorf("verify blob %q: %w", hash, err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != hash {
		return fmt.Errorf("verify blob %q: %w: its hash is %q", hash, ErrDamaged, got)
	}
	return nil
}

// Remove removes a blob; a missing one is not an error. The removal is not flushed: after
// a power loss a removed blob may exist again, without references.
func (s *Store) Remove(hash string) error {
	path, err := s.path(hash)
	if err != nil {
		return err
	}
	for _, name := range []string{path + indexSuffix, path} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove blob: %w", err)
		}
	}
	return nil
}

// indexSuffix is behind the name of a blob in that of its index.
const indexSuffix = ".index"

// OpenIndex opens the file that [Store.PutIndex] wrote next to a blob.
func (s *Store) OpenIndex(hash string) (*File, error) {
	path, err := s.path(hash)
	if err != nil {
		return nil, err
	}
	return openFile(path + indexSuffix)
}

// PutIndex writes a file next to a blob, which [Store.Remove] removes with it. It is a cache:
// nothing is flushed, and the reader has to check what it reads. Of two processes that write it at
// once, one replaces the file of the other.
func (s *Store) PutIndex(hash string, write func(io.Writer) error) (err error) {
	path, err := s.path(hash)
	if err != nil {
		return err
	}
	f, err := s.createTemp()
	if err != nil {
		return fmt.Errorf("put index: %w", err)
	}
	defer func() {
		_ = f.Close()           // closed before the rename
		_ = os.Remove(f.Name()) // renamed; Sweep removes what stays
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err = errors.Join(w.Flush(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path+indexSuffix)
	}
	if err != nil {
		return fmt.Errorf("put index: %w", err)
	}
	return nil
}

// makeDir makes a folder of the store and makes its name durable, once per process.
func (s *Store) makeDir(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.durable[dir] {
		return nil
	}
	parent := filepath.Dir(dir)
	if err := atomicfile.MkdirAll(parent, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := atomicfile.SyncDir(parent); err != nil {
		return err
	}
	s.durable[dir] = true
	return nil
}

// forgetDir makes makeDir create a folder again that was removed while this process ran.
func (s *Store) forgetDir(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.durable, dir)
}

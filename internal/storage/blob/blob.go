// Package blob keeps large values as files named by the SHA-256 of their
// content: DIR/ab/cdef…, where ab are the first two of the 64 hexadecimal digits.
//
// A blob is written to DIR/tmp, flushed, renamed to its name and made durable by
// flushing the folders, so that a file that carries a hash as its name always
// holds the whole content, also after kill -9 or a power loss at any instant.
// What a crash leaves in DIR/tmp is removed by [Store.Sweep].
//
// Blobs never change. Who refers to them is not known here: a caller writes the
// blob first and the row that names it after, and removes a blob only when no row
// names it.
package blob

import (
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
	"sync"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Errors callers may tell apart. A blob that is not there is [fs.ErrNotExist],
// a full disk is syscall.ENOSPC.
var (
	// ErrBadHash is returned for a hash that is not 64 lower-case hexadecimal
	// digits.
	ErrBadHash = errors.New("not a sha-256 in lower-case hexadecimal")
	// ErrDamaged is returned by Verify when the content is not what the name
	// says.
	ErrDamaged = errors.New("content does not match its hash")
)

const tmpDir = "tmp"

// Ref names a blob.
type Ref struct {
	// Hash is the SHA-256 of the content, 64 lower-case hexadecimal digits.
	Hash string `json:"hash"`
	// Size is the number of bytes.
	Size int64 `json:"size"`
}

// Info is what [Store.Walk] tells of a blob.
type Info struct {
	Ref
	// ModTime is when the content was last put, also when it was there already.
	ModTime time.Time
}

// Config says where blobs are kept.
type Config struct {
	// Dir is the folder of the blobs, made at the first write. Required.
	Dir string
	// Logger is told of blobs that had to be mended. Defaults to none.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	if c.Dir == "" {
		return errors.New("blob config: Dir is empty")
	}
	return nil
}

// Store reads and writes the blobs of one folder. It is safe for concurrent use,
// by any number of processes on the same folder.
type Store struct {
	dir string
	log *slog.Logger

	mu sync.Mutex // guards durable
	// durable holds the folders whose own names this process knows to be on the
	// disk. That a folder exists does not say so: its maker may have been killed
	// before the flush.
	durable map[string]bool
}

// New returns the store of a folder. Nothing is read or made yet.
func New(cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("blob config: %w", err)
	}
	return &Store{dir: dir, log: cfg.Logger, durable: map[string]bool{}}, nil
}

// Put stores all that r holds and returns its name. When it returns without an
// error the blob is durable. Content that is there already is not stored again;
// its time is renewed, so that retention by age spares it. When r or the disk
// fails, or ctx ends, nothing is left behind.
func (s *Store) Put(ctx context.Context, r io.Reader) (Ref, error) {
	w, err := s.Create(ctx)
	if err != nil {
		return Ref{}, err
	}
	defer w.Discard()
	if _, err := io.CopyBuffer(onlyWriter{w}, onlyReader{r}, make([]byte, 256<<10)); err != nil {
		return Ref{}, fmt.Errorf("put blob: %w", err)
	}
	return w.Commit()
}

// onlyWriter and onlyReader hide ReadFrom and WriteTo, so that copies pass
// through Write, which hashes.
type (
	onlyWriter struct{ io.Writer }
	onlyReader struct{ io.Reader }
)

// path is the place of a blob.
func (s *Store) path(hash string) (string, error) {
	if !validHash(hash) {
		return "", fmt.Errorf("blob %q: %w", hash, ErrBadHash)
	}
	return filepath.Join(s.dir, hash[:2], hash[2:]), nil
}

func validHash(hash string) bool {
	if len(hash) != 2*sha256.Size {
		return false
	}
	return isLowerHex(hash)
}

func isLowerHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// File is an open blob. ReadAt may be called concurrently.
type File struct {
	file *os.File
	size int64
}

// ReadAt implements [io.ReaderAt].
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.file.ReadAt(p, off) }

// Size is the number of bytes of the blob.
func (f *File) Size() int64 { return f.size }

// Close ends the reading.
func (f *File) Close() error { return f.file.Close() }

// Open opens a blob for reading. The content is not verified; see [Store.Verify].
// The caller closes it. A blob removed meanwhile stays readable until then
// (except on Windows, where it cannot be removed).
func (s *Store) Open(hash string) (*File, error) {
	path, err := s.path(hash)
	if err != nil {
		return nil, err
	}
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
	return &File{file: f, size: info.Size()}, nil
}

// Stat tells whether a blob is there, and its size and time, without reading it.
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
		return fmt.Errorf("verify blob %q: %w: it hashes to %q", hash, ErrDamaged, got)
	}
	return nil
}

// Remove removes a blob; that it is not there is not an error. The removal is
// not flushed: after a power loss a removed blob may be there again, and is
// garbage again.
func (s *Store) Remove(hash string) error {
	path, err := s.path(hash)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove blob: %w", err)
	}
	return nil
}

// makeDir makes a folder of the store and its name durable, once per process.
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

// forgetDir is called when a folder turned out to be missing after all, because
// somebody removed it while this process ran.
func (s *Store) forgetDir(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.durable, dir)
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

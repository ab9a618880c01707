package handoff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
)

// Load reads a builder-state.json. To change it, see [Lock].
func Load(path string) (*Document, error) {
	data, _, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// readFile returns the content of a regular file within the limit.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	info, err := regular(path)
	if err != nil {
		return nil, nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, &Error{Op: "read", File: path, Err: pathless(err)}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, nil, &Error{Op: "read", File: path, Err: pathless(err)}
	}
	return data, info, nil
}

// regular returns the information of a regular file within the limit.
func regular(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case absent(err):
		return nil, &Error{Kind: ErrNotFound, Op: "read", File: path, Msg: "no such file",
			Hint: "create it with `perdure handoff start`, or name another file with --file"}
	case err != nil:
		return nil, &Error{Op: "read", File: path, Err: pathless(err)}
	case !info.Mode().IsRegular(): // opening a pipe would block
		return nil, &Error{Kind: ErrInvalid, Op: "read", File: path, Msg: "not a regular file"}
	case info.Size() > MaxSize:
		return nil, &Error{Kind: ErrLimit, Op: "read", File: path,
			Msg: fmt.Sprintf("it has %d bytes, the limit is %d", info.Size(), MaxSize)}
	}
	return info, nil
}

// pathless returns an error without its path, which the message has anyway.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// File is a locked builder-state.json, which other processes with the lock cannot change
// until Close. It is not safe for concurrent use.
type File struct {
	path string // with all links resolved
	info fs.FileInfo
	lock *lockFile
	doc  *Document
}

// Lock locks the file at path, following links, and reads it. It waits for the lock until
// ctx ends. The lock is a lock of the operating system on a file in the same folder, so
// it ends with its process. Editors do not use it; [File.Write] detects their changes. A
// read-only file is an error that matches [ErrReadOnly]. Other errors are those of
// [Load].
func Lock(ctx context.Context, path string) (*File, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		_, err := regular(path)
		if err == nil {
			err = &Error{Kind: ErrConflict, Op: "lock", File: path, Msg: "the file appears and disappears"}
		}
		return nil, err
	}
	info, err := regular(target)
	if err != nil {
		return nil, err
	}
	if err := writable(target, info); err != nil {
		return nil, err
	}
	lock, err := takeLock(ctx, target, info.Mode().Perm())
	if err != nil {
		return nil, err
	}
	f := &File{path: target, lock: lock}
	if err := f.read(); err != nil {
		return nil, errors.Join(err, lock.release())
	}
	removeLeftovers(target)
	return f, nil
}

func (f *File) read() error {
	data, info, err := readFile(f.path)
	if err != nil {
		return err
	}
	f.info = info
	f.doc, err = Parse(f.path, data)
	return err
}

// writable returns an error for a read-only file, also if it could be replaced.
func writable(path string, info fs.FileInfo) error {
	refused := &Error{Kind: ErrReadOnly, Op: "write", File: path, Msg: "the file is read-only",
		Hint: "make it writable with chmod u+w, or name another file with --file"}
	if info.Mode().Perm()&0o222 == 0 {
		return refused
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		refused.Err = pathless(err)
		return refused
	}
	return f.Close()
}

// removeLeftovers removes the temporary files of killed writers. The caller holds the
// lock, so no other process is writing one.
func removeLeftovers(path string) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // leftovers do no harm
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(path))
		if ok && number != "" && strings.Trim(number, "0123456789") == "" && e.Type().IsRegular() {
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}

// Path returns the path of the file with all links resolved.
func (f *File) Path() string { return f.path }

// Document returns the content.
func (f *File) Document() *Document { return f.doc }

// Sum returns the SHA-256 of the content in hexadecimal, as [File.Write] passes it to
// intended.
func (f *File) Sum() string { return sum(f.doc.data) }

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// Write replaces the content. Before that it calls intended, if it is not nil, with the
// SHA-256 of the new content, so that a caller that is killed recognizes its own write
// later; an error of intended stops the write. Readers see the old content or the new
// one, also after a crash. The file keeps its permissions, and its owner if the system
// allows that.
//
// If a process without the lock changed the file since it was read, the file is not
// changed and the error matches [ErrConflict]: close it, lock it again and adopt the
// changes.
func (f *File) Write(doc *Document, intended func(sum string) error) error {
	if intended != nil {
		if err := intended(sum(doc.data)); err != nil {
			return err
		}
	}
	if bytes.Equal(doc.data, f.doc.data) {
		return nil
	}
	failpoint.Hit("handoff.before_write")
	err := atomicfile.Write(f.path, f.info.Mode().Perm(), func(w io.Writer) error {
		if _, err := w.Write(doc.data); err != nil {
			return err
		}
		keepOwner(w, f.info)
		failpoint.Hit("handoff.before_rename")
		return f.unchanged()
	})
	if err != nil {
		if own, ok := errors.AsType[*Error](err); ok {
			return own
		}
		e := &Error{Op: "write", File: f.path, Err: pathless(err)}
		if errors.Is(err, fs.ErrPermission) {
			e.Kind = ErrReadOnly
		}
		return e
	}
	failpoint.Hit("handoff.after_rename")
	f.doc = doc
	return nil
}

// unchanged returns an error if the file has changed since it was read.
func (f *File) unchanged() error {
	data, _, err := readFile(f.path)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, f.doc.data) {
		return &Error{Kind: ErrConflict, Op: "write", File: f.path, Msg: "another process changed the file",
			Hint: "read it again; nothing was overwritten"}
	}
	return nil
}

// Close releases the lock.
func (f *File) Close() error { return f.lock.release() }

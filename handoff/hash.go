package handoff

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// FileEntry is the recorded state of a touched file.
type FileEntry struct {
	// Path is relative to the folder of the work, with slashes.
	Path string `json:"path"`
	// Exists reports whether the file existed; otherwise the other fields are empty.
	Exists bool `json:"exists"`
	// Size is in bytes.
	Size    int64     `json:"size,omitempty"`
	ModTime time.Time `json:"modTime,omitzero"`
	// Hash is the SHA-256 of the content in hexadecimal, or at least its first
	// 12 digits; empty if it is not known.
	Hash string `json:"hash,omitempty"`
	// Stamp is metadata of the file system that changes with the content, so that a file
	// with the same stamp need not be read. It is empty if it is not reliable.
	Stamp string `json:"stamp,omitempty"`
}

const (
	hashDigits = 12 // the length of a shortened hash
	absentMark = "absent"
)

// mark returns the entry as in a checkpoint, "" if nothing is known.
func (f FileEntry) mark() string {
	switch {
	case f.Path == "":
		return ""
	case !f.Exists:
		return absentMark
	case !wellFormed(f.Hash):
		return ""
	}
	return f.Hash[:hashDigits]
}

// wellFormed reports whether a hash is valid and long enough to compare.
func wellFormed(hash string) bool {
	return len(hash) >= hashDigits && len(hash) <= hex.EncodedLen(sha256.Size) &&
		strings.Trim(hash, "0123456789abcdef") == ""
}

// Record returns the current entry of a file. The path is relative to root, with
// slashes, and cannot lead out of it, also not through links. A missing file has an
// entry, too; a file that is not regular is an error.
func Record(ctx context.Context, root, path string) (FileEntry, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return FileEntry{}, &Error{Kind: ErrNotFound, Op: "record file", File: path, Err: err}
	}
	defer dir.Close()
	entry, err := record(ctx, dir, path)
	if err != nil {
		return FileEntry{}, &Error{Op: "record file", File: path, Err: err}
	}
	return entry, nil
}

func record(ctx context.Context, dir *os.Root, path string) (FileEntry, error) {
	const tries = 3
	for range tries {
		entry, settled, err := recordOnce(ctx, dir, path)
		if err != nil || settled {
			return entry, err
		}
	}
	return FileEntry{}, errors.New("the file changes while it is read")
}

// recordOnce reads a file and reports whether it did not change meanwhile.
func recordOnce(ctx context.Context, dir *os.Root, path string) (entry FileEntry, settled bool, err error) {
	name := filepath.FromSlash(path)
	info, err := dir.Stat(name)
	if absent(err) {
		return FileEntry{Path: path}, true, nil
	}
	if err != nil {
		return FileEntry{}, false, err
	}
	if !info.Mode().IsRegular() {
		return FileEntry{}, false, errors.New("not a regular file") // opening a pipe would block
	}
	f, err := dir.Open(name)
	if absent(err) {
		return FileEntry{Path: path}, true, nil
	}
	if err != nil {
		return FileEntry{}, false, err
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return FileEntry{}, false, err
	}
	started := time.Now()
	h := sha256.New()
	if _, err := io.Copy(h, &untilDone{ctx, f}); err != nil {
		return FileEntry{}, false, err
	}
	after, err := f.Stat()
	if err != nil {
		return FileEntry{}, false, err
	}
	entry = FileEntry{Path: path, Exists: true, Size: after.Size(), ModTime: after.ModTime().UTC(),
		Hash: hex.EncodeToString(h.Sum(nil)), Stamp: settledStamp(before, started)}
	return entry, stampOf(before) == stampOf(after) && before.Size() == after.Size() &&
		before.ModTime().Equal(after.ModTime()), nil
}

// absent reports whether an error means that the file does not exist, also because its
// folder is a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || notDirectory(err)
}

// untilDone is a reader that fails after ctx has ended.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless the context has ended.
func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// settledStamp returns the stamp of a file if every later change gives another one. That
// is not so for a file that changed just before it was read, because it could change
// again within the same tick of the file system's clock, nor on a file system with
// whole seconds (times without a fraction) or with a clock that is ahead.
func settledStamp(info fs.FileInfo, read time.Time) string {
	const tick = 2 * time.Second
	changed, ok := changeTime(info)
	if !ok || read.Sub(changed) < tick || read.Sub(info.ModTime()) < tick ||
		changed.Nanosecond() == 0 || info.ModTime().Nanosecond() == 0 {
		return ""
	}
	return stampOf(info)
}

// Digest returns the SHA-256 in hexadecimal of the paths and contents of files, in any
// order.
func Digest(files []FileEntry) string {
	lines := make([]string, 0, len(files))
	var line []byte
	for _, f := range files {
		state := f.Hash
		if !f.Exists {
			state = absentMark
		}
		line = append(strconv.AppendQuote(line[:0], f.Path), " "+state+"\n"...)
		lines = append(lines, string(line))
	}
	slices.Sort(lines)
	h := sha256.New()
	for _, next := range lines {
		line = append(line[:0], next...)
		_, _ = h.Write(line) // it never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

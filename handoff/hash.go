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

// FileEntry is a touched file as it was at one moment.
type FileEntry struct {
	// Path is relative to the folder of the work, with slashes.
	Path string `json:"path"`
	// Exists tells whether a file was there; the rest is empty when not.
	Exists bool `json:"exists"`
	// Size is in bytes.
	Size    int64     `json:"size,omitempty"`
	ModTime time.Time `json:"modTime,omitzero"`
	// Hash is the SHA-256 of the content in hexadecimal, or at least its first
	// 12 digits; empty when it is not known.
	Hash string `json:"hash,omitempty"`
	// Stamp is what the file system says of the file that changes with every
	// change of its content, so that equal stamps spare reading it. It is empty
	// where that cannot be relied on.
	Stamp string `json:"stamp,omitempty"`
}

// Lengths of hashes that were cut, in hexadecimal digits.
const (
	hashDigits = 12
	absentMark = "absent"
)

// mark is the entry as checkpoints have it; "" when nothing is known.
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

// wellFormed tells whether a hash says enough to judge by.
func wellFormed(hash string) bool {
	if len(hash) < hashDigits || len(hash) > hex.EncodedLen(sha256.Size) {
		return false
	}
	return strings.Trim(hash, "0123456789abcdef") == ""
}

// Record returns the entry of a file as it is now. The path is relative to root,
// with slashes, and may not lead out of it, links included. A missing file is
// an entry too; what is no regular file is an error.
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

// errMoving is a file that changes as fast as it is read.
var errMoving = errors.New("it keeps changing")

func record(ctx context.Context, dir *os.Root, path string) (FileEntry, error) {
	const tries = 3
	for range tries {
		entry, settled, err := recordOnce(ctx, dir, path)
		if err != nil || settled {
			return entry, err
		}
	}
	return FileEntry{}, errMoving
}

// recordOnce reads a file and tells whether it stayed the same meanwhile.
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
		return FileEntry{}, false, errors.New("it is not a regular file") // opening a pipe would wait for ever
	}
	f, err := dir.Open(name)
	if err != nil {
		return FileEntry{}, absent(err), ignoreAbsent(err)
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

// absent tells whether an error means that there is no such file, also because
// what would be its folder is a file.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || notDirectory(err)
}

func ignoreAbsent(err error) error {
	if absent(err) {
		return nil
	}
	return err
}

// untilDone ends a long read when ctx does.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

// Read reads on unless the context has ended.
func (u *untilDone) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(b)
}

// settledStamp returns the stamp of a file if it can be relied on: a change
// after this moment gives another one. A file that changed just before it was
// read could change again within the same tick of the file system's clock, and
// a file system that counts whole seconds, as times without a fraction show, or
// whose clock is ahead, is not trusted at all.
func settledStamp(info fs.FileInfo, read time.Time) string {
	const tick = 2 * time.Second
	changed, ok := changeTime(info)
	if !ok || read.Sub(changed) < tick || read.Sub(info.ModTime()) < tick {
		return ""
	}
	if changed.Nanosecond() == 0 || info.ModTime().Nanosecond() == 0 {
		return ""
	}
	return stampOf(info)
}

// Digest returns the SHA-256 in hexadecimal over the paths and the contents of
// a set of files; their order does not matter.
func Digest(files []FileEntry) string {
	lines := make([]string, 0, len(files))
	for _, f := range files {
		state := f.Hash
		if !f.Exists {
			state = absentMark
		}
		lines = append(lines, strconv.Quote(f.Path)+" "+state+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

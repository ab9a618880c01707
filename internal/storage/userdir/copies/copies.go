// Package copies keeps the files of a store a second time, in the user's state folder, so that
// they survive the removal of the store's folder from a workspace.
package copies

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir"
)

// Root returns the folder of all copies of a user: perdure/copies in the user's state folder. It
// returns "" if there is none.
func Root(getenv func(string) string) string {
	dir := userdir.State(getenv)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "copies")
}

// Folder returns the folder below root for the copy of the folder dir of a store; "" without a root.
func Folder(root, dir string) string {
	if root == "" || dir == "" {
		return ""
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	// The folder may be missing: only what is above it is resolved.
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(parent, filepath.Base(dir))
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(root, hex.EncodeToString(sum[:16]))
}

// Loops returns the folder below root for copies of a folder of loops, which is in the folder of a
// store; "" without a root.
func Loops(root, dir string) string {
	if root == "" {
		return ""
	}
	return filepath.Join(Folder(root, filepath.Dir(dir)), FilesName, filepath.Base(dir))
}

// Class is how a file is copied.
type Class int

// The classes.
const (
	// Skip: the file is not copied, the folder not read.
	Skip Class = iota
	// Changing: the file is copied if its size or its time differ.
	Changing
	// Immutable: the content of a name never changes. The file is linked where the file system
	// allows it, else copied once.
	Immutable
	// Bulky is Immutable, but a file above MaxCopied is only linked.
	Bulky
	// missing: the file is copied unless there is one.
	missing
)

// MaxCopied is the size in bytes up to which bulky files are copied to another file system.
const MaxCopied = 64 << 20

// Fill copies the files below the folder from that are missing or different below the folder to. It
// removes nothing. class is called with the slash-separated path of each file and folder. A file that
// is removed meanwhile is no error. When Fill returns nil, the files are durable.
func Fill(from, to string, class func(rel string, folder bool) Class) error {
	f := &fill{from: from, to: to, class: class}
	return f.folder(".")
}

type fill struct {
	from, to string
	class    func(rel string, folder bool) Class
}

func (f *fill) folder(rel string) error {
	list, err := os.ReadDir(filepath.Join(f.from, filepath.FromSlash(rel)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	target := filepath.Join(f.to, filepath.FromSlash(rel))
	there := map[string]bool{}
	old, err := os.ReadDir(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range old {
		there[e.Name()] = true
	}
	missing := err != nil
	changed := false
	for _, e := range list {
		sub := path.Join(rel, e.Name())
		how := f.class(sub, e.IsDir())
		if how == Skip || !e.IsDir() && (!e.Type().IsRegular() || how != Changing && there[e.Name()]) ||
			strings.HasPrefix(e.Name(), pendingPrefix) {
			continue
		}
		if missing {
			if err := atomicfile.MkdirAll(target, 0o700); err != nil {
				return err
			}
			missing = false
		}
		if e.IsDir() {
			err = f.folder(sub)
		} else {
			err = f.file(sub, how, &changed)
		}
		if err != nil {
			return err
		}
	}
	if changed {
		return atomicfile.SyncDir(target)
	}
	return nil
}

func (f *fill) file(rel string, how Class, changed *bool) error {
	from, to := filepath.Join(f.from, filepath.FromSlash(rel)), filepath.Join(f.to, filepath.FromSlash(rel))
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if how == Changing {
		old, err := os.Lstat(to)
		if err == nil && old.Size() == info.Size() && old.ModTime().Equal(info.ModTime()) {
			return nil
		}
	}
	*changed = true
	if how != Changing && how != missing && os.Link(from, to) == nil {
		failpoint.Hit("copies.linked")
		return nil
	}
	if how == Bulky && info.Size() > MaxCopied {
		return nil
	}
	err = copyFile(from, to, info)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := os.Lstat(from); gone != nil {
			return nil
		}
	}
	return err
}

// tempName is the name of folders for temporary files of loops.
const tempName = "tmp"

// PutBack puts the files and the database of a copy into the folder of a store, which exists. Files that
// are there stay, except the database: that of another store is renamed.
func PutBack(folder, dir string) error {
	err := Fill(filepath.Join(folder, FilesName), dir, func(rel string, isFolder bool) Class {
		if path.Base(rel) == tempName {
			return Skip
		}
		if isFolder || strings.HasPrefix(rel, "blobs/") || strings.Contains(rel, "/snapshots/") {
			return Immutable
		}
		return missing
	})
	if err != nil {
		return err
	}
	failpoint.Hit("copies.files_put_back")
	database := filepath.Join(dir, DatabaseName)
	replaced := ""
	if info, err := os.Stat(database); err == nil && info.Size() > 0 {
		replaced = "replaced-" + time.Now().UTC().Format("20060102T150405.000") + "-"
	}
	for _, suffix := range []string{"", "-wal", "-shm"} { // a log must not be applied to another database
		if replaced == "" {
			err = os.Remove(database + suffix)
		} else {
			err = os.Rename(database+suffix, filepath.Join(dir, replaced+DatabaseName+suffix))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		failpoint.Hit("copies.replaced")
	}
	return CopyFile(filepath.Join(folder, DatabaseName), database)
}

// CopyFile replaces the file to by the content of the file from, durably.
func CopyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := copyFile(from, to, info); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(to))
}

// pendingPrefix begins the names of files that are not complete.
const pendingPrefix = ".pending-"

func copyFile(from, to string, info fs.FileInfo) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	temp, err := os.CreateTemp(filepath.Dir(to), pendingPrefix)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name()) // the first error is the cause
		}
	}()
	_, err = io.Copy(temp, in)
	if err == nil {
		err = temp.Chmod(info.Mode().Perm())
	}
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Chtimes(temp.Name(), info.ModTime(), info.ModTime()); err != nil {
		return err
	}
	failpoint.Hit("copies.copied")
	return os.Rename(temp.Name(), to)
}

// Size returns the bytes of the files below a folder, without those that are also linked elsewhere.
func Size(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be read is not counted
		}
		if info, err := e.Info(); err == nil && links(info) < 2 {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

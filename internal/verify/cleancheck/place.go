package cleancheck

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/storage/filelock"
)

// Place is a copy in which commands are run.
type Place struct {
	// Root is the folder of the copy, with the name of the workspace; Scratch is a folder
	// for results next to it.
	Root, Scratch string
	// Env is the environment of commands, with the workspace's path replaced by Root.
	Env []string
	// Sandbox is the sandbox of commands; nil if they run without.
	Sandbox *sandbox.Config
	// Hold is kept open until a command, and all processes that it started, have ended.
	Hold *os.File

	dir string
}

const (
	// placePrefix begins the names of the folders of copies.
	placePrefix = "perdure-sealed-"
	lockName    = "lock"
	scratchName = "results"
)

// newPlace creates the folder of a copy and locks it. An unlocked folder was left by a
// process that died.
func newPlace(temp, root string) (*Place, error) {
	temp, err := filepath.EvalSymlinks(temp) // macOS's is a link
	if err != nil {
		return nil, err
	}
	sweep(temp)
	const tries = 3
	for range tries {
		p, err := lockedPlace(temp, root)
		if err == nil || !errors.Is(err, errSwept) {
			return p, err
		}
	}
	return nil, errSwept
}

// errSwept is returned if another process removed the folder as unused.
var errSwept = errors.New("another process removed the folder of the copy")

func lockedPlace(temp, root string) (*Place, error) {
	dir, err := os.MkdirTemp(temp, placePrefix)
	if err != nil {
		return nil, err
	}
	p := &Place{dir: dir, Root: filepath.Join(dir, "copy", filepath.Base(root)), Scratch: filepath.Join(dir, scratchName)}
	p.Hold, err = os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = filelock.TryLock(p.Hold)
	}
	if err == nil { // another process may have removed it before it was locked
		_, err = os.Lstat(p.Hold.Name())
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, filelock.ErrLocked) {
		return nil, errors.Join(errSwept, p.Close())
	}
	if err == nil {
		err = errors.Join(os.MkdirAll(p.Root, 0o700), os.MkdirAll(p.Scratch, 0o700))
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// WithNetwork returns the sandbox of commands that need the network.
func (p *Place) WithNetwork() *sandbox.Config {
	if p.Sandbox == nil {
		return nil
	}
	with := *p.Sandbox
	with.Network = true
	return &with
}

// Close removes the copy.
func (p *Place) Close() error {
	err := removeAll(p.dir)
	if p.Hold != nil {
		err = errors.Join(err, p.Hold.Close())
	}
	return err
}

// removeAll removes a folder, also with read-only folders in it.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(name, 0o700) //nolint:gosec // a folder, for its owner only
		}
		if err != nil {
			return fs.SkipDir
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// sweep removes copies left by processes that died. Copies of other users, and those that
// cannot be removed, stay.
func sweep(temp string) {
	left, err := filepath.Glob(filepath.Join(temp, placePrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range left {
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			continue
		}
		lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
		if err != nil {
			continue // one that is being created, or another user's
		}
		if filelock.TryLock(lock) == nil {
			_ = removeAll(dir)
		}
		_ = lock.Close()
	}
}

// elsewhere returns an environment with a folder's path replaced. Paths that only begin
// with the same characters stay.
func elsewhere(env []string, from, to string) []string {
	moved := make([]string, 0, len(env))
	for _, v := range env {
		name, value, ok := strings.Cut(v, "=")
		if ok {
			v = name + "=" + string(replacePath([]byte(value), from, to))
		}
		moved = append(moved, v)
	}
	return moved
}

// replacePath replaces a folder's path in a text.
func replacePath(text []byte, from, to string) []byte {
	var b strings.Builder
	rest := string(text)
	for {
		i := strings.Index(rest, from)
		if i < 0 {
			b.WriteString(rest)
			return []byte(b.String())
		}
		end := i + len(from)
		b.WriteString(rest[:i])
		if end == len(rest) || strings.IndexByte("/:;\"' \t\r\n,)", rest[end]) >= 0 {
			b.WriteString(to)
		} else {
			b.WriteString(from)
		}
		rest = rest[end:]
	}
}

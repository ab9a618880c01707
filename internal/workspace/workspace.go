package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/filelock"
)

// Config names the files, and where their snapshots are stored.
type Config struct {
	// Root is the folder of the workspace. Required; Open resolves links in its path once.
	Root string
	// Dir is the folder for the snapshots, created if missing. Required. Inside of Root, it
	// is not part of the workspace.
	Dir string
	// Copy, when set, is a folder outside of Root, on any file system, that gets the same files as
	// Dir. If some of Dir were removed, they are put back from there.
	Copy string
	// CopyFailed, when set, is called with the error of a snapshot that could not be stored in Copy;
	// it is stored in Dir.
	CopyFailed func(error)
	// Home is a folder that is refused as a workspace, as are those above it. Zero: the
	// user's home folder.
	Home string
	// Git is the git program. Zero: "git".
	Git string
	// MaxFileSize is the size in bytes above which a file is left out. Zero: [DefaultMaxFileSize].
	MaxFileSize int64
	// MaxFiles limits the files, folders and links of a snapshot. Zero: 1,000,000.
	MaxFiles int
	// MaxBytes limits the disk space of the contents of all snapshots. Zero: 20 GiB.
	MaxBytes int64
	// Grace is the time for which Sweep keeps every new snapshot. Zero: one hour; negative:
	// none.
	Grace time.Duration
	// Logger receives problems that were recovered from. Nil: no log.
	Logger *slog.Logger

	now func() time.Time // for tests
}

func (c Config) withDefaults() Config {
	if c.Home == "" {
		c.Home, _ = os.UserHomeDir() // without one there is none to refuse
	}
	c.Git = cmp.Or(c.Git, "git")
	c.MaxFileSize = cmp.Or(c.MaxFileSize, DefaultMaxFileSize)
	c.MaxFiles = cmp.Or(c.MaxFiles, 1_000_000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 20<<30)
	c.Grace = cmp.Or(c.Grace, time.Hour)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	return c
}

func (c Config) validate() error {
	var all []error
	if c.Root == "" {
		all = append(all, errors.New("root is empty"))
	}
	if c.Dir == "" {
		all = append(all, errors.New("dir is empty"))
	}
	for name, n := range map[string]int64{"max file size": c.MaxFileSize, "max files": int64(c.MaxFiles),
		"max bytes": c.MaxBytes} {
		if n < 0 {
			all = append(all, fmt.Errorf("%s %d is negative", name, n))
		}
	}
	return errors.Join(all...)
}

// Names in the folder of the snapshots.
const (
	lockName      = "lock"
	cacheName     = "cache"
	packsName     = "packs"
	manifestsName = "manifests"
)

// Workspace is a folder with its snapshots. It is safe for concurrent use, also by several
// processes: writers wait for each other. No file is kept open between calls.
type Workspace struct {
	cfg   Config
	store string // the folder of the snapshots as a path of the workspace; "" if it is outside

	turn chan struct{} // has one token, which guards the fields below
	// known is the stat cache, nil before its first use.
	known    map[string]cached
	unsaved  int // entries of known that are not in its file
	contents *contents
	recent   recent

	outside Outside
}

// Outside are paths that are handled as if git ignored them, because a tool writes them again.
type Outside interface {
	// Has reports whether a path, whose folder is not outside, is one of them.
	Has(path string, folder bool) bool
	// Gave reports whether a path was one of them, and is none any more.
	Gave(path string) bool
}

// Exclude leaves paths out of the snapshots that are taken from now on: those, and restores,
// do not change them. Call it before other methods.
func (w *Workspace) Exclude(paths Outside) { w.outside = paths }

// isOutside reports whether a path is one of those of Exclude.
func (w *Workspace) isOutside(path string, folder bool) bool {
	return w.outside != nil && w.outside.Has(path, folder)
}

// Open checks that the folder can be a workspace and creates the folder of the snapshots.
// The error of a refused folder matches ErrRefused, that of a missing one ErrGone; both have
// a hint.
func Open(cfg Config) (*Workspace, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, &Error{Op: "open workspace", Err: err}
	}
	root, err := resolveRoot(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Root = root
	for _, dir := range []string{packsName, manifestsName} {
		if err := atomicfile.MkdirAll(filepath.Join(cfg.Dir, dir), 0o700); err != nil {
			return nil, Wrap("open workspace", root, err)
		}
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, Wrap("open workspace", root, err)
	}
	cfg.Dir = dir
	w := &Workspace{cfg: cfg, turn: make(chan struct{}, 1)}
	if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
		w.store = filepath.ToSlash(rel)
	}
	if w.store == "." {
		return nil, &Error{Kind: ErrRefused, Op: "open workspace", Name: root,
			Msg:  "the folder of the snapshots is the workspace",
			Hint: "use another folder for the snapshots"}
	}
	w.contents = &contents{dir: filepath.Join(dir, packsName), log: cfg.Logger}
	w.turn <- struct{}{}
	return w, nil
}

// Check returns the error of Open for a folder that cannot be a workspace, and creates
// nothing.
func Check(root string) error {
	_, err := resolveRoot(Config{Root: root}.withDefaults())
	return err
}

// resolveRoot returns the real path of the workspace unless it is refused.
func resolveRoot(cfg Config) (string, error) {
	root, err := filepath.Abs(cfg.Root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", gone("open workspace", cfg.Root)
	}
	if err != nil {
		return "", Wrap("open workspace", cfg.Root, err)
	}
	why, hint := refusal(root, cfg.Home)
	if why == "" {
		return root, nil
	}
	return "", &Error{Kind: ErrRefused, Op: "open workspace", Name: root, Msg: why, Hint: hint}
}

// refusal returns why a folder cannot be a workspace, with a hint; "" if it can.
func refusal(root, home string) (why, hint string) {
	const project = "name the folder of a project with --workspace"
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return "it is not a folder", project
	}
	if filepath.Dir(root) == root {
		return "it is the root of the file system", project
	}
	if actual, err := filepath.EvalSymlinks(home); home != "" && err == nil {
		rel, err := filepath.Rel(root, actual)
		if err == nil && filepath.IsLocal(rel) {
			return "it is or contains the home folder", project
		}
	}
	for part := range strings.SplitSeq(filepath.ToSlash(root), "/") {
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, ".perdure") {
			return fmt.Sprintf("it is inside of a %s folder", part), project
		}
	}
	if bareRepository(root) {
		return "it is a bare repository, which has no files", "clone it and name the clone with --workspace"
	}
	return "", ""
}

func bareRepository(root string) bool {
	if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
		return false
	}
	for name, folder := range map[string]bool{"HEAD": false, "objects": true, "refs": true} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.IsDir() != folder {
			return false
		}
	}
	return true
}

func gone(op, root string) error {
	return &Error{Kind: ErrGone, Op: op, Name: root,
		Hint: "correct the path or create the folder; snapshots stored outside of it can be restored into it"}
}

// Root returns the real path of the workspace.
func (w *Workspace) Root() string { return w.cfg.Root }

// openRoot opens the workspace; accesses through it do not leave it. If the folder, or one
// above it, was replaced by a link, that is an error.
func (w *Workspace) openRoot(op string) (*os.Root, error) {
	root, err := os.OpenRoot(w.cfg.Root)
	if errors.Is(err, fs.ErrNotExist) || notDirectory(err) {
		return nil, gone(op, w.cfg.Root)
	}
	if err != nil {
		return nil, err
	}
	opened, err := root.Stat(".")
	if err == nil {
		var named fs.FileInfo
		named, err = os.Lstat(w.cfg.Root)
		actual, actualErr := filepath.EvalSymlinks(w.cfg.Root)
		if err == nil && actualErr == nil && os.SameFile(opened, named) && actual == w.cfg.Root {
			return root, nil
		}
	}
	_ = root.Close()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return nil, &Error{Kind: ErrRefused, Op: op, Name: w.cfg.Root, Msg: "it was replaced by a link",
		Hint: "move the folder back to its place"}
}

// exclusive runs do while no other caller or process writes snapshots here, after it read
// the list of packs and removed pending ones of crashed processes.
func (w *Workspace) exclusive(ctx context.Context, do func() error) error {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.turn <- struct{}{} }()
	if err := w.putBack(); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(w.cfg.Dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return w.storeGone(err)
	}
	defer lock.Close()
	if err := waitLock(ctx, lock); err != nil {
		return err
	}
	// Closing does not suffice: a child process that is being started may have inherited the
	// descriptor.
	defer func() { _ = filelock.Unlock(lock) }()
	if err := w.contents.clean(); err != nil {
		return w.storeGone(err)
	}
	if err := w.contents.refresh(); err != nil {
		return w.storeGone(err)
	}
	if w.known == nil {
		w.known = w.loadCache()
	}
	return do()
}

// storeGone returns ErrGone for an error that is due to a removed folder of the snapshots.
func (w *Workspace) storeGone(err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !notDirectory(err) {
		return err
	}
	return &Error{Kind: ErrGone, Op: "open snapshots", Name: w.cfg.Dir, Msg: "the folder of the snapshots was removed",
		Hint: "find the program that removed it; its snapshots are lost"}
}

func waitLock(ctx context.Context, lock *os.File) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := filelock.TryLock(lock)
		if !errors.Is(err, filelock.ErrLocked) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

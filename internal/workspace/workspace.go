package workspace

import (
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

// Config says which files, and where their snapshots are kept.
type Config struct {
	// Root is the folder of the workspace. Required; links on the way to it
	// are followed once, by Open.
	Root string
	// Dir is the folder for the snapshots, made when missing. Required. It may
	// be inside of Root, and is then no part of it.
	Dir string
	// Home is the folder that is refused as a workspace, with those above it.
	// Zero: the user's home folder.
	Home string
	// Git is the program that is asked what is ignored. Zero: "git".
	Git string
	// MaxFileSize is the size in bytes above which a file is left out. Zero:
	// 256 MiB.
	MaxFileSize int64
	// MaxFiles is how many files, folders and links a snapshot may have. Zero:
	// 1,000,000.
	MaxFiles int
	// MaxBytes is how much the contents of all snapshots may take on disk.
	// Zero: 20 GiB.
	MaxBytes int64
	// Grace is how long after it was taken Sweep keeps a snapshot that it was
	// not told of. Zero: one hour; negative: not at all.
	Grace time.Duration
	// Logger hears of what went wrong and was recovered from. Nil: nothing is
	// logged.
	Logger *slog.Logger

	now func() time.Time // for tests
}

func (c Config) withDefaults() Config {
	if c.Home == "" {
		c.Home, _ = os.UserHomeDir() // without one there is nothing to refuse
	}
	if c.Git == "" {
		c.Git = "git"
	}
	if c.MaxFileSize == 0 {
		c.MaxFileSize = 256 << 20
	}
	if c.MaxFiles == 0 {
		c.MaxFiles = 1_000_000
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 20 << 30
	}
	if c.Grace == 0 {
		c.Grace = time.Hour
	}
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
	if c.MaxFileSize < 0 {
		all = append(all, fmt.Errorf("max file size %d is negative", c.MaxFileSize))
	}
	if c.MaxFiles < 0 {
		all = append(all, fmt.Errorf("max files %d is negative", c.MaxFiles))
	}
	if c.MaxBytes < 0 {
		all = append(all, fmt.Errorf("max bytes %d is negative", c.MaxBytes))
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

// Workspace is a folder whose snapshots are taken. It is safe for concurrent
// use, also by several processes: what writes waits for its turn. Nothing is
// held open between calls.
type Workspace struct {
	cfg   Config
	store string // the folder of the snapshots as a path of the workspace; "" when it is outside

	turn chan struct{} // holds one token; whoever took it may use what follows
	// known is the stat cache, nil before it was first needed.
	known    map[string]cached
	unsaved  int // entries of known that its file has not
	contents *contents
	recent   recent
}

// Open checks that the folder can be a workspace and makes the folder of the
// snapshots. A folder that is refused is an error that matches ErrRefused, one
// that is missing ErrGone; both carry a hint.
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
			return nil, wrap("open workspace", root, err)
		}
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, wrap("open workspace", root, err)
	}
	cfg.Dir = dir
	w := &Workspace{cfg: cfg, turn: make(chan struct{}, 1)}
	if rel, err := filepath.Rel(root, dir); err == nil && filepath.IsLocal(rel) {
		w.store = filepath.ToSlash(rel)
	}
	if w.store == "." {
		return nil, &Error{Kind: ErrRefused, Op: "open workspace", Name: root, Msg: "snapshots would be kept among the files",
			Hint: "keep them in a folder of their own"}
	}
	w.contents = &contents{dir: filepath.Join(dir, packsName), log: cfg.Logger}
	w.turn <- struct{}{}
	return w, nil
}

// Check tells whether a folder can be a workspace, as Open does, without making
// anything.
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
		return "", wrap("open workspace", cfg.Root, err)
	}
	why, hint := refusal(root, cfg.Home)
	if why == "" {
		return root, nil
	}
	return "", &Error{Kind: ErrRefused, Op: "open workspace", Name: root, Msg: why, Hint: hint}
}

// refusal tells why a folder is no workspace; "" when it is one.
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
			return "it is or holds the home folder", project
		}
	}
	for part := range strings.SplitSeq(filepath.ToSlash(root), "/") {
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, ".perdure") {
			return fmt.Sprintf("it is inside of a %s folder", part), project
		}
	}
	if bareRepository(root) {
		return "it is a bare repository, which has no files to work on", "clone it and name the clone with --workspace"
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
		Hint: "make the folder again; a snapshot that is kept outside of it can be restored into it"}
}

// Root returns the real path of the workspace.
func (w *Workspace) Root() string { return w.cfg.Root }

// openRoot opens the workspace; accesses through it do not leave it. A link that
// took the place of the folder, or of one above it, is not followed.
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
	return nil, &Error{Kind: ErrRefused, Op: op, Name: w.cfg.Root, Msg: "a link has taken its place",
		Hint: "look for who moved the folder, and put it back"}
}

// exclusive runs do while nobody else writes snapshots here, with the packs
// known and the leftovers of crashes removed.
func (w *Workspace) exclusive(ctx context.Context, do func() error) error {
	select {
	case <-w.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { w.turn <- struct{}{} }()
	lock, err := os.OpenFile(filepath.Join(w.cfg.Dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return w.storeGone(err)
	}
	defer lock.Close()
	if err := waitLock(ctx, lock); err != nil {
		return err
	}
	// Not left to the close: a child process that is being started may have
	// inherited the descriptor for a moment.
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

// storeGone says so if an error comes of a folder of the snapshots that went.
func (w *Workspace) storeGone(err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !notDirectory(err) {
		return err
	}
	return &Error{Kind: ErrGone, Op: "open snapshots", Name: w.cfg.Dir, Msg: "the folder of the snapshots was removed",
		Hint: "look for who removed it; the snapshots in it are lost"}
}

func waitLock(ctx context.Context, lock *os.File) error {
	const often = 20 * time.Millisecond
	tick := time.NewTicker(often)
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

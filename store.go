package perdure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/blob"
	"github.com/perdure/perdure/internal/storage/compress"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Config configures a store.
type Config struct {
	// Dir is the .perdure folder; it is created if missing. It has the
	// SQLite database, the blobs, and the lock files of sessions.
	Dir string
	// DSN, when set, is a PostgreSQL address (postgres://…) to use instead of
	// the SQLite database in Dir; Dir may then be empty.
	DSN string
	// PollInterval is how often the store checks for changes by other processes.
	// Defaults to 100 ms.
	PollInterval time.Duration
	// BusyTimeout bounds how long a write waits for other processes.
	// Defaults to 30 s.
	BusyTimeout time.Duration
	// LeaseTTL is the time after which a session that does not renew its row is
	// dead (PostgreSQL only). Defaults to 30 s.
	LeaseTTL time.Duration
	// Placement describes this process to trees that require a host, a workspace or
	// tags: its sessions claim only tasks of trees whose placement it satisfies. The
	// zero value claims tasks of trees that require neither host nor tags.
	Placement Placement
	// Heads, when set, is a folder outside of Dir and of all workspaces. The heads of the
	// hash chains of events are recorded there, so that [Store.VerifyLog] finds out when
	// the log was rewritten, or an earlier copy of the database was restored.
	Heads string
	// Copies, when set, is a folder outside of Dir and of all workspaces. While a process works for
	// programs that may remove Dir, a copy of the store is kept there, see [Store.KeepCopy]. Open
	// refuses to replace a store that such a process is about to put back.
	Copies string
	// ReadOnly opens an existing SQLite store that this process cannot write: the folder or its
	// file system is read-only. It is read as it is, and writes fail.
	ReadOnly bool
	// Creating, when set, is called if Open creates the database in Dir: its file exists and
	// nothing is stored in it yet.
	Creating func()
	// Replaced, when set, is called after the store was put back from its copy: its database is another
	// file now.
	Replaced func()
	// Logger receives warnings about work in the background; nil discards them.
	Logger *slog.Logger
}

// Store is an open store. Any number of processes may have one open at once,
// and any number of goroutines may use it.
type Store struct {
	cfg   Config
	db    *sqldb.DB
	blobs *blob.Store // nil where the database holds the blobs
	codec *compress.Codec
	w     *writer
	heads *recorder // nil without Config.Heads
	log   *slog.Logger

	keeper   *keeper // nil without Config.Copies
	removed  chan struct{}
	removing sync.Once // closes removed

	changed signal
	ready   signal
	freed   signal // reservations of calls were given back

	recent   recent
	known    readyTrees
	accesses accesses
	polled   atomic.Int64 // when a claim last read all trees, in microseconds since opened
	opened   time.Time
	treeID   func() TreeID

	mu       sync.Mutex // guards the fields below
	sessions map[int64]*Session
	trees    map[int64]Tree // for claims; only fields that never change are valid

	base       context.Context // of the store's own goroutines; it ends with Close only
	background context.Context // base until Close
	stop       context.CancelFunc
	wg         sync.WaitGroup
}

func (c Config) withDefaults() Config {
	c.PollInterval = cmp.Or(c.PollInterval, 100*time.Millisecond)
	c.LeaseTTL = cmp.Or(c.LeaseTTL, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Open opens the store of a folder or a PostgreSQL address, and creates it if it does not
// exist. It fails with CodeDamaged for a damaged store, CodeUnavailable for one that a
// newer version wrote or that cannot be written, and CodeInvalid for a folder on a network
// file system. The caller closes the store.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	const op = "open store"
	cfg = cfg.withDefaults()
	if cfg.Dir == "" && cfg.DSN == "" {
		return nil, invalidf(op, "Config has neither Dir nor DSN")
	}
	if err := cfg.Placement.validate(op); err != nil {
		return nil, err
	}
	cfg.Placement.Tags = slices.Clone(cfg.Placement.Tags)
	s := &Store{cfg: cfg, log: cfg.Logger, opened: time.Now(), treeID: newTreeID, sessions: make(map[int64]*Session),
		trees: make(map[int64]Tree), recent: recent{tasks: make(map[int64]*cold)}, codec: compress.New(compress.MaxBytes),
		removed: make(chan struct{})}
	if err := s.refuseReplaced(); err != nil {
		return nil, wrap(op, err)
	}
	if err := s.openFolder(); err != nil {
		if atomicfile.DiskFull(err) {
			return nil, wrap(op, err)
		}
		return nil, &Error{Code: CodeUnavailable, Op: op, Err: err, Hint: hintReadOnly}
	}
	db, err := sqldb.Open(ctx, sqldb.Config{Path: filepath.Join(cfg.Dir, "perdure.db"), DSN: cfg.DSN,
		LockDir: filepath.Join(cfg.Dir, "sessions"), BusyTimeout: cfg.BusyTimeout, ReadOnly: cfg.ReadOnly,
		Creating: cfg.Creating})
	if err != nil {
		return nil, wrap(op, err)
	}
	s.db = db
	if cfg.Heads != "" && !cfg.ReadOnly {
		s.heads = newRecorder(s)
	}
	s.w, s.keeper = newWriter(s), newKeeper(s)
	s.base = context.WithoutCancel(ctx)
	background, stop := context.WithCancel(s.base)
	s.background, s.stop = background, stop
	s.wg.Go(func() { s.w.run(s.base) })
	s.wg.Go(func() { s.poll(background) })
	if !cfg.ReadOnly {
		s.wg.Go(func() { s.checkpoint(background) })
	}
	if s.heads != nil {
		s.wg.Go(func() { s.heads.run(background) })
	}
	return s, nil
}

// Placement returns the placement of [Config].
func (s *Store) Placement() Placement {
	p := s.cfg.Placement
	p.Tags = slices.Clone(p.Tags)
	return p
}

// openFolder opens the folder of the blobs, and creates what is missing of the store's folder.
func (s *Store) openFolder() (err error) {
	if s.cfg.Dir == "" {
		return nil
	}
	if !s.cfg.ReadOnly {
		err = s.prepareDir()
	}
	if err == nil && s.cfg.DSN == "" {
		s.blobs, err = blob.New(filepath.Join(s.cfg.Dir, "blobs"), s.log)
	}
	return err
}

func (s *Store) prepareDir() error {
	if err := atomicfile.MkdirAll(filepath.Join(s.cfg.Dir, "sessions"), 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	makeFoldersPrivate(s.cfg.Dir)
	ignore := filepath.Join(s.cfg.Dir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, os.ErrNotExist) {
		if err := atomicfile.WriteFile(ignore, []byte("*\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ownFolder is the name of folders that hold nothing but a store.
const ownFolder = ".perdure"

// makeFoldersPrivate takes the permissions of other users from existing folders of a store.
// A folder with another name can hold other files, such as those of a project: it keeps its
// mode, and the folders in it that belong to the store do not.
func makeFoldersPrivate(dir string) {
	folders := []string{filepath.Join(dir, "sessions"), filepath.Join(dir, "blobs"), filepath.Join(dir, "loops")}
	if filepath.Base(dir) == ownFolder {
		folders = append(folders, dir)
	}
	for _, name := range folders {
		info, err := os.Lstat(name)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 == 0 {
			continue
		}
		_ = os.Chmod(name, info.Mode().Perm()&0o700) //nolint:gosec // a folder, for its owner only
	}
}

// Close ends the open sessions, waits for running writes and closes the store. Later writes
// fail.
func (s *Store) Close() error {
	s.mu.Lock()
	open := slices.Collect(maps.Values(s.sessions))
	s.mu.Unlock()
	var errs []error
	for _, ss := range open {
		errs = append(errs, ss.Close(s.base))
	}
	if s.heads != nil {
		s.heads.record(s.base)
	}
	s.keeper.close(s.base)
	s.w.close()
	s.stop()
	s.wg.Wait()
	s.changed.fire()
	s.ready.fire()
	s.freed.fire()
	return errors.Join(append(errs, s.db.Close())...)
}

// Dir returns the store's folder, "" if it has none.
func (s *Store) Dir() string { return s.cfg.Dir }

// Database returns "sqlite" or "postgres".
func (s *Store) Database() string { return s.db.Name }

// Changed returns a channel that is closed after the next change of the store by any
// process; after a change by another process within [Config.PollInterval]. Call Changed
// before reading the rows that may change, then wait.
func (s *Store) Changed() <-chan struct{} { return s.changed.wait() }

// Ready returns a channel that is closed when a task may have become claimable, sometimes
// without one.
func (s *Store) Ready() <-chan struct{} { return s.ready.wait() }

const sqlTxCount = `SELECT tx FROM seq WHERE id = 1`

// poll fires the signals for changes by other processes and for tasks that become ready
// with time.
func (s *Store) poll(ctx context.Context) {
	var seen int64
	s.repeat(ctx, s.cfg.PollInterval, func(ctx context.Context) {
		var n int64
		s.checkRemoved()
		if err := s.db.QueryRow(ctx, sqlTxCount, nil, &n); errors.Is(err, sqldb.ErrRemoved) {
			return // a write reports it, or puts it back
		} else if err != nil {
			s.log.Warn("poll for changes", "error", err)
			return
		}
		if n != seen && n != s.w.committed.Load() {
			s.changed.fire()
		}
		seen = n
		s.ready.fire() // parked tasks become ready and sessions die without a change
		s.freed.fire() // as above, and other processes settle calls
	})
}

// checkpoint keeps the log of SQLite short.
func (s *Store) checkpoint(ctx context.Context) {
	s.repeat(ctx, s.cfg.PollInterval, func(ctx context.Context) {
		if err := s.db.Checkpoint(ctx); err != nil && !errors.Is(err, sqldb.ErrBusy) {
			s.log.Warn("checkpoint the log", "error", err)
		}
	})
}

// repeat calls do after each interval until ctx ends. The context of do does not end.
func (s *Store) repeat(ctx context.Context, interval time.Duration, do func(context.Context)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do(s.base)
		}
	}
}

// signal notifies any number of waiters.
type signal struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

func (g *signal) wait() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch == nil {
		g.ch = make(chan struct{})
	}
	return g.ch
}

func (g *signal) fire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ch != nil {
		close(g.ch)
		g.ch = nil
	}
}

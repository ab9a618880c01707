package perdure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/blob"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// Config says which store to open.
type Config struct {
	// Dir is the .perdure folder; it is created when missing. It holds the
	// SQLite database and the blobs, and the lock files of sessions.
	Dir string
	// DSN, when set, is a PostgreSQL address (postgres://…) to use instead of
	// the SQLite database in Dir; Dir may then be empty.
	DSN string
	// LookEvery is how often the store looks for other processes' changes.
	// Defaults to 100 ms.
	LookEvery time.Duration
	// BusyTimeout bounds how long a write waits for other processes.
	// Defaults to 30 s.
	BusyTimeout time.Duration
	// LeaseTTL is the time without a sign of life after which a session on
	// another host counts as dead (PostgreSQL only). Defaults to 30 s.
	LeaseTTL time.Duration
	// Placement is what this process offers to trees that require a host, a
	// workspace or tags: its sessions claim only tasks of trees whose placement it
	// satisfies. The zero value claims trees that require neither host nor tags.
	Placement Placement
	// Logger receives what the store does in the background; nil discards.
	Logger *slog.Logger
}

// Store is an open store. Any number of processes may have one open at once,
// and any number of goroutines may use it.
type Store struct {
	cfg   Config
	db    *sqldb.DB
	blobs *blob.Store // nil where the database holds the blobs
	w     *writer
	log   *slog.Logger

	changed signal
	ready   signal

	recent   recent
	known    readyTrees
	accesses accesses
	looked   atomic.Int64 // when a claim last looked at all trees, in microseconds since opened
	opened   time.Time

	mu       sync.Mutex // guards the fields below
	sessions map[int64]*Session
	trees    map[int64]Tree // what never changes about trees, for claims

	base context.Context // of the store's own work; it ends with Close only
	stop context.CancelFunc
	wg   sync.WaitGroup
}

func (c Config) withDefaults() Config {
	if c.LookEvery == 0 {
		c.LookEvery = 100 * time.Millisecond
	}
	if c.LeaseTTL == 0 {
		c.LeaseTTL = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Open opens the store of a folder or a PostgreSQL address, and creates it when
// there is none. It fails with CodeDamaged for a store that is not sound,
// CodeUnavailable for one that a newer version wrote or that cannot be written,
// CodeInvalid for a folder on a network file system. Close it after use.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if cfg.Dir == "" && cfg.DSN == "" {
		return nil, invalidf("open store", "neither a folder nor a database address is given")
	}
	if err := cfg.Placement.validate("open store"); err != nil {
		return nil, err
	}
	cfg.Placement.Tags = slices.Clone(cfg.Placement.Tags)
	s := &Store{cfg: cfg, log: cfg.Logger, opened: time.Now(), sessions: make(map[int64]*Session),
		trees: make(map[int64]Tree)}
	if err := s.prepareDir(); err != nil {
		if atomicfile.DiskFull(err) {
			return nil, wrap("open store", err)
		}
		return nil, &Error{Code: CodeUnavailable, Op: "open store", Err: err,
			Hint: "perdure needs to write here; check the folder's permissions, or set PERDURE_DIR"}
	}
	db, err := sqldb.Open(ctx, sqldb.Config{Path: filepath.Join(cfg.Dir, "perdure.db"), DSN: cfg.DSN,
		LockDir: filepath.Join(cfg.Dir, "sessions"), BusyTimeout: cfg.BusyTimeout})
	if err != nil {
		return nil, wrap("open store", err)
	}
	s.db = db
	s.w = newWriter(s)
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop, s.base = stop, context.WithoutCancel(ctx)
	s.wg.Go(func() { s.w.run(context.WithoutCancel(ctx)) })
	s.wg.Go(func() { s.look(background) })
	s.wg.Go(func() { s.checkpoint(background) })
	return s, nil
}

// Placement returns the placement of [Config]: what this process offers to trees.
func (s *Store) Placement() Placement {
	p := s.cfg.Placement
	p.Tags = slices.Clone(p.Tags)
	return p
}

func (s *Store) prepareDir() error {
	if s.cfg.Dir == "" {
		return nil
	}
	if err := atomicfile.MkdirAll(filepath.Join(s.cfg.Dir, "sessions"), 0o700); err != nil {
		return fmt.Errorf("create folder: %w", err)
	}
	ignore := filepath.Join(s.cfg.Dir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o600); err != nil {
			_ = os.Remove(ignore) // an empty one would never be mended
			return fmt.Errorf("write .gitignore: %w", err)
		}
	}
	if s.cfg.DSN != "" {
		return nil
	}
	var err error
	s.blobs, err = blob.New(filepath.Join(s.cfg.Dir, "blobs"), s.log)
	return err
}

// Close ends the sessions that are still open, waits for writes under way and
// closes the store. Writes begun later fail.
func (s *Store) Close() error {
	s.mu.Lock()
	open := make([]*Session, 0, len(s.sessions))
	for _, ss := range s.sessions {
		open = append(open, ss)
	}
	s.mu.Unlock()
	var errs []error
	for _, ss := range open {
		errs = append(errs, ss.Close(s.base))
	}
	s.w.close()
	s.stop()
	s.wg.Wait()
	s.changed.fire()
	s.ready.fire()
	return errors.Join(append(errs, s.db.Close())...)
}

// Dir returns the store's folder, "" when there is none.
func (s *Store) Dir() string { return s.cfg.Dir }

// Database returns "sqlite" or "postgres".
func (s *Store) Database() string { return s.db.Name }

// Changed returns a channel that is closed at the next change of the store by
// any process (others' changes within Config.LookEvery). Take the channel
// before reading what may change, then wait.
func (s *Store) Changed() <-chan struct{} { return s.changed.wait() }

// Ready returns a channel that is closed when a task may have become claimable.
// It may fire without reason.
func (s *Store) Ready() <-chan struct{} { return s.ready.wait() }

const sqlTxCount = `SELECT tx FROM seq WHERE id = 1`

// look notices what other processes commit and what becomes ready by time.
func (s *Store) look(ctx context.Context) {
	tick := time.NewTicker(s.cfg.LookEvery)
	defer tick.Stop()
	var seen int64
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var n int64
		if err := s.db.QueryRow(context.WithoutCancel(ctx), sqlTxCount, nil, &n); err != nil {
			s.log.Warn("look for changes", "error", err)
			continue
		}
		if n != seen && n != s.w.committed.Load() {
			s.changed.fire()
		}
		seen = n
		s.ready.fire() // retries come due and sessions die without a change
	}
}

// checkpoint keeps the log of SQLite short beside the writer.
func (s *Store) checkpoint(ctx context.Context) {
	tick := time.NewTicker(s.cfg.LookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.db.Checkpoint(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, sqldb.ErrBusy) {
			s.log.Warn("checkpoint the log", "error", err)
		}
	}
}

// signal tells any number of waiters that something happened.
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

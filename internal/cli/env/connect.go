package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/config/trust"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/storage/heads"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
)

// Purpose is what a command needs a store for.
type Purpose int

const (
	// Read requires a store.
	Read Purpose = iota
	// Write creates the store if there is none.
	Write
	// Execute creates the store if there is none. Without a daemon, the command
	// executes trees itself.
	Execute
	// Detach requires a daemon.
	Detach
	// Plan creates nothing: if there is no store, a temporary one is used.
	Plan
)

// Backend is a connection to a store: to the daemon, or to the same handler in
// this process.
type Backend struct {
	*client.Client
	// Config are the settings that the backend was opened with.
	Config *config.Loaded
	// Local executes trees in this process; nil if a daemon does.
	Local Executor
	close func() error
}

// Executor executes trees in this process.
type Executor interface {
	// SessionID returns the ID of the executor's session, or "".
	SessionID() string
	// Check returns an error if a tree cannot be executed here.
	Check(ctx context.Context, tree *perdure.Tree) error
	// Own makes trees the executor's.
	Own(trees ...perdure.TreeID)
	// GateToken returns the token of an open gate, "" if this process has not made it.
	GateToken(ctx context.Context, tree perdure.TreeID, number int) string
	// Work executes the executor's trees until ctx ends, then waits for running
	// tasks.
	Work(ctx context.Context) error
}

// Opener opens a backend.
type Opener func(ctx context.Context, l *config.Loaded, why Purpose) (*Backend, error)

// Do loads the settings, opens a backend for do and closes it.
func (e *Env) Do(cmd *cobra.Command, why Purpose, do func(*Backend) error) error {
	l, err := e.Load(cmd)
	if err != nil {
		return err
	}
	return e.With(cmd.Context(), l, why, do)
}

// Run returns the function of a command that opens a backend for do and closes it.
func (e *Env) Run(why Purpose, do func(ctx context.Context, b *Backend, args []string) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		return e.Do(cmd, why, func(b *Backend) error { return do(cmd.Context(), b, args) })
	}
}

// With opens a backend for do and closes it.
func (e *Env) With(ctx context.Context, l *config.Loaded, why Purpose, do func(*Backend) error) error {
	open := e.Open
	if e.Opener != nil {
		open = e.Opener
	}
	b, err := open(ctx, l, why)
	if err != nil {
		return err
	}
	return cmp.Or(do(b), b.Close())
}

// Open returns a backend: the daemon if one listens, else one in this process.
func (e *Env) Open(ctx context.Context, l *config.Loaded, why Purpose) (*Backend, error) {
	c, err := Dial(ctx, SocketPath(l))
	if err != nil {
		return nil, err
	}
	if c != nil {
		return &Backend{Client: c, Config: l, close: func() error {
			c.Close()
			return nil
		}}, nil
	}
	switch {
	case why == Detach:
		return nil, UsageError("start one with `perdure serve`, or omit --detach",
			"--detach needs a daemon: none listens on %q", SocketPath(l))
	case why == Read && !HasStore(l):
		return nil, e.NoStore(l)
	}
	return e.openLocal(ctx, l, why)
}

// Dial returns a client of the daemon that listens on the socket, or nil if none
// does.
func Dial(ctx context.Context, socket string) (*client.Client, error) {
	if _, err := os.Stat(socket); err != nil {
		return nil, nil //nolint:nilerr // no socket, no daemon
	}
	c, err := client.New(client.Config{Socket: socket})
	if err != nil {
		return nil, err
	}
	err = c.Ping(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		c.Close()
		return nil, nil
	}
	return c, err
}

// OpenDaemon opens a daemon in this process. A store that it creates is trusted. The process
// is hidden from then on, because its environment holds the keys that agents do not get.
func (e *Env) OpenDaemon(ctx context.Context, l *config.Loaded, cfg daemon.Config) (*daemon.Daemon, error) {
	guard.Hide()
	opened := ""
	cfg.Creating = func() { e.trustNewStore(l) }
	cfg.Replaced = func() { e.trustReplaced(l, opened) }
	d, err := daemon.Open(ctx, cfg)
	if err == nil && l.Store == "" {
		opened, _ = trust.StoreID(l.Dir) // without an ID, it is not trusted after it was replaced
	}
	return d, err
}

func (e *Env) openLocal(ctx context.Context, l *config.Loaded, why Purpose) (*Backend, error) {
	cfg := e.DaemonConfig(l)
	if why == Execute {
		cfg.Session = "run"
	}
	if l.Store != "" {
		cfg.Dir = "" // the database holds everything
	}
	if why == Plan && !HasStore(l) {
		return e.openTemporary(ctx, l, cfg)
	}
	d, err := e.OpenDaemon(ctx, l, cfg)
	if why == Read && e.readsAsIs(l, err) {
		cfg.ReadOnly = true
		d, err = e.OpenDaemon(ctx, l, cfg)
	}
	if err != nil {
		return nil, err
	}
	return inProcess(ctx, l, d, d.Close)
}

// readsAsIs reports whether a store could not be opened because it cannot be written, and notes that
// the command reads it as it is.
func (e *Env) readsAsIs(l *config.Loaded, err error) bool {
	if err == nil || l.Store != "" || !perdure.IsReadOnly(err) {
		return false
	}
	e.Note("%s cannot be written; it is read as it is", l.Dir)
	return true
}

// openTemporary returns a backend with a store that is removed with it.
func (e *Env) openTemporary(ctx context.Context, l *config.Loaded, cfg daemon.Config) (*Backend, error) {
	dir, err := os.MkdirTemp("", "perdure-plan-")
	if err != nil {
		return nil, fmt.Errorf("create temporary store: %w", err)
	}
	guard.Hide()
	cfg.Dir, cfg.Heads, cfg.Copies, cfg.Models.CacheDir = dir, "", "", ""
	d, err := daemon.Open(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return inProcess(ctx, l, d, func(ctx context.Context) error { return errors.Join(d.Close(ctx), os.RemoveAll(dir)) })
}

// inProcess returns a backend of a daemon in this process, which closing ends.
func inProcess(ctx context.Context, l *config.Loaded, d *daemon.Daemon,
	closing func(context.Context) error) (*Backend, error) {
	transport := &inproc.Transport{Handler: d.Handler()}
	c, err := client.New(client.Config{Transport: transport})
	if err != nil {
		return nil, errors.Join(err, closing(ctx))
	}
	return &Backend{Client: c, Local: d, Config: l, close: func() error {
		transport.Close()
		return closing(ctx)
	}}, nil
}

// Close ends the connection.
func (b *Backend) Close() error {
	if b.close == nil {
		return nil
	}
	return b.close()
}

// Session returns the ID of the session that executes trees in this process, or
// "" if a daemon does.
func (b *Backend) Session() string {
	if b.Local == nil {
		return ""
	}
	return b.Local.SessionID()
}

// Own makes a tree this process's own, unless a daemon executes it.
func (b *Backend) Own(id perdure.TreeID) {
	if b.Local != nil {
		b.Local.Own(id)
	}
}

// Follow calls follow while this process executes its own trees, or only calls
// it if a daemon does. The context of follow ends when the execution fails,
// whose error takes precedence.
func (b *Backend) Follow(ctx context.Context, follow func(context.Context) error) error {
	if b.Local == nil {
		return follow(ctx)
	}
	work, stop := context.WithCancel(ctx)
	defer stop()
	following, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := b.Local.Work(work)
		cancel(err)
		ended <- err
	}()
	err := follow(following)
	stop()
	if workErr := <-ended; workErr != nil {
		return workErr
	}
	return err
}

// WithStore opens the store itself for do, also while a daemon runs. To write,
// it creates the store if there is none.
func (e *Env) WithStore(ctx context.Context, l *config.Loaded, write bool, do func(*perdure.Store) error) error {
	if !write && !HasStore(l) {
		return e.NoStore(l)
	}
	cfg := perdure.Config{Dir: l.Dir, DSN: l.Store, Heads: heads.Folder(e.Getenv),
		Copies: copies.Root(e.Getenv), Creating: func() { e.trustNewStore(l) }}
	if l.Store != "" {
		cfg.Dir = ""
	}
	store, err := perdure.Open(ctx, cfg)
	if !write && e.readsAsIs(l, err) {
		cfg.ReadOnly = true
		store, err = perdure.Open(ctx, cfg)
	}
	if err != nil {
		return err
	}
	return cmp.Or(do(store), store.Close())
}

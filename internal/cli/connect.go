package cli

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/api/inproc"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/model/price"
)

// purpose is what a command wants of the store.
type purpose int

const (
	// toRead: there has to be a store.
	toRead purpose = iota
	// toWrite: the store is made when there is none.
	toWrite
	// toExecute: the command runs trees when no daemon does; the store is made
	// when there is none.
	toExecute
	// toDetach: a daemon has to listen.
	toDetach
)

// backend is what answers the client's requests.
type backend struct {
	*client.Client
	// local runs inside this process; nil when a daemon answers.
	local  *daemon.Daemon
	config *config.Loaded
	close  func() error
}

// socketPath is where the daemon of a folder listens.
func socketPath(l *config.Loaded) string {
	if l.Socket == "" {
		return filepath.Join(l.Dir, "perdure.sock")
	}
	if filepath.IsAbs(l.Socket) {
		return l.Socket
	}
	return filepath.Join(l.Dir, l.Socket)
}

// connect returns a client of the daemon that listens, or else of the same
// handler inside this process. Close the backend after use.
func (a *app) connect(ctx context.Context, l *config.Loaded, why purpose) (*backend, error) {
	c, err := dial(ctx, socketPath(l))
	if err != nil {
		return nil, err
	}
	if c != nil {
		return &backend{Client: c, config: l, close: func() error {
			c.Close()
			return nil
		}}, nil
	}
	switch {
	case why == toDetach:
		return nil, env.UsageError("start one with `perdure serve`, or leave --detach out",
			"--detach needs a daemon, and none listens on %q", socketPath(l))
	case why == toRead && !hasStore(l):
		return nil, noStore(l)
	}
	return a.inProcess(ctx, l, why)
}

// dial returns a client when a daemon answers on the socket, nil when there is
// none or a dead one left it behind.
func dial(ctx context.Context, socket string) (*client.Client, error) {
	if _, err := os.Stat(socket); err != nil {
		return nil, nil //nolint:nilerr // nothing there to talk to
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
	if err != nil {
		return nil, err
	}
	return c, nil
}

func hasStore(l *config.Loaded) bool {
	if l.Store != "" {
		return true
	}
	for _, name := range []string{"perdure.db", "perdure.db-wal"} { // a log alone is a store that is damaged
		if _, err := os.Stat(filepath.Join(l.Dir, name)); err == nil {
			return true
		}
	}
	return false
}

func noStore(l *config.Loaded) error {
	hint := "`perdure run` makes one; change to the folder of the project, or set PERDURE_DIR"
	return &perdure.Error{Code: perdure.CodeNotFound, Op: "open store", Msg: "there is no store in " + l.Dir, Hint: hint}
}

func (a *app) inProcess(ctx context.Context, l *config.Loaded, why purpose) (*backend, error) {
	cfg := a.daemonConfig(l)
	if why == toExecute {
		cfg.Session = "run"
	}
	if l.Store != "" {
		cfg.Dir = "" // everything is in the database
	}
	d, err := daemon.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	transport := &inproc.Transport{Handler: d.Handler()}
	c, err := client.New(client.Config{Transport: transport})
	if err != nil {
		return nil, errors.Join(err, d.Close(ctx))
	}
	return &backend{Client: c, local: d, config: l, close: func() error {
		transport.Close()
		return d.Close(ctx)
	}}, nil
}

// daemonConfig is what both ways of running have in common.
func (a *app) daemonConfig(l *config.Loaded) daemon.Config {
	return daemon.Config{
		Dir: l.Dir, DSN: l.Store, LoopDir: filepath.Join(l.Dir, "loops"), LoopHooks: l.Loop.Hooks, HookDir: a.root(l),
		Reminders: a.within(l, l.Loop.Reminders),
		Handoff:   a.handoffs(l),
		Notify: daemon.NotifyConfig{Command: l.Loop.NotifyCommand, Webhook: l.Loop.NotifyWebhook,
			Desktop: l.Loop.NotifyDesktop, Getenv: a.env.getenv},
		Agents:      daemon.AgentConfig{Permission: l.Loop.Permission, Model: l.Loop.Model},
		Concurrency: l.Concurrency, DrainTimeout: l.DrainTimeout,
		Models: daemon.ModelConfig{
			Root: a.root(l), Getenv: a.env.getenv,
			CallTimeout: l.CallTimeout, CallRetries: l.CallRetries,
			Prices: a.prices(l), CacheDir: cacheDir(l),
		},
		Retention: perdure.RetentionPolicy{
			Completed: l.RetentionCompleted, Failed: l.RetentionFailed, IncludeFailed: l.RetentionRemoveFailed,
			Checkpoints: l.RetentionCheckpoints, Handoffs: l.RetentionHandoffs,
		},
		Version: thisBuild().Version,
		Logger:  slog.New(&told{a.logger(l, slog.LevelError).Handler()}),
	}
}

// within is a path of the settings, which counts from the project's folder; empty
// stays empty.
func (a *app) within(l *config.Loaded, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.root(l), path)
}

// handoffs says how loops hand work over: in the ledgers that `perdure handoff`
// writes too.
func (a *app) handoffs(l *config.Loaded) loop.HandoffConfig {
	c := loop.HandoffConfig{Folder: filepath.Dir(l.Dir), Snapshots: filepath.Join(l.Dir, "handoffs"),
		Window:     int64(l.Loop.ContextWindow),
		Thresholds: thresholds(l)}
	if l.Store != "" {
		c.Folder = "" // a file of the same name elsewhere is another one
	}
	if program, err := os.Executable(); err == nil {
		c.Program = program
	}
	return c
}

// thresholds are the parts of a context at which work is handed over.
func thresholds(l *config.Loaded) ledger.Thresholds {
	return ledger.Thresholds{Warn: float64(l.HandoffWarnPercent) / 100, Stop: float64(l.HandoffStopPercent) / 100}
}

// prices is the user's file of prices; a relative path counts from the project's
// folder.
func (a *app) prices(l *config.Loaded) price.Config {
	if l.Prices == "" {
		return price.Config{File: filepath.Join(l.Dir, "prices.yaml"), Optional: true}
	}
	return price.Config{File: a.within(l, l.Prices)}
}

// root is the folder that programs and scripts named by a run start from.
func (a *app) root(l *config.Loaded) string {
	if filepath.Base(l.Dir) == config.FolderName {
		return filepath.Dir(l.Dir)
	}
	return a.env.Cwd
}

// logger writes to standard error what is at least of the level that the user
// asked for, or of least when they did not.
func (a *app) logger(l *config.Loaded, least slog.Level) *slog.Logger {
	for _, s := range l.Effective() {
		if s.Key == "log_level" && s.Origin == config.OriginDefault {
			return a.loggerAt(l.LogFormat, least)
		}
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.LogLevel)); err != nil {
		level = least // the settings were checked
	}
	return a.loggerAt(l.LogFormat, level)
}

func (a *app) loggerAt(format string, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(a.err, opts))
	}
	return slog.New(slog.NewTextHandler(a.err, opts))
}

// withBackend connects, does something and closes.
func (a *app) withBackend(ctx context.Context, l *config.Loaded, why purpose, do func(*backend) error) error {
	b, err := a.connect(ctx, l, why)
	if err != nil {
		return err
	}
	err = do(b)
	if closeErr := b.close(); err == nil && closeErr != nil {
		return closeErr
	}
	return err
}

// told leaves out what the command prints itself or did itself: the API logs
// that the store is unavailable, and says so in its answer; a request that
// Ctrl-C ended is no news.
type told struct{ slog.Handler }

// Handle drops these records.
func (t *told) Handle(ctx context.Context, r slog.Record) error {
	explained := false
	r.Attrs(func(attr slog.Attr) bool {
		err, _ := attr.Value.Any().(error)
		explained = attr.Key == "code" && attr.Value.String() == string(perdure.CodeUnavailable) ||
			errors.Is(err, context.Canceled)
		return !explained
	})
	if explained {
		return nil
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs keeps the rule.
func (t *told) WithAttrs(attrs []slog.Attr) slog.Handler { return &told{t.Handler.WithAttrs(attrs)} }

// WithGroup keeps the rule.
func (t *told) WithGroup(name string) slog.Handler { return &told{t.Handler.WithGroup(name)} }

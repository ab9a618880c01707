package env

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/storage/heads"
	"github.com/perdure/perdure/internal/storage/userdir/copies"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/model/price"
)

// DaemonConfig returns the configuration of a daemon, in this process or as a
// server.
func (e *Env) DaemonConfig(l *config.Loaded) daemon.Config {
	return daemon.Config{
		Dir: l.Dir, DSN: l.Store, Heads: heads.Folder(e.Getenv), Copies: copies.Root(e.Getenv),
		LoopDir: LoopDir(l), LoopHooks: l.Loop.Hooks, HookDir: e.Root(l),
		Reminders: e.settingPath(l, l.Loop.Reminders),
		Handoff:   handoffConfig(l),
		Notify: daemon.NotifyConfig{Command: l.Loop.NotifyCommand, Webhook: l.Loop.NotifyWebhook,
			Desktop: l.Loop.NotifyDesktop, Getenv: e.Getenv, ShowsTokens: e.Err.Terminal,
			UsesTokens: e.UsesTokens},
		Agents: daemon.AgentConfig{Permission: agent.Permission(l.Loop.Permission), Agent: l.Loop.Agent,
			Model: l.Loop.Model},
		Concurrency: l.Concurrency, DrainTimeout: l.DrainTimeout,
		ReplPython: l.ReplPython, ReplUnsandboxed: l.ReplUnsandboxed,
		Models: daemon.ModelConfig{
			Root: e.Root(l), Getenv: e.Getenv,
			CallTimeout: l.CallTimeout, CallRetries: l.CallRetries,
			NoSchema: !l.StructuredOutput, NoCaching: !l.PromptCaching, NoTools: !l.NativeTools,
			Prices: e.Prices(l), CacheDir: CacheDir(l), CacheSecret: e.CacheSecret,
		},
		Retention: perdure.RetentionPolicy{
			Completed: l.RetentionCompleted, Failed: l.RetentionFailed, IncludeFailed: l.RetentionRemoveFailed,
			Checkpoints: l.RetentionCheckpoints, Handoffs: l.RetentionHandoffs,
		},
		Version: ThisBuild().Version,
		Logger:  slog.New(&unreported{e.Logger(l, slog.LevelError).Handler()}),
	}
}

func handoffConfig(l *config.Loaded) loop.HandoffConfig {
	program, _ := os.Executable() // "" after an error
	return loop.HandoffConfig{Folder: HandoffFolder(l), Snapshots: HandoffDir(l), Window: int64(l.Loop.ContextWindow),
		Thresholds: Thresholds(l), Program: program}
}

// Prices returns where the user's file of prices is.
func (e *Env) Prices(l *config.Loaded) price.Config {
	switch {
	case l.Prices != "":
		return price.Config{File: e.settingPath(l, l.Prices)}
	case l.UsesPricesFile():
		return price.Config{File: filepath.Join(l.Dir, config.PricesName), Optional: true}
	}
	return price.Config{}
}

// Logger returns a logger to standard error, of the level that the user set, or
// else of the given level.
func (e *Env) Logger(l *config.Loaded, level slog.Level) *slog.Logger {
	if l.Set("log_level") {
		_ = level.UnmarshalText([]byte(l.LogLevel)) // Load refuses unknown levels
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: redacted}
	if l.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(e.Err, opts))
	}
	return slog.New(slog.NewTextHandler(e.Err, opts))
}

// redacted hides the secrets of URLs in a value of a log record.
func redacted(_ []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(config.RedactURLs(v))
	case error:
		a.Value = slog.StringValue(config.RedactURLs(v.Error()))
	}
	return a
}

// unreported drops records that the command reports itself: an unavailable store, and
// requests that an interrupt ended.
type unreported struct{ slog.Handler }

func (h *unreported) Handle(ctx context.Context, r slog.Record) error {
	reported := false
	r.Attrs(func(attr slog.Attr) bool {
		err, _ := attr.Value.Any().(error)
		reported = attr.Key == "code" && attr.Value.String() == string(perdure.CodeUnavailable) ||
			errors.Is(err, context.Canceled)
		return !reported
	})
	if reported {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

func (h *unreported) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &unreported{h.Handler.WithAttrs(attrs)}
}

func (h *unreported) WithGroup(name string) slog.Handler {
	return &unreported{h.Handler.WithGroup(name)}
}

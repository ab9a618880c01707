package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/server"
)

func (a *app) newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: it executes trees and answers the other commands",
		Long: "Run the daemon of this .perdure folder: it listens on a Unix socket that only you may use, executes all " +
			"trees, those of dead processes included, and removes old ones every hour. While it runs, the other commands " +
			"talk to it. SIGTERM or Ctrl-C lets running tasks finish for drain_timeout and hands back the rest; a second " +
			"one stops at once. Nothing is lost either way.",
		GroupID: groupManage,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			if l.Listen != "" {
				return usageError("leave it out; the Unix socket is there", "listen on TCP (%q) is not available in this version", l.Listen)
			}
			err = a.serve(cmd.Context(), l)
			if errors.Is(err, errInterrupted) {
				return nil // it was asked to stop, and did
			}
			return err
		},
	}
	settingFlags(cmd, "socket", "concurrency", "drain_timeout", "retention.completed", "retention.failed", "retention.remove_failed", "retention.checkpoints",
		"retention.handoffs", "log_level", "log_format")
	return cmd
}

func (a *app) serve(ctx context.Context, l *config.Loaded) error {
	cfg := a.daemonConfig(l)
	cfg.Session = "serve"
	cfg.Logger = a.logger(l, slog.LevelInfo)
	d, err := daemon.Open(ctx, cfg)
	if err != nil {
		return err
	}
	listener, err := server.Listen(socketPath(l))
	if err != nil {
		return errors.Join(err, d.Close(ctx))
	}
	a.note("listening on %s", listener.Path())
	err = d.Serve(ctx, listener)
	return errors.Join(err, listener.Close(), d.Close(ctx))
}

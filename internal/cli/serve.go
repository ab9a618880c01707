package cli

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/api/server"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
	"github.com/perdure/perdure/internal/daemon"
)

func (a *app) newServeCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon, which executes trees for other commands",
		Long: "Run the daemon of this .perdure folder. It listens on a Unix socket that only you can use, executes all " +
			"trees, including those of killed processes, and removes old trees every hour. While it runs, the other " +
			"commands use it. SIGTERM or Ctrl-C gives running tasks drain_timeout to finish and queues the others again; a " +
			"second signal stops at once. No finished work is lost either way.\n\n" +
			"--aiwg-ipc also serves clients of the .aiwg daemon: JSON-RPC 2.0, one message a line. Their tasks run with the " +
			"configured model, or in the client that starts them.",
		Example: "perdure serve\n perdure serve --aiwg-ipc\n perdure serve --aiwg-ipc=/run/user/1000/aiwg.sock",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			if l.Listen != "" {
				return env.UsageError("remove the setting listen; clients use the Unix socket",
					"listening on TCP (%q) is not available in this version", l.Listen)
			}
			own, err := a.ownRun(cmd, l, "")
			if err != nil {
				return err
			}
			err = a.serve(cmd.Context(), l, own, a.ipcConfig(cmd, l, socket))
			if errors.Is(err, env.ErrInterrupted) {
				return nil // stopping is not an error
			}
			return err
		},
	}
	env.ExecutesStored(cmd)
	env.SettingFlags(cmd, "socket", "concurrency", "drain_timeout", "retention.completed", "retention.failed",
		"retention.remove_failed", "retention.checkpoints", "retention.handoffs", "log_level", "log_format")
	cmd.Flags().StringVar(&socket, "aiwg-ipc", "",
		"`PATH` also serve clients of the .aiwg daemon on a Unix socket, written --aiwg-ipc=PATH; default: "+aiwgSocket)
	cmd.Flags().Lookup("aiwg-ipc").NoOptDefVal = aiwgSocket
	return cmd
}

// aiwgSocket is the path, in the project's folder, at which clients of the .aiwg daemon
// expect it.
const aiwgSocket = ".aiwg/daemon/daemon.sock"

func (a *app) ipcConfig(cmd *cobra.Command, l *config.Loaded, socket string) daemon.IPCConfig {
	if socket == aiwgSocket || socket == "" && cmd.Flags().Changed("aiwg-ipc") {
		socket = filepath.Join(a.Root(l), aiwgSocket)
	} else if socket != "" {
		socket = a.Path(socket)
	}
	return daemon.IPCConfig{Socket: socket, Run: func(agent string) (json.RawMessage, error) {
		return a.ownRun(cmd, l, agent)
	}}
}

// ownRun returns the configuration of a run by the settings of the daemon.
func (a *app) ownRun(cmd *cobra.Command, l *config.Loaded, agent string) (json.RawMessage, error) {
	f := runFlags{plan: planFlags{agent: agent}}
	return f.config(a, cmd, l, false)
}

func (a *app) serve(ctx context.Context, l *config.Loaded, own json.RawMessage, ipc daemon.IPCConfig) error {
	cfg := a.DaemonConfig(l)
	cfg.Session, cfg.Own, cfg.IPC = "serve", own, ipc
	cfg.Logger = a.Logger(l, slog.LevelInfo)
	if a.Err.Terminal {
		cfg.Notify.Terminal = a.Err
	}
	d, err := a.OpenDaemon(ctx, l, cfg)
	if err != nil {
		return err
	}
	listener, err := server.Listen(env.SocketPath(l))
	if err != nil {
		return errors.Join(err, d.Close(ctx))
	}
	if ipc.Socket != "" {
		a.Note("serving .aiwg clients on %s", ipc.Socket)
	}
	a.Note("listening on %s", listener.Path())
	err = d.Serve(ctx, listener)
	return errors.Join(err, listener.Close(), d.Close(ctx))
}

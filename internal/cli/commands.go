package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/cache"
	"github.com/perdure/perdure/internal/cli/check"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/gate"
	"github.com/perdure/perdure/internal/cli/handoff"
	"github.com/perdure/perdure/internal/cli/hook"
	"github.com/perdure/perdure/internal/cli/install"
	"github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/cli/meter"
	"github.com/perdure/perdure/internal/cli/schema"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/cli/transfer"
)

// command is a command that is built only if it is called.
type command struct {
	name  string
	build func() *cobra.Command
}

// commands returns all commands.
func (a *app) commands() []command {
	of := func(build func(*env.Env) *cobra.Command) func() *cobra.Command {
		return func() *cobra.Command { return build(a.Env) }
	}
	return []command{
		{"run", a.newRunCommand},
		{"batch", a.newBatchCommand},
		{"resume", a.newResumeCommand},
		{"cancel", a.newCancelCommand},
		{"retry", a.newRetryCommand},
		{"ask", a.newAskCommand},
		{"fork", a.newForkCommand},
		{"answer", of(gate.Command)},
		{"loop", of(loop.Command)},
		{"acp", a.newACPCommand},

		{"status", a.newStatusCommand},
		{"tree", a.newTreeCommand},
		{"show", a.newShowCommand},
		{"events", a.newEventsCommand},
		{"watch", a.newWatchCommand},
		{"result", a.newResultCommand},
		{"report", a.newReportCommand},
		{"check", of(check.Command)},
		{"meter", of(meter.Command)},
		{"verify-log", a.newVerifyLogCommand},
		{"replay", a.newReplayCommand},

		{"serve", a.newServeCommand},
		{"gc", a.newGCCommand},
		{"cache", of(cache.Command)},
		{"init", a.newInitCommand},
		{"restore", a.newRestoreCommand},
		{"trust", a.newTrustCommand},
		{"config", a.newConfigCommand},
		{"schema", of(schema.Command)}, {"validate", of(schema.ValidateCommand)},
		{"doctor", a.newDoctorCommand},
		{"version", a.newVersionCommand},
		{"hook", of(hook.Command)},
		{"install", of(install.Command)},
		{"uninstall", of(install.UninstallCommand)},
		{"handoff", of(handoff.Command)},

		{"var", of(state.VarCommand)},
		{"checkpoint", of(state.CheckpointCommand)},
		{"repl", of(state.ReplCommand)},
		{"export", of(transfer.ExportCommand)},
		{"import", of(transfer.ImportCommand)},
	}
}

// addCommands adds the command that the first argument names, or else all commands. To
// build all of them takes a large part of the time of a short command.
func (a *app) addCommands(root *cobra.Command) {
	all := a.commands()
	if len(a.Args) > 0 {
		if a.Args[0] == "--version" {
			a.Args[0] = "version"
		}
		if i := slices.IndexFunc(all, func(c command) bool { return c.name == a.Args[0] }); i >= 0 {
			all = all[i : i+1]
			root.CompletionOptions.DisableDefaultCmd = true
		}
	}
	for _, c := range all {
		root.AddCommand(c.build())
	}
}

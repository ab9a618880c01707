package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/cache"
	"github.com/perdure/perdure/internal/cli/check"
	"github.com/perdure/perdure/internal/cli/gate"
	"github.com/perdure/perdure/internal/cli/handoff"
	"github.com/perdure/perdure/internal/cli/hook"
	"github.com/perdure/perdure/internal/cli/loop"
	"github.com/perdure/perdure/internal/cli/schema"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/cli/transfer"
)

// commands returns all commands.
func (a *app) commands() []*cobra.Command {
	return slices.Concat([]*cobra.Command{
		a.newRunCommand(),
		a.newBatchCommand(),
		a.newResumeCommand(),
		a.newCancelCommand(),
		a.newRetryCommand(),
		gate.Command(a.Env),
		loop.Command(a.Env),

		a.newStatusCommand(),
		a.newTreeCommand(),
		a.newShowCommand(),
		a.newEventsCommand(),
		a.newWatchCommand(),
		a.newReportCommand(),
		check.Command(a.Env),

		a.newServeCommand(),
		a.newGCCommand(),
		cache.Command(a.Env),
		a.newInitCommand(),
		a.newConfigCommand(),
		schema.Command(a.Env),
		a.newDoctorCommand(),
		a.newVersionCommand(),
		hook.Command(a.Env),
		handoff.Command(a.Env),
	}, state.Commands(a.Env), transfer.Commands(a.Env))
}

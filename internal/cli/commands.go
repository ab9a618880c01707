package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/gate"
	"github.com/perdure/perdure/internal/cli/hook"
	"github.com/perdure/perdure/internal/cli/schema"
)

// commands makes one of each.
func (a *app) commands() []*cobra.Command {
	return append([]*cobra.Command{
		a.newRunCommand(),
		a.newBatchCommand(),
		a.newResumeCommand(),
		a.newCancelCommand(),
		a.newRetryCommand(),
		gate.Command(a.gates(a.out)),

		a.newStatusCommand(),
		a.newTreeCommand(),
		a.newShowCommand(),
		a.newEventsCommand(),
		a.newWatchCommand(),
		a.newReportCommand(),

		a.newServeCommand(),
		a.newGCCommand(),
		a.cacheCommand(),
		a.newInitCommand(),
		a.newConfigCommand(),
		schema.Command(a.out, groupManage, arguments),
		a.newDoctorCommand(),
		a.newVersionCommand(),
	}, append(append(a.stateCommands(), a.portCommands()...), a.handoffCommand(), a.loopCommand(), a.checkCommand(),
		hook.Command(hook.Config{Stdin: a.env.Stdin, Out: a.env.Stdout, Getenv: a.env.getenv, GroupID: groupManage,
			Arguments: arguments, Load: a.loadFrom}))...)
}

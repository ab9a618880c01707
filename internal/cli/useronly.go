package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
)

// varTask is an environment variable of agents and of models that are programs.
const varTask = "PERDURE_TASK"

// allowFlag is the flag of loops with the files that an agent may change.
const allowFlag = "allow"

// userCommands returns the commands with which the user decides. Agents are
// not allowed to call them.
func userCommands() []string {
	return []string{"perdure answer", "perdure loop answer", "perdure loop pause", "perdure loop resume",
		"perdure loop abort", "perdure loop false-alarm", "perdure trust", "perdure hook allow", "perdure install",
		"perdure uninstall", "perdure acp", "perdure acp run", "perdure acp loop"}
}

// refuseAgent returns an error if the agent of a loop calls a command of the user, so
// that agents do not approve their own work. It recognizes agents by their environment, and
// the API most commands by the mark of guarded processes; the table of risky calls includes
// these commands too.
func (a *app) refuseAgent(cmd *cobra.Command, args []string) error {
	if err := a.refuseGuarded(cmd); err != nil {
		return err
	}
	of := a.Getenv(hook.VarLoop)
	if a.Getenv(varTask) == "" {
		of = a.Getenv(loop.VarCheck) // the agent can have written the check
	}
	shows := len(args) == 0 && cmd.Name() == "answer" // only the open gates
	if of == "" || shows || !slices.Contains(userCommands(), cmd.CommandPath()) {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: cmd.CommandPath()[len("perdure "):],
		Msg: fmt.Sprintf("the agent of loop %s and its check are not allowed to do this", of),
		Hint: "write in your answer what you need and why; if the tests are wrong or the task cannot be done, end it with " +
			"HONEST EXIT: and your evidence, and the user is asked"}
}

// refuseGuarded returns an error if a program that a loop or a run has started calls a
// command with which the user decides and which does not use the API.
func (a *app) refuseGuarded(cmd *cobra.Command) error {
	given := func(name string) bool {
		f := cmd.Flags().Lookup(name)
		return f != nil && f.Changed
	}
	decides := given(acceptFlag) || given(allowFlag) || slices.Contains([]string{"perdure trust", "perdure hook allow",
		"perdure install", "perdure uninstall", "perdure acp", "perdure acp run", "perdure acp loop"}, cmd.CommandPath())
	if !decides || a.Getenv(hook.VarLoop) == "" && !guard.Guarded() {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: cmd.CommandPath()[len("perdure "):],
		Msg:  "a program that a loop or a run has started is not allowed to do this",
		Hint: "the user does it in a terminal of their own"}
}

package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/hook"
)

// varTask is what agents and models get in their environment, and neither people nor
// the handlers of hooks.
const varTask = "PERDURE_TASK"

// forPeople are commands that decide over a loop in the place of a person. An agent
// may pause its loop: that only asks.
func forPeople() []string {
	return []string{"perdure answer", "perdure loop answer", "perdure loop resume", "perdure loop abort",
		"perdure loop false-alarm"}
}

// byPerson refuses such a command to the agent of a loop: it would be judge of its own
// work. An agent that clears its environment is not recognised; the table of risky
// calls knows the commands, too.
func (a *app) byPerson(cmd *cobra.Command, args []string) error {
	of := a.Getenv(hook.VarLoop)
	if a.Getenv(varTask) == "" {
		of = a.Getenv(loop.VarCheck) // tests that an agent wrote
	}
	if of == "" || !slices.Contains(forPeople(), cmd.CommandPath()) {
		return nil
	}
	if len(args) == 0 && cmd.Name() == "answer" { // which only shows what is asked
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: cmd.CommandPath()[len("perdure "):],
		Msg:  fmt.Sprintf("a person decides that, and here the agent of loop %s asks, or its check", of),
		Hint: "say in your answer what you need and why; perdure loop pause stops the loop until a person has looked"}
}

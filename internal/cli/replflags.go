package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/rlm"
)

// replFlags are the flags of planner repl.
type replFlags struct {
	engine  string
	profile string
	turns   int
}

func (f *replFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.engine, "repl-engine", "", "`NAME` what runs the code of planner repl: python (the "+
		"default) or starlark")
	fl.StringVar(&f.profile, "repl-profile", "", "`NAME` instructions of planner repl: native (the "+
		"default), reference "+
		"or paper, for models that were trained with these")
	fl.IntVar(&f.turns, "repl-turns", 0, "`N` maximum replies with code in planner repl; default: 30")
}

// apply sets the fields of the configuration.
func (f *replFlags) apply(cmd *cobra.Command, c *rlm.Config) error {
	if cmd.Flags().Changed("repl-turns") && f.turns < 1 {
		return env.UsageError(fmt.Sprintf("the default is %d, the most %d", rlm.DefaultReplTurns, rlm.MaxReplTurns),
			"--repl-turns: %d is not a number of replies", f.turns)
	}
	c.ReplEngine, c.ReplProfile, c.ReplTurns = f.engine, f.profile, f.turns
	return nil
}

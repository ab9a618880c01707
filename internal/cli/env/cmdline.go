// Package env is what the commands share of the command line, whichever
// package they are in: the flags that mean the same everywhere, what a shell is
// offered, and the error of a command that is used wrongly.
package env

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
)

// JSONFlag adds --json to a command.
func JSONFlag(cmd *cobra.Command, to *bool) {
	cmd.Flags().BoolVar(to, "json", false, "print JSON for programs")
}

// Complete offers the values of a flag to the shell.
func Complete[T ~string](cmd *cobra.Command, flag string, values ...T) {
	offered := make([]cobra.Completion, len(values))
	for i, v := range values {
		offered[i] = string(v)
	}
	CompleteWith(cmd, flag, cobra.FixedCompletions(offered, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteWith offers the shell what complete finds for a flag.
func CompleteWith(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	// The flag was made just now: there is nothing to refuse.
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}

// UsageError is bad input on the command line.
func UsageError(hint, format string, args ...any) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

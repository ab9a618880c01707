package cli

import "github.com/spf13/cobra"

// commands makes one of each, in the order in which the help lists them.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.newConfigCommand(),
		a.newInitCommand(),
		a.newVersionCommand(),
	}
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newVersionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b := env.ThisBuild()
			if asJSON {
				return a.PrintJSON(b)
			}
			a.Printf("perdure %s", b.Version)
			if len(b.Revision) >= 12 {
				a.Printf(" (%s)", b.Revision[:12])
			}
			a.Printf(" %s %s\n", b.Go, b.System)
			return nil
		},
	}
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newVersionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			b := env.ThisBuild()
			return a.Print(b, func() {
				a.Printf("perdure %s", b.Version)
				if len(b.Revision) >= 12 {
					a.Printf(" (%s)", b.Revision[:12])
				}
				a.Printf(" %s %s\n", b.Go, b.System)
			})
		},
	}
	a.JSONFlag(cmd)
	return cmd
}

package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
)

// completedTrees is how many trees a shell is offered.
const completedTrees = 20

// completeTrees offers the newest trees where a command takes one, with what
// they are. A shell that asks where there is no store gets nothing.
func (a *app) completeTrees(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l, err := a.load(cmd)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []cobra.Completion
	err = a.withBackend(cmd.Context(), l, toRead, func(b *backend) error {
		page, err := b.Trees(cmd.Context(), client.TreeQuery{Limit: completedTrees})
		for _, t := range page.Trees {
			found = append(found, cobra.CompletionWithDesc(string(t.ID), string(t.State)+" "+ago(time.Now(), t.CreatedAt)))
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp // no store, no trees
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

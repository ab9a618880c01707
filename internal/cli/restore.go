package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// restoredStore is the output of restore --json.
type restoredStore struct {
	Dir      string    `json:"dir"`
	CopiedAt time.Time `json:"copied_at"`
}

func (a *app) newRestoreCommand() *cobra.Command {
	var folder string
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Put back a removed store from its copy",
		Long: "Put back the store of the project, with the snapshots of its loops, from the copy in the user's state " +
			"folder. While a loop works, it keeps that copy, and puts a store back by itself if a program such as " +
			"`git clean -fdx` removes it. This command is for a loop that was killed before it could do that. An existing " +
			"store is not replaced. `perdure loop resume LOOP` then continues the loop.",
		Example: "perdure restore\n perdure restore --copy ~/.local/state/perdure/copies/0f1e2d3c",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.LoadUntrusted(cmd, a.Cwd)
			if err != nil {
				return err
			}
			if folder != "" {
				folder = a.Path(folder)
			}
			dir, r, err := a.RestoreStore(l, folder)
			if err != nil {
				return err
			}
			return a.Print(restoredStore{Dir: dir, CopiedAt: r.CopiedAt}, func() {
				a.Printf("restored %s from the copy of %s; `perdure loop list` lists its loops\n", dir, human.Stamp(r.CopiedAt))
			})
		},
	}
	cmd.Flags().StringVar(&folder, "copy", "", "`DIR` with the copy (default: the one of this project)")
	a.JSONFlag(cmd)
	return cmd
}

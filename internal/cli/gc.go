package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

func (a *app) newGCCommand() *cobra.Command {
	var dryRun, failed bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove old trees, checkpoints and handoffs",
		Long: "Remove completed and cancelled trees after their retention time, with their events and unused contexts; " +
			"also expired variables, old checkpoints and finished handoffs. Failed trees are only listed after their " +
			"retention time, unless --failed is given. A tree that has not ended is never removed. The daemon does the " +
			"same every hour.",
		Example: "perdure gc --dry-run\n perdure gc --retention-completed 1d --failed",
		GroupID: env.GroupManage,
		Args:    env.Arguments(0, 0, "no arguments"),
		RunE: a.Run(env.Read, func(ctx context.Context, b *env.Backend, _ []string) error {
			l := b.Config
			r, err := b.Collect(ctx, client.CollectRequest{
				Completed: l.RetentionCompleted, Failed: l.RetentionFailed, IncludeFailed: failed || l.RetentionRemoveFailed,
				Checkpoints: l.RetentionCheckpoints, Handoffs: l.RetentionHandoffs, DryRun: dryRun,
			})
			if err != nil {
				return err
			}
			return a.Print(r, func() { a.printCollected(&r) })
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be removed")
	cmd.Flags().BoolVar(&failed, "failed", false, "remove failed trees after their retention time")
	env.SettingFlags(cmd, "retention.completed", "retention.failed", "retention.checkpoints", "retention.handoffs")
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) printCollected(r *perdure.PruneReport) {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, t := range r.Trees {
		a.Printf("%s %s  %s, %s, ended %s\n", verb, t.ID, t.State, human.Count(t.Tasks, "task"), human.Stamp(t.EndedAt))
	}
	for _, t := range r.Due {
		a.Printf("kept %s  %s, %s, ended %s; --failed removes it\n", t.ID, perdure.Failed, human.Count(t.Tasks, "task"),
			human.Stamp(t.EndedAt))
	}
	for _, part := range []struct {
		n    int64
		what string
	}{{r.States, "temporary state"}, {r.Variables, "expired variable"}, {r.Checkpoints, "old checkpoint"},
		{r.Handoffs, "finished handoff"}} {
		if part.n > 0 {
			a.Printf("%s %s\n", verb, human.Count(part.n, part.what))
		}
	}
	a.Printf("%s %s and %s, %s\n", verb, human.Count(len(r.Trees), "tree"), human.Count(r.Blobs, "blob"),
		human.Size(r.Bytes))
}

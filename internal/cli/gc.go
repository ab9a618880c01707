package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newGCCommand() *cobra.Command {
	var dryRun, failed, asJSON bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove trees that ended long ago",
		Long: "Remove trees that completed or were cancelled long enough ago, with their events and the contexts that " +
			"nobody else uses; variables whose time is over, checkpoints but the last of each state, and finished " +
			"handoffs. Failed trees are listed when their time is over, and removed only with --failed. A tree " +
			"that has not ended is never removed. The daemon does the same every hour.",
		Example: "perdure gc --dry-run\n perdure gc --retention-completed 1d --failed",
		GroupID: groupManage,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.withBackend(cmd.Context(), l, toRead, func(b *backend) error {
				return a.collect(cmd.Context(), b, client.CollectRequest{
					Completed: l.RetentionCompleted, Failed: l.RetentionFailed, IncludeFailed: failed || l.RetentionRemoveFailed,
					Checkpoints: l.RetentionCheckpoints, Handoffs: l.RetentionHandoffs, DryRun: dryRun,
				}, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "remove nothing, list what would go")
	cmd.Flags().BoolVar(&failed, "failed", false, "remove failed trees too when their time is over")
	settingFlags(cmd, "retention.completed", "retention.failed", "retention.checkpoints", "retention.handoffs")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) collect(ctx context.Context, b *backend, req client.CollectRequest, asJSON bool) error {
	r, err := b.Collect(ctx, req)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(r)
	}
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, t := range r.Trees {
		a.printf("%s %s  %s, %s, ended %s\n", verb, t.ID, t.State, count(t.Tasks, "task"), stamp(t.EndedAt))
	}
	for _, t := range r.Due {
		a.printf("kept %s  %s, %s, ended %s; --failed removes it\n", t.ID, perdure.Failed, count(t.Tasks, "task"),
			stamp(t.EndedAt))
	}
	for _, part := range []struct {
		n    int64
		what string
	}{{r.States, "temporary state"}, {r.Variables, "expired variable"}, {r.Checkpoints, "old checkpoint"},
		{r.Handoffs, "finished handoff"}} {
		if part.n > 0 {
			a.printf("%s %s\n", verb, count(part.n, part.what))
		}
	}
	a.printf("%s %s and %s, %s\n", verb, count(int64(len(r.Trees)), "tree"), count(r.Blobs, "blob"), size(r.Bytes))
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newResumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume [TREE]",
		Short: "Continue interrupted trees",
		Long: "Continue a tree whose process was stopped or killed, or without an argument all unfinished trees. Finished " +
			"tasks keep their results, and no finished model call is repeated. The output is that of `perdure run`, with " +
			"--json one object a line. The exit status is 5 if another process executes the tree.",
		Example:           "perdure resume\n perdure resume tree-1a2b3c4d --json",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			if !env.HasStore(l) { // env.Execute would create one
				return env.NoStore(l)
			}
			return a.With(cmd.Context(), l, env.Execute, func(b *env.Backend) error {
				return a.resume(cmd.Context(), b, args)
			})
		},
	}
	env.ExecutesStored(cmd)
	env.SettingFlags(cmd, "concurrency")
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) resume(ctx context.Context, b *env.Backend, args []string) error {
	if len(args) == 1 {
		id, err := perdure.ParseTreeID(args[0])
		if err != nil {
			return err
		}
		if err := a.recover(ctx, b, id); err != nil {
			return err
		}
		return a.attend(ctx, b, []perdure.TreeID{id})
	}
	all, err := unfinished(ctx, b)
	if err != nil {
		return err
	}
	var mine []perdure.TreeID
	var refused error
	for _, id := range all {
		switch err := a.recover(ctx, b, id); {
		case errors.Is(err, perdure.ErrConflict):
			if refused != nil {
				a.Note("skipped: %v", refused)
			}
			refused = err // returned if no tree is resumed
		case err != nil:
			return err
		default:
			mine = append(mine, id)
		}
	}
	switch {
	case len(mine) == 0 && refused == nil:
		a.Note("no unfinished trees")
		return nil
	case len(mine) == 0:
		return refused
	case refused != nil:
		a.Note("skipped: %v", refused)
	}
	return a.attend(ctx, b, mine)
}

// unfinished returns the trees that have not ended, the oldest first.
func unfinished(ctx context.Context, b *env.Backend) ([]perdure.TreeID, error) {
	var ids []perdure.TreeID
	q := perdure.TreeFilter{Kind: "run", Active: true, Limit: 1000}
	for {
		page, err := b.Trees(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Trees {
			ids = append(ids, t.ID)
		}
		if page.Next == "" {
			slices.Reverse(ids)
			return ids, nil
		}
		q.Before = page.Next
	}
}

// recover makes a tree this process's own, unless a daemon executes it, and notes its
// remaining tasks.
func (a *app) recover(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	if tree.Kind == perdure.KindRecord {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "resume",
			Msg:  fmt.Sprintf("tree %q is an imported record, which is not executed", id),
			Hint: "`perdure run` with its prompt starts a new tree"}
	}
	if tree.Kind == "loop" {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "resume", Msg: fmt.Sprintf("tree %q is a loop", id),
			Hint: "`perdure loop resume " + string(id) + "` continues it"}
	}
	if b.Local != nil {
		if err := b.Local.Check(ctx, &tree); err != nil && !tree.State.Terminal() {
			return err
		}
	}
	r, err := b.Resume(ctx, id, b.Session())
	if err != nil {
		return err
	}
	if r.State.Terminal() {
		a.Note("%s is already %s", id, r.State)
		return nil
	}
	running := ""
	if r.Running > 0 {
		running = fmt.Sprintf(", %d running", r.Running)
	}
	a.Note("%s: %d done, %d queued again, %d pending, %d failed permanently%s", id, r.Done, r.Requeued, r.Pending,
		r.GivenUp, running)
	b.Own(id)
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newResumeCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "resume [TREE]",
		Short: "Go on with a tree that was interrupted",
		Long: "Go on with a tree whose process was stopped or killed; without a tree, with all that are not finished. " +
			"Finished tasks keep their results, and no finished model call is made again. The result is printed as " +
			"perdure run prints it, one JSON object a line with --json. A tree that another process is executing " +
			"is refused with exit status 5.",
		Example:           "perdure resume\n perdure resume tree-1a2b3c4d --json",
		GroupID:           env.GroupRun,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.Load(cmd)
			if err != nil {
				return err
			}
			if !env.HasStore(l) { // env.Execute would make one
				return env.NoStore(l)
			}
			return a.With(cmd.Context(), l, env.Execute, func(b *env.Backend) error {
				return a.resume(cmd.Context(), b, args, asJSON)
			})
		},
	}
	env.SettingFlags(cmd, "concurrency")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) resume(ctx context.Context, b *env.Backend, args []string, asJSON bool) error {
	if len(args) == 1 {
		id, err := perdure.ParseTreeID(args[0])
		if err != nil {
			return err
		}
		if err := a.recover(ctx, b, id); err != nil {
			return err
		}
		return a.attend(ctx, b, []perdure.TreeID{id}, asJSON)
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
				a.Note("left alone: %v", refused)
			}
			refused = err // the last is the error when nothing is resumed
		case err != nil:
			return err
		default:
			mine = append(mine, id)
		}
	}
	if len(mine) == 0 {
		if refused == nil {
			a.Note("there is nothing to resume")
		}
		return refused
	}
	if refused != nil {
		a.Note("left alone: %v", refused)
	}
	return a.attend(ctx, b, mine, asJSON)
}

// unfinished lists the trees that have not ended, the oldest first.
func unfinished(ctx context.Context, b *env.Backend) ([]perdure.TreeID, error) {
	var ids []perdure.TreeID
	q := client.TreeQuery{Kind: "run", Active: true, Limit: 1000}
	for {
		page, err := b.Trees(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Trees {
			ids = append([]perdure.TreeID{t.ID}, ids...)
		}
		if page.Next == "" {
			return ids, nil
		}
		q.Before = page.Next
	}
}

// recover makes a tree this process's own, if no daemon executes it, and tells
// what is left of it.
func (a *app) recover(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	if tree.Kind == perdure.KindRecord {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "resume",
			Msg:  fmt.Sprintf("tree %q was imported: it is a record, and nobody executes it", id),
			Hint: "`perdure run` with its prompt begins anew"}
	}
	if tree.Kind == "loop" {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "resume", Msg: fmt.Sprintf("tree %q is a loop", id),
			Hint: "`perdure loop resume " + string(id) + "` goes on with it"}
	}
	owner := ""
	if b.Local != nil {
		if err := b.Local.Check(ctx, &tree); err != nil && !tree.State.Terminal() {
			return err
		}
		owner = b.Local.SessionID()
	}
	r, err := b.Resume(ctx, id, owner)
	if err != nil {
		return err
	}
	if r.State.Terminal() {
		a.Note("%s is %s already", id, r.State)
		return nil
	}
	running := ""
	if r.Running > 0 {
		running = fmt.Sprintf(", %d running", r.Running)
	}
	a.Note("%s: %d done, %d re-queued, %d pending, %d given up%s", id, r.Done, r.Requeued, r.Pending, r.GivenUp, running)
	if b.Local != nil {
		b.Local.Own(id)
	}
	return nil
}

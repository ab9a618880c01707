package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/rlm"
)

// awaitedFolder has an empty file for each tree whose answer was not printed yet.
const awaitedFolder = "awaited"

// awaitAnswer marks a tree as one whose answer is to be printed. `perdure resume` without an argument
// prints the answers of marked trees.
func awaitAnswer(b *env.Backend, id perdure.TreeID) {
	dir := filepath.Join(b.Config.Dir, awaitedFolder)
	if os.MkdirAll(dir, 0o700) == nil {
		_ = os.WriteFile(filepath.Join(dir, string(id)), nil, 0o600) // a mark that is missing is no failure of the run
	}
}

// removeMark removes the mark of a tree.
func removeMark(b *env.Backend, id perdure.TreeID) {
	_ = os.Remove(filepath.Join(b.Config.Dir, awaitedFolder, string(id)))
}

// unprintedTrees returns the trees that have ended and whose answers were not printed, the oldest first.
func unprintedTrees(ctx context.Context, b *env.Backend) ([]perdure.TreeID, error) {
	marks, err := os.ReadDir(filepath.Join(b.Config.Dir, awaitedFolder))
	if err != nil {
		return nil, nil //nolint:nilerr // there is no mark
	}
	var trees []perdure.Tree
	for _, mark := range marks {
		id, err := perdure.ParseTreeID(mark.Name())
		if err != nil {
			continue
		}
		t, err := b.Tree(ctx, id)
		switch {
		case errors.Is(err, perdure.ErrNotFound): // it was removed
			removeMark(b, id)
		case err != nil:
			return nil, err
		case t.State == perdure.Cancelled:
			removeMark(b, id)
		case t.State.Terminal():
			trees = append(trees, t)
		}
	}
	slices.SortFunc(trees, func(x, y perdure.Tree) int { return x.CreatedAt.Compare(y.CreatedAt) })
	ids := make([]perdure.TreeID, len(trees))
	for i := range trees {
		ids[i] = trees[i].ID
	}
	return ids, nil
}

func (a *app) newResultCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "result [TREE]",
		Short: "Print the answer of a tree again",
		Long: "Print the answer of a tree that has ended, as `perdure run` does: the answer to standard output, with " +
			"--json the object of `perdure run --json`. The exit status is that of the run. Without an argument, print the " +
			"answer of the newest run.",
		Example:           "perdure result tree-1a2b3c4d --json",
		GroupID:           env.GroupInspect,
		Args:              env.Arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTrees(args); err != nil {
				return err
			}
			return a.Do(cmd, env.Read, func(b *env.Backend) error { return a.result(cmd.Context(), b, args) })
		},
	}
	a.JSONFlag(cmd)
	return cmd
}

func (a *app) result(ctx context.Context, b *env.Backend, args []string) error {
	id, err := a.TreeOrNewest(ctx, b, args, rlm.KindRun)
	if err != nil {
		return err
	}
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	if !tree.State.Terminal() {
		return &perdure.Error{Code: perdure.CodeConflict, Op: "print result",
			Msg: fmt.Sprintf("tree %q has not ended", id),
			Hint: fmt.Sprintf("`perdure status %s` shows its progress, `perdure resume %[1]s` continues it if its process "+
				"has ended", id)}
	}
	return a.printResult(ctx, b, id)
}

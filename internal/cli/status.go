package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
)

func (a *app) newStatusCommand() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:   "status [TREE]",
		Short: "Show how far a tree is, or list the recent trees",
		Long: "Show how far a tree is: tasks by state, time left, cost, and what runs. Without a tree, one line for " +
			"each of the recent trees. With --json one object, or one a line.",
		GroupID:           groupSee,
		Args:              arguments(0, 1, "at most one tree"),
		ValidArgsFunction: a.completeTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return env.UsageError("give a number from 1 to 1000", "--limit is %d", limit)
			}
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			return a.withBackend(cmd.Context(), l, toRead, func(b *backend) error {
				if len(args) == 0 {
					return a.listTrees(cmd.Context(), b, limit, asJSON)
				}
				return a.showStatus(cmd.Context(), b, args[0], asJSON)
			})
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 20, "the most trees to list")
	env.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) showStatus(ctx context.Context, b *backend, arg string, asJSON bool) error {
	id, err := perdure.ParseTreeID(arg)
	if err != nil {
		return err
	}
	s, err := b.Status(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(s)
	}
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return err
	}
	a.printf("%s%s", statusBox(a.out, s.Progress, tree.Name), activeList(a.out, s.Active))
	a.printf("%s", slowLines(a.out, &s, time.Now()))
	switch {
	case s.State.Terminal():
	case a.tellGate(&s):
	case tree.Kind == perdure.KindRecord:
		a.note("it was imported: it is a record, and nobody executes it")
	case s.Running == 0 && b.local != nil:
		a.note("nothing runs at the moment; if its process is gone, `perdure resume %s` goes on", id)
	}
	return nil
}

func (a *app) listTrees(ctx context.Context, b *backend, limit int, asJSON bool) error {
	page, err := b.Trees(ctx, client.TreeQuery{Limit: limit})
	if err != nil {
		return err
	}
	if len(page.Trees) == 0 && !asJSON {
		a.note("there are no trees yet; `perdure run` makes one")
	}
	now := time.Now()
	for _, tree := range page.Trees {
		s, err := b.Status(ctx, tree.ID)
		if err != nil {
			return err
		}
		if asJSON {
			if err := a.printJSON(s); err != nil {
				return err
			}
			continue
		}
		a.printf("%s\n", a.treeLine(now, tree, s.Progress))
	}
	return nil
}

// treeLine is a tree in a list.
func (a *app) treeLine(now time.Time, tree perdure.Tree, p perdure.Progress) string {
	state := string(p.State)
	if p.Partial {
		state = "partial"
	}
	left := "took " + seconds(p.ElapsedSeconds)
	if !p.State.Terminal() {
		left = "ETA " + eta(p.ETASeconds)
	}
	line := string(tree.ID) + "  " + a.out.mark(p.State) + " " + pad(state, 9) + " " +
		padLeft(wholePercent(p.Percent), 4) + " of " + pad(count(p.Total, "task"), 12) + " " +
		pad(left, 14) + " " + pad(cost(p.Usage), 10) + " " + a.out.dim(pad(ago(now, tree.CreatedAt), 12))
	return clip(line+" "+oneLine(treeName(tree), max(a.out.width-cells(line)-1, 20)), maxWidth+40)
}

// treeName is what a tree is called: its name, else the model it asks.
func treeName(tree perdure.Tree) string {
	if tree.Name != "" {
		return tree.Name
	}
	var c struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(tree.Config, &c) != nil || c.Model == "" {
		return tree.Kind
	}
	return c.Model
}

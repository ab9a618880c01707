// Package loop implements the command loop.
package loop

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/record"
)

type commands struct{ *env.Env }

// Command returns the command with its subcommands.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	return env.Group(&cobra.Command{
		Use:   "loop",
		Short: "Repeat a coding agent until a check passes",
		Long: "Run a coding agent repeatedly on a folder until a command succeeds. Each iteration starts the agent anew " +
			"with the names of the failing tests. Regressions are found by comparing tests by name, and deleted or skipped " +
			"tests open a gate for the user. At the end the folder contains the best iteration.",
		Example: "perdure loop run \"Make the tests pass\" --until \"go test ./...\" --agent claude\n" +
			"perdure loop status\n perdure loop answer approve",
		GroupID: env.GroupRun,
	}, c.newRunCommand(), c.newResumeCommand(), c.newPauseCommand(), c.newAbortCommand(), c.newAnswerCommand(),
		c.newStatusCommand(), c.newListCommand(), c.newReportCommand(), c.newRisksCommand(), c.newFalseAlarmCommand(),
		c.newImportCommand())
}

// digits matches the ID of a loop and captures its digits, which are those of its tree.
var digits = lazyregexp.New(`^(?:[a-z0-9][a-z0-9-]*-)?([0-9a-f]{8})$`)

// on returns the function of a command on the loop that the arguments name.
func (c *commands) on(why env.Purpose,
	do func(ctx context.Context, b *env.Backend, l record.Loop) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return c.execute(cmd, why, func(b *env.Backend) error {
			l, err := Find(cmd.Context(), b.Client, strings.Join(args, ""))
			if err != nil {
				return err
			}
			return do(cmd.Context(), b, l)
		})
	}
}

// Find returns a loop by its ID or that of its tree. For "" it returns the only loop that
// has not ended, or else the newest.
func Find(ctx context.Context, s *client.Client, id string) (record.Loop, error) {
	if id != "" {
		match := digits().FindStringSubmatch(id)
		if match == nil {
			return record.Loop{}, env.UsageError("`perdure loop list` lists the loops", "%q is not the ID of a loop", id)
		}
		return s.Loop(ctx, perdure.TreeID("tree-"+match[1]))
	}
	const most = 100
	list, err := s.Loops(ctx, most)
	if err != nil {
		return record.Loop{}, err
	}
	open := slices.DeleteFunc(slices.Clone(list), func(l record.Loop) bool { return l.Status.Ended() })
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		return record.Loop{}, env.UsageError("add the ID of one; `perdure loop list` lists the loops",
			"%d loops have not ended", len(open))
	case len(list) == 0:
		return record.Loop{}, env.NotFound("`perdure loop run` starts one", "no loops")
	}
	return list[0], nil
}

// name returns the ID of a loop.
func name(ctx context.Context, b *env.Backend, id perdure.TreeID) string {
	tree, err := b.Tree(ctx, id)
	if err != nil {
		return string(id)
	}
	return loop.ID(&tree)
}

// loopArgument allows one argument, a loop.
func loopArgument() cobra.PositionalArgs { return env.Arguments(0, 1, "at most one loop") }

package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/cache"
	"github.com/perdure/perdure/internal/cli/state"
	"github.com/perdure/perdure/internal/config"
)

// stateCommands are those on variables and checkpoints.
func (a *app) stateCommands() []*cobra.Command {
	return state.Commands(state.Config{
		Stdin: a.env.Stdin, Out: a.out, Err: a.err, Width: a.out.width,
		Interactive: func() bool {
			_, typed := a.env.Terminal(a.env.Stdin)
			return typed && a.out.terminal
		},
		Safe: a.out.safe, Bold: a.out.bold, Dim: a.out.dim,
		Getenv: a.env.getenv, Cwd: a.env.Cwd, GroupID: groupState,
		Arguments: arguments, CompleteTrees: a.completeTrees,
		Connect: func(cmd *cobra.Command, write bool, do func(*client.Client, string) error) error {
			l, err := a.load(cmd)
			if err != nil {
				return err
			}
			why := toRead
			if write {
				why = toWrite
			}
			return a.withBackend(cmd.Context(), l, why, func(b *backend) error { return do(b.Client, l.Dir) })
		},
	})
}

// cacheDir is where the answers of a project are kept.
func cacheDir(l *config.Loaded) string { return filepath.Join(l.Dir, "cache") }

// cacheCommand has the commands on answers that are kept.
func (a *app) cacheCommand() *cobra.Command {
	return cache.Command(cache.Config{
		Out: a.out, PrintJSON: a.printJSON, Note: a.note, Safe: a.out.safe, GroupID: groupManage, Arguments: arguments,
		Dir: func(cmd *cobra.Command) (string, error) {
			l, err := a.load(cmd)
			if err != nil {
				return "", err
			}
			return cacheDir(l), nil
		},
	})
}

package cli

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/handoff"
)

// handoffCommand has the commands of handoff.
func (a *app) handoffCommand() *cobra.Command {
	return handoff.Command(handoff.Config{
		Stdin: a.env.Stdin, Out: a.out, Err: a.err, PrintJSON: a.printJSON,
		Safe: a.out.safe, Bold: a.out.bold, Dim: a.out.dim,
		Getenv: a.env.getenv, Cwd: a.env.Cwd, GroupID: groupState, Arguments: arguments,
		Incomplete: func(msg, hint string) error { return &outcome{exitIncomplete, msg, hint} },
		Failed:     func(msg, hint string) error { return &outcome{exitFailed, msg, hint} },
		Connect: func(cmd *cobra.Command, root string, write bool, do func(handoff.Store) error) error {
			l, err := a.load(cmd)
			if err == nil && !l.Exists && write {
				l, err = a.loadFrom(cmd, root) // a new store is made where the file is
			}
			if err != nil {
				return err
			}
			why := toRead
			if write {
				why = toWrite
			}
			return a.withBackend(cmd.Context(), l, why, func(b *backend) error {
				return do(handoff.Store{Client: b.Client, Dir: l.Dir, Shared: l.Store != "", Thresholds: thresholds(l)})
			})
		},
	})
}

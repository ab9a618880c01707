// Package transfer implements the commands export and import.
package transfer

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
)

type commands struct{ *env.Env }

// Commands makes the commands.
func Commands(e *env.Env) []*cobra.Command {
	c := &commands{e}
	return []*cobra.Command{c.newExport(), c.newImport()}
}

// Package transfer implements the commands export and import.
package transfer

import (
	"github.com/spf13/cobra"

	"github.com/perdure/perdure/internal/cli/env"
)

type commands struct{ *env.Env }

// ExportCommand returns the command export.
func ExportCommand(e *env.Env) *cobra.Command { return (&commands{e}).newExport() }

// ImportCommand returns the command import.
func ImportCommand(e *env.Env) *cobra.Command { return (&commands{e}).newImport() }

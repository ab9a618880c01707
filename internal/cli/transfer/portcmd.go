// Package transfer has the commands that bring records out of the store and into
// it: export and import. They are part of the command line, which gives them what
// they need of the world in [Config].
package transfer

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/config"
)

// Config is the program around the commands. All fields are required.
type Config struct {
	Out io.Writer
	// PrintJSON writes a value to Out as one line.
	PrintJSON func(v any) error
	// Note tells people something beside the result.
	Note func(format string, args ...any)
	// Bold styles text for Out.
	Bold func(text string) string
	// Getenv looks up an environment variable.
	Getenv func(name string) string
	// Path makes a path absolute.
	Path func(name string) string
	// ExportGroup and ImportGroup are where the commands stand in the help.
	ExportGroup, ImportGroup string
	// Arguments makes a check of the number of arguments that says what was
	// expected; most -1 is any number.
	Arguments func(least, most int, what string) cobra.PositionalArgs
	// CompleteTrees offers trees to the shell.
	CompleteTrees cobra.CompletionFunc
	// WriteOutput hands content a file that appears as a whole, or Out when there is
	// no name.
	WriteOutput func(name string, content func(io.Writer) error) error
	// Incomplete is the error of a command that has said what somebody should look at.
	Incomplete error
	// Load reads the settings; HasStore tells whether there is a store.
	Load     func(cmd *cobra.Command) (*config.Loaded, error)
	HasStore func(l *config.Loaded) bool
	// Open gives do the store itself, also beside a daemon; to write, it is made when
	// there is none. Connect gives it the API.
	Open    func(ctx context.Context, l *config.Loaded, write bool, do func(*perdure.Store) error) error
	Connect func(ctx context.Context, l *config.Loaded, do func(*client.Client) error) error
}

type commands struct{ Config }

// Commands makes the commands.
func Commands(cfg Config) []*cobra.Command {
	c := &commands{cfg}
	return []*cobra.Command{c.newExport(), c.newImport()}
}

func (c *commands) printf(format string, args ...any) { fmt.Fprintf(c.Out, format, args...) }

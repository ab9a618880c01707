// Package state has the commands on variables and their checkpoints: var,
// checkpoint and repl. They are part of the command line, which gives them what
// they need of the world in [Config]; like all commands they make calls of the
// API's client and show the answers.
package state

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// Config is the program around the commands. All fields are required.
type Config struct {
	Stdin    io.Reader
	Out, Err io.Writer
	// Width is how many cells a line of Out has.
	Width int
	// Interactive tells whether a person types and reads.
	Interactive func() bool
	// Safe makes text of others harmless for Out; Bold and Dim style it.
	Safe, Bold, Dim func(text string) string
	// Getenv looks up an environment variable.
	Getenv func(name string) string
	// Cwd is the working directory, absolute.
	Cwd string
	// GroupID is where the commands stand in the help.
	GroupID string
	// Arguments makes a check of the number of arguments that says what was
	// expected; most -1 is any number.
	Arguments func(least, most int, what string) cobra.PositionalArgs
	// CompleteTrees offers trees to the shell.
	CompleteTrees cobra.CompletionFunc
	// Connect gives do a client and the store's folder. To write it makes the
	// store when there is none.
	Connect func(cmd *cobra.Command, write bool, do func(c *client.Client, dir string) error) error
}

// Commands makes the commands.
func Commands(cfg Config) []*cobra.Command {
	c := &commands{cfg}
	return []*cobra.Command{c.newVarCommand(), c.newCheckpointCommand(), c.newReplCommand()}
}

type commands struct{ Config }

// group is a command that only holds others.
func (c *commands) group(use, short, long, what string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, GroupID: c.GroupID, Args: c.Arguments(0, 0, what),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(subs...)
	return cmd
}

// target is what a command acts on: a state of a store.
type target struct {
	*client.Client
	ref perdure.StateRef
	dir string
}

// on connects and does something with the state that the flags name.
func (c *commands) on(cmd *cobra.Command, s *scopeFlags, write bool,
	do func(ctx context.Context, t *target) error) error {
	ref, err := c.ref(s)
	if err != nil {
		return err
	}
	return c.Connect(cmd, write, func(cl *client.Client, dir string) error {
		t := &target{Client: cl, ref: ref, dir: dir}
		if err := s.climb(cmd.Context(), t); err != nil {
			return err
		}
		return do(cmd.Context(), t)
	})
}

// printf writes to Out, which remembers what goes wrong.
func (c *commands) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.Out, format, args...) }

// warn writes to Err.
func (c *commands) warn(format string, args ...any) { _, _ = fmt.Fprintf(c.Err, format, args...) }

// hint writes advice to standard error.
func (c *commands) hint(format string, args ...any) {
	c.warn("perdure: hint: "+format+"\n", args...)
}

// printJSON writes v as one line.
func (c *commands) printJSON(v any) error {
	enc := json.NewEncoder(c.Out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return nil
}

// oneLine makes text fit into one line of at most width cells.
func (c *commands) oneLine(text string, width int) string {
	text = strings.Join(strings.Fields(text), " ")
	return ansi.Truncate(c.Safe(text), max(width, 1), "…")
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

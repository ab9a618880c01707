// Package loop has the commands of loops. They are part of the command line,
// which gives them what they need of the world in [Config]. Loops are reached
// through the API's client, like everything in the store.
package loop

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/aiwg/loopimport"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Config is the program around the commands. All fields are required.
type Config struct {
	Stdin io.Reader
	// Terminal tells whether a person can be asked on Stdin.
	Terminal func() bool
	Out, Err io.Writer
	// PrintJSON writes a value to Out as one line.
	PrintJSON func(v any) error
	// WriteOutput gives write a file of a name, or Out for an empty one.
	WriteOutput func(name string, write func(io.Writer) error) error
	// Width is how many characters a line of Out may have.
	Width int
	// Colour and ErrColour tell whether Out and Err show colours.
	Colour, ErrColour bool
	// Safe makes text of others harmless for Out; Bold and Dim style it.
	Safe, Bold, Dim func(text string) string
	// Cwd is the working directory, absolute.
	Cwd string
	// User tells who answers gates; empty when nobody knows.
	User func() string
	// GroupID is where the commands stand in the help.
	GroupID string
	// Arguments makes a check of the number of arguments that says what was
	// expected; most -1 is any number.
	Arguments func(least, most int, what string) cobra.PositionalArgs
	// Ended is the error of a command that did what it was asked and whose exit
	// status tells how a loop stands.
	Ended func(as Ending, msg, hint string) error
	// Bell calls a person who follows a loop to the terminal, where that is wanted.
	Bell func()
	// Settings returns what the settings say of loops for tasks of a type; empty is
	// the ordinary one.
	Settings func(cmd *cobra.Command, kind string) (config.Config, error)
	// Read gives do a store that is there.
	Read func(cmd *cobra.Command, do func(s Store) error) error
	// Execute gives do a store whose loops this process may run, and makes one
	// when there is none.
	Execute func(cmd *cobra.Command, do func(s Store) error) error
	// Detach gives do the store of a daemon; without one it is an error that says
	// so.
	Detach func(cmd *cobra.Command, do func(s Store) error) error
}

// Ending is how a command about a loop ends otherwise than with success.
type Ending int

// The endings.
const (
	// NotDone: the loop ended and the check does not pass.
	NotDone Ending = iota
	// Stopped: the loop is paused or aborted; somebody should look.
	Stopped
	// AtGate: the loop waits for a person.
	AtGate
	// Interrupted: Ctrl-C.
	Interrupted
)

// Store is where loops are.
type Store struct {
	*client.Client
	// Run executes a loop in this process until done returns; nil when a daemon
	// does it.
	Run func(ctx context.Context, id perdure.TreeID, done func(context.Context) error) error
	// Import takes in a loop that began elsewhere, also beside a daemon.
	Import func(ctx context.Context, req loopimport.Request) (loopimport.Imported, error)
	// Session is this process's session; empty when a daemon runs loops.
	Session string
}

type commands struct{ Config }

// Command makes the command with its subcommands.
func Command(cfg Config) *cobra.Command {
	c := &commands{cfg}
	cmd := &cobra.Command{
		Use:   "loop",
		Short: "Repeat a coding agent until a check passes",
		Long: "Run a coding agent again and again on a folder until a command of yours succeeds. Each iteration starts " +
			"the agent " +
			"afresh and tells it what fails, by name. What an iteration breaks is noticed by the tests' own names; deleted or " +
			"skipped tests go to a person. In the end the best iteration is in the folder.",
		Example: "perdure loop run \"Make the tests pass\" --until \"go test ./...\" --agent claude\n perdure loop status\n" +
			" perdure loop answer approve",
		GroupID: c.GroupID,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.newRunCommand(), c.newResumeCommand(), c.newPauseCommand(), c.newAbortCommand(), c.newAnswerCommand(),
		c.newStatusCommand(), c.newListCommand(), c.newReportCommand(), c.newRisksCommand(), c.newFalseAlarmCommand(),
		c.newImportCommand())
	return cmd
}

// digits end the ID of a loop; its tree's are the same.
var digits = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:[a-z0-9][a-z0-9-]*-)?([0-9a-f]{8})$`)
})

func find(ctx context.Context, s Store, args []string) (record.Loop, error) {
	return Find(ctx, s.Client, args)
}

// Find returns a loop by its ID or its tree's. Without either it is the one loop
// that has not ended, or else the latest.
func Find(ctx context.Context, s *client.Client, args []string) (record.Loop, error) {
	if len(args) == 1 {
		match := digits().FindStringSubmatch(args[0])
		if match == nil {
			return record.Loop{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "find loop",
				Msg:  fmt.Sprintf("%q is no loop", args[0]),
				Hint: "`perdure loop list` shows them"}
		}
		return s.Loop(ctx, perdure.TreeID("tree-"+match[1]))
	}
	const most = 100
	list, err := s.Loops(ctx, most)
	if err != nil {
		return record.Loop{}, err
	}
	var open []record.Loop
	for _, l := range list {
		if !l.Status.Ended() {
			open = append(open, l)
		}
	}
	switch {
	case len(open) == 1:
		return open[0], nil
	case len(open) > 1:
		return record.Loop{}, &perdure.Error{Code: perdure.CodeInvalid, Op: "find loop",
			Msg:  fmt.Sprintf("%d loops have not ended; say which one is meant", len(open)),
			Hint: "`perdure loop list` shows them"}
	case len(list) == 0:
		return record.Loop{}, &perdure.Error{Code: perdure.CodeNotFound, Op: "find loop", Msg: "there is no loop",
			Hint: "`perdure loop run` begins one"}
	}
	return list[0], nil
}

// name is what people call a loop.
func name(ctx context.Context, s Store, id perdure.TreeID) string {
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return string(id)
	}
	return loop.ID(&tree)
}

func (c *commands) say(format string, args ...any) { c.tell("perdure: "+format+"\n", args...) }

// tell prints for whoever watches; that nobody can read it stops nothing.
func (c *commands) tell(format string, args ...any) { _, _ = fmt.Fprintf(c.Err, format, args...) }

// loopFlags are the flags that many commands have.
func loopArgument(c *commands) cobra.PositionalArgs { return c.Arguments(0, 1, "at most one loop") }

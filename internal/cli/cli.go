// Package cli is the command line: one file per command. A command parses what
// the user wrote, makes calls of the API's client, and shows the answers. When
// a daemon listens in the .perdure folder the client talks to it; otherwise the
// same handler runs inside the command.
//
// Results go to standard output, everything else to standard error. What
// commands know of the world is in [Env].
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	cmdenv "github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/config"
)

// Main runs the command that env.Args name and returns the exit status. After
// a second Ctrl-C it returns at once, with the command still running: the
// caller is expected to exit.
func Main(ctx context.Context, env Env) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := newApp(env)
	done := make(chan error, 1)
	go func() { done <- a.execute(ctx) }()
	for interrupted := false; ; interrupted = true {
		select {
		case err := <-done:
			return a.finish(err)
		case <-a.env.Signals:
			if interrupted {
				return exitInterrupted
			}
			cancel(errInterrupted)
		}
	}
}

// app is one execution of the program.
type app struct {
	env      Env
	out, err *stream
	// parsed: the command line was understood; errors from here on are not
	// about how it was written.
	parsed bool
}

func newApp(env Env) *app {
	env = env.withDefaults()
	return &app{env: env, out: env.stream(env.Stdout), err: env.stream(env.Stderr)}
}

func (a *app) execute(ctx context.Context) error {
	root := a.newRoot()
	root.SetArgs(a.env.Args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.parsed {
		return asUsageError(err)
	}
	return err
}

// finish prints the error, if any, and returns the exit status.
func (a *app) finish(err error) int {
	if err == nil {
		if failed := a.out.failed(); failed != nil {
			err = fmt.Errorf("write result: %w", failed)
		}
	}
	if err != nil {
		printError(a.err, err)
	}
	return exitStatus(err)
}

// asUsageError makes an error of the command line's parser bad input.
func asUsageError(err error) error {
	var own *perdure.Error
	var outcome *outcome
	if errors.As(err, &own) || errors.As(err, &outcome) {
		return err
	}
	return cmdenv.UsageError("perdure --help shows what there is", "%s", err.Error())
}

// The groups of commands in the help.
const (
	groupRun    = "run"
	groupSee    = "see"
	groupState  = "state"
	groupManage = "manage"
)

func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "perdure",
		Short: "Run work of AI agents that survives crashes",
		Long: "perdure runs prompts over more text than fits a model as trees of durable tasks. " +
			"Kill it at any instant: perdure resume goes on, and no finished model call is paid for again.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          a.knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			// The library would see it after this, as an error of the command.
			if err := cmd.ValidateFlagGroups(); err != nil {
				return flagError(cmd, err)
			}
			a.parsed = true
			return a.byPerson(cmd, args)
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(a.env.Stdin)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetHelpFunc(a.help)
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run"},
		&cobra.Group{ID: groupSee, Title: "See"},
		&cobra.Group{ID: groupState, Title: "Remember"},
		&cobra.Group{ID: groupManage, Title: "Manage"},
	)
	for _, c := range a.commands() {
		root.AddCommand(c)
	}
	root.SetHelpCommandGroupID(groupManage)
	root.SetCompletionCommandGroupID(groupManage)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(a.env.Args...)
	return root
}

// knownCommand is what cobra asks when a word is no command.
func (a *app) knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	hint := "perdure --help lists the commands"
	if near, ok := config.Nearest(args[0], names); ok {
		hint = fmt.Sprintf("did you mean %q?", "perdure "+near)
	}
	return cmdenv.UsageError(hint, "%q is not a command", args[0])
}

func flagError(cmd *cobra.Command, err error) error {
	return cmdenv.UsageError(fmt.Sprintf("%s --help shows its flags", cmd.CommandPath()), "%s", err.Error())
}

// arguments returns a check of the number of arguments that says what was
// expected.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		hint := fmt.Sprintf("%s --help shows how it is written", cmd.CommandPath())
		if len(args) > most && most > 0 {
			hint = "put a text of several words in quotes; " + hint
		}
		return cmdenv.UsageError(hint, "%s takes %s, %d given", cmd.Name(), what, len(args))
	}
}

// printJSON writes v as one line.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	return nil
}

// printf writes to standard output.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// note writes a line to standard error.
func (a *app) note(format string, args ...any) { fmt.Fprintf(a.err, "perdure: "+format+"\n", args...) }

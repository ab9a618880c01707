package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
)

// Main runs the command that p.Args name and returns the exit status. After a
// second interrupt it returns at once, while the command still runs; the caller
// exits then.
func Main(ctx context.Context, p env.Process) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := newApp(p)
	done := make(chan error, 1)
	go func() { done <- a.execute(ctx) }()
	for interrupted := false; ; interrupted = true {
		select {
		case err := <-done:
			return a.finish(err)
		case s := <-a.Signals:
			if interrupted && s != syscall.SIGHUP {
				return env.StatusInterrupted
			}
			cancel(env.ErrInterrupted)
		}
	}
}

// app is one execution of the program.
type app struct {
	*env.Env
	// parsed reports whether the command line was parsed. Errors before that are
	// errors of usage.
	parsed bool
	// helpAll shows all flags in the help.
	helpAll bool
}

func newApp(p env.Process) *app { return &app{Env: env.New(p)} }

func (a *app) execute(ctx context.Context) error {
	root := a.newRoot() // may replace an argument
	root.SetArgs(a.Args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.parsed {
		return asUsageError(err)
	}
	return err
}

// finish prints err, if any, and returns the exit status.
func (a *app) finish(err error) int {
	if err == nil {
		if failed := a.Out.Failed(); failed != nil {
			err = fmt.Errorf("write result: %w", failed)
		} else if a.Out.Stopped() {
			err = &env.Exit{Status: env.StatusFailed} // the reader knows that it closed the pipe
		}
	}
	if status := env.StatusOf(err); err != nil && status == env.StatusUsage && a.wantsJSON() {
		a.PrintErrorJSON(err)
	} else if err != nil {
		a.PrintError(err)
	}
	return env.StatusOf(err)
}

// wantsJSON reports whether --json was given. Of a command line that could not be parsed,
// it is the last such argument.
func (a *app) wantsJSON() bool {
	if a.parsed {
		return a.JSON
	}
	wants := false
	for _, arg := range a.Args {
		if arg == "--" {
			break
		}
		if arg == "--json" {
			wants = true
		} else if value, ok := strings.CutPrefix(arg, "--json="); ok {
			on, err := strconv.ParseBool(value)
			wants = on && err == nil
		}
	}
	return wants
}

// asUsageError returns an error of cobra, which parses the command line, as bad input.
func asUsageError(err error) error {
	if _, ok := errors.AsType[*env.Exit](err); ok || perdure.CodeOf(err) != perdure.CodeInternal {
		return err
	}
	return env.UsageError("perdure --help lists the commands", "%s", err)
}

func (a *app) newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "perdure",
		Short: "Run AI agents and prompts as durable tasks",
		Long: "perdure runs prompts over large contexts, and loops of coding agents, as durable tasks. After a crash, " +
			"`perdure resume` continues without repeating a finished model call.",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          env.KnownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			// cobra checks the groups only after this function.
			if err := cmd.ValidateFlagGroups(); err != nil {
				return groupError(cmd, err)
			}
			a.parsed = true
			return a.refuseAgent(cmd, args)
		},
	}
	root.SetIn(a.Stdin)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetHelpFunc(a.help)
	root.PersistentFlags().VarPF(helpAll{&a.helpAll}, "help-all", "", "show the help with all flags").NoOptDefVal = "true"
	root.PersistentFlags().Lookup("help-all").Hidden = true
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(
		&cobra.Group{ID: env.GroupRun, Title: "Run"},
		&cobra.Group{ID: env.GroupInspect, Title: "Inspect"},
		&cobra.Group{ID: env.GroupState, Title: "State"},
		&cobra.Group{ID: env.GroupManage, Title: "Manage"},
	)
	a.addCommands(root)
	root.SetHelpCommandGroupID(env.GroupManage)
	root.SetCompletionCommandGroupID(env.GroupManage)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(a.Args...)
	refuseUnknownTopics(root)
	return root
}

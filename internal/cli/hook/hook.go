// Package hook implements the command hook, which coding agents run around their
// tool calls.
package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/toolguard/policy"
	"github.com/perdure/perdure/internal/toolguard/risk"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

// The timeouts of an answer, with a loop, which calls handlers and takes snapshots, and
// without. Agents are configured to wait longer, because they allow a call whose hook
// times out.
const (
	timeoutLoop  = vendorhook.Patience
	timeoutAlone = 10 * time.Second
)

type commands struct{ *env.Env }

// Command returns the command.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var socket string
	cmd := &cobra.Command{
		Use:   "hook AGENT",
		Short: "Check a tool call, for the hooks of coding agents",
		Long: "Check a tool call of a coding agent: read the agent's hook message as JSON from standard input and print " +
			"the reply. AGENT is claude-code or codex, which use the same format. Agents run this command from their " +
			"hooks.\n\n" +
			"Before a call (PreToolUse), the table of `perdure loop risks` decides: block denies the call, gate leaves the " +
			"decision to the agent's user, warn adds a warning. In a loop, the loop decides, with gates, handlers and " +
			"snapshots; after a risky call (PostToolUse) it reports lost tests and checks to the agent. Loops configure this " +
			"hook for their agents themselves.\n\n" +
			"Any error denies the call with exit status 2. Agents allow the call after any other failure, so configure the " +
			"hook as: perdure hook claude-code || { echo denied >&2; exit 2; }",
		Example:   "perdure hook claude-code < event.json",
		GroupID:   env.GroupManage,
		Args:      env.Arguments(1, 1, "the name of an agent: claude-code or codex"),
		ValidArgs: dialects(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(dialects(), args[0]) {
				return env.Unknown("agent", args[0], dialects())
			}
			return c.hook(cmd, cmp.Or(socket, c.Getenv(vendorhook.SocketVariable)))
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "`PATH` socket of the loop; default: $"+vendorhook.SocketVariable)
	return cmd
}

// dialects returns the supported agents.
func dialects() []string { return []string{"claude-code", "codex"} }

// hook answers one event within a timeout.
func (c *commands) hook(cmd *cobra.Command, socket string) error {
	timeout := timeoutAlone
	if socket != "" {
		timeout = timeoutLoop
	}
	ctx, stop := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("no answer within %s", timeout))
	defer stop()
	done := make(chan error, 1)
	var reply strings.Builder
	go func() { done <- c.answer(ctx, cmd, socket, &reply) }()
	select {
	case err := <-done:
		if err == nil {
			_, err = io.WriteString(c.Stdout, reply.String())
		}
		return c.fault(err)
	case <-ctx.Done(): // standard input can stay open
		return c.fault(context.Cause(ctx))
	}
}

// lateError is an error after a call, which cannot be denied any more.
type lateError struct{ error }

// fault returns an error that denies the call: one of bad input, whose exit status is 2.
func (c *commands) fault(err error) error {
	if late, ok := errors.AsType[lateError](err); ok {
		return late.error
	}
	if err == nil {
		return nil
	}
	return env.UsageError(cmp.Or(perdure.HintOf(err), "`perdure doctor` checks the project"),
		"tool call denied, because it could not be checked: %s", err)
}

// answer reads an event and writes the reply.
func (c *commands) answer(ctx context.Context, cmd *cobra.Command, socket string, w io.Writer) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	e, err := vendorhook.Read(c.Stdin)
	switch {
	case err != nil && e != nil && e.Name != vendorhook.PreToolUse:
		return lateError{err}
	case err != nil:
		return env.UsageError("standard input has to be one JSON object with hook_event_name, cwd, tool_name and tool_input",
			"%s", err)
	case e.Call == nil:
		return nil
	}
	var a vendorhook.Answer
	switch {
	case socket != "":
		a, err = vendorhook.Ask(ctx, socket, e)
	case policy.Mutates(e.Call) && e.Name == vendorhook.PreToolUse:
		a, err = c.judge(cmd, e)
	default:
		return nil
	}
	if err != nil && e.Name != vendorhook.PreToolUse {
		return lateError{err}
	}
	if err != nil {
		return err
	}
	return e.Write(w, a)
}

// judge decides about a call of an agent that runs in no loop.
func (c *commands) judge(cmd *cobra.Command, e *vendorhook.Event) (vendorhook.Answer, error) {
	l, err := c.LoadFrom(cmd, e.Dir)
	if err != nil || !l.Loop.Enabled {
		return vendorhook.Answer{Verdict: vendorhook.Pass}, err
	}
	dir, err := filepath.EvalSymlinks(e.Dir)
	if err != nil {
		return vendorhook.Answer{}, err
	}
	j := (&policy.Policy{Root: projectRoot(dir), Own: []string{l.Dir}, Answers: l.Loop.Risks}).Judge(e.Call, dir)
	verdict := vendorhook.Pass
	switch j.Answer {
	case risk.Block:
		verdict = vendorhook.Deny
	case risk.Gate:
		verdict = vendorhook.Leave
	default: // allowed
	}
	return vendorhook.Answer{Verdict: verdict, Text: j.Text()}, nil
}

// projectRoot returns the nearest folder with a store or a repository from dir upwards,
// or dir.
func projectRoot(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, name := range []string{".perdure", ".git"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

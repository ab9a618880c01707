// Package hook implements the command hook, which coding agents run around their
// tool calls.
package hook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
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
			"the reply. AGENT is claude-code, codex, gemini or opencode (whose plugin calls this command). Agents run this " +
			"command from their hooks; `perdure install AGENT` configures them.\n\n" +
			"Before a call (PreToolUse, BeforeTool), the table of `perdure loop risks` decides: block denies the call, warn " +
			"adds a warning, gate needs a person. Where the agent can ask its user (Claude Code in a terminal), it asks; " +
			"otherwise the call is denied, and the reply names the command that allows it once: `perdure hook allow ID`. " +
			"In a loop, the loop decides, with gates, handlers and snapshots; after a risky call (PostToolUse, AfterTool) it " +
			"reports lost tests and checks to the agent. Loops configure this hook for their agents themselves.\n\n" +
			"Any error denies the call with exit status 2. Agents allow the call after any other failure, so configure the " +
			"hook as: perdure hook claude-code || { echo denied >&2; exit 2; }",
		Example:   "perdure hook claude-code < event.json",
		GroupID:   env.GroupManage,
		Args:      env.Arguments(1, 1, "the name of an agent: claude-code, codex, gemini or opencode"),
		ValidArgs: agents(),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, ok := vendorhook.DialectOf(args[0])
			if !ok {
				return env.Unknown("agent", args[0], agents())
			}
			return c.hook(cmd, d, cmp.Or(socket, c.Getenv(vendorhook.SocketVariable)))
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "`PATH` socket of the loop; default: $"+vendorhook.SocketVariable)
	cmd.AddCommand(c.allowCommand())
	return cmd
}

// agents returns the names of the supported agents.
func agents() []string {
	var names []string
	for _, d := range vendorhook.Dialects() {
		names = append(names, d.Agent)
	}
	return names
}

// hook answers one event within a timeout.
func (c *commands) hook(cmd *cobra.Command, d *vendorhook.Dialect, socket string) error {
	timeout := timeoutAlone
	if socket != "" {
		timeout = timeoutLoop
	}
	ctx, stop := context.WithTimeoutCause(cmd.Context(), timeout, fmt.Errorf("no answer within %s", timeout))
	defer stop()
	done := make(chan error, 1)
	var reply strings.Builder
	go func() { done <- c.answer(ctx, cmd, asked{d, socket}, &reply) }()
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

// asked is the agent that asks, and the socket of its loop; empty without one.
type asked struct {
	*vendorhook.Dialect
	socket string
}

// answer reads an event and writes the reply.
func (c *commands) answer(ctx context.Context, cmd *cobra.Command, by asked, w io.Writer) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	e, err := by.Read(c.Stdin)
	switch {
	case err != nil && e != nil && (e.Name == vendorhook.PostToolUse || e.Name == vendorhook.PostToolUseFailure):
		return lateError{err}
	case err != nil:
		return env.UsageError("standard input has to be one JSON object with hook_event_name, cwd, tool_name and tool_input",
			"%s", err)
	case e.Call == nil:
		return nil
	}
	if by.socket == "" {
		e.Dir = policy.Folder(e.Dir, c.Cwd, c.Getenv)
	}
	var a vendorhook.Answer
	switch {
	case by.socket != "":
		a, err = vendorhook.Ask(ctx, by.socket, e)
	case policy.Mutates(e.Call) && e.Name == vendorhook.PreToolUse:
		a, err = c.judge(cmd, by.Agent, e)
	case policy.Mutates(e.Call) && e.Late():
		a, err = c.remind(cmd, e)
	default:
		a.Verdict = vendorhook.Pass
	}
	if err != nil && e.Name != vendorhook.PreToolUse {
		return lateError{err}
	}
	if err != nil {
		return err
	}
	return e.Write(w, a)
}

// judgement judges a call of an agent that runs in no loop; nil if nothing is judged here.
func (c *commands) judgement(cmd *cobra.Command, e *vendorhook.Event) (*policy.Judgement, error) {
	l, err := c.LoadFrom(cmd, e.Dir)
	if err != nil || !l.Loop.Enabled {
		return nil, err
	}
	p, err := policy.Outside(e.Dir, l.Dir, l.Loop.Risks)
	if err != nil {
		return nil, err
	}
	j := p.Judge(e.Call, e.Dir)
	return &j, nil
}

// judge decides about a call of an agent that runs in no loop.
func (c *commands) judge(cmd *cobra.Command, agentName string, e *vendorhook.Event) (vendorhook.Answer, error) {
	j, err := c.judgement(cmd, e)
	if err != nil || j == nil {
		return vendorhook.Answer{Verdict: vendorhook.Pass}, err
	}
	a := vendorhook.Answer{Verdict: vendorhook.Pass, Text: j.Text()}
	switch j.Answer {
	case risk.Block:
		a.Verdict = vendorhook.Deny
	case risk.Gate:
		a = c.gate(agentName, e, j)
	default: // allowed
	}
	return a, nil
}

// remind returns the warning about a call to an agent that takes none before the call.
func (c *commands) remind(cmd *cobra.Command, e *vendorhook.Event) (vendorhook.Answer, error) {
	j, err := c.judgement(cmd, e)
	if err != nil || j == nil || j.Answer != risk.Warn {
		return vendorhook.Answer{Verdict: vendorhook.Pass}, err
	}
	return vendorhook.Answer{Verdict: vendorhook.Pass, Text: j.Text()}, nil
}

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

// How long is waited: for a loop, which asks handlers and takes snapshots, and
// otherwise. Agents are told to wait longer than that, because they take a hook that
// they gave up for one that has nothing to say.
const (
	patienceLoop  = vendorhook.Patience
	patienceAlone = 10 * time.Second
)

type commands struct{ *env.Env }

// Command makes the command.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var socket string
	cmd := &cobra.Command{
		Use:   "hook AGENT",
		Short: "Judge a tool call for a coding agent's own hooks",
		Long: "Judge a tool call: read what an agent tells its hooks, as JSON on standard input, and answer in its form. " +
			"AGENT is " +
			"claude-code or codex, which share it. Agents run this command; people do not.\n\n" +
			"Before a call (PreToolUse) the table of `perdure loop risks` says what is done: blocked calls are refused, a " +
			"gate is left to " +
			"the person at the agent, a warning is told to the agent. After a risky call of an agent that works in a loop " +
			"(PostToolUse) the agent is told when tests or checks were lost. In a loop the loop decides, with the answers of " +
			"people, " +
			"handlers and snapshots; loops give their agents this hook by themselves. Elsewhere the project's settings " +
			"decide.\n\n" +
			"Whatever goes wrong refuses the call, with exit status 2. An agent takes any other failure for consent, so its " +
			"settings " +
			"should say: perdure hook claude-code || { echo refused >&2; exit 2; }",
		Example:   "perdure hook claude-code < event.json",
		GroupID:   env.GroupManage,
		Args:      env.Arguments(1, 1, "the name of an agent: claude-code or codex"),
		ValidArgs: dialects(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(dialects(), args[0]) {
				return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf("there is no hook for %q", args[0]),
					Hint: "there are " + strings.Join(dialects(), " and ")}
			}
			if socket == "" {
				socket = c.Getenv(vendorhook.SocketVariable)
			}
			return c.hook(cmd, socket)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "the `path` at which a loop answers (default $"+
		vendorhook.SocketVariable+")")
	return cmd
}

// dialects are the agents whose hooks are understood.
func dialects() []string { return []string{"claude-code", "codex"} }

// hook answers one event. It never waits for ever.
func (c *commands) hook(cmd *cobra.Command, socket string) error {
	patience := patienceAlone
	if socket != "" {
		patience = patienceLoop
	}
	ctx, stop := context.WithTimeoutCause(cmd.Context(), patience, errors.New("it took too long"))
	defer stop()
	done := make(chan error, 1)
	var said strings.Builder
	go func() { done <- c.answer(ctx, cmd, socket, &said) }()
	select {
	case err := <-done:
		if err == nil {
			_, err = io.WriteString(c.Stdout, said.String())
		}
		return c.fault(err)
	case <-ctx.Done(): // standard input may never end
		return c.fault(context.Cause(ctx))
	}
}

// harmless is the fault of an event that refuses nothing.
type harmless struct{ error }

// fault says that a call is refused because nobody knows better: with the exit status
// of bad input, which is 2.
func (c *commands) fault(err error) error {
	var late harmless
	switch {
	case err == nil:
		return nil
	case errors.As(err, &late):
		return late.error
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Msg: "this call was not judged, so it is refused: " + err.Error(),
		Hint: cmp.Or(perdure.HintOf(err), "perdure doctor looks for what is wrong with the project")}
}

// answer reads an event and writes what is said to it.
func (c *commands) answer(ctx context.Context, cmd *cobra.Command, socket string, w io.Writer) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("it crashed: %v", fault)
		}
	}()
	e, err := vendorhook.Read(c.Stdin)
	switch {
	case err != nil && e != nil && e.Name != vendorhook.PreToolUse:
		return harmless{err}
	case err != nil:
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: err.Error(), Hint: "an agent sends one JSON object on " +
			"standard input, with hook_event_name, cwd, tool_name and tool_input"}
	case e.Call == nil:
		return nil
	}
	var a vendorhook.Answer
	switch {
	case !policy.Mutates(e.Call) && socket == "":
		return nil
	case socket != "":
		a, err = vendorhook.Ask(ctx, socket, e)
	case e.Name == vendorhook.PreToolUse:
		a, err = c.judge(cmd, e)
	default:
		return nil
	}
	if err != nil && e.Name != vendorhook.PreToolUse {
		return harmless{err} // the call was made
	}
	if err != nil {
		return err
	}
	return e.Write(w, a)
}

// judge judges a call of an agent that works for no loop.
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
	case risk.Allow, risk.Warn:
	}
	return vendorhook.Answer{Verdict: verdict, Text: j.Text()}, nil
}

// projectRoot is the folder around dir that has a store or a repository; dir itself
// where none has.
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

// Package meter implements the command meter, which measures what a program asks of the
// providers of models. Package internal/meter passes the requests on.
package meter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/meter"
	"github.com/perdure/perdure/model/price"
)

type commands struct{ *env.Env }

// options are the flags of the command.
type options struct {
	listen    string
	upstreams []string
}

// Command returns the command.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var o options
	cmd := &cobra.Command{
		Use:   "meter [flags] -- COMMAND [ARGUMENT...]",
		Short: "Measure the tokens, cost and context of a program",
		Long: "Start COMMAND, pass its requests to the providers of models on unchanged, and print what they took: " +
			"requests, " +
			"tokens, cost, the used part of the context, overflows of it and rate limits. COMMAND keeps the terminal, and its " +
			"exit status is that of the command. The summary goes to standard error.\n\n" +
			"COMMAND gets the address of the meter in OPENAI_BASE_URL, OPENAI_API_BASE, ANTHROPIC_BASE_URL and " +
			"GOOGLE_GEMINI_BASE_URL. Addresses that these variables had before, or --upstream, are where requests go. " +
			"Protocols: OpenAI chat completions and responses, Anthropic messages, Gemini generateContent. Requests of " +
			"other kinds pass too and are counted.\n\n" +
			"Programs that are logged in to a subscription instead of using an API key may ignore these variables or be " +
			"refused by the provider; then the summary says that there were no requests. Codex, which does not read the " +
			"variable, gets the address as a setting, unless its settings name a provider.\n\n" +
			"The meter listens on a loopback address with a random token in its path, and sends keys to the address of " +
			"their provider only.",
		Example: "perdure meter -- claude -p \"Fix the tests\"\n perdure meter -- opencode\n" +
			" perdure meter --upstream openai=http://127.0.0.1:11434/v1 --json -- ./agent.py",
		GroupID: env.GroupInspect,
		Args:    env.Arguments(1, -1, "a command"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := make(map[meter.Provider]string)
			for _, text := range o.upstreams {
				p, address, err := meter.ParseUpstream(text)
				if err != nil {
					return env.UsageError("for example --upstream openai=http://127.0.0.1:11434/v1", "--upstream: %s", err)
				}
				given[p] = address
			}
			return c.run(cmd, &o, given, args)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "`ADDRESS` loopback address and port of the meter; port 0: any "+
		"free one")
	f.StringArrayVar(&o.upstreams, "upstream", nil,
		"`PROVIDER=URL` where the requests to openai, anthropic or gemini go; repeatable")
	c.JSONFlag(cmd)
	f.Lookup("json").Usage = "print the summary as JSON, as the last line of standard error"
	return cmd
}

// run starts the meter and the command, and prints the summary.
func (c *commands) run(cmd *cobra.Command, o *options, given map[meter.Provider]string, args []string) error {
	upstreams, err := meter.Upstreams(c.Environ, given)
	if err != nil {
		return env.UsageError("", "%s", err)
	}
	l, err := c.Load(cmd)
	if err != nil {
		return err
	}
	program, err := find(c.Env, args[0])
	if err != nil {
		return err
	}
	m, err := meter.Start(meter.Config{Listen: o.listen, Upstreams: upstreams, Rate: price.New(c.Prices(l)).Rate})
	if err != nil {
		return env.UsageError("--listen takes a loopback address, for example 127.0.0.1:0", "start the meter: %s", err)
	}
	began := time.Now()
	status, err := c.wait(cmd.Context(), m, program, args)
	err = errors.Join(err, m.Close())
	if err != nil {
		return err
	}
	s := m.Summary()
	if err := c.print(&s, time.Since(began), upstreams); err != nil {
		return err
	}
	if status != 0 {
		return &env.Exit{Status: status}
	}
	return nil
}

// find returns the path of a program, looked up in the PATH of the command's environment.
func find(e *env.Env, name string) (string, error) {
	if filepath.Base(name) != name {
		name = e.Path(name)
	}
	program, err := exec.LookPath(name)
	if err == nil {
		return program, nil
	}
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return "", &perdure.Error{Code: perdure.CodeUnavailable, Msg: fmt.Sprintf("program %q was not found", name),
			Hint: "install it, or write its path"}
	}
	return "", &perdure.Error{Code: perdure.CodeUnavailable, Msg: fmt.Sprintf("program %q cannot be started", name),
		Err: err}
}

// signalStatus is added to the number of a signal that ended a program, as shells do.
const signalStatus = 128

// wait runs the program with the streams of this process until its end, and returns its
// exit status. An interrupt reaches it, unless the terminal has sent it one already.
func (c *commands) wait(ctx context.Context, m *meter.Meter, program string, args []string) (int, error) {
	set := m.Variables(meter.DialectOf(filepath.Base(program)), c.Environ)
	options := command.EndpointOptions(filepath.Base(program), set, args[1:])
	args = slices.Concat(args[:1], options, args[1:])
	p := exec.Cmd{Path: program, Args: args, Dir: c.Cwd, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}
	p.Env = slices.Concat(c.Environ, set)
	if err := p.Start(); err != nil {
		return 0, &perdure.Error{Code: perdure.CodeUnavailable, Msg: fmt.Sprintf("start %q", args[0]), Err: err}
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		if !c.StdinTerminal() {
			_ = p.Process.Signal(os.Interrupt) // it may have ended
		}
		err = <-ended
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			return signalStatus + int(s.Signal()), nil
		}
		return cmp.Or(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// Package install implements the commands install and uninstall, which configure the hooks of
// coding agents.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/handoff"
	"github.com/perdure/perdure/internal/text/jsonc"
	"github.com/perdure/perdure/internal/toolguard/agentconfig"
)

// patience is how long a program of an agent or the installed hook may take.
const patience = time.Minute

// file is a changed file in the output.
type file struct {
	Path string `json:"path"`
	// Change is created, changed, removed or unchanged.
	Change string `json:"change"`
	Diff   string `json:"diff,omitempty"`
}

// result is the output of the commands.
type result struct {
	Agent  string `json:"agent"`
	Scope  string `json:"scope"`
	DryRun bool   `json:"dry_run"`
	Files  []file `json:"files"`
	// Trusted reports whether the agent trusts the hook, null if it needs no trust.
	Trusted *bool `json:"trusted"`
	// SelfTest is passed, or skipped without an installation.
	SelfTest string   `json:"self_test"`
	Notes    []string `json:"notes"`
}

type commands struct {
	*env.Env
	user, project, dry bool
}

// Command returns the command install.
func Command(e *env.Env) *cobra.Command {
	c := &commands{Env: e}
	cmd := c.command("install AGENT", "Install the hook in a coding agent", c.install)
	cmd.Long = "Install the hook of perdure in a coding agent, so that risky tool calls are judged without a loop, too, " +
		"and the skill document of `perdure handoff` where the agent looks for it. AGENT is claude-code, codex, gemini or " +
		"opencode.\n\n" +
		"The command adds entries to the agent's own settings (--user, the default) or to those of this project " +
		"(--project), keeps everything else byte for byte, and prints the change as a diff. A file that is not valid is " +
		"left alone. Repeating the command changes nothing; `perdure uninstall` undoes it. CLAUDE_CONFIG_DIR, CODEX_HOME, " +
		"XDG_CONFIG_HOME and GEMINI_CLI_HOME are respected.\n\n" +
		"Codex skips hooks that its user has not trusted, without a message. The command asks `codex app-server` for the " +
		"hash of the hook and records the trust. At the end the command runs the installed command line as the agent " +
		"does: the hook has to deny `git reset --hard`. If it does not, the change is undone.\n\n" +
		"Changes of the table's answers are in `loop.risks`. `perdure doctor` lists the agents and their hooks."
	cmd.Example = "perdure install claude-code --dry-run\n perdure install codex"
	return cmd
}

// UninstallCommand returns the command uninstall.
func UninstallCommand(e *env.Env) *cobra.Command {
	c := &commands{Env: e}
	cmd := c.command("uninstall AGENT", "Remove the hook from a coding agent", c.uninstall)
	cmd.Long = "Remove what `perdure install` has added to the settings of a coding agent. A file that was not changed " +
		"since is restored byte for byte; in a changed file only the entries of perdure are removed."
	cmd.Example = "perdure uninstall codex"
	return cmd
}

func (c *commands) command(use, short string, run func(*cobra.Command, *agentconfig.Agent) error) *cobra.Command {
	var names []string
	for _, a := range agentconfig.Agents() {
		names = append(names, a.Name)
	}
	cmd := &cobra.Command{
		Use: use, Short: short, GroupID: env.GroupManage, ValidArgs: names,
		Args: env.Arguments(1, 1, "the name of an agent: "+strings.Join(names, ", ")),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, ok := agentconfig.AgentOf(args[0])
			if !ok {
				return env.Unknown("agent", args[0], names)
			}
			return run(cmd, &a)
		},
	}
	cmd.Flags().BoolVar(&c.user, "user", false, "the settings of the user, for all projects (default)")
	cmd.Flags().BoolVar(&c.project, "project", false, "the settings of this project")
	cmd.Flags().BoolVar(&c.dry, "dry-run", false, "print the change and write nothing")
	cmd.MarkFlagsMutuallyExclusive("user", "project")
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) scope() agentconfig.Scope {
	if c.project {
		return agentconfig.Project
	}
	return agentconfig.User
}

// place returns where agents have their settings.
func (c *commands) place() agentconfig.Place {
	return agentconfig.Place{Getenv: c.Getenv, Project: agentconfig.Root(c.Cwd)}
}

// program returns the path of perdure that stays the same over upgrades: the one that is
// found by its name, if it is this program.
func program() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	named, err := exec.LookPath("perdure")
	if err != nil || !filepath.IsAbs(named) {
		return own, nil
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(named)
	if errors.Join(errA, errB) == nil && os.SameFile(a, b) {
		return named, nil
	}
	return own, nil
}

func (c *commands) newResult(a *agentconfig.Agent) *result {
	return &result{Agent: a.Name, Scope: string(c.scope()), DryRun: c.dry, SelfTest: "skipped", Notes: []string{}}
}

// add adds changes to the result and prints their diffs.
func (c *commands) add(r *result, changes ...*agentconfig.Change) {
	for _, ch := range changes {
		r.Files = append(r.Files, file{Path: ch.Path, Change: ch.Kind(), Diff: ch.Diff()})
		switch kind := ch.Kind(); {
		case c.JSON || kind == "unchanged":
		case ch.Whole:
			c.Printf("%s %s\n", kind, c.Out.Safe(ch.Path))
		default:
			c.Printf("%s %s\n%s", kind, c.Out.Safe(ch.Path), c.Out.Safe(ch.Diff()))
		}
	}
}

func (c *commands) install(cmd *cobra.Command, a *agentconfig.Agent) error {
	own, err := program()
	if err != nil {
		return err
	}
	p, r := c.place(), c.newResult(a)
	changes, err := a.Install(p, c.scope(), agentconfig.Source{Program: own, Skill: handoff.Skill})
	if err != nil {
		return refused("install", err)
	}
	c.add(r, changes...)
	found, missing := exec.LookPath(a.Program)
	if missing != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("%s is not installed here: %s", a.Title, a.Package))
	}
	if c.dry {
		return c.finish(r)
	}
	if err := agentconfig.Apply(p, changes); err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(cmd.Context(), 2*patience, errors.New("no answer"))
	defer stop()
	if a.NeedsTrust() {
		err = c.trust(ctx, a, found, own, r)
	}
	if err == nil {
		err = c.test(ctx, a)
	}
	if err != nil {
		return c.undo(a, err)
	}
	r.SelfTest = "passed"
	return c.finish(r)
}

// trust makes an agent trust the hook, if its program is installed.
func (c *commands) trust(ctx context.Context, a *agentconfig.Agent, found, own string, r *result) error {
	p := c.place()
	r.Trusted = new(bool)
	if found == "" {
		state, _ := a.Status(p)
		if *r.Trusted = state == agentconfig.State(c.scope()); !*r.Trusted {
			r.Notes = append(r.Notes, a.Title+" skips hooks that are not trusted: repeat this command when it is installed")
		}
		return nil
	}
	line := a.Line(own)
	hooks, err := agentconfig.ListHooks(ctx, found, p.Project, c.Environ)
	if err != nil {
		return err
	}
	if hooks = agentconfig.Own(hooks, line); len(hooks) == 0 {
		if c.project {
			r.Notes = append(r.Notes, a.Title+" reads the settings of a project only if it is trusted: start it here, trust "+
				"the folder, then repeat this command")
			return nil
		}
		return fmt.Errorf("%s does not list the installed hook", a.Title)
	}
	change, err := a.Trust(p, c.scope(), hooks)
	if err != nil {
		return err
	}
	c.add(r, change)
	if err := agentconfig.Apply(p, []*agentconfig.Change{change}); err != nil {
		return err
	}
	if change.Kind() != "unchanged" {
		if hooks, err = agentconfig.ListHooks(ctx, found, p.Project, c.Environ); err != nil {
			return err
		}
		hooks = agentconfig.Own(hooks, line)
	}
	if len(hooks) == 0 || len(agentconfig.Untrusted(hooks)) > 0 {
		return fmt.Errorf("%s does not trust the installed hook", a.Title)
	}
	*r.Trusted = true
	return nil
}

// test runs the installed hook.
func (c *commands) test(ctx context.Context, a *agentconfig.Agent) error {
	words, err := a.Installed(c.place(), c.scope())
	if err != nil {
		return err
	}
	if words == nil {
		return errors.New("the hook is not in the settings")
	}
	environ := slices.DeleteFunc(slices.Clone(c.Environ), func(v string) bool {
		return strings.HasPrefix(v, "PERDURE_")
	})
	return a.Test(ctx, words, environ)
}

// undo removes what was installed after a failure.
func (c *commands) undo(a *agentconfig.Agent, cause error) error {
	p := c.place()
	changes, err := a.Uninstall(p, c.scope())
	if err == nil {
		err = agentconfig.Apply(p, changes)
	}
	e := &perdure.Error{Code: perdure.CodeUnavailable, Op: "install " + a.Name, Err: cause,
		Msg: "the installed hook does not work, the change was undone", Hint: "`perdure doctor` checks the project"}
	if err != nil {
		e.Msg, e.Err = "the installed hook does not work, and the change could not be undone", errors.Join(cause, err)
	}
	return e
}

func (c *commands) uninstall(_ *cobra.Command, a *agentconfig.Agent) error {
	p, r := c.place(), c.newResult(a)
	changes, err := a.Uninstall(p, c.scope())
	if err != nil {
		return refused("uninstall", err)
	}
	c.add(r, changes...)
	if !c.dry {
		if err := agentconfig.Apply(p, changes); err != nil {
			return err
		}
	}
	return c.finish(r)
}

// refused returns the error of a file that is not valid and was left alone.
func refused(op string, err error) error {
	hint := "nothing was written"
	if _, ok := errors.AsType[*jsonc.Error](err); ok {
		hint = "nothing was written; correct the file"
	}
	if errors.Is(err, agentconfig.ErrForeign) {
		hint = "nothing was written; move the file away"
	}
	return env.UsageError(hint, "%s: %s", op, err)
}

// finish prints the result.
func (c *commands) finish(r *result) error {
	return c.Print(r, func() {
		done := 0
		for _, f := range r.Files {
			if f.Change != "unchanged" {
				done++
			}
		}
		switch {
		case done == 0:
			c.Note("nothing to change")
		case r.DryRun:
			c.Note("dry run: nothing was written")
		}
		if r.SelfTest == "passed" {
			c.Note("the installed hook denies `git reset --hard` and passes `ls`")
		}
		if r.Trusted != nil && *r.Trusted {
			c.Note("the agent trusts the hook")
		}
		for _, n := range r.Notes {
			c.Note("%s", n)
		}
	})
}

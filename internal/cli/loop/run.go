package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// runFlags are the flags of loop run.
type runFlags struct {
	tuning
	noWait, detach bool
}

func (c *commands) newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "TASK" --until COMMAND --agent NAME`,
		Short: "Start a loop and run it until the check passes",
		Long: "Start a loop and run it until the completion command passes. The task \"-\" is read from standard input. " +
			"The agent is claude, codex, opencode or gemini (in headless mode), acp:NAME or acp:COMMAND for the Agent " +
			"Client Protocol, or exec:COMMAND for any program, which gets the prompt on standard input or in place of " +
			"{prompt} or {prompt_file} in its arguments.\n\n" +
			"perdure, not the agent, runs the completion command before the first and after each iteration, and compares the " +
			"tests by name with the first run. The loop's ID is printed first.\n\n" +
			"Ctrl-C stops the loop; `perdure loop resume` continues it. Exit status 0: the check passes; 1: it does not, " +
			"after all iterations; 3: the loop was stopped; 6: it waits at a gate.",
		Example: "perdure loop run \"Make the tests pass\" --until \"go test ./...\" --agent claude\n" +
			" perdure loop run \"Port it to Python 3\" --until \"pytest -q\" --agent codex --fallback claude\n" +
			" perdure loop run - --until \"make check\" --agent claude < task.md",
		Args: env.Arguments(1, 1, "one task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if f.Task, err = c.readTask(args[0]); err != nil {
				return err
			}
			return c.run(cmd, &f)
		},
	}
	f.registerTask(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Workspace, "workspace", "", "`FOLDER` folder to work in; default: the current one")
	flags.BoolVar(&f.noWait, "no-wait", false, "exit with status 6 at a gate instead of waiting")
	flags.BoolVar(&f.detach, "detach", false, "let the daemon run the loop and return at once")
	c.JSONFlag(cmd)
	env.UsesActing(cmd)
	cmd.MarkFlagsMutuallyExclusive("detach", "no-wait")
	env.GroupFlags(cmd,
		groups("until agent model fallback workspace worktree task-type planned-iterations no-wait detach json trust")...)
	return cmd
}

// registerTask adds the flags of a new loop.
func (f *runFlags) registerTask(cmd *cobra.Command) {
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Until, "until", "", "`COMMAND` completion command, run by the shell")
	flags.StringVar(&f.TaskType, "task-type", "", "`TYPE` type of the task, which chooses the agents in loop.chains")
	flags.IntVar(&f.Planned, "planned-iterations", 0, "`N` expected iterations; a gate opens after twice as many")
	flags.BoolVar(&f.Worktree, "worktree", false, "work in a git worktree of the last commit instead of the folder; "+
		"implies --commit")
	flags.StringVar(&f.Scorer, "scorer", "",
		"`COMMAND` command that prints the quality, 0 to 100; default: computed from the tests")
	flags.StringVar((*string)(&f.Approver), "approver", string(perdure.ApproverTerminal), "`WHO` what an answer to a "+
		"gate needs: terminal (or the token), token, user (another user) or any")
}

// readTask returns the task, which is read from standard input for "-".
func (c *commands) readTask(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	read, err := io.ReadAll(io.LimitReader(c.Stdin, config.MaxTaskBytes+1)) // one more byte is an error
	if err != nil {
		return "", fmt.Errorf("read the task: %w", err)
	}
	return strings.TrimSpace(string(read)), nil
}

func (c *commands) run(cmd *cobra.Command, f *runFlags) error {
	set, err := c.settings(cmd, f.TaskType)
	if err != nil {
		return err
	}
	raw, err := c.configure(cmd, f, &set)
	if err != nil {
		return err
	}
	why := env.Execute
	if f.detach {
		why = env.Detach
	}
	return c.execute(cmd, why, func(b *env.Backend) error {
		tree, err := b.CreateTree(cmd.Context(), client.TreeRequest{Kind: perdure.KindLoop, Prompt: f.Task, Config: raw,
			Owner: b.Session()})
		if err != nil {
			return err
		}
		id := loop.ID(&tree)
		fmt.Fprintln(c.Err, id)
		c.NoteTrust(b, &tree)
		if !f.detach {
			return c.attend(cmd.Context(), b, tree.ID, followConfig{noWait: f.noWait})
		}
		c.Note("the daemon runs it; `perdure loop status %s` shows its progress", id)
		return c.Print(launched{Loop: id, Tree: tree.ID}, func() {})
	})
}

// configure returns the configuration of a new loop: the flags, and the settings for those that
// are not given.
func (c *commands) configure(cmd *cobra.Command, f *runFlags, set *config.Config) (json.RawMessage, error) {
	f.fill(cmd, set)
	if !cmd.Flags().Changed("worktree") {
		f.Worktree = set.Worktree
	}
	if f.Worktree && cmd.Flags().Changed("commit") && !f.Commit {
		return nil, env.UsageError("the commits are how the work leaves the worktree; leave out --commit=false or "+
			"--worktree", "--worktree needs commits")
	}
	f.Workspace, f.HeldOut = c.Path(f.Workspace), c.heldOut(f.HeldOut)
	raw, err := json.Marshal(&f.Config)
	if err != nil {
		return nil, err
	}
	if err := f.required(); err != nil {
		return nil, err
	}
	if _, err := config.Parse(raw); err != nil { // before a store is created
		return nil, f.withFlags(err)
	}
	if err := loop.CheckWorkspace(f.Workspace); err != nil {
		return nil, err
	}
	if err := loop.CheckHeldOut(&f.Config); err != nil {
		return nil, err
	}
	if f.Commit || f.Worktree {
		return raw, loop.CheckCommits(cmd.Context(), f.Workspace, f.Worktree)
	}
	return raw, nil
}

// heldOut returns a held-out check that is the path of a file or a folder as an absolute path. It hides
// it in the arguments of this process.
func (c *commands) heldOut(text string) string {
	if text == "" {
		return ""
	}
	text = strings.Clone(text)
	caller.HideValue("--held-out")
	name := c.Path(text)
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return text
	case info.IsDir():
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// required returns an error unless the completion command and an agent are given, by flags
// or settings.
func (f *runFlags) required() error {
	var missing []string
	if strings.TrimSpace(f.Until) == "" {
		missing = append(missing, "--until")
	}
	if strings.TrimSpace(f.Agent) == "" {
		missing = append(missing, "--agent")
	}
	if len(missing) == 0 {
		return nil
	}
	return env.UsageError("for example --until \"go test ./...\" --agent claude; the default agent is loop.agent",
		"%s required", strings.Join(missing, " and "))
}

// launched is the output of loop run --detach --json.
type launched struct {
	Loop string         `json:"loop_id"`
	Tree perdure.TreeID `json:"tree_id"`
}

func (c *commands) newResumeCommand() *cobra.Command {
	how := followConfig{asks: true}
	var t tuning
	weaker := false
	cmd := &cobra.Command{
		Use:   "resume [LOOP]",
		Short: "Continue a loop that was paused, stopped or killed",
		Long: "Continue a loop that was paused, stopped or killed; without an argument, the one that has not ended. An " +
			"interrupted iteration is undone and repeated under its number. A paused loop that another process runs is " +
			"resumed there. A loop that failed at its limit continues with a higher --max-iterations. At a gate the command " +
			"asks on the terminal; without one it prints the gate and exits with status 6.\n\n" +
			"The settings are read again and changes are printed. Flags, also those of `perdure loop run`, override them. " +
			"Settings that weaken the supervision are not applied, because an agent can write the settings file: use the " +
			"flag, or --weaker for all of them. The task and the workspace cannot change, nor, after its first run, the " +
			"completion command.",
		Example: "perdure loop resume\n perdure loop resume make-the-tests-pass-1a2b3c4d --max-iterations 20 --agent codex",
		Args:    loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			req := record.ResumeRequest{Weaker: weaker}
			var err error
			if req.Config, req.Settings, err = c.fields(cmd, &t); err != nil {
				return err
			}
			return c.on(env.Execute, func(ctx context.Context, b *env.Backend, l record.Loop) error {
				return c.resume(ctx, b, l.Tree, &req, how)
			})(cmd, args)
		},
	}
	t.register(cmd)
	cmd.Flags().StringVar(&t.Until, "until", "", "`COMMAND` other completion command, if the first run of the old "+
		"one failed to start")
	cmd.Flags().VisitAll(func(f *pflag.Flag) { // the default is the loop's own value
		f.DefValue = ""
		f.Usage, _, _ = strings.Cut(f.Usage, "; default")
	})
	cmd.Flags().BoolVar(&weaker, "weaker", false, "apply settings that weaken the supervision")
	cmd.Flags().BoolVar(&how.noWait, "no-wait", false, "exit with status 6 at a gate instead of waiting")
	c.JSONFlag(cmd)
	env.ExecutesStored(cmd)
	env.GroupFlags(cmd, groups("agent model fallback until weaker no-wait json trust")...)
	return cmd
}

// fields returns the fields of the given flags, the additional ones and the settings for a
// loop that is resumed or imported.
func (c *commands) fields(cmd *cobra.Command, t *tuning, more ...string) (flags, settings json.RawMessage, err error) {
	set, err := c.settings(cmd, "")
	if err != nil {
		return nil, nil, err
	}
	t.HeldOut = c.heldOut(t.HeldOut)
	return fieldsOf(cmd, t, &set, more...)
}

// fieldsOf returns the fields of the given flags, the additional ones, and those of set.
func fieldsOf(cmd *cobra.Command, t *tuning, set *config.Config, more ...string) (flags, settings json.RawMessage,
	err error) {
	given := append(t.given(cmd), more...)
	literal(&t.Config)
	literal(set)
	if flags, err = json.Marshal(t.Fields(given...)); err != nil {
		return nil, nil, err
	}
	// The held-out check of a loop changes by its flag only: the loop has its name, not its command.
	fields := slices.DeleteFunc(settable(set), func(name string) bool { return name == "held_out" })
	settings, err = json.Marshal(set.Fields(fields...))
	return flags, settings, err
}

func (c *commands) resume(ctx context.Context, b *env.Backend, id perdure.TreeID, req *record.ResumeRequest,
	how followConfig) error {
	r, err := b.ResumeLoop(ctx, id, *req)
	if err != nil {
		return err
	}
	if len(r.Changes) > 0 {
		c.Note("%s", changed(r.Changes))
	}
	if len(r.Kept) > 0 {
		c.Note("not applied, because they weaken the supervision: %s; --weaker applies them", changed(r.Kept))
	}
	return c.takeOver(ctx, b, id, how)
}

// changed returns changes as one line.
func changed(changes []record.FieldChange) string {
	words := make([]string, len(changes))
	for i := range changes {
		words[i] = changes[i].String()
	}
	return strings.Join(words, ", ")
}

// claim makes a loop this process's own. It retries for a moment if another process
// holds the loop, which can be a killed one.
func claim(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	again := time.NewTicker(killedGrace / 40)
	defer again.Stop()
	end := time.After(killedGrace)
	for {
		_, err := b.Resume(ctx, id, client.ResumeRequest{Owner: b.Session()})
		if perdure.CodeOf(err) != perdure.CodeConflict {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-end:
			return err
		case <-again.C:
		}
	}
}

// killedGrace is the time for which a killed process can still hold its session: until
// its child processes have ended.
const killedGrace = 2 * time.Second

// takeOver follows a loop, and runs it unless another process does.
func (c *commands) takeOver(ctx context.Context, b *env.Backend, id perdure.TreeID, how followConfig) error {
	how.since = time.Now()
	err := claim(ctx, b, id)
	if perdure.CodeOf(err) == perdure.CodeConflict {
		c.Note("another process runs %s", name(ctx, b, id))
		other := *b
		other.Local = nil
		b = &other
	} else if err != nil {
		return err
	}
	return c.attend(ctx, b, id, how)
}

func (c *commands) newPauseCommand() *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "pause [LOOP]",
		Short: "Pause a loop before its next iteration",
		Long: "Pause a loop before its next iteration. The agent's current turn is not interrupted, unless --now is given. " +
			"The process that runs the loop then exits.",
		Example: "perdure loop pause\n perdure loop pause --now",
		Args:    loopArgument(),
		RunE: c.on(env.Read, func(ctx context.Context, b *env.Backend, l record.Loop) error {
			control := record.Pause
			if now {
				control = record.PauseNow
			}
			l, err := b.AskLoop(ctx, l.Tree, control)
			if err != nil {
				return err
			}
			return c.Print(&l, func() {
				id := name(ctx, b, l.Tree)
				c.Note("%s pauses before its next iteration; `perdure loop resume %s` continues it", id, id)
			})
		}),
	}
	cmd.Flags().BoolVar(&now, "now", false, "stop the agent and check the files as it left them")
	c.JSONFlag(cmd)
	return cmd
}

func (c *commands) newAbortCommand() *cobra.Command {
	var revert, keep bool
	cmd := &cobra.Command{
		Use:   "abort [LOOP]",
		Short: "End a loop before its check passes",
		Long: "End a loop before its check passes. The agent is stopped. The files stay as they are; --revert restores " +
			"those from before the loop.",
		Example: "perdure loop abort\n perdure loop abort --revert",
		Args:    loopArgument(),
		RunE: c.on(env.Execute, func(ctx context.Context, b *env.Backend, l record.Loop) error {
			control := record.Abort
			if revert {
				control = record.Revert
			}
			l, err := b.AskLoop(ctx, l.Tree, control)
			if err != nil {
				return err
			}
			if l.Status.Ended() { // its tree had ended, so no process has to end it
				return c.Print(&l, func() { c.Printf("%s\n", c.Out.Safe(summary(&l))) })
			}
			return c.takeOver(ctx, b, l.Tree, followConfig{aborting: true})
		}),
	}
	env.ExecutesStored(cmd)
	cmd.Flags().BoolVar(&revert, "revert", false, "restore the files from before the loop")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the files as they are (the default)")
	c.JSONFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("revert", "keep")
	return cmd
}

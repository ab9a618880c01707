package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// runFlags are the flags of loop run.
type runFlags struct {
	tuning
	noWait, detach, asJSON bool
}

func (c *commands) newRunCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "TASK" --until COMMAND --agent NAME`,
		Short: "Begin a loop and work on it until it ends",
		Long: "Begin a loop and work on it until it ends. The task \"-\" is read from standard input. The agent is " +
			"claude, codex, opencode or gemini (their headless modes), " +
			"acp:NAME or acp:COMMAND for one that speaks the Agent Client Protocol, or exec:COMMAND for any program: the " +
			"prompt " +
			"is on its standard input, or where {prompt} or {prompt_file} stands in its arguments.\n\n" +
			"The completion command is run by perdure, never by the agent, before the first and after every iteration; where " +
			"its results can be read, tests are compared by name with those of the beginning. The loop's ID is printed " +
			"first.\n\n" +
			"Ctrl-C stops; `perdure loop resume` goes on. With --detach the daemon runs the loop, and the command ends at " +
			"once. Exit status 0: the check passes; 1: it does not, after all iterations; " +
			"3: stopped before; 6: a person is asked.",
		Example: "perdure loop run \"Make the tests pass\" --until \"go test ./...\" --agent claude\n" +
			" perdure loop run \"Port it to Python 3\" --until \"pytest -q\" --agent codex --fallback claude " +
			"--max-iterations 20\n" +
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
	f.register(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.Until, "until", "", "the completion `COMMAND`, for the shell")
	flags.StringVar(&f.TaskType, "task-type", "",
		"the `type` of the task, which chooses the agents by loop.chains in the settings file")
	flags.IntVar(&f.Planned, "planned-iterations", 0,
		"how many iterations are thought to be needed; beyond twice that a person is asked")
	flags.StringVar(&f.Workspace, "workspace", "", "the `folder` to work in (default: this one)")
	flags.StringVar(&f.Scorer, "scorer", "", "a `COMMAND` that prints the quality, 0 to 100 (default: made from the "+
		"tests)")
	flags.BoolVar(&f.noWait, "no-wait", false, "end with status 6 when a person is asked, instead of waiting")
	flags.BoolVar(&f.detach, "detach", false, "leave the loop to the daemon and return at once")
	flags.BoolVar(&f.asJSON, "json", false, "print where the loop stands in the end as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("detach", "no-wait")
	return cmd
}

// readTask is the task that was given, or what standard input has for "-".
func (c *commands) readTask(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	read, err := io.ReadAll(io.LimitReader(c.Stdin, config.MaxTaskBytes+1)) // one more is refused
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
	f.fill(cmd, &set)
	f.Workspace = c.Path(f.Workspace)
	raw, err := json.Marshal(&f.Config)
	if err != nil {
		return err
	}
	if _, err := config.Parse(raw); err != nil { // before a store is made
		return err
	}
	if err := loop.CheckWorkspace(f.Workspace); err != nil {
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
		if !f.detach {
			return c.attend(cmd.Context(), b, tree.ID, attending{noWait: f.noWait, asJSON: f.asJSON})
		}
		c.Note("the daemon runs it; `perdure loop status %s` shows how far it is", id)
		if f.asJSON {
			return c.PrintJSON(launched{Loop: id, Tree: tree.ID})
		}
		return nil
	})
}

// launched is what loop run --detach --json prints.
type launched struct {
	Loop string         `json:"loop_id"`
	Tree perdure.TreeID `json:"tree_id"`
}

func (c *commands) newResumeCommand() *cobra.Command {
	var how attending
	var t tuning
	weaker := false
	cmd := &cobra.Command{
		Use:   "resume [LOOP]",
		Short: "Go on with a loop that was paused, stopped or killed",
		Long: "Go on with a loop that was paused, stopped or killed; without one, with the loop that has not ended. An " +
			"iteration " +
			"that was interrupted is taken back and repeated under its number. A loop that another process runs is told to " +
			"go on. One " +
			"that failed at its limit goes on with a higher --max-iterations.\n\n" +
			"The settings are read again: what the file and the environment say now holds, but for what a flag of this " +
			"command or " +
			"of `perdure loop run` says. What is different is told. What would let pass what the loop watches for is not " +
			"taken from them, " +
			"because an agent can write that file: a flag says that it is meant, or --weaker for all of it. The task, the " +
			"completion " +
			"command, the scorer and the folder stay: another one is another loop.",
		Example: "perdure loop resume\n perdure loop resume make-the-tests-pass-1a2b3c4d --max-iterations 20 --agent codex",
		Args:    loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			req, err := c.resumeRequest(cmd, &t)
			if err != nil {
				return err
			}
			req.Weaker = weaker
			return c.execute(cmd, env.Execute, func(b *env.Backend) error {
				l, err := Find(ctx, b.Client, args)
				if err != nil {
					return err
				}
				return c.resume(ctx, b, l.Tree, &req, how)
			})
		},
	}
	t.register(cmd)
	cmd.Flags().VisitAll(func(f *pflag.Flag) { // what is not given stays
		f.DefValue = ""
		f.Usage, _, _ = strings.Cut(f.Usage, " (default")
	})
	cmd.Flags().BoolVar(&weaker, "weaker", false, "take settings, too, that make the watching weaker than it is")
	cmd.Flags().BoolVar(&how.noWait, "no-wait", false, "end with status 6 when a person is asked, instead of waiting")
	cmd.Flags().BoolVar(&how.asJSON, "json", false, "print where the loop stands in the end as one JSON object")
	return cmd
}

// resumeRequest is what the flags and the settings say.
func (c *commands) resumeRequest(cmd *cobra.Command, t *tuning) (req record.ResumeRequest, err error) {
	set, err := c.settings(cmd, "")
	if err != nil {
		return req, err
	}
	given := t.given(cmd)
	literal(&t.Config)
	literal(&set)
	if req.Config, err = json.Marshal(t.Fields(given...)); err != nil {
		return req, err
	}
	req.Settings, err = json.Marshal(set.Fields(settable(&set)...))
	return req, err
}

func (c *commands) resume(ctx context.Context, b *env.Backend, id perdure.TreeID, req *record.ResumeRequest,
	how attending) error {
	r, err := b.ResumeLoop(ctx, id, *req)
	if err != nil {
		return err
	}
	if len(r.Changes) > 0 {
		c.Note("%s", changed(r.Changes))
	}
	if len(r.Kept) > 0 {
		c.Note("kept, as the settings are weaker and an agent can write them: %s; --weaker takes them", changed(r.Kept))
	}
	return c.takeOver(ctx, b, id, how)
}

// changed tells in a line what is different.
func changed(changes []record.FieldChange) string {
	words := make([]string, len(changes))
	for i := range changes {
		words[i] = changes[i].String()
	}
	return strings.Join(words, ", ")
}

// resumeOfTheDying takes a loop over, and tries again for a moment while another
// process seems to run it.
func resumeOfTheDying(ctx context.Context, b *env.Backend, id perdure.TreeID) error {
	again := time.NewTicker(dying / 40)
	defer again.Stop()
	end := time.After(dying)
	for {
		_, err := b.Resume(ctx, id, b.Session())
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

// dying is how long a process that was killed may seem to live: what it started holds
// its session until it is gone, too.
const dying = 2 * time.Second

// takeOver makes a loop this process's own, unless a process that lives runs it,
// and follows it.
func (c *commands) takeOver(ctx context.Context, b *env.Backend, id perdure.TreeID, how attending) error {
	how.since = time.Now()
	err := resumeOfTheDying(ctx, b, id)
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
	var now, asJSON bool
	cmd := &cobra.Command{
		Use:   "pause [LOOP]",
		Short: "Stop a loop before its next iteration",
		Long: "Stop a loop before its next iteration; the agent's turn that is under way is not interrupted, unless --now " +
			"asks for " +
			"that. Whoever runs the loop then ends.",
		Example: "perdure loop pause\n perdure loop pause --now",
		Args:    loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			control := record.Pause
			if now {
				control = record.PauseNow
			}
			return c.Do(cmd, env.Read, func(b *env.Backend) error {
				l, err := Find(cmd.Context(), b.Client, args)
				if err != nil {
					return err
				}
				if l, err = b.AskLoop(cmd.Context(), l.Tree, control); err != nil {
					return err
				}
				if asJSON {
					return c.PrintJSON(&l)
				}
				id := name(cmd.Context(), b, l.Tree)
				c.Note("%s is asked to pause; `perdure loop resume %s` goes on", id, id)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the loop as one JSON object")
	cmd.Flags().BoolVar(&now, "now", false, "stop the agent, too: what it left in the files is checked as if it had ended")
	return cmd
}

func (c *commands) newAbortCommand() *cobra.Command {
	var revert, keep, asJSON bool
	cmd := &cobra.Command{
		Use:   "abort [LOOP]",
		Short: "End a loop before it is done",
		Long: "End a loop before it is done. The agent is stopped. The files stay as they are, or come back as they " +
			"were before the loop with --revert.",
		Example: "perdure loop abort\n perdure loop abort --revert",
		Args:    loopArgument(),
		RunE: func(cmd *cobra.Command, args []string) error {
			control := record.Abort
			if revert {
				control = record.Revert
			}
			return c.execute(cmd, env.Execute, func(b *env.Backend) error {
				l, err := Find(cmd.Context(), b.Client, args)
				if err != nil {
					return err
				}
				if _, err := b.AskLoop(cmd.Context(), l.Tree, control); err != nil {
					return err
				}
				return c.takeOver(cmd.Context(), b, l.Tree, attending{asJSON: asJSON, aborting: true})
			})
		},
	}
	cmd.Flags().BoolVar(&revert, "revert", false, "bring back the files of before the loop")
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the files as they are (the default)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print where the loop stands in the end as one JSON object")
	cmd.MarkFlagsMutuallyExclusive("revert", "keep")
	return cmd
}

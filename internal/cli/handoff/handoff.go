// Package handoff implements the command handoff. It reads and writes the file
// builder-state.json itself, and the ledger behind it through the API's client.
package handoff

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
)

// Environment variables of the commands.
const (
	agentVariable = "PERDURE_AGENT"
	// The file, the folder of its relative paths, and the place in it. Loops set them
	// for their agents.
	fileVariable  = "PERDURE_HANDOFF_FILE"
	rootVariable  = "PERDURE_HANDOFF_ROOT"
	taskVariable  = "PERDURE_HANDOFF_TASK"
	tokenVariable = "PERDURE_HANDOFF_TOKEN" //nolint:gosec // the name, not a token
)

// commands builds the commands and holds their common flags, which select the work.
type commands struct {
	*env.Env
	file, task, agent, token string
}

// Command returns the command with its subcommands.
func Command(e *env.Env) *cobra.Command {
	c := &commands{Env: e}
	var batch string
	cmd := &cobra.Command{
		Use:   "handoff",
		Short: "Record work so that another agent can continue it",
		Long: "Record the completed steps, decisions and pending steps of a task, so that another agent can continue it " +
			"without repeating work. The store keeps everything in a ledger; the checkpoint in builder-state.json contains " +
			"as much as fits into 2,048 bytes. `perdure handoff resume` prints the prompt for the next agent.\n\n" +
			"--batch records several operations as one write, one object a line, such as {\"op\": \"step\", \"text\": " +
			"\"Created the parser\", \"created\": [\"parse.go\"]}; operations have the names of the commands.",
		Example: "perdure handoff start \"Dark mode\" --pending \"Add the toggle\" --pending \"Write tests\"\n" +
			" perdure handoff step \"Added the toggle\" --created src/toggle.tsx\n perdure handoff resume --agent go-tester",
		GroupID: env.GroupState,
		Args:    env.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if batch == "" {
				return cmd.Help()
			}
			return c.batch(cmd, batch)
		},
	}
	cmd.Flags().StringVar(&batch, "batch", "",
		"`FILE` record the operations in a file, or in standard input for -, as one write")
	c.workFlags(cmd)
	cmd.AddCommand(c.recordCommands()...)
	cmd.AddCommand(c.newShowCommand(), c.newLogCommand(), c.newStaleCommand(), c.newResumeCommand(),
		c.newVerifyCommand(), c.newSkillCommand())
	return cmd
}

func (c *commands) workFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.file, "file", "", "`FILE` builder-state.json; default: "+fileVariable+", else the nearest one up to "+
		"the repository's root, also in docs and .opencode")
	f.StringVar(&c.task, "task", "", "`PLACE` prd for the story of activePrd, or adhoc:ID for an item of adhocQueue; "+
		"default: "+taskVariable+", else prd")
	f.StringVar(&c.agent, "agent", "", "`NAME` name of the agent; default: "+agentVariable)
	f.StringVar(&c.token, "token", "", "`TOKEN` token of your claim, printed by resume; default: "+tokenVariable)
	c.JSONFlag(cmd)
	for _, name := range []string{"task", "agent", "token"} {
		env.CompleteWith(cmd, name, cobra.NoFileCompletions)
	}
}

// recording is a function that reads or writes the work.
type recording func(ctx context.Context, r *ledger.Recorder) error

// reading returns the function of a command that reads the selected work.
func (c *commands) reading(do recording) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error { return c.on(cmd, env.Read, do) }
}

// on opens the recorder of the selected work.
func (c *commands) on(cmd *cobra.Command, why env.Purpose, do recording) error {
	loc, err := c.locate()
	if err != nil {
		return translated(err)
	}
	return c.at(cmd, loc, why, do)
}

// at opens the recorder of the work in a file.
func (c *commands) at(cmd *cobra.Command, loc handoff.Location, why env.Purpose, do recording) error {
	place, err := c.place()
	if err != nil {
		return err
	}
	cfg := ledger.Config{Location: loc, Place: place, Agent: c.agentName(),
		Token: cmp.Or(c.token, c.Getenv(tokenVariable))}
	if err := checkAgent(cfg.Agent); err != nil {
		return err
	}
	const rareGC = 400 // the command is short and allocates only a few megabytes
	defer debug.SetGCPercent(debug.SetGCPercent(rareGC))
	l, err := c.Load(cmd)
	if err == nil && !l.Exists && why == env.Write {
		l, err = c.LoadFrom(cmd, loc.Root) // create a new store next to the file
	}
	if err != nil {
		return err
	}
	reached := false
	err = c.With(cmd.Context(), l, why, func(b *env.Backend) error {
		reached, cfg.Ledgers, cfg.Thresholds = true, b.Client, env.Thresholds(l)
		cfg.Snapshots, cfg.Folder = env.HandoffDir(l), env.HandoffFolder(l)
		return translated(do(cmd.Context(), ledger.New(cfg)))
	})
	if why == env.Write || reached || !errors.Is(err, perdure.ErrNotFound) {
		return err
	}
	cfg.Ledgers = ledger.None{} // no store, as in a new clone
	return translated(do(cmd.Context(), ledger.New(cfg)))
}

// maxAgent bounds the names of agents in bytes, as for claims.
const maxAgent = 256

// checkAgent checks the name of an agent.
func checkAgent(name string) error {
	switch {
	case len(name) > maxAgent:
		return env.UsageError("", "name of the agent has %d bytes; the limit is %d", len(name), maxAgent)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return env.UsageError("set another name with --agent or "+agentVariable,
			"%q is not the name of an agent: it is not one line of UTF-8", name)
	}
	return nil
}

// agentName returns the name of the agent, or "".
func (c *commands) agentName() string { return cmp.Or(c.agent, c.Getenv(agentVariable)) }

// place parses --task.
func (c *commands) place() (handoff.Place, error) {
	task := c.task
	if task == "" && c.file == "" {
		task = c.Getenv(taskVariable)
	}
	task = cmp.Or(task, string(handoff.PRD))
	place, err := handoff.ParsePlace(task)
	if err != nil {
		return "", env.UsageError("write prd, or adhoc:ID with the id of an item of adhocQueue",
			"--task %q is not a place of a checkpoint", task)
	}
	return place, nil
}

// locate returns the file.
func (c *commands) locate() (handoff.Location, error) {
	if file, root := c.Getenv(fileVariable), c.Getenv(rootVariable); c.file == "" && file != "" && root != "" {
		return handoff.Location{File: file, Root: root}, nil
	}
	if c.file == "" {
		return handoff.Find(c.Cwd)
	}
	file := c.Path(c.file)
	loc := handoff.Location{File: file, Root: handoff.RootOf(file)}
	if _, err := os.Stat(file); err != nil {
		return loc, &handoff.Error{Kind: handoff.ErrNotFound, Op: "find file", File: c.file, Err: errors.Unwrap(err),
			Hint: "perdure handoff start --file " + c.file + " creates it"}
	}
	return loc, nil
}

// translated returns errors of the file with the codes of exit statuses.
func translated(err error) error {
	own, ok := errors.AsType[*handoff.Error](err)
	if !ok || perdure.CodeOf(err) != perdure.CodeInternal {
		return err
	}
	is := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	code := perdure.CodeInternal
	switch {
	case is(context.Canceled): // while waiting for the lock
		code = perdure.CodeCanceled
	case is(handoff.ErrNotFound, handoff.ErrNoTask, handoff.ErrContract):
		code = perdure.CodeNotFound
	case is(handoff.ErrSyntax, handoff.ErrInvalid, handoff.ErrLimit):
		code = perdure.CodeInvalid
	case is(handoff.ErrReadOnly, handoff.ErrConflict, handoff.ErrOtherTask):
		code = perdure.CodeConflict
	}
	return &perdure.Error{Code: code, Msg: err.Error(), Hint: own.Hint}
}

func (c *commands) notes(list []string) {
	for _, text := range list {
		c.Note("%s", c.Err.Safe(text))
	}
}

// Package handoff implements the command handoff. It reads and writes the file
// builder-state.json itself, and the ledger behind it through the API's client.
package handoff

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
)

// Environment variables of the commands.
const (
	agentVariable = "PERDURE_AGENT"
	// The file, the folder that its paths are relative to, and the place in it: a
	// loop sets them for its agents.
	fileVariable  = "PERDURE_HANDOFF_FILE"
	rootVariable  = "PERDURE_HANDOFF_ROOT"
	taskVariable  = "PERDURE_HANDOFF_TASK"
	tokenVariable = "PERDURE_HANDOFF_TOKEN" //nolint:gosec // the name, not a token
)

type commands struct{ *env.Env }

// work are the flags that say whose work it is.
type work struct {
	file, task, agent, token string
	asJSON                   bool
}

// Command makes the command with its subcommands.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var w work
	var batch string
	cmd := &cobra.Command{
		Use:   "handoff",
		Short: "Keep a work checkpoint that another agent continues from",
		Long: "Record what is done, decided and left to do, so that another agent continues in the middle of a task " +
			"without doing " +
			"any of it again. Everything goes into a ledger in the store; the checkpoint in builder-state.json shows as much " +
			"of it as fits into 2,048 bytes. `perdure handoff resume` prints what the next agent needs. With --batch several " +
			"operations are one write: an object a line, as in {\"op\": \"step\", \"text\": \"Created the parser\", " +
			"\"created\": [\"parse.go\"]}; the names are those of the commands.",
		Example: "perdure handoff start \"Dark mode\" --pending \"Add the toggle\" --pending \"Write tests\"\n" +
			" perdure handoff step \"Added the toggle\" --created src/toggle.tsx\n perdure handoff resume --agent go-tester",
		GroupID: env.GroupState,
		Args:    env.KnownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if batch == "" {
				return cmd.Help()
			}
			return c.batch(cmd, &w, batch)
		},
	}
	cmd.Flags().StringVar(&batch, "batch", "", "record the operations in `FILE`, - for standard input, as one write")
	c.workFlags(cmd, &w)
	cmd.AddCommand(c.recordCommands()...)
	cmd.AddCommand(c.newShowCommand(), c.newLogCommand(), c.newStaleCommand(), c.newResumeCommand(),
		c.newVerifyCommand(), c.newSkillCommand())
	return cmd
}

func (c *commands) workFlags(cmd *cobra.Command, w *work) {
	f := cmd.Flags()
	f.StringVar(&w.file, "file", "", "the `FILE` (default: "+fileVariable+", else builder-state.json here or above, up "+
		"to the repository's root, also in docs and .opencode)")
	f.StringVar(&w.task, "task", "", "the `PLACE` of the task: prd for the story of activePrd, or adhoc:ID for an item "+
		"of adhocQueue (default: "+
		taskVariable+", else prd)")
	f.StringVar(&w.agent, "agent", "", "the `NAME` of who works (default: "+agentVariable+")")
	f.StringVar(&w.token, "token", "", "the `TOKEN` of your claim, printed by resume (default: "+tokenVariable+")")
	env.JSONFlag(cmd, &w.asJSON)
	for _, name := range []string{"task", "agent", "token"} {
		env.CompleteWith(cmd, name, cobra.NoFileCompletions)
	}
}

// on opens the recorder of the work that the flags name.
func (c *commands) on(cmd *cobra.Command, w *work, write bool,
	do func(ctx context.Context, r *ledger.Recorder) error) error {
	loc, err := c.locate(w)
	if err != nil {
		return translated(err)
	}
	return c.at(cmd, w, loc, write, do)
}

// at is on for who knows where the file is.
func (c *commands) at(cmd *cobra.Command, w *work, loc handoff.Location, write bool,
	do func(ctx context.Context, r *ledger.Recorder) error) error {
	place, err := c.placeOf(w)
	if err != nil {
		return err
	}
	cfg := ledger.Config{Location: loc, Place: place, Agent: c.or(w.agent, agentVariable),
		Token: c.or(w.token, tokenVariable)}
	if err := checkAgent(cfg.Agent); err != nil {
		return err
	}
	// A command of some ten milliseconds has better things to do than to collect
	// a garbage of few megabytes twice.
	const lazy = 400
	defer debug.SetGCPercent(debug.SetGCPercent(lazy))
	l, err := c.Load(cmd)
	if err == nil && !l.Exists && write {
		l, err = c.LoadFrom(cmd, loc.Root) // a new store is made where the file is
	}
	if err != nil {
		return err
	}
	why := env.Read
	if write {
		why = env.Write
	}
	reached := false
	err = c.With(cmd.Context(), l, why, func(b *env.Backend) error {
		reached, cfg.Ledgers, cfg.Thresholds = true, b.Client, env.Thresholds(l)
		cfg.Snapshots, cfg.Folder = env.HandoffDir(l), env.HandoffFolder(l)
		return translated(do(cmd.Context(), ledger.New(cfg)))
	})
	if write || reached || !errors.Is(err, perdure.ErrNotFound) {
		return err
	}
	cfg.Ledgers = ledger.None{} // as in a fresh clone
	return translated(do(cmd.Context(), ledger.New(cfg)))
}

// maxAgent bounds names of agents, in bytes, as claims do.
const maxAgent = 256

// checkAgent wants a name of one line.
func checkAgent(name string) error {
	switch {
	case len(name) > maxAgent:
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf("the agent's name has %d bytes, the limit is %d",
			len(name), maxAgent)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return &perdure.Error{Code: perdure.CodeInvalid,
			Msg:  fmt.Sprintf("%q is no name of an agent: it is not a text of one line", name),
			Hint: "give another with --agent, or in " + agentVariable}
	}
	return nil
}

// placeOf reads --task.
func (c *commands) placeOf(w *work) (handoff.Place, error) {
	if w.task == "" {
		w.task = string(handoff.PRD)
		if given := c.Getenv(taskVariable); given != "" && w.file == "" {
			w.task = given
		}
	}
	place, err := handoff.ParsePlace(w.task)
	if err != nil {
		return "", &perdure.Error{Code: perdure.CodeInvalid,
			Msg:  fmt.Sprintf("--task %q is no place for a checkpoint", w.task),
			Hint: "give prd, or adhoc:ID with the id of an item of adhocQueue"}
	}
	return place, nil
}

func (c *commands) or(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return c.Getenv(variable)
}

// locate finds the file.
func (c *commands) locate(w *work) (handoff.Location, error) {
	if file, root := c.Getenv(fileVariable), c.Getenv(rootVariable); w.file == "" && file != "" && root != "" {
		return handoff.Location{File: file, Root: root}, nil
	}
	if w.file == "" {
		return handoff.Find(c.Cwd)
	}
	file := c.Path(w.file)
	if _, err := os.Stat(file); err != nil {
		return handoff.Location{File: file, Root: handoff.RootOf(file)}, &handoff.Error{Kind: handoff.ErrNotFound,
			Op: "find file", File: w.file, Err: errors.Unwrap(err),
			Hint: "make it with: perdure handoff start --file " + w.file}
	}
	return handoff.Location{File: file, Root: handoff.RootOf(file)}, nil
}

// translated gives errors of the file the codes by which the program exits.
func translated(err error) error {
	var own *handoff.Error
	if err == nil || !errors.As(err, &own) || perdure.CodeOf(err) != perdure.CodeInternal {
		return err
	}
	code := perdure.CodeInternal
	for kind, its := range map[error]perdure.Code{
		handoff.ErrNotFound: perdure.CodeNotFound, handoff.ErrNoTask: perdure.CodeNotFound,
		handoff.ErrContract: perdure.CodeNotFound,
		handoff.ErrSyntax:   perdure.CodeInvalid, handoff.ErrInvalid: perdure.CodeInvalid,
		handoff.ErrLimit:    perdure.CodeInvalid,
		handoff.ErrReadOnly: perdure.CodeConflict, handoff.ErrConflict: perdure.CodeConflict,
		handoff.ErrOtherTask: perdure.CodeConflict,
	} {
		if errors.Is(err, kind) {
			code = its
		}
	}
	if errors.Is(err, context.Canceled) {
		code = perdure.CodeCanceled // while it waited for the lock
	}
	return &perdure.Error{Code: code, Msg: err.Error(), Hint: own.Hint}
}

func (c *commands) notes(list []string) {
	for _, text := range list {
		c.Note("%s", c.Err.Safe(text))
	}
}

func ago(t time.Time) string { return human.Stamp(t) }

func plural(n int, noun string) string { return human.Count(int64(n), noun) }

// joined is for arguments that were given without quotes.
func joined(args []string) string { return strings.Join(args, " ") }

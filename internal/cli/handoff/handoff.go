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
	// The file, the folder of its relative paths, and the place in it. Loops set them
	// for their agents.
	fileVariable  = "PERDURE_HANDOFF_FILE"
	rootVariable  = "PERDURE_HANDOFF_ROOT"
	taskVariable  = "PERDURE_HANDOFF_TASK"
	tokenVariable = "PERDURE_HANDOFF_TOKEN" //nolint:gosec // the name, not a token
)

type commands struct{ *env.Env }

// work holds the flags that select the work.
type work struct {
	file, task, agent, token string
	asJSON                   bool
}

// Command returns the command with its subcommands.
func Command(e *env.Env) *cobra.Command {
	c := &commands{e}
	var w work
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
			return c.batch(cmd, &w, batch)
		},
	}
	cmd.Flags().StringVar(&batch, "batch", "", "`FILE` record the operations in a file, or in standard input for -, as "+
		"one write")
	c.workFlags(cmd, &w)
	cmd.AddCommand(c.recordCommands()...)
	cmd.AddCommand(c.newShowCommand(), c.newLogCommand(), c.newStaleCommand(), c.newResumeCommand(),
		c.newVerifyCommand(), c.newSkillCommand())
	return cmd
}

func (c *commands) workFlags(cmd *cobra.Command, w *work) {
	f := cmd.Flags()
	f.StringVar(&w.file, "file", "", "`FILE` builder-state.json; default: "+fileVariable+", else the nearest one up to "+
		"the repository's root, also in docs and .opencode")
	f.StringVar(&w.task, "task", "", "`PLACE` prd for the story of activePrd, or adhoc:ID for an item of adhocQueue; "+
		"default: "+taskVariable+", else prd")
	f.StringVar(&w.agent, "agent", "", "`NAME` name of the agent; default: "+agentVariable)
	f.StringVar(&w.token, "token", "", "`TOKEN` token of your claim, printed by resume; default: "+tokenVariable)
	env.JSONFlag(cmd, &w.asJSON)
	for _, name := range []string{"task", "agent", "token"} {
		env.CompleteWith(cmd, name, cobra.NoFileCompletions)
	}
}

// on opens the recorder of the selected work.
func (c *commands) on(cmd *cobra.Command, w *work, write bool,
	do func(ctx context.Context, r *ledger.Recorder) error) error {
	loc, err := c.locate(w)
	if err != nil {
		return translated(err)
	}
	return c.at(cmd, w, loc, write, do)
}

// at opens the recorder of the work in a file.
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
	const rareGC = 400 // the command is short and allocates only a few megabytes
	defer debug.SetGCPercent(debug.SetGCPercent(rareGC))
	l, err := c.Load(cmd)
	if err == nil && !l.Exists && write {
		l, err = c.LoadFrom(cmd, loc.Root) // create a new store beside the file
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
	cfg.Ledgers = ledger.None{} // no store, as in a new clone
	return translated(do(cmd.Context(), ledger.New(cfg)))
}

// maxAgent bounds the names of agents in bytes, as for claims.
const maxAgent = 256

// checkAgent checks the name of an agent.
func checkAgent(name string) error {
	switch {
	case len(name) > maxAgent:
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf("name of the agent has %d bytes; the limit is %d",
			len(name), maxAgent)}
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return &perdure.Error{Code: perdure.CodeInvalid,
			Msg:  fmt.Sprintf("%q is not the name of an agent: it is not one line of UTF-8", name),
			Hint: "set another name with --agent or " + agentVariable}
	}
	return nil
}

// placeOf parses --task.
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
			Msg:  fmt.Sprintf("--task %q is not a place of a checkpoint", w.task),
			Hint: "write prd, or adhoc:ID with the id of an item of adhocQueue"}
	}
	return place, nil
}

func (c *commands) or(flag, variable string) string {
	if flag != "" {
		return flag
	}
	return c.Getenv(variable)
}

// locate returns the file.
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
			Hint: "perdure handoff start --file " + w.file + " creates it"}
	}
	return handoff.Location{File: file, Root: handoff.RootOf(file)}, nil
}

// translated returns errors of the file with the codes of exit statuses.
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
		code = perdure.CodeCanceled // while waiting for the lock
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

// joined returns the words of a text without quotes.
func joined(args []string) string { return strings.Join(args, " ") }

// Package handoff has the commands of handoff. They are part of the command
// line, which gives them what they need of the world in [Config]. The file
// builder-state.json is read and written by the process that was called; the
// ledger behind it through the API's client, like everything in the store.
package handoff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/text/nearest"
)

// Config is the program around the commands. All fields are required.
type Config struct {
	Stdin    io.Reader
	Out, Err io.Writer
	// PrintJSON writes a value to Out as one line.
	PrintJSON func(v any) error
	// Safe makes text of others harmless for Out; Bold and Dim style it.
	Safe, Bold, Dim func(text string) string
	// Getenv looks up an environment variable.
	Getenv func(name string) string
	// Cwd is the working directory, absolute.
	Cwd string
	// GroupID is where the commands stand in the help.
	GroupID string
	// Arguments makes a check of the number of arguments that says what was
	// expected; most -1 is any number.
	Arguments func(least, most int, what string) cobra.PositionalArgs
	// Incomplete is the error of a command that did what it was asked and found
	// that somebody should look; Failed that of one that found a failure.
	Incomplete, Failed func(msg, hint string) error
	// Connect gives do the store. To write it makes the store, in the folder root
	// when there is none above it.
	Connect func(cmd *cobra.Command, root string, write bool, do func(s Store) error) error
}

// Store is where ledgers are, and what is set there.
type Store struct {
	*client.Client
	// Dir is the store's folder. Shared tells that the store is not in it, so that
	// other folders, perhaps of other projects, use it too.
	Dir        string
	Shared     bool
	Thresholds ledger.Thresholds
}

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

type commands struct{ Config }

// work are the flags that say whose work it is.
type work struct {
	file, task, agent, token string
	asJSON                   bool
}

// Command makes the command with its subcommands.
func Command(cfg Config) *cobra.Command {
	c := &commands{cfg}
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
		GroupID: c.GroupID,
		Args:    known,
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

// known refuses a word that is no command.
func known(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	hint := "perdure handoff --help lists them"
	if near, ok := nearest.Word(args[0], names); ok {
		hint = fmt.Sprintf("did you mean %q?", "perdure handoff "+near)
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf("%q is not a command of handoff", args[0]),
		Hint: hint}
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

// on opens the relay of the work that the flags name.
func (c *commands) on(cmd *cobra.Command, w *work, write bool,
	do func(ctx context.Context, r *ledger.Relay) error) error {
	loc, err := c.locate(w)
	if err != nil {
		return translated(err)
	}
	return c.at(cmd, w, loc, write, do)
}

// at is on for who knows where the file is.
func (c *commands) at(cmd *cobra.Command, w *work, loc handoff.Location, write bool,
	do func(ctx context.Context, r *ledger.Relay) error) error {
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
	reached := false
	err = c.Connect(cmd, loc.Root, write, func(s Store) error {
		reached, cfg.Ledgers, cfg.Thresholds, cfg.Snapshots = true, s.Client, s.Thresholds, filepath.Join(s.Dir, "handoffs")
		if cfg.Folder = filepath.Dir(s.Dir); s.Shared {
			cfg.Folder = "" // a file of the same name elsewhere is another one
		}
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
	file := c.abs(w.file)
	if _, err := os.Stat(file); err != nil {
		return handoff.Location{File: file, Root: handoff.RootOf(file)}, &handoff.Error{Kind: handoff.ErrNotFound,
			Op: "find file", File: w.file, Err: errors.Unwrap(err),
			Hint: "make it with: perdure handoff start --file " + w.file}
	}
	return handoff.Location{File: file, Root: handoff.RootOf(file)}, nil
}

func (c *commands) abs(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.Cwd, path)
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

// printf writes to Out, which remembers what goes wrong.
func (c *commands) printf(format string, args ...any) { _, _ = fmt.Fprintf(c.Out, format, args...) }

// note tells people something beside the result.
func (c *commands) note(format string, args ...any) {
	_, _ = fmt.Fprintf(c.Err, "perdure: "+format+"\n", args...)
}

func (c *commands) notes(list []string) {
	for _, text := range list {
		c.note("%s", c.Safe(text))
	}
}

// one puts text on one line.
func (c *commands) one(text string) string { return human.OneLine(text) }

func ago(t time.Time) string { return human.Stamp(t) }

func plural(n int, noun string) string { return human.Count(int64(n), noun) }

// joined is for arguments that were given without quotes.
func joined(args []string) string { return strings.Join(args, " ") }

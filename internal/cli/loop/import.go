package loop

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loopimport"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/daemon"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop"
)

// importReport is the output of loop import --json.
type importReport struct {
	LoopID string         `json:"loop_id"`
	Tree   perdure.TreeID `json:"tree_id"`
	// Iterations counts the imported iterations, Next is the number of the first new
	// one.
	Iterations int          `json:"iterations"`
	Next       int          `json:"next_iteration"`
	Until      string       `json:"completion_command"`
	Agent      string       `json:"agent"`
	Workspace  string       `json:"workspace"`
	Notes      []string     `json:"notes"`
	Corrected  []loops.Note `json:"corrected"`
}

func (c *commands) newImportCommand() *cobra.Command {
	var t tuning
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import an unfinished loop and continue it here",
		Long: "Import an unfinished loop: its state as JSON or YAML (perdure schema loop-state), as other programs keep " +
			"it in .aiwg/ralph/loops/LOOP/state.json and as `perdure loop status --json` and `perdure export --layout aiwg` " +
			"print it. FILE can also be its folder, or - for standard input.\n\n" +
			"The task, the limits and the history are imported, and the iterations are numbered on. The loop is paused; " +
			"`perdure loop resume` continues it and takes the files at that time as the baseline. The document contains no " +
			"files, so imported iterations cannot be restored. Unknown fields are kept and exported again.\n\n" +
			"If the document describes the end of the loop in words, give the command with --until. Ended loops are imported " +
			"with `perdure import` as records, which are not executed.",
		Example: "perdure loop import .aiwg/ralph/loops/ralph-fix-tests-a1b2c3d4/state.json --agent claude --until \"npx " +
			"tsc --noEmit\"\n perdure loop resume",
		Args: env.Arguments(1, 1, "a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			req, corrected, err := c.importRequest(cmd, args[0], &t)
			if err != nil {
				return err
			}
			return c.execute(cmd, env.Execute, func(b *env.Backend) error {
				in, err := daemon.ImportLoop(cmd.Context(), c.DaemonConfig(b.Config), req)
				if err != nil {
					return err
				}
				report := &importReport{LoopID: loop.ID(&in.Tree), Tree: in.Tree.ID, Iterations: in.Iterations, Next: in.Next,
					Until: in.Config.Until, Agent: in.Config.Agent, Workspace: in.Config.Workspace, Notes: in.Notes,
					Corrected: corrected}
				return c.Print(report, func() { c.showImport(args[0], report) })
			})
		},
	}
	cmd.Flags().StringVar(&t.Until, "until", "", "`COMMAND` completion command, run by the shell; default: the document's")
	cmd.Flags().StringVar(&t.Agent, "agent", "", "`AGENT` agent; default: the document's, or else the setting loop.agent")
	cmd.Flags().StringVar(&t.Workspace, "workspace", "", "`FOLDER` folder to work in; default: the current one")
	cmd.Flags().IntVar(&t.MaxIterations, "max-iterations", 0,
		"`N` maximum iterations, including the imported ones; default: the document's")
	c.JSONFlag(cmd)
	env.UsesActing(cmd)
	return cmd
}

// importRequest returns the request for a document, with the flags and the settings, and
// the corrections of the document, which are not nil.
func (c *commands) importRequest(cmd *cobra.Command, name string, t *tuning) (req loopimport.Request,
	corrected []loops.Note, err error) {
	text, shown, err := c.readDocument(name)
	if err != nil {
		return req, nil, err
	}
	req.From = shown
	if req.Document, corrected, err = loops.ReadState(shown, text); err != nil {
		return req, nil, err
	}
	t.Workspace = c.Path(t.Workspace)
	req.Config, req.Settings, err = c.fields(cmd, t, "workspace")
	return req, append([]loops.Note{}, corrected...), err
}

// maxDocument bounds the size of a document in bytes.
const maxDocument = 64 << 20

// readDocument returns a document and its name for messages.
func (c *commands) readDocument(name string) (text []byte, shown string, err error) {
	if name == "-" {
		text, err = io.ReadAll(io.LimitReader(c.Stdin, maxDocument+1))
		return text, "standard input", err
	}
	path := c.Path(name)
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		path, name = filepath.Join(path, "state.json"), filepath.Join(name, "state.json")
		info, err = os.Stat(path)
	}
	if err == nil && info.Size() > maxDocument {
		err = fmt.Errorf("file has %d bytes; the limit is %d", info.Size(), maxDocument)
	}
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		return text, name, nil
	}
	if in, ok := errors.AsType[*fs.PathError](err); ok {
		err = in.Err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, name, env.NotFound("`perdure loop status LOOP --json` prints a state that can be imported; `perdure "+
			"restore` puts a store back that was removed, with its loops", "import loop: %s: %s", name, err)
	}
	return nil, name, env.UsageError("", "import loop: %s: %s", name, err)
}

// showImport prints what was imported, and how to continue.
func (c *commands) showImport(name string, r *importReport) {
	for i := range r.Corrected {
		n := &r.Corrected[i]
		c.Note("%s:%d:%d: %s", c.Err.Safe(n.File), n.Line, n.Column, c.Err.Safe(n.Message))
	}
	for _, note := range r.Notes {
		c.Note("%s", c.Err.Safe(note))
	}
	c.Note("imported %s with %s from %s; the next iteration is %d", r.LoopID,
		human.Count(r.Iterations, "iteration"), c.Err.Safe(name), r.Next)
	c.Note("agent %s, completion command: %s", c.Err.Safe(r.Agent), c.Err.Safe(r.Until))
	c.Note("`perdure loop resume %s` continues it", r.LoopID)
	c.Printf("%s\n", r.LoopID)
}

package loop

import (
	"encoding/json"
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

// importReport is what --json prints of an import.
type importReport struct {
	LoopID string         `json:"loop_id"`
	Tree   perdure.TreeID `json:"tree_id"`
	// Iterations counts those of before that are known; Next is the number of the
	// first one here.
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take in a loop that began elsewhere, to go on with it here",
		Long: "Take in a loop that began elsewhere and has not ended: its state as JSON or YAML (perdure schema " +
			"loop-state), as other programs " +
			"keep it in .aiwg/ralph/loops/LOOP/state.json and as `perdure loop status --json` and `perdure export --layout " +
			"aiwg` print it. " +
			"FILE may be the folder it is in, or - for standard input.\n\n" +
			"The task, the limits and the history come in; numbers of iterations are not given again. Nothing is run: the " +
			"loop is paused, and " +
			"`perdure loop resume` goes on with it, the files as they are then being what everything is compared with. Files " +
			"of before are " +
			"not in such a document, so none of its iterations can be brought back. What perdure does not know of it is kept " +
			"and exported again.\n\n" +
			"Where the document says in words when the loop is done, --until gives the command. Loops that have ended come " +
			"in with `perdure import`, " +
			"as records that nobody executes.",
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
					Until: in.Config.Until,
					Agent: in.Config.Agent, Workspace: in.Config.Workspace, Notes: in.Notes, Corrected: corrected}
				if asJSON {
					return c.PrintJSON(report)
				}
				c.showImport(args[0], report)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&t.Until, "until", "", "the completion `COMMAND`, for the shell (default: the document's)")
	cmd.Flags().StringVar(&t.Agent, "agent", "", "who works (default: the document's, or else the setting loop.agent)")
	cmd.Flags().StringVar(&t.Workspace, "workspace", "", "the `folder` to work in (default: this one)")
	cmd.Flags().IntVar(&t.MaxIterations, "max-iterations", 0,
		"how many iterations there are at most, those of before included (default: the document's)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what came in as one JSON object")
	return cmd
}

// importRequest reads a document, and what the flags and the settings say. What was
// corrected in the document is never nil.
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
	set, err := c.settings(cmd, "")
	if err != nil {
		return req, nil, err
	}
	given := append(t.given(cmd), "workspace")
	t.Workspace = c.Path(t.Workspace)
	literal(&set)
	if req.Config, err = json.Marshal(t.Fields(given...)); err != nil {
		return req, nil, err
	}
	if corrected == nil {
		corrected = []loops.Note{}
	}
	req.Settings, err = json.Marshal(set.Fields(settable(&set)...))
	return req, corrected, err
}

// maxDocument bounds what is read of a document, in bytes.
const maxDocument = 64 << 20

// readDocument returns a document and what it is called in messages.
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
		err = fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), maxDocument)
	}
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err == nil {
		return text, name, nil
	}
	code := perdure.CodeInvalid
	if errors.Is(err, fs.ErrNotExist) {
		code = perdure.CodeNotFound
	}
	var in *fs.PathError
	if errors.As(err, &in) {
		err = in.Err
	}
	return nil, name, &perdure.Error{Code: code, Op: "import loop", Msg: fmt.Sprintf("%s: %s", name, err)}
}

// showImport tells people what came in, and how to go on.
func (c *commands) showImport(name string, r *importReport) {
	for i := range r.Corrected {
		n := &r.Corrected[i]
		c.Note("%s:%d:%d: %s", c.Err.Safe(n.File), n.Line, n.Column, c.Err.Safe(n.Message))
	}
	for _, note := range r.Notes {
		c.Note("%s", c.Err.Safe(note))
	}
	c.Note("%s with %s came in from %s; the next iteration is %d", r.LoopID,
		human.Count(int64(r.Iterations), "iteration"), c.Err.Safe(name), r.Next)
	c.Note("%s works, until this succeeds: %s", c.Err.Safe(r.Agent), c.Err.Safe(r.Until))
	c.Note("`perdure loop resume %s` goes on", r.LoopID)
	c.Printf("%s\n", r.LoopID)
}

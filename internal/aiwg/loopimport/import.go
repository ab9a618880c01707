// Package loopimport imports loops that began elsewhere from the documents of their
// state. The iterations become rows, the document itself is kept, and the loop can be
// resumed.
package loopimport

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// Request is the import of a loop of another program or another store.
type Request struct {
	// Document is the state of the loop, a document of the schema loop-state.
	Document json.RawMessage
	// From is the source of the document, for people.
	From string
	// Config is a JSON object of the fields of a [config.Config] that replace those of
	// the document; Settings of those that are used if the document does not have them.
	Config   json.RawMessage
	Settings json.RawMessage
}

// Imported is the result of an import.
type Imported struct {
	Tree   perdure.Tree
	Config config.Config
	// Iterations counts the known iterations; Next is the number of the next one.
	Iterations int
	Next       int
	// Notes are the differences between this loop and the imported one, for people.
	Notes []string
}

// Import imports a loop that began elsewhere and has not ended; see
// [loop.Engine.Adopt]. Its iterations become the history, their numbers are not used
// again, and the document is kept. The files of its iterations are not known, so none of
// them can be restored. store is the engine's.
func Import(ctx context.Context, store *perdure.Store, engine *loop.Engine, req Request) (Imported, error) {
	var out Imported
	p, err := readPast(req.Document)
	if err != nil {
		return out, invalid("", "%s", err)
	}
	if err := p.checkActive(); err != nil {
		return out, err
	}
	if out.Config, out.Notes, err = p.configured(&req); err != nil {
		return out, err
	}
	known, highest := p.numbers()
	if highest > config.MaxIterationsCap {
		return out, invalid("", "iteration %d exceeds the limit of %d", highest, config.MaxIterationsCap)
	}
	if out.Config.MaxIterations <= highest {
		return out, invalid(fmt.Sprintf("--max-iterations %d allows %d more; it counts the previous iterations, too",
			highest+config.DefaultMaxIterations, config.DefaultMaxIterations),
			"iteration %d was the last of %d", highest, out.Config.MaxIterations)
	}
	out.Iterations, out.Next = len(known), highest+1
	out.Notes = append(out.Notes, p.notes(highest, out.Config.Workspace)...)
	a := loop.Adoption{Config: out.Config, Past: record.Past{LoopID: p.LoopID, From: clip.Bytes(req.From, maxText),
		Iteration: highest, At: time.Now().UTC(), FalseAlarms: p.falseAlarms()}}
	if a.Iterations, err = p.rows(out.Config.Until); err != nil {
		return out, err
	}
	ref, err := store.PutBlob(ctx, bytes.NewReader(req.Document))
	if err != nil {
		return out, err
	}
	failpoint.Hit("loop.import.document")
	a.Past.Document, a.Blobs = ref.Hash, []perdure.BlobRef{ref}
	out.Tree, err = engine.Adopt(ctx, a)
	return out, err
}

func invalid(hint, format string, args ...any) error {
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "import loop", Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// checkActive returns an error for a loop that has ended.
func (p *pastLoop) checkActive() error {
	if !record.Status(p.Status).Ended() {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "import loop",
		Msg: fmt.Sprintf("%s has ended: %s", p.LoopID, p.Status),
		Hint: "`perdure import` with the folder .aiwg imports it as a record; `perdure loop run` starts a new loop " +
			"with the same task"}
}

// configured returns the configuration of the loop.
func (p *pastLoop) configured(req *Request) (c config.Config, notes []string, err error) {
	if _, err := c.Overlay(req.Settings); err != nil {
		return c, nil, invalid("", "settings: %s", err)
	}
	fields, notes := p.config(&c)
	asked, err := c.Overlay(req.Config)
	if err != nil {
		return c, nil, invalid("", "config: %s", err)
	}
	if c.Until == "" {
		if c.Until, err = p.command(c.Workspace); err != nil {
			return c, nil, err
		}
	}
	c.Given = slices.Compact(slices.Sorted(slices.Values(append(fields, asked...))))
	if c.Agent == "" {
		return c, nil, invalid("--agent NAME sets it, as for `perdure loop run`", "the document does not name the agent")
	}
	raw, err := json.Marshal(&c)
	if err != nil {
		return c, nil, err
	}
	if c, err = config.Parse(raw); err != nil {
		return c, nil, err
	}
	if d := p.Directory; d != "" && !slices.Contains(asked, "workspace") && d != c.Workspace {
		notes = append(notes, fmt.Sprintf("its workspace was %s and is now %s", clip.Bytes(d, maxText), c.Workspace))
	}
	return c, notes, nil
}

// command returns the completion command if the criteria are a command.
func (p *pastLoop) command(workspace string) (string, error) {
	criteria := strings.TrimSpace(p.Criteria)
	if isCommand(criteria, workspace) {
		return criteria, nil
	}
	words := strings.Fields(criteria)
	for len(words) > 1 && slices.Contains(proseWords(), strings.ToLower(strings.Trim(words[len(words)-1], ".!,"))) {
		words = words[:len(words)-1]
	}
	hint := "--until COMMAND sets the completion command"
	if guess := strings.Join(words, " "); isCommand(guess, workspace) {
		hint += fmt.Sprintf(", perhaps --until %q", guess)
	}
	if criteria == "" {
		return "", invalid(hint, "the document has no completion_criteria")
	}
	return "", invalid(hint, "completion_criteria is not a command: %q", clip.Bytes(criteria, maxText))
}

// proseWords returns words of sentences about completion that commands do not have.
func proseWords() []string {
	return []string{"a", "all", "an", "and", "any", "are", "as", "be", "complete", "completes", "done", "each", "errors",
		"every", "exits", "green", "has", "have", "is", "must", "no", "of", "ok", "or", "pass", "passed", "passes",
		"passing", "should", "succeed", "succeeds", "successfully", "the", "until", "when", "with", "without", "work",
		"works"}
}

// isCommand reports whether a string is a command: its first word is a program, and none
// of the others is a prose word.
func isCommand(text, workspace string) bool {
	words := strings.Fields(text)
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:] // an environment variable
	}
	if len(words) == 0 || slices.ContainsFunc(words[1:], func(w string) bool {
		return slices.Contains(proseWords(), strings.ToLower(strings.Trim(w, ".!,")))
	}) {
		return false
	}
	name := words[0]
	if slices.Contains([]string{"!", ":", "[", "cd", "test", "true"}, name) {
		return true
	}
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(workspace, name)
		}
		info, err := os.Stat(name)
		return err == nil && !info.IsDir()
	}
	_, err := exec.LookPath(name)
	return err == nil
}

// notes returns the differences between this loop and the imported one.
func (p *pastLoop) notes(highest int, workspace string) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if p.Status == string(record.Running) || p.Status == string(record.Completing) {
		program := "another program"
		if p.PID != nil && *p.PID > 0 {
			program = fmt.Sprintf("process %d", *p.PID)
		}
		note("its status is %s: if %s still works on it, stop that first", p.Status, program)
	}
	if p.Omitted > 0 {
		note("the document has no records of the first %d iterations; `perdure loop status --json --full` writes all",
			p.Omitted)
	}
	seen := make(map[whole]bool)
	for i := range p.History {
		n := p.History[i].Iteration
		if seen[n] {
			note("iteration %d has two records; the last one is used, the document keeps both", n)
		}
		seen[n] = true
	}
	if highest > 0 && !seen[whole(highest)] {
		note("iteration %d was not finished; its changes of the files are part of the start of this loop, and its number "+
			"is not used again", highest)
	}
	if b := p.Best; b != nil && b.Iteration > 0 {
		note("iteration %d was the best so far; its files are not in this store, so the loop selects the best of the "+
			"iterations from now on", b.Iteration)
	}
	note("the loop is compared with the files in %s at the time of `perdure loop resume`", workspace)
	return notes
}

// rows returns the rows of the previous iterations.
func (p *pastLoop) rows(until string) ([]record.Iteration, error) {
	outcomes, status := p.outcomes(until)
	list := make([]record.Iteration, 0, len(outcomes))
	for _, o := range outcomes {
		it, err := o.Row(status[o.Iteration], 0)
		if err != nil {
			return nil, err
		}
		it.StartedAt = cmp.Or(o.Timestamp, p.StartedAt.UTC())
		if it.StartedAt.Year() < 1970 {
			it.StartedAt = time.UnixMicro(1).UTC()
		}
		it.EndedAt = new(it.StartedAt)
		list = append(list, *it)
	}
	return list, nil
}

// Package loopimport takes in loops that began elsewhere, from the documents that
// tell of their state: what of them becomes rows, and what they are to do here.
// The document itself is kept.
package loopimport

import (
	"bytes"
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

// Request asks that a loop of another program, or of another perdure, goes on
// here.
type Request struct {
	// Document is the state of the loop, as the schema loop-state has it.
	Document json.RawMessage
	// From names where the document stands, for people.
	From string
	// Config is a JSON object of those fields of a [config.Config] that hold whatever
	// the document says; Settings of those that hold where it says nothing.
	Config   json.RawMessage
	Settings json.RawMessage
}

// Imported tells what came in.
type Imported struct {
	Tree   perdure.Tree
	Config config.Config
	// Iterations counts those that are known, Next is the number of the first one
	// here.
	Iterations int
	Next       int
	// Notes tell people what is otherwise here than it was there.
	Notes []string
}

// Import takes in a loop that began elsewhere and has not ended; see
// [loop.Engine.Adopt]. What was there comes in as its history, numbers of
// iterations are not given again, and the document is kept. Nothing of the files of
// then is known here, so no iteration of then can be brought back. store is the
// engine's.
func Import(ctx context.Context, store *perdure.Store, engine *loop.Engine, req Request) (Imported, error) {
	var out Imported
	p, err := readPast(req.Document)
	if err != nil {
		return out, invalid("", "%s", err)
	}
	if err := p.living(); err != nil {
		return out, err
	}
	if out.Config, out.Notes, err = p.configured(&req); err != nil {
		return out, err
	}
	known, highest := p.numbers()
	if highest > config.MaxIterationsCap {
		return out, invalid("", "iteration %d is beyond %d, the highest number that there may be", highest,
			config.MaxIterationsCap)
	}
	if out.Config.MaxIterations <= highest {
		return out, invalid(fmt.Sprintf("--max-iterations allows more; they are counted from the first one, so %d are %d "+
			"more", highest+config.DefaultMaxIterations, config.DefaultMaxIterations),
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

// living refuses a loop that is over.
func (p *pastLoop) living() error {
	if !record.Status(p.Status).Ended() {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "import loop",
		Msg: fmt.Sprintf("%s has ended: it is %s", p.LoopID, p.Status),
		Hint: "`perdure import` with the folder .aiwg takes it in as a record; `perdure loop run` begins another loop " +
			"with the same task"}
}

// configured is what the loop is to do here.
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
		return c, nil, invalid("--agent says who works, as with `perdure loop run`",
			"the document does not say which agent works")
	}
	raw, err := json.Marshal(&c)
	if err != nil {
		return c, nil, err
	}
	if c, err = config.Parse(raw); err != nil {
		return c, nil, err
	}
	if d := p.Directory; d != "" && !slices.Contains(asked, "workspace") && d != c.Workspace {
		notes = append(notes, fmt.Sprintf("it worked in %s; here it works in %s", clip.Bytes(d, maxText), c.Workspace))
	}
	return c, notes, nil
}

// command is the completion command, where the criteria are one.
func (p *pastLoop) command(workspace string) (string, error) {
	criteria := strings.TrimSpace(p.Criteria)
	if isCommand(criteria, workspace) {
		return criteria, nil
	}
	words := strings.Fields(criteria)
	for len(words) > 1 && slices.Contains(proseWords(), strings.ToLower(strings.Trim(words[len(words)-1], ".!,"))) {
		words = words[:len(words)-1]
	}
	hint := "--until gives the command"
	if guess := strings.Join(words, " "); isCommand(guess, workspace) {
		hint += fmt.Sprintf(", perhaps --until %q", guess)
	}
	if criteria == "" {
		return "", invalid(hint, "the document has no completion_criteria, and no command says whether the loop is done")
	}
	return "", invalid(hint, "completion_criteria is not a command but words: %q", clip.Bytes(criteria, maxText))
}

// proseWords are words that sentences about being done have and commands do not.
func proseWords() []string {
	return []string{"a", "all", "an", "and", "any", "are", "as", "be", "complete", "completes", "done", "each", "errors",
		"every", "exits", "green", "has", "have", "is", "must",
		"no", "of", "ok", "or", "pass", "passed", "passes", "passing", "should", "succeed", "succeeds", "successfully",
		"the", "until", "when", "with", "without", "work", "works"}
}

// isCommand tells whether a text is a command: its first word can be run here, and
// none of the others is of a sentence.
func isCommand(text, workspace string) bool {
	words := strings.Fields(text)
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:] // of its environment
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

// notes tell what is otherwise here than it was there.
func (p *pastLoop) notes(highest int, workspace string) (notes []string) {
	if p.Status == string(record.Running) || p.Status == string(record.Completing) {
		who := "another program"
		if p.PID != nil && *p.PID > 0 {
			who = fmt.Sprintf("process %d", int(*p.PID))
		}
		notes = append(notes, fmt.Sprintf("the document says that it is %s: if %s still works on it, stop that first",
			p.Status, who))
	}
	if n := int(p.Omitted); n > 0 {
		notes = append(notes, fmt.Sprintf("the document leaves out the first %d iterations; `perdure loop status --json "+
			"--full` writes one that has all", n))
	}
	twice := make(map[whole]bool)
	for i := range p.History {
		if n := p.History[i].Iteration; twice[n] {
			notes = append(notes, fmt.Sprintf("iteration %d stands there twice; the last one counts, the document keeps both",
				int(n)))
		} else {
			twice[n] = true
		}
	}
	if highest > 0 && !twice[whole(highest)] {
		notes = append(notes, fmt.Sprintf("iteration %d was not over; what it left in the files is part of what the loop "+
			"begins with, and its number is not given again", highest))
	}
	if b := p.Best; b != nil && b.Iteration > 0 {
		notes = append(notes, fmt.Sprintf("iteration %d was the best so far, but its files are not here: it cannot be "+
			"brought back, and the best of the iterations from now on is left", int(b.Iteration)))
	}
	return append(notes, "the files in "+workspace+" as they are when it goes on are what it is compared with")
}

// rows are the iterations of then.
func (p *pastLoop) rows(until string) ([]record.Iteration, error) {
	outcomes, status := p.outcomes(until)
	list := make([]record.Iteration, 0, len(outcomes))
	for _, o := range outcomes {
		it, err := o.Row(status[o.Iteration], 0)
		if err != nil {
			return nil, err
		}
		it.StartedAt = o.Timestamp
		if it.StartedAt.IsZero() {
			it.StartedAt = p.StartedAt.UTC()
		}
		if it.StartedAt.Year() < 1970 {
			it.StartedAt = time.UnixMicro(1).UTC()
		}
		ended := it.StartedAt
		it.EndedAt = &ended
		list = append(list, *it)
	}
	return list, nil
}

package rlm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// logRef, in the plan of a root, is the log that the tree was imported from.
type logRef struct {
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// LogImport imports a log of a recursive language model as a record.
type LogImport struct {
	Store *perdure.Store
	// Log may be compressed by gzip.
	Log io.Reader
	// DryRun reports what an import would do and changes nothing. Strict imports nothing if a
	// value would be corrected.
	DryRun, Strict bool
}

// LogRecord is what came of the import of a run of a log.
type LogRecord struct {
	// Tree is the record, "" if nothing was imported.
	Tree perdure.TreeID `json:"tree_id,omitempty"`
	// Line is the line of the run's first iteration, from 1.
	Line  int `json:"line"`
	Turns int `json:"turns"`
	// SubCalls counts the sub-calls of the log, Tasks the imported tasks, the root included.
	SubCalls int `json:"sub_calls"`
	Tasks    int `json:"tasks"`
	// Present is set if the store had a record of this log.
	Present bool      `json:"present"`
	Notes   []LogNote `json:"notes"`
	// Refused is set if nothing was imported because of the notes.
	Refused bool `json:"refused,omitempty"`
}

// LogNote is what has no place of its own in the record, or was corrected.
type LogNote struct {
	Line      int    `json:"line"` // the first one that it is about, from 1
	Corrected bool   `json:"corrected,omitempty"`
	Message   string `json:"message"`
}

// Import imports the log: for each of its runs a tree of the kind record with the answer, a task for each
// sub-call, and the lines of the log, from which the turns are read. Runs that share their variables are
// one record. Nothing of it is executed. The same run is imported once; a second import completes an
// interrupted one. A log that is not of the form is an error with CodeInvalid that names the line, and
// nothing is imported.
func (p *LogImport) Import(ctx context.Context) ([]LogRecord, error) {
	text, size, err := copyDecoded(p.Log)
	if err != nil {
		return nil, logError(err)
	}
	defer func() {
		_ = text.Close()
		_ = os.Remove(text.Name())
	}()
	list, err := readRecords(io.NewSectionReader(text, 0, size))
	if err != nil {
		return nil, logError(err)
	}
	out := make([]LogRecord, len(list))
	for i, r := range list {
		isCorrected := slices.ContainsFunc(r.out.Notes, func(n LogNote) bool { return n.Corrected })
		r.out.Refused = p.Strict && isCorrected
		if !p.DryRun && !r.out.Refused {
			if err := p.write(ctx, r, text, size); err != nil {
				return out, err
			}
		}
		out[i] = r.out
	}
	return out, nil
}

// maxLogBytes is the longest log that is imported, as text: a short one can be compressed data of a very long one.
const maxLogBytes = 4 << 30

// copyDecoded copies a log as UTF-8 to a temporary file.
func copyDecoded(log io.Reader) (text *os.File, size int64, err error) {
	source, err := trajectory.Decode(log)
	if err != nil {
		return nil, 0, &trajectory.LineError{Line: 1, Msg: "the data of gzip are damaged: " + err.Error()}
	}
	if text, err = os.CreateTemp("", "perdure-log-"); err != nil {
		return nil, 0, fmt.Errorf("copy log: %w", err)
	}
	size, err = io.Copy(text, io.LimitReader(source, maxLogBytes+1))
	if err == nil && size > maxLogBytes {
		err = fmt.Errorf("it has more than %s", human.Size(maxLogBytes))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && size > 0 { // the lines before the end are used
		err = nil
	}
	if err != nil {
		_ = text.Close()
		_ = os.Remove(text.Name())
		return nil, 0, &trajectory.LineError{Line: 1, Msg: "the log cannot be read: " + err.Error()}
	}
	return text, size, nil
}

// write stores the lines of a record and writes it.
func (p *LogImport) write(ctx context.Context, r *recordReader, text io.ReaderAt, size int64) error {
	if r.to == 0 {
		r.to = size
	}
	lines := io.MultiReader(bytes.NewReader(r.settings), io.NewSectionReader(text, r.from, r.to-r.from))
	blob, err := p.Store.PutBlob(ctx, lines)
	if err != nil {
		return err
	}
	return r.write(ctx, p.Store, blob)
}

// recordReader makes the tasks of a record from the lines of a log.
type recordReader struct {
	out   LogRecord
	meta  *trajectory.Metadata
	root  perdure.TaskRecord
	calls []perdure.TaskRecord
	// from and to are the offsets of the lines of the record, 0 for the end of the log; settings is the line
	// of its settings, if that is before them.
	from, to int64
	settings []byte
	contexts int // the contexts of its runs, which share their variables
	// began is the start of the run and ended the end of what was read last.
	began, ended time.Time
	noted        map[string]bool
	locals       map[string]bool
}

// readRecords reads a log to its end.
func readRecords(log io.Reader) (list []*recordReader, err error) {
	in := trajectory.NewReader(log)
	var r *recordReader
	run := 0
	for {
		it, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if in.Run() > run {
			if run = in.Run(); r == nil || !r.goesOn(it) {
				if r != nil {
					r.end(in.Line() - 1)
					r.to = in.Start()
				}
				r = newRecord(in, it, len(list) == 0)
				list = append(list, r)
			}
		}
		r.iteration(it, in.Line())
		for _, name := range trajectory.Unknown(in.Raw()) {
			r.note(in.Line(), "the member %s has no place, and is in the log only", name)
		}
	}
	if r == nil {
		return nil, &trajectory.LineError{Line: max(in.Line(), 1), Msg: "the log has no iterations"}
	}
	r.end(in.Line())
	if n := in.Torn(); n > 0 {
		r.note(n, "the line is cut off, and was left out")
	}
	return list, nil
}

// newRecord begins the record of a run.
func newRecord(in *trajectory.Reader, it *trajectory.Iteration, isFirst bool) *recordReader {
	r := &recordReader{out: LogRecord{Notes: []LogNote{}, Line: in.Line()}, noted: make(map[string]bool),
		locals: make(map[string]bool), contexts: 1}
	if !isFirst {
		r.from = in.Start()
		if line := in.Settings(); line != nil {
			r.settings = append(line[:len(line):len(line)], '\n')
		}
	}
	r.begin(in.Metadata(), it)
	return r
}

// goesOn reports whether a further run has the variables of the record.
func (r *recordReader) goesOn(it *trajectory.Iteration) bool {
	if len(it.CodeBlocks) == 0 || addedContext(&it.CodeBlocks[0], r.contexts) == nil {
		return false
	}
	r.contexts++
	return true
}

// note adds a note, once.
func (r *recordReader) note(line int, format string, args ...any) {
	r.add(LogNote{Line: line, Message: fmt.Sprintf(format, args...)})
}

// add adds a note once: all corrections, and so many others.
func (r *recordReader) add(n LogNote) {
	const most = 1000
	if !r.noted[n.Message] && (n.Corrected || len(r.out.Notes) < most) {
		r.noted[n.Message] = true
		r.out.Notes = append(r.out.Notes, n)
	}
}

// text returns a text that can be stored: without NUL, and at most as long as a prompt.
func (r *recordReader) text(line int, what, s string) string {
	kept := clip.Bytes(strings.ReplaceAll(s, "\x00", "\uFFFD"), perdure.MaxPromptBytes)
	if kept != s {
		r.add(LogNote{Line: line, Corrected: true, Message: fmt.Sprintf("%s: NUL was replaced, or what is longer than %s "+
			"cut; the log has the whole", what, human.Size(perdure.MaxPromptBytes))})
	}
	return kept
}

// begin sets what the first iteration says of the run.
func (r *recordReader) begin(m *trajectory.Metadata, it *trajectory.Iteration) {
	r.meta, r.began = m, it.Timestamp.Time
	if m != nil && !m.Timestamp.IsZero() && m.Timestamp.Before(r.began) {
		r.began = m.Timestamp.Time
	}
	r.ended = r.began
	prompt := ""
	if m != nil {
		prompt, _ = m.EnvironmentKwargs["prompt"].(string)
	}
	for _, msg := range it.Prompt {
		if msg.Role == "user" && prompt == "" {
			prompt = msg.Content
		}
	}
	r.root = perdure.TaskRecord{Task: perdure.Task{State: perdure.Queued, CreatedAt: r.began, StartedAt: r.began,
		Prompt: cmp.Or(r.text(1, "the prompt", prompt), "(the log has no prompt)"), Attempts: 1}}
}

// iteration adds what a line has.
func (r *recordReader) iteration(it *trajectory.Iteration, line int) {
	r.out.Turns++
	if it.Iteration == 1 && r.out.Turns > 1 {
		r.note(line, "another question to the same REPL begins; the record has the last answer")
	}
	if len(it.Prompt) > 0 {
		r.note(line, "the messages to the model are in the log only")
	}
	r.until(it.Timestamp.Time, it.IterationTime)
	for i := range it.CodeBlocks {
		res := &it.CodeBlocks[i].Result
		for name := range res.Locals {
			r.locals[name] = true
		}
		for k := range res.Calls {
			r.call(&res.Calls[k], it, place{Turn: r.out.Turns, Block: i, Ordinal: k}, line)
		}
	}
	if it.FinalAnswer != nil {
		r.root.Result, r.root.State = r.text(line, "the answer", it.FinalAnswer.Text), perdure.Completed
	}
}

// until moves the end of the run, and returns the end of what began at an instant.
func (r *recordReader) until(at time.Time, seconds *float64) (end time.Time, took time.Duration) {
	const most = 1e9 // seconds, about 30 years
	if seconds != nil {
		took = time.Duration(min(max(*seconds, 0), most) * float64(time.Second))
	}
	end = at.Add(took)
	if end.After(r.ended) {
		r.ended = end
	}
	return end, took
}

// call adds the task of a sub-call.
func (r *recordReader) call(c *trajectory.Call, it *trajectory.Iteration, at place, line int) {
	r.out.SubCalls++
	prompt, ok := c.Text()
	if !ok {
		prompt = string(c.Prompt)
		r.note(line, "prompts that are no text are stored as JSON")
	}
	end, took := r.until(it.Timestamp.Time, c.ExecutionTime)
	t := perdure.Task{Prompt: cmp.Or(r.text(line, "the prompt of a sub-call", prompt), "(empty)"),
		State: perdure.Completed, Position: len(r.calls), Attempts: 1, CreatedAt: it.Timestamp.Time,
		StartedAt: it.Timestamp.Time, CompletedAt: end, Active: took, Usage: usageOf(c),
		Agent: clip.Bytes(r.text(line, "a model", c.RootModel), perdure.MaxAgentBytes)}
	if c.Error != nil {
		t.State, t.Error = perdure.Failed, &perdure.TaskError{Kind: "call", Message: r.text(line, "an error", *c.Error)}
	} else {
		t.Result = r.text(line, "the answer of a sub-call", c.Response)
	}
	raw, err := encode("plan", metadata{&node{Version: planVersion, Total: 1,
		Call: &subCall{place: at, Hash: hashOf(prompt)}}})
	if err == nil { // it always has a JSON form
		t.Metadata = raw
	}
	r.calls = append(r.calls, perdure.TaskRecord{Task: t})
}

// usageOf is what a sub-call took, as far as the log says it. An unknown price is none.
func usageOf(c *trajectory.Call) (u perdure.Usage) {
	const most = 1 << 40
	bounded := func(n int64) int64 { return min(max(n, 0), most) }
	if c.Usage != nil {
		for _, name := range slices.Sorted(maps.Keys(c.Usage.Models)) {
			m := c.Usage.Models[name]
			u.Calls += bounded(m.Calls)
			u.InputTokens += bounded(m.InputTokens)
			u.OutputTokens += bounded(m.OutputTokens)
			if m.Cost == nil {
				u.UnpricedCalls += bounded(m.Calls)
			} else {
				u.CostUSD += min(max(*m.Cost, 0), 1e9)
			}
		}
	}
	if u == (perdure.Usage{}) && (c.PromptTokens > 0 || c.CompletionTokens > 0) {
		u = perdure.Usage{Calls: 1, InputTokens: bounded(c.PromptTokens), OutputTokens: bounded(c.CompletionTokens),
			UnpricedCalls: 1}
	}
	return u
}

// end sets what the whole log says.
func (r *recordReader) end(line int) {
	var vars, contexts []string
	for _, name := range slices.Sorted(maps.Keys(r.locals)) {
		if isContext(name) {
			contexts = append(contexts, name)
		} else {
			vars = append(vars, name)
		}
	}
	if r.meta != nil && r.config() == nil {
		r.note(1, "the settings are in the log only")
	}
	if len(contexts) > 0 {
		r.note(1, "the context is in the log only")
	}
	if len(vars) > 0 {
		r.note(1, "the values of %s are in the log only, the names in the turns", human.Count(len(vars), "variable"))
	}
	n := int64(r.out.Turns)
	r.root.Usage = perdure.Usage{Calls: n, UnpricedCalls: n}
	if r.root.State == perdure.Completed {
		r.root.CompletedAt, r.root.Active = r.ended, min(r.ended.Sub(r.began), 1e9*time.Second)
	} else {
		r.note(line, "the log has no answer: the root is queued, and is not executed")
	}
	r.out.Tasks = 1 + len(r.calls)
}

// isContext reports whether a variable of a log is a context.
func isContext(name string) bool { return name == "context" || strings.HasPrefix(name, "context_") }

// write writes the record, in several transactions if it is large.
func (r *recordReader) write(ctx context.Context, s *perdure.Store, blob perdure.BlobRef) error {
	raw, err := encode("plan", metadata{&node{Version: planVersion, Total: 1, Whole: true,
		Log: &logRef{blob.Hash, blob.Size}}})
	if err != nil {
		return err
	}
	r.root.Metadata = raw
	rec := perdure.TreeRecord{Key: "rlm-log:" + blob.Hash, Blobs: []perdure.BlobRef{blob}}
	if r.meta != nil {
		id, _ := r.meta.EnvironmentKwargs["tree_id"].(string)
		if rec.ID, err = perdure.ParseTreeID(id); err != nil {
			rec.ID = ""
		}
		rec.Config = r.config()
	}
	const page = perdure.MaxImport / 2
	first := min(len(r.calls), page)
	rec.Tasks = append([]perdure.TaskRecord{r.root}, r.calls[:first]...)
	made, err := s.ImportTrees(ctx, []perdure.TreeRecord{rec})
	if err != nil {
		return err
	}
	r.out.Tree, r.out.Present = made[0].ID, made[0].Found
	tree, err := s.Tree(ctx, made[0].ID)
	if err != nil {
		return err
	}
	if r.out.Present {
		if first, err = countChildren(ctx, s, tree.ID, tree.Root); err != nil {
			return err
		}
		r.out.Tasks = len(r.calls) - first
	}
	for rest := range slices.Chunk(r.calls[min(first, len(r.calls)):], page) {
		for i := range rest {
			rest[i].Parent = tree.Root
		}
		if _, err := s.ImportTasks(ctx, tree.ID, rest); err != nil {
			return err
		}
	}
	return nil
}

// config is the configuration of the tree: the settings of the log, without the prompt. It is
// nil if they are too large, or have NUL.
func (r *recordReader) config() json.RawMessage {
	meta := *r.meta
	meta.EnvironmentKwargs = maps.Clone(meta.EnvironmentKwargs)
	delete(meta.EnvironmentKwargs, "prompt")
	config, err := json.Marshal(map[string]any{"rlm_log": meta})
	if err != nil || len(config) > perdure.MaxConfigBytes || bytes.Contains(config, []byte(`\u0000`)) {
		return nil
	}
	return config
}

// countChildren counts the children of a task.
func countChildren(ctx context.Context, s *perdure.Store, tree perdure.TreeID, task perdure.TaskID) (n int, err error) {
	err = eachSubCall(ctx, s, perdure.TaskFilter{Tree: tree, Parent: &task}, func(*perdure.Task, *node) { n++ })
	return n, err
}

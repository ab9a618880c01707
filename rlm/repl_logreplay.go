package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/python"
	"github.com/perdure/perdure/rlm/internal/repl/lookup"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// LogReplayer runs the code of logs of recursive language models again.
type LogReplayer struct {
	// Python, Hidden and Unsandboxed are as in [ExecutorConfig].
	Python      string
	Hidden      []string
	Unsandboxed bool
}

// LogReplay is what came of running the code of a log again.
type LogReplay struct {
	// Model is the model that wrote the code, "" if the log does not say.
	Model      string `json:"model,omitempty"`
	Iterations int    `json:"iterations"`
	// Blocks counts the blocks that were run again, Calls their sub-calls in the log.
	Blocks int `json:"blocks"`
	Calls  int `json:"calls"`
	// Differences are the blocks that did something else than what is in the log.
	Differences []LogDifference `json:"differences"`
}

// LogDifference is a block that did something else when it was run again.
type LogDifference struct {
	Line      int    `json:"line"` // of the log, from 1
	Iteration int    `json:"iteration"`
	Block     int    `json:"block"` // of the iteration, from 0
	Turn      int    `json:"-"`     // the place of the iteration in the log, from 1
	What      string `json:"what"`
}

// Replay runs the code of a log again, with the sub-calls' answers that the log has, and
// compares the output of each block with the log. It asks no model. A log that is not of the
// format is an error with CodeInvalid that names the line.
func (p *LogReplayer) Replay(ctx context.Context, log io.Reader) (report LogReplay, err error) {
	report.Differences = []LogDifference{}
	var e python.Engine
	var s engine.Session
	var material *logContext
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	in := trajectory.NewReader(log)
	for {
		it, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return report, logError(err)
		}
		report.Iterations++
		for i := range it.CodeBlocks {
			if s == nil { // a log without code needs no engine
				if m := in.Metadata(); m != nil && m.EnvironmentKwargs["engine"] == EngineStarlark {
					return report, invalid("the code of the log is Starlark", "use `perdure replay TREE` for runs of your own")
				}
				if material, err = contextOf(&it.CodeBlocks[i]); err != nil {
					return report, logError(&trajectory.LineError{Line: in.Line(), Msg: err.Error()})
				}
				cfg := python.Config{KeepNames: true, Program: p.Python, Hidden: p.Hidden, Unsandboxed: p.Unsandboxed,
					Contents: engine.Contents{Text: material.file()}}
				if s, err = e.Start(ctx, cfg); err != nil {
					return report, logEngineError(err)
				}
			}
			b := &logBlock{s: s, it: it, b: &it.CodeBlocks[i], context: material, first: report.Blocks == 0}
			what, err := b.run(ctx, uint64(report.Blocks)) //nolint:gosec // a count
			if err != nil {
				return report, logEngineError(fmt.Errorf("line %d, block %d: %w", in.Line(), i+1, err))
			}
			report.Blocks++
			report.Calls += len(b.b.Result.Calls)
			if what != "" {
				report.Differences = append(report.Differences, LogDifference{in.Line(), it.Iteration, i,
					report.Iterations, what})
			}
		}
	}
	if m := in.Metadata(); m != nil && m.RootModel != nil {
		report.Model = *m.RootModel
	}
	if report.Iterations == 0 {
		return report, logError(&trajectory.LineError{Line: max(in.Line(), 1), Msg: "the log has no iterations"})
	}
	return report, nil
}

// logError is an error of reading a log.
func logError(err error) error {
	if bad, ok := errors.AsType[*trajectory.LineError](err); ok {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: "read log", Msg: bad.Error(),
			Hint: "each line is a metadata or an iteration in the form of the reference implementation"}
	}
	return err
}

// logEngineError is an error of the engine.
func logEngineError(err error) error {
	if f, ok := isEngine(err); ok {
		return &perdure.Error{Code: perdure.CodeUnavailable, Op: "run the code of the log", Msg: err.Error(), Hint: f.Hint}
	}
	return err
}

// logBlock is a block of a log that is run again.
type logBlock struct {
	s  engine.Session
	it *trajectory.Iteration
	b  *trajectory.CodeBlock
	// context is that of the log, nil if it has none.
	context *logContext
	first   bool // of the log
	// asked are the log's calls by their prompts that were not used yet, left counts all of them.
	asked map[string][]*trajectory.Call
	left  int
	// missing is the first request that the log has no answer to.
	missing string
}

// run runs the block and returns how it differs from the log.
func (b *logBlock) run(ctx context.Context, seed uint64) (string, error) {
	b.left = len(b.b.Result.Calls)
	b.asked = make(map[string][]*trajectory.Call, b.left)
	for i := range b.b.Result.Calls {
		c := &b.b.Result.Calls[i]
		if text, ok := c.Text(); ok {
			text = clip.Storable(text)
			b.asked[text] = append(b.asked[text], c)
		}
	}
	code := b.b.Code
	if b.context != nil {
		if b.first {
			done, err := b.exec(ctx, b.context.setup(), seed)
			if err == nil && done.Failure != nil {
				err = fmt.Errorf("set the context: %s: %s", done.Failure.Type, done.Failure.Message)
			}
			if err != nil {
				return "", err
			}
		}
		code = b.context.before() + code
	}
	done, err := b.exec(ctx, code, seed)
	if err != nil {
		return "", err
	}
	return b.difference(done), nil
}

// exec runs code to its end.
func (b *logBlock) exec(ctx context.Context, code string, seed uint64) (*engine.Done, error) {
	ev, err := b.s.Exec(ctx, engine.Block{Code: code, Clock: b.it.Timestamp.Time, Seed: seed})
	for err == nil && ev.Request != nil {
		ev, err = b.s.Reply(ctx, b.answer(ev.Request))
	}
	return ev.Done, err
}

// logContext is the variable context of a log, which its first block has.
type logContext struct {
	text  string // of a context that is no text, its JSON
	plain bool   // it is a text
}

// contextOf returns the context of a log by its first block, nil if it has none.
func contextOf(b *trajectory.CodeBlock) (*logContext, error) {
	raw, ok := b.Result.Locals["context"]
	if !ok {
		raw, ok = b.Result.Locals["context_0"]
	}
	if !ok {
		return nil, nil
	}
	c := &logContext{text: string(raw), plain: len(raw) > 0 && raw[0] == '"'}
	if c.plain {
		return c, json.Unmarshal(raw, &c.text)
	}
	return c, nil
}

// file is the context for the engine.
func (c *logContext) file() *engine.File {
	if c == nil {
		return nil
	}
	return &engine.File{Name: lookup.TextName, Bytes: int64(len(c.text)), Chars: -1}
}

// setup is code that sets context_0, which logs of others have too.
func (c *logContext) setup() string {
	if c.plain {
		return "context_0 = context\n"
	}
	return "import json\ncontext_0 = json.loads(context)\n" // the reference leaves json there, too
}

// before is code that goes before each block: the engine has the context as a text.
func (c *logContext) before() string {
	if c.plain {
		return ""
	}
	return "context = context_0\n"
}

// read answers the engine's request for bytes of the context.
func (c *logContext) read(args json.RawMessage) (engine.Reply, error) {
	var a struct {
		Offset int64 `json:"offset"`
		Length int64 `json:"length"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return engine.Reply{}, err
	}
	from := min(max(a.Offset, 0), int64(len(c.text)))
	to := min(from+min(max(a.Length, 0), lookup.MaxReadBytes), int64(len(c.text)))
	raw, err := json.Marshal(map[string][]byte{"data": []byte(c.text[from:to])})
	return engine.Reply{Value: raw}, err
}

// answer answers a request of the code from the log. What the log does not have is an exception
// of the code.
func (b *logBlock) answer(r *engine.Request) engine.Reply {
	q, isQuery, problem := parseQuery(r)
	if problem != "" {
		return engine.Reply{Err: problem}
	}
	if r.Function == "read" && b.context != nil {
		reply, err := b.context.read(r.Args)
		if err != nil {
			return engine.Reply{Err: err.Error()}
		}
		return reply
	}
	if !isQuery {
		return b.unknown("the log has no answers of " + r.Function + "()")
	}
	answers := make([]string, len(q.prompts))
	for i, prompt := range q.prompts {
		call := b.find(prompt)
		if call == nil {
			return b.unknown(fmt.Sprintf("the log has no answer to prompt %d of %s()", i+1, r.Function))
		}
		if answers[i] = call.Response; call.Error != nil {
			answers[i] = errorText(*call.Error)
		}
	}
	return q.reply(answers, b.it.Timestamp.Time)
}

// find returns the first call with a prompt that was not used yet.
func (b *logBlock) find(prompt string) *trajectory.Call {
	list := b.asked[prompt]
	if len(list) == 0 {
		return nil
	}
	b.asked[prompt] = list[1:]
	b.left--
	return list[0]
}

func (b *logBlock) unknown(what string) engine.Reply {
	if b.missing == "" {
		b.missing = what
	}
	return engine.Reply{Err: "replay: " + what}
}

// difference returns how what a block did differs from the log, "" if it does not.
func (b *logBlock) difference(d *engine.Done) string {
	want := b.b.Result.Stdout
	same := d.Output == want
	if d.OutputBytes > int64(len(d.Output)) { // it was cut at the limit of the engine
		same = strings.HasPrefix(want, d.Output) && (len(want) == len(d.Output) || d.OutputBytes == int64(len(want)))
	}
	switch {
	case b.missing != "":
		return b.missing
	case d.Failure != nil && b.b.Result.Stderr == "":
		return fmt.Sprintf("the code raised %s: %s, and the log has no error", d.Failure.Type, d.Failure.Message)
	case !same:
		return "the output differs from that of the log"
	case b.left > 0:
		return fmt.Sprintf("%d of the log's %d sub-calls were not made", b.left, len(b.b.Result.Calls))
	}
	return ""
}

// LogSummary is what a log has.
type LogSummary struct {
	Iterations int    `json:"iterations"`
	Blocks     int    `json:"blocks"`
	Calls      int    `json:"calls"`
	Answer     string `json:"answer"`
}

// CheckLog reads a log, and reports what the public viewer cannot show: it fails with
// CodeInvalid and the number of the line.
func CheckLog(log io.Reader) (s LogSummary, err error) {
	in := trajectory.NewReader(log)
	for {
		it, err := in.Next()
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			return s, logError(err)
		}
		s.Iterations++
		for i := range it.CodeBlocks {
			r := &it.CodeBlocks[i].Result
			s.Blocks++
			s.Calls += len(r.Calls)
			for k := range r.Calls {
				if c := &r.Calls[k]; c.ExecutionTime == nil || !json.Valid(c.Prompt) {
					return s, logError(&trajectory.LineError{Line: in.Line(),
						Msg: fmt.Sprintf("code block %d, call %d has no prompt or execution_time", i+1, k+1)})
				}
			}
		}
		if it.FinalAnswer != nil {
			s.Answer = it.FinalAnswer.Text
		}
	}
}

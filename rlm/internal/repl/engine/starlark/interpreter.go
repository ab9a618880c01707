package starlark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"

	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/pipe"
)

// interpreter has the namespace of a session.
type interpreter struct {
	link  *pipe.Link
	limit limits
	// contents are those of the session; the variable context is made when code first names it.
	contents *pipe.Contents
	lazy     int64
	context  starlark.Value

	globals  starlark.StringDict
	reserved starlark.StringDict // names that are bound again after each block
	// helpers are the functions and modules that only this program has, if code may bind their names.
	helpers starlark.StringDict
	history *starlark.List // the messages of the conversation, nil unless the host gives them
	answer  *answer
	known   map[string]known
	out     output
	final   *pipe.Final
	blocks  int
	lost    error // the link failed
}

// serve runs blocks until the host is gone.
func serve(link *pipe.Link) error {
	init, err := link.Receive()
	if err != nil {
		return err
	}
	if err := limitData(dataPerHeap * init.MemoryBytes); err != nil {
		return err
	}
	debug.SetMemoryLimit(init.MemoryBytes)
	in := newInterpreter(link, init)
	err = link.Send(&pipe.Answer{Type: "ready"})
	for err == nil {
		var m *pipe.Message
		if m, err = link.Receive(); err != nil {
			break
		}
		switch m.Type {
		case "exec":
			err = in.execute(m)
		case "set":
			err = in.set(m)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func newInterpreter(link *pipe.Link, init *pipe.Message) *interpreter {
	in := &interpreter{link: link, contents: init.Contents, lazy: init.LazyBytes, known: make(map[string]known),
		limit: limits{memory: init.MemoryBytes, cpu: init.CPUSeconds, value: init.MaxVar,
			request: init.MaxRequest, answer: init.MaxAnswer}, out: newOutput(init.MaxOutput)}
	in.reserved = in.functions()
	for _, name := range init.Tools {
		in.reserved[name] = starlark.NewBuiltin(name, in.tool)
	}
	if in.answer = newAnswer(nil); !init.KeepNames {
		in.answer.capture = func(v starlark.Value) error { return in.capture(v, "answer") }
	} else {
		in.helpers = in.takeHelpers()
	}
	in.reserved["answer"] = in.answer
	in.globals = make(starlark.StringDict)
	in.restore()
	return in
}

// restore binds the reserved names.
func (in *interpreter) restore() {
	for name, v := range in.reserved {
		in.globals[name] = v
	}
	for name, v := range in.helpers {
		if _, bound := in.globals[name]; !bound {
			in.globals[name] = v
		}
	}
}

// isHelper reports whether a name is bound to the function that it stands for.
func (in *interpreter) isHelper(name string) bool {
	helper, ok := in.helpers[name]
	return ok && helper == in.globals[name]
}

// readAnswer takes the answer that a block left. One that does not count is not ready in later blocks.
func (in *interpreter) readAnswer(failed bool) (err error) {
	ready, _, _ := in.answer.Get(starlark.String("ready")) // never fails for a text
	if in.helpers == nil || ready == nil || !bool(ready.Truth()) {
		return nil
	}
	content := in.answer.content()
	if !failed {
		if content == nil {
			content = starlark.String("")
		}
		err = in.capture(content, "answer")
	}
	if failed || err != nil || content == starlark.None || content == starlark.String("") {
		return errors.Join(err, in.answer.Dict.SetKey(starlark.String("ready"), starlark.False))
	}
	return nil
}

// options are those of the language: nearer to Python than the usual ones.
func options() *syntax.FileOptions {
	return &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true, Recursion: true}
}

// execute runs a block.
func (in *interpreter) execute(m *pipe.Message) error {
	in.out.clear()
	in.final = nil
	in.blocks++
	if err := in.remember(m.History); err != nil {
		return err
	}
	failure := in.run(m.Code)
	if in.lost != nil {
		return in.lost
	}
	if err := in.settleAnswer(); failure == nil {
		failure = in.failure(err)
	}
	if err := in.readAnswer(failure != nil); failure == nil {
		failure = in.failure(err)
	}
	in.restore()
	end := &pipe.End{Failure: failure, Final: in.final, Draft: cutAt(in.answer.draft(), in.limit.answer)}
	end.Output, end.OutputBytes, end.OutputSHA256 = in.out.end()
	end.Vars, end.Gone = in.changes()
	return in.link.Send(&pipe.Answer{Type: "done", Done: end})
}

// remember adds messages of the conversation to the variable history.
func (in *interpreter) remember(messages []engine.Message) error {
	if len(messages) > 0 && in.history == nil {
		in.history = starlark.NewList(nil)
		if in.helpers == nil {
			in.reserved["history"] = in.history
		} else {
			in.helpers["history"] = in.history
			in.reserved["perdure"].(*starlarkstruct.Module).Members["history"] = in.history
		}
	}
	for _, m := range messages {
		raw, err := json.Marshal(m)
		if err != nil {
			return err
		}
		v, err := decode(raw)
		if err != nil {
			return err
		}
		if err := in.history.Append(v); err != nil {
			return err
		}
	}
	if len(messages) > 0 {
		in.restore()
	}
	return nil
}

// run runs code and returns why it ended, nil at its end.
func (in *interpreter) run(code string) *engine.Failure {
	if in.context == nil && strings.Contains(code, "context") {
		if err := in.load(); err != nil {
			return in.failure(err)
		}
	}
	name := fmt.Sprintf("<block %d>", in.blocks)
	file, err := options().Parse(name, code, 0)
	if err != nil {
		return in.failure(err)
	}
	thread := &starlark.Thread{Name: name, Print: func(_ *starlark.Thread, text string) { in.out.write(text + "\n") }}
	limitDepth(thread)
	defer in.limit.watch(thread)()
	return in.failure(starlark.ExecREPLChunk(file, thread, in.globals))
}

// failure describes an error of the code.
func (in *interpreter) failure(err error) *engine.Failure {
	if err == nil {
		return nil
	}
	f := &engine.Failure{Type: "Error", Message: err.Error()}
	if eval, ok := errors.AsType[*starlark.EvalError](err); ok {
		f.Message = strings.TrimPrefix(eval.Msg, "Starlark computation cancelled: ")
		f.Traceback = eval.Backtrace()
		for _, frame := range slices.Backward(eval.CallStack) {
			if frame.Pos.Filename() == fmt.Sprintf("<block %d>", in.blocks) {
				f.Line = int(frame.Pos.Line)
				break
			}
		}
	}
	if list, ok := errors.AsType[resolve.ErrorList](err); ok && len(list) > 0 {
		f.Type, f.Message, f.Line = "NameError", list[0].Msg, int(list[0].Pos.Line)
	}
	if wrong, ok := errors.AsType[syntax.Error](err); ok {
		f.Type, f.Message, f.Line = "SyntaxError", wrong.Msg, int(wrong.Pos.Line)
	}
	if f.Traceback == "" {
		f.Traceback = fmt.Sprintf("<block %d>, line %d: %s", in.blocks, f.Line, f.Message)
	}
	f.Message, f.Traceback = shortened(f.Message), f.Type+": "+shortened(f.Traceback)
	return f
}

// longFailure is how many bytes of the text of an error are handed out.
const longFailure = 10_000

// shortened returns the beginning and the end of the text of an error.
func shortened(text string) string {
	const half, note = longFailure / 2, 100
	if len(text) <= longFailure+note {
		return text
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s\n… (%d bytes are left out) …\n%s", text[:half], len(text)-2*half,
		text[len(text)-half:]), "")
}

// settleAnswer takes back the variable answer if the code bound it to another value.
func (in *interpreter) settleAnswer() error {
	bound, ok := in.globals["answer"].(*starlark.Dict)
	if !ok {
		return nil
	}
	for _, key := range []starlark.String{"content", "ready"} {
		v, found, err := bound.Get(key)
		if found && err == nil {
			err = in.answer.SetKey(key, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// capture takes a value as the final answer, if it is the first.
func (in *interpreter) capture(v starlark.Value, by string) error {
	if in.final != nil {
		return nil
	}
	text := textOf(v)
	if len(text) > in.limit.answer {
		return fmt.Errorf("the answer has %d bytes, at most %d are possible", len(text), in.limit.answer)
	}
	in.final = &pipe.Final{Text: text, By: by}
	raw, ok := encode(v)
	if !ok {
		raw, _ = encode(starlark.String(strings.ToValidUTF8(in.final.Text, "\uFFFD")))
	}
	in.final.JSON = raw
	return nil
}

// set sets variables between blocks.
func (in *interpreter) set(m *pipe.Message) error {
	for _, given := range m.Vars {
		v, err := decode(given.Value)
		if err != nil {
			return err
		}
		in.globals[given.Name] = v
		in.known[given.Name] = known{v, in.describe(given.Name, v, in.limit.value).SHA256}
	}
	return in.link.Send(&pipe.Answer{Type: "ok"})
}

package rlm

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// logBlock is a block of a log that is run again.
type logBlock struct {
	s  engine.Session
	it *trajectory.Iteration
	b  *trajectory.CodeBlock
	// context is that of the log, nil if it has none.
	context *logContext
	first   bool // of the run
	// rules are those of the reference implementation, nil for those of this program.
	rules *engine.Reference
	// asked are the log's calls by their prompts that were not used yet, left counts all of them.
	asked map[string][]*trajectory.Call
	left  int
	// missing is the first request that the log has no answer to.
	missing string
}

// run runs the block and returns how it differs from the log, nil if it does not.
func (b *logBlock) run(ctx context.Context, seed uint64) (*LogDifference, error) {
	b.left = len(b.b.Result.Calls)
	b.asked = make(map[string][]*trajectory.Call, b.left)
	for i := range b.b.Result.Calls {
		c := &b.b.Result.Calls[i]
		text, ok := c.Text()
		if !ok {
			text = canonical(string(c.Prompt))
		}
		text = clip.Storable(text)
		b.asked[text] = append(b.asked[text], c)
	}
	code := b.b.Code
	if b.rules == nil && b.context != nil {
		if b.first {
			done, err := b.exec(ctx, b.context.setup(), seed)
			if err == nil && done.Failure != nil {
				err = fmt.Errorf("set the context: %s: %s", done.Failure.Type, done.Failure.Message)
			}
			if err != nil {
				return nil, err
			}
		}
		code = b.context.before() + code
	}
	if b.rules != nil {
		code = withoutNames(b.b.Result.Stderr) + code
	}
	done, err := b.exec(ctx, code, seed)
	if err != nil {
		return nil, err
	}
	return b.difference(done), nil
}

var (
	reMissingName = lazyregexp.New(`NameError: name '(FINAL_VAR|SHOW_VARS|llm_query_batched|rlm_query|rlm_query_batched)' is`)
	reAddress     = lazyregexp.New(` at 0x[0-9a-fA-F]+`)
	reException   = lazyregexp.New(`^[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt|Iteration|Warning|Group|Timeout)(:|$)`)
)

// withoutNames returns code that removes a function which the version that wrote the log did not have.
func withoutNames(stderr string) string {
	found := reMissingName().FindStringSubmatch(stderr)
	if found == nil {
		return ""
	}
	return "del " + found[1] + "\n"
}

// canonical returns JSON in one form, and other text as it is.
func canonical(text string) string {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return text
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(raw)
}

// exec runs code to its end.
func (b *logBlock) exec(ctx context.Context, code string, seed uint64) (*engine.Done, error) {
	ev, err := b.s.Exec(ctx, engine.Block{Code: code, Clock: b.it.Timestamp.Time, Seed: seed})
	for err == nil && ev.Request != nil {
		ev, err = b.s.Reply(ctx, b.answer(ev.Request))
	}
	return ev.Done, err
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
	if len(list) == 0 && b.rules != nil {
		prompt = canonical(prompt) // messages, which the code writes in another form than the log
		list = b.asked[prompt]
	}
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

// difference returns how what a block did differs from the log, nil if it does not.
func (b *logBlock) difference(d *engine.Done) *LogDifference {
	want := withoutAddresses(b.b.Result.Stdout)
	same := d.Output == want
	if d.OutputBytes > int64(len(d.Output)) { // it was cut at the limit of the engine
		same = strings.HasPrefix(want, d.Output) && (len(want) == len(d.Output) || d.OutputBytes == int64(len(want)))
	}
	if b.missing != "" {
		return &LogDifference{What: b.missing}
	}
	if diff := b.exception(d); diff != nil {
		return diff
	}
	if !same {
		return differentOutput(want, d.Output)
	}
	if b.left > 0 {
		return &LogDifference{What: fmt.Sprintf("%d of the log's %d sub-calls were not made", b.left,
			len(b.b.Result.Calls))}
	}
	if b.rules == nil || b.rules.Environment != "local" || b.b.Result.FinalAnswer == nil {
		return nil
	}
	if recorded := b.b.Result.FinalAnswer.Text; d.Final == nil {
		return &LogDifference{What: "the final answer differs", Recorded: quoteLine(recorded), New: "none"}
	} else if d.Final.Text != recorded {
		return &LogDifference{What: "the final answer differs", Recorded: quoteLine(recorded), New: quoteLine(d.Final.Text)}
	}
	return nil
}

// withoutAddresses returns a text with the addresses of objects as the engine prints them.
func withoutAddresses(text string) string {
	return reAddress().ReplaceAllString(text, " at 0x0")
}

// exception compares the exceptions. The messages of one exception are not compared: they depend on the
// version of Python.
func (b *logBlock) exception(d *engine.Done) *LogDifference {
	const none = "no exception"
	stderr := b.b.Result.Stderr
	if b.rules == nil {
		if d.Failure != nil && stderr == "" {
			return &LogDifference{What: "the code raised an exception", Recorded: none, New: exceptionText(d.Failure)}
		}
		return nil
	}
	recorded := exceptionIn(stderr, d.Errors)
	switch {
	case d.Failure == nil && recorded == "":
		return nil
	case d.Failure == nil:
		return &LogDifference{What: "the code raised no exception", Recorded: clipLine(recorded), New: none}
	case recorded == "" && !strings.Contains("\n"+stderr, "\n"+d.Failure.Type):
		return &LogDifference{What: "the code raised an exception", Recorded: none, New: exceptionText(d.Failure)}
	case strings.Contains("\n"+stderr, "\n"+d.Failure.Type),
		strings.Contains(stderr, "."+d.Failure.Type+":"): // with the name of its module
		return nil
	}
	return &LogDifference{What: "the code raised another exception", Recorded: clipLine(recorded),
		New: exceptionText(d.Failure)}
}

// exceptionText is an exception as Python prints it.
func exceptionText(f *engine.Failure) string { return clipLine(f.Type + ": " + f.Message) }

// exceptionIn returns the exception at the end of a logged standard error, "" if there is none. written is
// what the code itself writes there.
func exceptionIn(stderr, written string) string {
	rest, isKnown := strings.CutPrefix(withoutAddresses(stderr), written)
	lines := strings.Split(strings.TrimSpace(rest), "\n")
	if isKnown && !strings.Contains(rest, "Traceback (most recent call last)") {
		return lines[0]
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if reException().MatchString(lines[i]) {
			return lines[i]
		}
	}
	return ""
}

// differentOutput returns the first lines that differ.
func differentOutput(recorded, output string) *LogDifference {
	was, is := strings.Split(recorded, "\n"), strings.Split(output, "\n")
	n := 0
	for n < min(len(was), len(is))-1 && was[n] == is[n] {
		n++
	}
	if was[n] == is[n] { // one goes on where the other ends
		n = min(len(was), len(is))
	}
	from := 0
	if n < min(len(was), len(is)) {
		from = sharedBytes(was[n], is[n])
	}
	d := &LogDifference{What: "the output differs", Recorded: lineAt(was, n, from), New: lineAt(is, n, from)}
	if n > 0 {
		d.What += " in line " + strconv.Itoa(n+1)
	}
	return d
}

// sharedBytes returns how many bytes of two lines are left out when they are shown: what they share, but
// not the last of it, and nothing of short lines.
func sharedBytes(a, b string) int {
	const shown = 40
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	for n = max(n-shown, 0); n > 0 && !utf8.RuneStart(a[n]); n-- {
	}
	if n < shown {
		return 0
	}
	return n
}

// lineAt returns a line of an output from a byte on, to be shown.
func lineAt(lines []string, n, from int) string {
	switch {
	case n >= len(lines) || n == len(lines)-1 && lines[n] == "":
		return "nothing"
	case from > 0:
		return quoteLine("…" + lines[n][from:])
	}
	return quoteLine(lines[n])
}

// quoteLine returns a text in quotes, clipped.
func quoteLine(text string) string { return strconv.Quote(clipLine(text)) }

// clipLine returns the beginning of a text in one line.
func clipLine(text string) string {
	const most = 100
	text, _, isMore := strings.Cut(text, "\n")
	if isMore {
		text += clip.Mark
	}
	return clip.Bytes(text, most)
}

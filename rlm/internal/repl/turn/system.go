package turn

import (
	"fmt"
	"strconv"
	"strings"
)

// System returns the instructions.
func (p *Profile) System(f *Facts) string {
	var b strings.Builder
	lang := language(f.Language)
	fmt.Fprintf(&b, `You answer a question with the help of a %[1]s REPL. The material is in the REPL and not in this `+
		`conversation: it can be far longer than what you can read at once.

To run code, write it in a fenced block:

%[2]s

Each block of your reply is run in order, in one namespace that lasts for the whole conversation. What the code prints is `+
		`the next message; the value of a last expression is not shown, so print it. At most %[3]s characters of it are shown.

In the REPL there are:
- context: the material.
- llm_query(prompt, model=None): asks a language model that sees nothing but the prompt, and returns its answer as text. `+
		`A prompt can have about %[4]s characters.
- llm_query_batched(prompts, model=None): the same for a list of prompts, which are answered at the same time; returns `+
		`the list of answers in order. Prefer it to a loop.
`, f.Language, example(lang), digits(MaxShown), digits(f.SubCallBytes))
	if f.Recursive {
		b.WriteString("- rlm_query(prompt, model=None), rlm_query_batched(prompts, model=None): the same, but the " +
			"prompt is the context of a model that has a REPL of its own. For parts that need several steps.\n")
	}
	if len(f.Models) > 0 {
		fmt.Fprintf(&b, "- These functions ask another model if you name it: model=%q. The names: %s.\n", f.Models[0],
			strings.Join(f.Models, ", "))
	}
	for i := range f.Tools {
		f.Tools[i].write(&b)
	}
	if p.hostTools && f.Kind != "" {
		b.WriteString(p.fileTools())
	}
	b.WriteString("- budget(): what is left of the run's limits. SHOW_VARS(): the names of your variables.\n\n")
	if p.advises {
		fmt.Fprintf(&b, subCallAdvice, digits(min(f.SubCallBytes, wellRead)))
	}
	b.WriteString(`A sub-call that fails returns a text that begins with "Error:". Work in steps: look at the context first ` +
		`(its length, its ` +
		`beginning, its structure), then decide how to divide it, ask about the parts in batches, check what came back, and ` +
		`combine it in code. Count and compare in code, not in your head. Keep results in variables: after an exception, what ` +
		`was set before it is still there.

`)
	if lang == starlark {
		b.WriteString(starlarkNotes)
	}
	b.WriteString(p.finish(lang))
	if f.System != "" {
		b.WriteString("\n\n" + f.System)
	}
	return b.String()
}

// wellRead is how many characters of a prompt models read well, whatever their window.
const wellRead = 100_000

// subCallAdvice is about what to put into sub-calls.
const subCallAdvice = `How to use sub-calls:
- Filter in code first (find, re, slices): send only text that can matter, and nothing that code can decide by itself.
- Look at samples before you choose a filter or a prompt: print a few records, try the prompt on two or three ` +
	`parts, and read the answers before you ask about all parts.
- Fill a sub-call: put many lines, records or files into one prompt, up to about %s characters. A sub-call for each ` +
	`line is slow and expensive; one about much more text overlooks things.
- Cut between lines or records, never inside one, so that each is read once and counts add up.
- Ask for short answers in a form that code can read, such as a number or JSON, and add them up in code.

`

// write writes what the model reads of a tool.
func (t *Tool) write(b *strings.Builder) {
	arguments := "**arguments"
	if len(t.Parameters) > 0 {
		arguments = strings.Join(t.Parameters, ", ")
	}
	fmt.Fprintf(b, "- %s(%s): a tool of the user; returns the JSON value or the text that it gives.", t.Name,
		arguments)
	if t.Description != "" {
		b.WriteString(" " + strings.TrimSpace(t.Description))
	}
	if t.Schema != "" {
		b.WriteString(" The JSON Schema of its arguments: " + t.Schema)
	}
	b.WriteString(" If it fails, it returns a text that begins with \"Error:\".\n")
}

// starlark is the language that is like Python, and starlarkNotes what differs.
const (
	starlark      language = "Starlark"
	starlarkNotes          = `Starlark is a small dialect of Python. There are no f-strings (use "{} of {}".format(a, b) or ` +
		`"%d" % n), no try, no class, no import, no with, no generator expressions, no is (use ==) and no ** operator; strings ` +
		`are bytes in UTF-8, and iterating over one needs s.elems(). The modules re (without references back and looking around), ` +
		`json and math are there, and sum, round, map and filter. A function sees the variables as they were in the block that ` +
		`defined it: pass it what it needs. A sub-call that is refused ends the block.

`
)

// fileTools are the functions for a context of files.
const fileTools = `- files(glob="**"): the names of the files.
- search(query, k=10): the best passages for words, as a list of {"file", "first", "last", "text", "score"}.
- grep(regex, glob="**", k=100): the lines that match, as a list of {"file", "line", "text"}.
- lines(file, first, last): lines of a file, counted from 1, both included.
- cite(file, first, last): records the lines as a source and returns a mark; write the mark behind the statement ` +
	`that the lines support.
`

// fileTools returns the functions for a context of files.
func (p *Profile) fileTools() string {
	if !p.wide {
		return fileTools
	}
	return strings.Replace(fileTools, "- lines(file, first, last): lines of a file, counted from 1, both included.\n",
		`- lines(file, first, last, column=1): lines of a file, counted from 1, both included; the first from a byte on.
- Of lines over 2,000 bytes, grep and search have the text round the match, and "column", the byte at which it begins.
`, 1)
}

func example(lang language) string {
	if lang == starlark {
		return "```repl\nprint(type(context), len(context))\n```"
	}
	return "```repl\nprint(type(context), len(context))\nprint(str(context)[:500])\n```"
}

func finishNative(language) string {
	return `When you know the answer, run code that sets it: answer["content"] = … and then answer["ready"] = True, or ` +
		`FINAL(value). You may also write FINAL(text) or FINAL_VAR(name) at the beginning of a line, in a reply without code. Do ` +
		`not state a result that no code has printed yet: run the code first and finish in a later reply.`
}

func finishByAnswer(language) string {
	return `When you know the answer, run code that stores it: answer["content"] = … and then answer["ready"] = True. The ` +
		`conversation ends after that block. Set answer["content"] to your best guess early, so that there is one if the ` +
		`turns run out.`
}

func finishInText(language) string {
	return `When you know the answer, write FINAL(your answer) or FINAL_VAR(name of a variable) at the beginning of a line, ` +
		`outside of code, in a reply that has no code.`
}

// First returns the first message: the question and what the context is.
func (p *Profile) First(f *Facts) string {
	context := f.context() + fmt.Sprintf("\nTurn 1/%d. You have not seen the context yet: look at it with code before "+
		"you answer.", f.Turns)
	if p.questionLast {
		return context + "\n\n" + f.question()
	}
	return f.question() + "\n\n" + context
}

// Shared returns the places in the first message up to which messages about the same context are
// the same, and its end, up to which the later requests of this conversation are.
func (p *Profile) Shared(f *Facts, first string) []int {
	if !p.questionLast {
		return []int{len(first)}
	}
	return []int{len(first) - len(f.question()), len(first)}
}

func (f *Facts) question() string {
	if f.Question == "" {
		return "The context says what is asked."
	}
	return "The question:\n\n" + f.Question
}

// context describes the context.
func (f *Facts) context() string {
	var b strings.Builder
	switch f.Kind {
	case "":
		b.WriteString("There is no context: the variable context is empty.\n")
	case "string":
		fmt.Fprintf(&b, "The context is a string of %s in UTF-8", size(f.Bytes))
		for _, file := range f.Files {
			fmt.Fprintf(&b, ", the file %q", file.Name)
		}
		b.WriteString(".\n")
	default:
		n := len(f.Files) + f.MoreFiles
		fmt.Fprintf(&b, "The context is a dictionary from the name of each of %s to its text, %s in all:\n", count(n, "file"),
			size(f.Bytes))
		for _, file := range f.Files {
			fmt.Fprintf(&b, "- %q, %s\n", file.Name, size(file.Bytes))
		}
		if f.MoreFiles > 0 {
			fmt.Fprintf(&b, "- and %s more\n", digits(int64(f.MoreFiles)))
		}
	}
	if f.Preview != "" {
		fmt.Fprintf(&b, "It begins with:\n\n%s\n", quoted(f.Preview))
	}
	return b.String()
}

// After returns the message after a reply: what its blocks printed, and what follows. turn is
// the number of the reply.
func (p *Profile) After(f *Facts, turn int, d Done) string {
	var b strings.Builder
	if len(d.Outcomes) == 0 {
		b.WriteString("There was no code in a block and no final answer in your reply.\n")
	}
	if len(d.Outcomes) == 0 && len(d.Notes) == 0 && p.wide && turn < f.Turns {
		b.WriteString("Code is run in a block from ```repl to ```. An answer in text is a line FINAL(the answer).\n")
	}
	p.writeDone(&b, &d)
	switch left := f.Turns - turn; {
	case left > 1:
		fmt.Fprintf(&b, "\nTurn %d/%d. Go on, or finish if you know the answer.", turn+1, f.Turns)
	case left == 1:
		fmt.Fprintf(&b, "\nTurn %d/%d is the last one in which code is run. Finish in it.", turn+1, f.Turns)
	default:
		b.WriteString("\nThe turns are over, and no more code is run. Reply with the final answer alone, from what is known.")
	}
	return b.String()
}

// Further is a further question behind a turn.
type Further struct {
	// Question is what is asked, Answer the beginning of the answer to the question before it, and
	// Turns the most replies.
	Question, Answer string
	Turns            int
}

// Further returns the message after the last turn of a question: what its blocks printed, and the
// next question.
func (p *Profile) Further(q *Further, d Done) string {
	var b strings.Builder
	p.writeDone(&b, &d)
	if q.Answer != "" {
		fmt.Fprintf(&b, "\nThe question was answered:\n%s\n", quoted(q.Answer))
	} else {
		b.WriteString("\nThe question was not answered.\n")
	}
	fmt.Fprintf(&b, "\nA further question about the same context; the variables are still there:\n\n%s\n\nTurn 1/%d.",
		q.Question, q.Turns)
	return b.String()
}

// writeDone writes what a turn did.
func (p *Profile) writeDone(b *strings.Builder, d *Done) {
	for i := range d.Outcomes {
		p.outcome(b, d, i)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(b, "\n%s\n", note)
	}
	if len(d.Vars) > 0 && !d.isBrief() {
		fmt.Fprintf(b, "\nVariables: %s\n", p.names(d.Vars))
	}
}

// outcome writes what a block did.
func (p *Profile) outcome(b *strings.Builder, d *Done, i int) {
	o, blocks := &d.Outcomes[i], len(d.Outcomes)
	title := "REPL output"
	if blocks > 1 {
		title = fmt.Sprintf("REPL output of block %d of %d", i+1, blocks)
	}
	if i > 0 {
		b.WriteString("\n")
	}
	if p.repeats && d.Most <= 0 {
		fmt.Fprintf(b, "Code:\n%s\n", quoted(o.Code))
	}
	text := p.shown(o)
	if d.Most != 0 {
		text = d.shorten(o.Output)
	}
	switch {
	case text == "" && o.Failure == "":
		fmt.Fprintf(b, "%s: nothing was printed.\n", title)
	case text == "":
		fmt.Fprintf(b, "%s:\n", title)
	default:
		fmt.Fprintf(b, "%s:\n%s\n", title, quoted(text))
	}
	if o.Note != "" {
		fmt.Fprintf(b, "%s\n", o.Note)
	}
	if o.Failure == "" {
		return
	}
	fmt.Fprintf(b, "The block ended with an exception:\n%s\n", quoted(d.shorten(o.Failure)))
	if len(o.Bound) > 0 {
		fmt.Fprintf(b, "Set before it, and kept: %s\n", p.names(o.Bound))
	}
	if o.Calls > 0 {
		fmt.Fprintf(b, "%s had finished; the answers are kept only in variables.\n", count(o.Calls, "sub-call"))
	}
}

// names writes a list of names, of which most are left out if there are many.
func (p *Profile) names(names []string) string {
	const most, longest = 50, 80
	if !p.wide {
		return strings.Join(names, ", ")
	}
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		if runes := []rune(name); len(runes) > longest {
			name = string(runes[:longest]) + "…"
		}
		shown = append(shown, name)
	}
	text := strings.Join(shown, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(", and %s more (SHOW_VARS() returns all)", digits(int64(more)))
	}
	return text
}

// shown returns the part of the output that the model is shown: its beginning, and with some
// profiles its end.
func (p *Profile) shown(o *Outcome) string {
	text := []rune(o.Output)
	if len(text) <= MaxShown && int64(len(o.Output)) >= o.OutputBytes {
		return strings.TrimRight(o.Output, "\n")
	}
	note := fmt.Sprintf("\n… (the output has %s; only a part is shown) …\n", size(o.OutputBytes))
	head := min(MaxShown-p.tail, len(text))
	tail := min(p.tail, len(text)-head)
	return string(text[:head]) + note + string(text[len(text)-tail:])
}

// quoted puts a text into a fence that it cannot close.
func quoted(text string) string {
	text = strings.TrimRight(text, "\n")
	mark := "```"
	for strings.Contains(text, mark) {
		mark += "`"
	}
	return mark + "\n" + text + "\n" + mark
}

// The numbers in messages are written here, and not by a package for people: a message has the
// same bytes in every version of this program.

// digits writes a number with commas.
func digits(n int64) string {
	s := strconv.FormatInt(n, 10)
	for at := len(s) - 3; at > 0; at -= 3 {
		s = s[:at] + "," + s[at:]
	}
	return s
}

func size(n int64) string { return digits(n) + " bytes" }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return digits(int64(n)) + " " + noun + "s"
}

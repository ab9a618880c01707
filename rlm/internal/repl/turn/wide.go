package turn

import (
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// opening is a fence that opens a block.
type opening struct {
	mark   string
	info   string
	indent int // the columns before it, which are taken off its lines
	quotes int // the block quotes that it is in
}

// itemLength returns the length of the mark of a list that a text begins with, with the spaces behind it;
// 0 if it has none.
func itemLength(text string) int {
	n := 0
	for n < len(text) && n < 9 && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	switch {
	case n == len(text):
		return 0
	case n > 0 && text[n] != '.' && text[n] != ')', n == 0 && !strings.ContainsRune("-*+", rune(text[0])):
		return 0
	}
	rest := strings.TrimLeft(text[n+1:], " \t")
	if spaces := len(text) - n - 1 - len(rest); spaces > 0 {
		return n + 1 + spaces
	}
	return 0
}

// maxNesting bounds the lists and quotes that a block is in.
const maxNesting = 20

// openingOf returns the fence that a line opens, nil if it opens none. It may be in lists and quotes.
func openingOf(line string) *opening {
	if !strings.Contains(line, "```") && !strings.Contains(line, "~~~") {
		return nil
	}
	o := &opening{}
	rest := line
	for range maxNesting {
		trimmed := strings.TrimLeft(rest, " \t")
		if after, ok := strings.CutPrefix(trimmed, ">"); ok {
			o.quotes++
			o.indent = 0
			rest = strings.TrimPrefix(after, " ")
			continue
		}
		o.indent += len(rest) - len(trimmed)
		rest = trimmed
		n := itemLength(rest)
		if n == 0 {
			break
		}
		o.indent += n
		rest = rest[n:]
	}
	if rest == "" || rest[0] != '`' && rest[0] != '~' {
		return nil
	}
	info := strings.TrimLeft(rest, rest[:1])
	o.mark, o.info = rest[:len(rest)-len(info)], strings.TrimSpace(info)
	if len(o.mark) < 3 || o.mark[0] == '`' && strings.Contains(info, "`") {
		return nil
	}
	return o
}

// afterText returns the fence that a line opens behind text, as in "I look: ```repl".
func afterText(line string) *opening {
	at := strings.Index(line, "```")
	if at <= 0 || strings.Count(line[:at], "`")%2 == 1 {
		return nil
	}
	rest := line[at:]
	info := strings.TrimLeft(rest, "`")
	o := &opening{mark: rest[:len(rest)-len(info)], info: strings.TrimSpace(info)}
	run, name := tagRuns(o.info)
	before := strings.TrimRight(line[:at], " \t")
	switch {
	case strings.Contains(info, "`"), strings.Contains(o.info, " "), !run,
		name == "" && !strings.HasSuffix(before, ":"):
		return nil
	}
	return o
}

// inside returns a line of the block without what is before it because of lists and quotes.
func (o *opening) inside(line string) string {
	for range o.quotes {
		trimmed := strings.TrimLeft(line, " \t")
		after, ok := strings.CutPrefix(trimmed, ">")
		if !ok {
			break
		}
		line = strings.TrimPrefix(after, " ")
	}
	n := 0
	for n < o.indent && n < len(line) && (line[n] == ' ' || line[n] == '\t') {
		n++
	}
	return line[n:]
}

// ending is how a line ends a block.
type ending int

const (
	notEnding    ending = iota
	endsBlock           // the fence is closed
	opensAnother        // a further block begins in this line
)

// endingOf returns how a line, without its indentation, ends the block.
func (o *opening) endingOf(line string) ending {
	rest := strings.TrimLeft(line, " \t")
	if !strings.HasPrefix(rest, o.mark) {
		return notEnding
	}
	rest = strings.TrimSpace(strings.TrimLeft(rest, o.mark[:1]))
	switch {
	case rest == "", strings.HasPrefix(rest, "<"), strings.Contains(rest, " "), strings.Contains(rest, "`"):
		return endsBlock
	case o.mark[0] == '`':
		if run, _ := tagRuns(rest); run || isWord(rest) {
			return opensAnother
		}
	}
	return endsBlock
}

func isWord(text string) bool {
	for _, r := range text {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-+#:.{}", r) {
			return false
		}
	}
	return text != ""
}

// body is what a fence holds.
type body struct {
	code     string
	next     int // the offset behind it
	unclosed bool
}

// read reads a block whose code begins at an offset. A fence within a string of the code does not end
// it, if aware is set.
func (s *scanner) read(o *opening, from int, aware bool) (b body, complete bool) {
	var code strings.Builder
	var state lexer
	for at := from; at < len(s.text); {
		end := strings.IndexByte(s.text[at:], '\n')
		next := at + end + 1
		if end < 0 {
			end, next = len(s.text)-at, len(s.text)
		}
		line := o.inside(s.text[at : at+end])
		if !aware || !state.inString() {
			switch o.endingOf(line) {
			case endsBlock:
				return body{code.String(), next, false}, true
			case opensAnother:
				if !aware {
					break
				}
				return body{code.String(), at, false}, true
			case notEnding:
			}
		}
		state.line(line)
		code.WriteString(line + "\n")
		at = next
	}
	return body{code.String(), len(s.text), true}, !state.inString()
}

// takeFence takes a block in a fence, if the current line opens one.
func (s *scanner) takeFence() bool {
	line, next := s.current()
	o := openingOf(line)
	if o == nil {
		if o = afterText(line); o == nil {
			return false
		}
		s.write(line[:strings.Index(line, "```")])
	}
	run, name := tagRuns(o.info)
	aware := run && s.searches < maxSearches
	b, complete := s.read(o, next, aware)
	if !complete && aware { // a string that is not closed: the first fence ends the block
		s.searches++
		if plain, ok := s.read(o, next, false); ok && !plain.unclosed {
			b = plain
		}
	}
	if name == "" && claims(s.last) { // below a line that states output
		run = false
	}
	s.last = ""
	start := s.line + 1
	switch {
	case s.withinFinal():
		s.cut = true
	case s.jsonCall(b.code, start, name):
	case run:
		s.add(b.code, start, b.unclosed)
	default:
		s.skipFence(name, b.code)
	}
	s.write("")
	s.skipTo(b.next)
	return true
}

// skipFence notes a block that is not run. One of output states what code has printed.
func (s *scanner) skipFence(name, code string) {
	switch name {
	case "output", "stdout", "console", "tool_output", "tool_outputs", "result", "results":
		s.claimed = s.claimed || len(s.blocks) > 0
	}
	if strings.TrimSpace(code) != "" && name != "" {
		s.skip(name)
	}
}

// withinFinal reports whether the text so far has an open FINAL( at the beginning of a line.
func (s *scanner) withinFinal() bool {
	if !s.hasFinal {
		return false
	}
	const near = 20
	text := strings.Join(s.prose[max(0, len(s.prose)-near):], "\n")
	all := wideFinal().FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return false
	}
	rest := text[all[len(all)-1][1]:]
	return closing(rest, true) < 0 && closing(rest, false) < 0 && s.lastParenthesis() > s.at
}

// lastParenthesis returns the offset of the last line that begins with a parenthesis.
func (s *scanner) lastParenthesis() int {
	if s.parenthesis == 0 {
		s.parenthesis = strings.LastIndex(s.text, "\n)")
	}
	return s.parenthesis
}

// withoutPrompts returns code without the prompts of an interactive session, and without what the
// session printed. Code without prompts is returned as it is.
func withoutPrompts(code string) string {
	first := strings.TrimLeft(code, " \t\n")
	if !strings.HasPrefix(first, ">>> ") && !strings.HasPrefix(first, ">>>\n") && !strings.HasPrefix(first, "In [") {
		return code
	}
	var out strings.Builder
	begun := false
	for line := range strings.SplitSeq(code, "\n") {
		trimmed := strings.TrimLeft(line, " \t")
		prompt := promptOf(trimmed)
		switch {
		case prompt > 0:
			begun = true
			out.WriteString(strings.TrimPrefix(trimmed[prompt:], " ") + "\n")
		case !begun && trimmed != "":
			return code
		}
	}
	return out.String()
}

var numberedPrompt = lazyregexp.New(`^(In \[\d*\]|\.{3,}):`)

// promptOf returns the length of the prompt that a line begins with, 0 if it has none.
func promptOf(line string) int {
	for _, prompt := range []string{">>>", "..."} {
		if rest, ok := strings.CutPrefix(line, prompt); ok && (rest == "" || rest[0] == ' ') {
			return len(prompt)
		}
	}
	if at := numberedPrompt().FindStringIndex(line); at != nil {
		return at[1]
	}
	return 0
}

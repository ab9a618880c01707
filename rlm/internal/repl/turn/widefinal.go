package turn

import (
	"iter"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

var (
	wideFinal = lazyregexp.New(`(?m)^ {0,3}FINAL(_VAR)?[ \t]*\(`)
	anyFinal  = lazyregexp.New(`\bFINAL(_VAR)?[ \t]*\(`)
)

// maxFinals bounds the places that are read as a final answer.
const maxFinals = 50

// The notes about finals that do not count, for the model.
const (
	noteExpression = "FINAL( … ) in the text holds an expression, which no code has computed. Run code that calls " +
		"FINAL(value), or write FINAL(the answer itself) or FINAL_VAR(name of a variable)."
	noteEmpty = "The final answer is empty, so it does not count. Write FINAL(the answer) or FINAL_VAR(name of a " +
		"variable)."
	noteLine = "FINAL( … ) counts only at the beginning of a line, with nothing behind its closing parenthesis: write " +
		"it alone in a line, without other marks."
	noteName = "FINAL( … ) in the text names no variable that there is. Write FINAL_VAR(name of a variable) or " +
		"FINAL(the answer itself)."
)

// readFinal returns the first final answer in a text, or why what looks like one does not count.
func readFinal(text string) (f *Final, note string) {
	for _, at := range wideFinal().FindAllStringSubmatchIndex(text, maxFinals) {
		inside, ok := wideArgument(text[at[1]:])
		if !ok {
			continue
		}
		inside = strings.TrimSpace(inside)
		f, why := finalOf(inside, at[2] >= 0)
		if f != nil {
			return f, ""
		}
		if note == "" {
			note = why
		}
	}
	if note == "" && anyFinal().MatchString(text) {
		note = noteLine
	}
	return nil, note
}

// finalOf returns the final answer that the argument of FINAL or FINAL_VAR is, or why it is none.
func finalOf(inside string, variable bool) (*Final, string) {
	literal := inside
	if inside != "" {
		literal = unquote(inside)
	}
	switch {
	case strings.TrimSpace(literal) == "":
		return nil, noteEmpty
	case variable && aName().MatchString(literal):
		return &Final{Text: literal, Variable: true}, ""
	case variable && literal != inside:
		return &Final{Text: literal}, "" // FINAL_VAR("some text")
	case variable, literal == inside && isExpression(inside):
		return nil, noteExpression
	case literal == inside && aName().MatchString(inside):
		return &Final{Text: inside, Name: true}, ""
	}
	return &Final{Text: literal}, ""
}

// wideArgument is argument for a text that can end with tokens of the model.
func wideArgument(text string) (inside string, ok bool) {
	for _, strings := range []bool{true, false} {
		if end := closing(text, strings); end >= 0 && endsWideLine(text[end+1:]) {
			return text[:end], true
		}
	}
	return "", false
}

var tokens = lazyregexp.New(`^(<[|｜][^|｜>]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>)+$`)

// endsWideLine reports whether nothing but a full stop or tokens of the model is in the rest of the
// line.
func endsWideLine(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	const longest = 200
	return line == "" || line == "." || len(line) < longest && tokens().MatchString(line)
}

// isVariableWord reports whether a name is one that models give to variables, and that is hardly an
// answer.
func isVariableWord(name string) bool {
	switch name {
	case "answer", "answers", "result", "results", "output", "total", "count", "value", "response", "summary", "final",
		"res", "ans", "out", "data", "text", "context", "content":
		return true
	}
	return strings.Contains(name, "_") && strings.ToLower(name) == name
}

// MissingName returns the note for a final that has the name of no variable, empty if the name can be
// the answer. A name that one of the replies so far assigns is that of a variable, whose code did not run
// or failed.
func (f *Final) MissingName(replies iter.Seq[string]) string {
	if !f.Name {
		return ""
	}
	if isVariableWord(f.Text) {
		return noteName
	}
	for reply := range replies {
		if assigns(reply, f.Text) {
			return noteName
		}
	}
	return ""
}

// assigns reports whether a line of a reply assigns a value to a name.
func assigns(reply, name string) bool {
	for line := range strings.Lines(reply) {
		line = strings.TrimLeft(line, " \t>.")
		rest, ok := strings.CutPrefix(line, name)
		if !ok {
			continue
		}
		rest = strings.TrimLeft(rest, " \t")
		if len(rest) > 1 && strings.ContainsRune("+-*/|&", rune(rest[0])) {
			rest = rest[1:]
		}
		if strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "==") {
			return true
		}
	}
	return false
}

var (
	aCall = lazyregexp.New(`^(await\s+)?[A-Za-z_][\w.]*\s*[([]`)
	// forms are what text that is no code hardly has: a formatted string, joined strings, operators
	// with spaces, a comprehension, a conditional expression, a lambda.
	formatted = lazyregexp.New(`^(?i:f|rf|fr)("""[\s\S]*\{[\s\S]*"""|'''[\s\S]*\{[\s\S]*'''|` +
		`"[^"\n]*\{[^"\n]*"|'[^'\n]*\{[^'\n]*')$`)
	operation = lazyregexp.New(`^(not\s+)?[\w.\])"']+(\s+(\+|-|\*|/|//|%|\*\*|==|!=|<|>|<=|>=|and|or|in|not in|is)` +
		`\s+[\w.\[\]("']+)+$`)
	comprehension = lazyregexp.New(`^[\[({][^\n]*\bfor\s+[\w, ]+\s+in\s`)
	aLambda       = lazyregexp.New(`^lambda\b[^:]*:`)
	starts        = lazyregexp.New(`^[A-Za-z_][\w.]*`)
)

// isExpression reports whether the argument of FINAL is an expression that only code can compute, and
// no answer.
func isExpression(text string) bool {
	const longest = 4000
	text = strings.TrimSpace(text)
	if text == "" || len(text) > longest {
		return false
	}
	if formatted().MatchString(text) || comprehension().MatchString(text) || aLambda().MatchString(text) {
		return true
	}
	if aCall().MatchString(text) && isChain(text) {
		return true
	}
	if text[0] == '"' || text[0] == '\'' {
		return isJoined(text)
	}
	return operation().MatchString(text) && !isProse(text)
}

// isProse reports whether an operation is rather a sum or a range of words than code.
func isProse(text string) bool {
	words := strings.Fields(text)
	const joining = " and or in is - "
	return len(words) > 2 && strings.Contains(joining, " "+words[1]+" ") && !strings.ContainsAny(text, "()[]\"'")
}

// isChain reports whether a text is calls and subscripts, joined by operators, and nothing else.
func isChain(text string) bool {
	text = strings.TrimPrefix(text, "await ")
	for {
		at := starts().FindStringIndex(text)
		if at == nil {
			return false
		}
		rest := text[at[1]:]
		for rest != "" && (rest[0] == '(' || rest[0] == '[' || rest[0] == '.') {
			if rest[0] == '.' {
				next := starts().FindStringIndex(rest[1:])
				if next == nil {
					return false
				}
				rest = rest[1+next[1]:]
				continue
			}
			end := closing(strings.NewReplacer("[", "(", "]", ")").Replace(rest[1:]), true)
			if end < 0 {
				return false
			}
			rest = rest[end+2:]
		}
		rest = strings.TrimSpace(rest)
		if rest == "" {
			return true
		}
		if strings.HasPrefix(rest, "for ") || strings.HasPrefix(rest, "if ") {
			return true
		}
		operator := strings.TrimLeft(rest, "+-*/%<>=!|&^ ")
		if len(operator) == len(rest) {
			for _, word := range []string{"and ", "or ", "in ", "not in ", "is "} {
				if after, ok := strings.CutPrefix(rest, word); ok {
					operator = after
				}
			}
		}
		if len(operator) == len(rest) {
			return false
		}
		if operator == "" || operator[0] == '"' || operator[0] == '\'' || operator[0] >= '0' && operator[0] <= '9' {
			return true
		}
		text = operator
	}
}

// isJoined reports whether a text that begins with a string is one that code has to join.
func isJoined(text string) bool {
	n := stringLength(text)
	if n == 0 || n == len(text) {
		return false
	}
	rest := strings.TrimSpace(text[n:])
	if rest == "" {
		return false
	}
	for _, begin := range []string{"+", "%", ".", "*", "and ", "or ", "if ", "in ", "["} {
		if strings.HasPrefix(rest, begin) && rest != "." {
			return true
		}
	}
	return false
}

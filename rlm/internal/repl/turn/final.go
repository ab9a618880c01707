package turn

import (
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Final is a final answer in the text of a reply.
type Final struct {
	// Text is the answer, or with Variable an expression of the REPL's language that gives it.
	Text     string
	Variable bool
	// Name is set if Text is not Variable and looks like the name of one.
	Name bool
}

var (
	finalCall = lazyregexp.New(`(?m)^FINAL(_VAR)?[ \t]*\(`)
	aName     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// findFinal returns the first FINAL(…) or FINAL_VAR(…) that begins a line and whose closing
// parenthesis ends one.
func findFinal(text string) *Final {
	for _, at := range finalCall().FindAllStringSubmatchIndex(text, -1) {
		inside, ok := argument(text[at[1]:])
		if inside = strings.TrimSpace(inside); !ok || inside == "" {
			continue
		}
		f := &Final{Text: unquote(inside), Variable: at[2] >= 0}
		f.Name = !f.Variable && f.Text == inside && aName().MatchString(inside)
		if f.Text != "" {
			return f
		}
	}
	return nil
}

// argument returns the text up to the parenthesis that closes an open one. Parentheses in
// strings do not count, unless the text is prose in which an apostrophe begins none.
func argument(text string) (inside string, ok bool) {
	for _, strings := range []bool{true, false} {
		if end := closing(text, strings); end >= 0 && endsLine(text[end+1:]) {
			return text[:end], true
		}
	}
	return "", false
}

// endsLine reports whether nothing but a full stop is in the rest of the line.
func endsLine(rest string) bool {
	line, _, _ := strings.Cut(rest, "\n")
	line = strings.TrimSpace(line)
	return line == "" || line == "."
}

// closing returns the offset of the parenthesis that closes an open one, -1 if there is none.
func closing(text string, skipStrings bool) int {
	depth := 1
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return i
			}
		case skipStrings && (c == '"' || c == '\''):
			n := stringLength(text[i:])
			if n == 0 {
				return -1
			}
			i += n - 1
		}
	}
	return -1
}

// stringLength returns the length of the string literal that a text begins with, 0 if it is
// not closed.
func stringLength(text string) int {
	quote := text[:1]
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		quote = text[:3]
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '\n' && len(quote) == 1:
			return 0
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return 0
}

// unquote removes one pair of matching quotes around the whole text.
func unquote(text string) string {
	if c := text[0]; c != '"' && c != '\'' || stringLength(text) != len(text) {
		return text
	}
	n := 1
	if len(text) >= 6 && text[1] == text[0] && text[2] == text[0] {
		n = 3
	}
	return text[n : len(text)-n]
}

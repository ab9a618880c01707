package turn

import "strings"

// lexer follows the strings of code in Python or Starlark from line to line.
type lexer struct {
	quote string // that of the open string, which goes on in the next line
}

// inString reports whether a string is open behind the lines so far.
func (l *lexer) inString() bool { return l.quote != "" }

// line reads a line.
func (l *lexer) line(text string) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case l.quote != "" && c == '\\':
			if i+1 == len(text) {
				return // the string goes on, also one of a single quote
			}
			i += 2
		case l.quote != "" && strings.HasPrefix(text[i:], l.quote):
			i += len(l.quote)
			l.quote = ""
		case l.quote != "":
			i++
		case c == '#':
			return
		case c == '"' || c == '\'':
			l.quote = text[i : i+1]
			if i+2 < len(text) && text[i+1] == c && text[i+2] == c {
				l.quote = text[i : i+3]
			}
			i += len(l.quote)
		default:
			i++
		}
	}
	if len(l.quote) == 1 {
		l.quote = "" // an error of the code, which ends with its line
	}
}

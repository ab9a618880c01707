package lex

import "strings"

// regexEnd returns the end of a regular expression literal that begins here; -1 for a division.
func (x *Reader) regexEnd() int {
	if n := len(x.tokens); n > 0 {
		switch t := &x.tokens[n-1]; {
		case t.Kind == Number, t.Kind == Text:
			return -1
		case t.Kind == Word:
			if !beforePattern(t.S) && !(x.rules.Query && t.Line == x.line && x.i > 0 && x.src[x.i-1] == ' ' &&
				x.i+1 < len(x.src) && x.src[x.i+1] != ' ') {
				return -1
			}
		case t.S == ")" || t.S == "]" || t.S == "}" && t.Line == x.line || t.S == "++" || t.S == "--":
			return -1
		case t.S == "<": // </tag> of JSX
			return -1
		}
	}
	class := false
	for i := x.i + 1; i < len(x.src) && x.src[i] != '\n'; i++ {
		switch c := x.src[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			i++
			for i < len(x.src) && x.src[i] >= 'a' && x.src[i] <= 'z' {
				i++
			}
			return i
		}
	}
	return -1
}

// beforePattern reports whether a slash after the word begins a regular expression.
func beforePattern(word string) bool {
	switch word {
	case "return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "if", "unless", "while",
		"and", "or", "not", "when", "do", "await", "yield", "puts", "match":
		return true
	}
	return false
}

// maxHashes limits the hashes of a Rust raw string, and maxLost the number of unclosed heredocs:
// both keep the time linear.
const (
	maxHashes = 16
	maxLost   = 16
)

// hashed reads a Rust raw string whose hashes begin at at.
func (x *Reader) hashed(at int) bool {
	i := at
	for i < min(len(x.src), at+maxHashes) && x.src[i] == '#' {
		i++
	}
	if i >= len(x.src) || x.src[i] != '"' {
		return false
	}
	closing := `"` + x.src[at:i]
	if x.lost[closing] {
		return false
	}
	n := strings.Index(x.src[i+1:], closing)
	if n < 0 {
		x.lost[closing] = true
		return false
	}
	x.emit(Text, i+1+n+len(closing))
	return true
}

// sharpEnd returns the end of a C# string whose first quote is at i, after $ and @; -1 for none.
func (x *Reader) sharpEnd(i int) int {
	q := Quote{Open: `"`, Close: `"`, Escape: '\\'}
	verbatim := strings.IndexByte(x.src[x.i:i], '@') >= 0
	if verbatim {
		q.Escape, q.Lines, q.Doubled = 0, true, true
	}
	if strings.IndexByte(x.src[x.i:i], '$') >= 0 {
		q.Code = "{"
	}
	n := 0
	for n < maxHashes && i+n < len(x.src) && x.src[i+n] == '"' {
		n++
	}
	if n < 3 || verbatim {
		if q.Lines && x.lost["@"] {
			return -1
		}
		end := x.closing(&q, q.Escape, i+1, 0)
		if end < 0 {
			x.lost["@"] = true
		}
		return end
	}
	mark := x.src[i : i+n]
	if x.lost[mark] {
		return -1
	}
	end := strings.Index(x.src[i+n:], mark)
	if end < 0 {
		x.lost[mark] = true
		return -1
	}
	return i + n + end + n
}

// percent reads %w[x], %q(x) and the like.
func (x *Reader) percent() bool {
	i := x.i + 1
	if i < len(x.src) && strings.IndexByte("wWiIqQrsx", x.src[i]) >= 0 {
		i++
	}
	if i >= len(x.src) || strings.IndexByte("([{<|!/", x.src[i]) < 0 {
		return false
	}
	if n := len(x.tokens); i == x.i+1 && n > 0 &&
		(x.tokens[n-1].Kind != Op || x.tokens[n-1].S == ")" || x.tokens[n-1].S == "]") {
		// A remainder, except for an argument: name %{text}.
		if x.tokens[n-1].Kind != Word || x.src[x.i-1] != ' ' || strings.IndexByte("([{<|!", x.src[i]) < 0 {
			return false
		}
	}
	open := x.src[i]
	closing := open
	if n := strings.IndexByte("([{<", open); n >= 0 {
		closing = ")]}>"[n]
	}
	mark := "%" + string(closing)
	if x.lost[mark] {
		return false
	}
	depth := 1
	for i++; i < len(x.src); i++ {
		switch c := x.src[i]; {
		case c == '\\':
			i++
		case c == closing:
			if depth--; depth == 0 {
				x.emit(Text, i+1)
				return true
			}
		case c == open:
			depth++
		}
	}
	x.lost[mark] = true
	return false
}

// document reads the name of a heredoc; its text begins on the next line.
func (x *Reader) document() bool {
	i := x.i
	switch {
	case x.rules.Documents == "<<<" && x.has("<<<"):
		i += 3
		for i < len(x.src) && x.src[i] == ' ' {
			i++
		}
	case x.rules.Documents == "<<~" && (x.has("<<~") || x.has("<<-")):
		i += 3
	case x.rules.Documents == "<<~" && x.has("<<") && i+2 < len(x.src) && (x.src[i+2] >= 'A' && x.src[i+2] <= 'Z'):
		i += 2
	default:
		return false
	}
	mark := byte(0)
	if i < len(x.src) && strings.IndexByte("'\"`", x.src[i]) >= 0 {
		mark = x.src[i]
		i++
	}
	from := i
	for i < len(x.src) && (x.src[i] == '_' || x.src[i] >= 'A' && x.src[i] <= 'Z' || x.src[i] >= 'a' && x.src[i] <= 'z' ||
		i > from && x.src[i] >= '0' && x.src[i] <= '9') {
		i++
	}
	if i == from {
		return false
	}
	name := x.src[from:i]
	if mark != 0 && i < len(x.src) && x.src[i] == mark {
		i++
	}
	x.waiting = append(x.waiting, name)
	x.emit(Text, i)
	return true
}

// documents reads the heredocs that begin with this line, as a token each.
func (x *Reader) documents() {
	if len(x.waiting) == 0 {
		return
	}
	names := x.waiting
	x.waiting = nil
	for _, name := range names {
		if x.lost["<<"+name] || len(x.lost) > maxLost {
			continue
		}
		end := -1
		for i := x.i; i < len(x.src); {
			stop := x.lineEnd(i)
			line := strings.TrimLeft(x.src[i:stop], " \t")
			if rest, ok := strings.CutPrefix(line, name); ok && (rest == "" || strings.IndexByte("\r;,) ", rest[0]) >= 0) {
				end = stop - len(rest)
				break
			}
			i = stop + 1
		}
		if end < 0 {
			x.lost["<<"+name] = true
			continue
		}
		// The text is one literal, so that a change of it counts.
		at := x.i
		x.tokens = append(x.tokens, Token{Kind: Text, Line: x.line, Col: small(at - x.begin), Off: small(at),
			Hash: Hash(x.src[at:end]), S: x.src[at:end]})
		x.newlines(x.i, end)
		x.i = end
	}
}

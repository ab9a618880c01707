package lex

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Reader reads one text after the other and reuses its memory. It never goes back, and remembers
// missing closing marks, so its time is linear in any text.
type Reader struct {
	rules    *Rules
	src      string
	i        int
	line     int32
	begin    int // offset of the line
	fresh    bool
	tokens   []Token
	comments []Comment
	lost     map[string]bool // closing marks that do not occur in the rest of the text
	waiting  []string        // heredocs that begin on the next line
	// open counts brackets, branches are the open preprocessor conditions, and conditions has the
	// condition of each token.
	open       int
	branches   []branch
	conditions []Condition
}

// Read splits a text into tokens and comments. They are valid until the next call.
func (x *Reader) Read(rules *Rules, src string) ([]Token, []Comment) {
	if x.lost == nil {
		x.lost = make(map[string]bool)
	}
	clear(x.lost)
	*x = Reader{rules: rules, src: src, line: 1, fresh: true, tokens: slices.Grow(x.tokens[:0], len(src)/5),
		comments: x.comments[:0], lost: x.lost}
	if strings.HasPrefix(src, "\ufeff") { // a byte order mark
		x.i, x.begin = len("\ufeff"), len("\ufeff")
	}
	if strings.HasPrefix(src, "#!") && !strings.HasPrefix(src, "#![") {
		x.i = x.lineEnd(0)
	}
	if rules.Tag != "" {
		x.outside()
	}
	for x.i < len(src) {
		x.step()
	}
	return x.tokens, x.comments
}

func (x *Reader) lineEnd(i int) int {
	if n := strings.IndexByte(x.src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(x.src)
}

// newlines counts the line ends in a span.
func (x *Reader) newlines(from, to int) {
	if n := strings.Count(x.src[from:to], "\n"); n > 0 {
		x.line += int32(n) //nolint:gosec // files are bounded by Limits
		x.begin = from + strings.LastIndexByte(x.src[from:to], '\n') + 1
	}
}

func (x *Reader) has(s string) bool { return strings.HasPrefix(x.src[x.i:], s) }

// emit adds the token up to end.
func (x *Reader) emit(k Kind, end int) {
	s := x.src[x.i:end]
	x.tokens = append(x.tokens, Token{Kind: k, First: x.fresh, Line: x.line, Col: small(x.i - x.begin), Off: small(x.i),
		Hash: Hash(s), S: s})
	x.fresh = false
	if k == Text { // others are on one line
		x.newlines(x.i, end)
	}
	x.i = end
}

// small converts a number that the limits of a file bound.
func small(n int) int32 { return int32(n) } //nolint:gosec // see above

func (x *Reader) step() {
	switch c := x.rules.table.class[x.src[x.i]]; {
	case c&newline != 0:
		x.i++
		x.line++
		x.begin, x.fresh = x.i, true
		x.documents()
	case c&blank != 0:
		x.i++
	case c&opens != 0 && (x.preprocess() || x.comment() || x.str()):
	case c&digit != 0:
		x.number()
	case c&letter != 0:
		x.word()
	default:
		x.op()
	}
}

func (x *Reader) word() {
	i := x.i + 1
	if i < len(x.src) && x.src[i] == '@' && x.src[x.i] == '@' && x.rules.At {
		i++
	}
	for class := &x.rules.table.class; i < len(x.src) && class[x.src[i]]&inner != 0; {
		i++
	}
	if x.rules.Query && i < len(x.src) && (x.src[i] == '?' || x.src[i] == '!') &&
		(i+1 >= len(x.src) || x.src[i+1] != '=') {
		i++
	}
	x.emit(Word, i)
}

func (x *Reader) number() {
	i := x.i + 1
	for i < len(x.src) {
		c := x.src[i]
		digits := c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		fraction := c == '.' && i+1 < len(x.src) && x.src[i+1] >= '0' && x.src[i+1] <= '9'
		if !digits && !fraction {
			break
		}
		i++
	}
	x.emit(Number, i)
}

func (x *Reader) op() {
	for _, o := range x.rules.table.operators[x.src[x.i]] {
		if x.has(o) {
			x.emit(Op, x.i+len(o))
			return
		}
	}
	if x.rules.Tag != "" && x.has("?>") {
		x.i += 2
		x.outside()
		return
	}
	switch x.src[x.i] {
	case '(', '[', '{':
		x.open++
	case ')', ']', '}':
		x.open--
	}
	x.emit(Op, x.i+1)
}

// outside skips the text up to the next tag.
func (x *Reader) outside() {
	n := strings.Index(x.src[x.i:], x.rules.Tag)
	end := len(x.src)
	if n >= 0 {
		end = x.i + n + len(x.rules.Tag)
		if strings.HasPrefix(x.src[end:], "php") {
			end += len("php")
		} else if strings.HasPrefix(x.src[end:], "=") {
			end++
		}
	}
	x.newlines(x.i, end)
	x.i, x.fresh = end, true
}

// comment reads a comment, if one begins here.
func (x *Reader) comment() bool {
	for _, open := range x.rules.Line {
		if x.has(open) && !(open == "#" && x.has("#[") && x.rules.Tag != "") {
			end := x.lineEnd(x.i)
			if x.rules.Tag != "" { // a closing tag ends it, too
				if n := strings.Index(x.src[x.i:end], "?>"); n >= 0 {
					end = x.i + n
				}
			}
			x.note(end)
			return true
		}
	}
	if b := x.rules.Block; b != "" && x.has(b) {
		if b == "=begin" && !x.fresh {
			return false
		}
		if end := x.blockEnd(b); end >= 0 {
			x.note(end)
			return true
		}
	}
	return false
}

func (x *Reader) note(end int) {
	x.comments = append(x.comments,
		Comment{Line: x.line, Off: small(x.i), Alone: x.fresh, S: strings.TrimRight(x.src[x.i:end], "\r")})
	x.newlines(x.i, end)
	x.i = end
}

// blockEnd returns the end of a block comment; -1 for none.
func (x *Reader) blockEnd(open string) int {
	closing := "*/"
	if open == "=begin" {
		closing = "\n=end"
	}
	if x.lost[closing] {
		return -1
	}
	depth, i := 1, x.i+len(open)
	for {
		n := strings.Index(x.src[i:], closing)
		if n < 0 {
			x.lost[closing] = true
			return -1
		}
		if x.rules.Nested {
			depth += strings.Count(x.src[i:i+n], open)
		}
		i += n + len(closing)
		if depth--; depth <= 0 {
			return i
		}
	}
}

// str reads a string, a character or a pattern, if one begins here.
func (x *Reader) str() bool {
	c := x.src[x.i]
	switch {
	case c == '\'' && x.rules.Char:
		if end := charEnd(x.src, x.i+1); end >= 0 {
			x.emit(Text, end)
			return true
		}
		return false
	case c == '/' && x.rules.Regex:
		if end := x.regexEnd(); end >= 0 {
			x.emit(Text, end)
			return true
		}
		return false
	case c == '%' && x.rules.Percent:
		return x.percent()
	case c == '<' && x.rules.Documents != "" && x.document():
		return true
	}
	at := x.i
	for at < len(x.src) && at < x.i+3 && strings.IndexByte(x.rules.Prefixes, x.src[at]) >= 0 {
		at++
	}
	if x.rules.Hashes && at > x.i && at < len(x.src) && (x.src[at] == '#' || x.src[at] == '"') &&
		strings.IndexByte(x.src[x.i:at], 'r') >= 0 {
		return x.hashed(at)
	}
	if x.rules.Raw && at < len(x.src) && x.src[at] == '"' {
		if end := x.sharpEnd(at); end >= 0 {
			x.emit(Text, end)
			return true
		}
		return false
	}
	for n := range x.rules.Quotes {
		q := &x.rules.Quotes[n]
		if strings.HasPrefix(x.src[at:], q.Open) && (at == x.i || !q.Name) {
			end := x.quoteEnd(q, at)
			if end < 0 {
				continue
			}
			if q.Name {
				x.emit(Word, end)
			} else {
				x.emit(Text, end)
			}
			return true
		}
	}
	return false
}

// quoteEnd returns the end of a string that opens at i; -1 for none.
func (x *Reader) quoteEnd(q *Quote, i int) int {
	if q.Lines && x.lost[q.Open] {
		return -1
	}
	end := x.closing(q, q.Escape, i+len(q.Open), 0)
	if end < 0 && q.Lines {
		x.lost[q.Open] = true
	}
	return end
}

// closing returns the end of a string from i on. An unclosed string of one line ends with the line.
func (x *Reader) closing(q *Quote, escape byte, i, deep int) int {
	for i < len(x.src) {
		c := x.src[i]
		switch {
		case escape != 0 && c == escape:
			i += 2
		case c == '\n' && !q.Lines:
			return i
		case q.Code != "" && deep < 4 && strings.HasPrefix(x.src[i:], q.Code):
			if q.Code == "{" && strings.HasPrefix(x.src[i:], "{{") { // an escaped brace
				i += 2
				continue
			}
			i = x.embedded(q, i+len(q.Code), deep)
		case c == q.Close[0] && strings.HasPrefix(x.src[i:], q.Close):
			i += len(q.Close)
			if q.Doubled && strings.HasPrefix(x.src[i:], q.Close) {
				i += len(q.Close)
				continue
			}
			return i
		default:
			i++
		}
	}
	if q.Lines {
		return -1
	}
	return len(x.src)
}

// embedded skips code inside a string, with the strings in it.
func (x *Reader) embedded(q *Quote, i, deep int) int {
	for open := 1; i < len(x.src); {
		switch c := x.src[i]; c {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i + 1
			}
		case '\n':
			if !q.Lines {
				return i
			}
		case '"', '\'', '`':
			if c == q.Close[0] && c != '`' && deep > 0 {
				return i
			}
			inner := Quote{Close: x.src[i : i+1], Lines: c == '`'}
			if c == '`' {
				inner.Code = q.Code
			}
			end := x.closing(&inner, '\\', i+1, deep+1)
			if end < 0 { // unclosed
				return len(x.src)
			}
			i = end
			continue
		}
		i++
	}
	return i
}

// charEnd returns the end of a character literal whose quote ends at i; -1 for none.
func charEnd(s string, i int) int {
	const longest = len(`\U0010FFFF`)
	if i < len(s) && s[i] == '\\' {
		if n := strings.IndexByte(s[min(i+2, len(s)):min(i+longest+2, len(s))], '\''); n >= 0 {
			return i + 2 + n + 1
		}
		return -1
	}
	_, size := utf8.DecodeRuneInString(s[i:])
	if i+size < len(s) && s[i+size] == '\'' && s[i] != '\n' && s[i] != '\'' {
		return i + size + 1
	}
	return -1
}

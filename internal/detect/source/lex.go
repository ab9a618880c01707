package source

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// kind of a token.
type kind uint8

const (
	word kind = iota
	number
	text // a string, a character or a pattern, with its quotes
	op
)

// token is a piece of code; comments are no tokens.
type token struct {
	kind  kind
	first bool // the first of its line
	line  int32
	col   int32 // bytes before it in its line
	off   int32
	hash  uint32 // of s
	s     string
}

// comment is a comment with its marks.
type comment struct {
	line  int32
	off   int32
	alone bool // no code stands before it on its line
	s     string
}

// quote is a form of string.
type quote struct {
	open, close string
	// escape takes away the meaning of the byte after it; 0 for none.
	escape byte
	// lines is set when it may go on in the next line.
	lines bool
	// code begins a piece of code inside, which ends with a brace.
	code string
	// doubled is set when the closing mark, written twice, stands for itself.
	doubled bool
	// name is set when what is quoted is a name.
	name bool
}

// lexRules say how comments, strings and words of a language look.
type lexRules struct {
	line      []string // what begins comments to the end of the line
	block     string   // what begins block comments; they end with its mirror
	nested    bool     // block comments nest
	quotes    []quote  // longest opening first
	prefixes  string   // letters that may stand before a quote
	char      bool     // ' is a character or a lifetime, label or name: 'x' but not 'a
	regex     bool     // /x/ where no division can be
	hashes    bool     // r#"x"# of Rust
	documents string   // what begins a document in place: <<~ or <<<
	percent   bool     // %w[x] of Ruby
	dollar    bool     // $ belongs to words
	at        bool     // @ belongs to words
	query     bool     // words may end with ? or !
	tag       string   // code begins after it, as in PHP
	// preprocessor is set when lines that begin with # are for one.
	preprocessor bool
	// raw is set when three quotes or more begin a string that as many end.
	raw   bool
	table *lexTable
}

// lexer reads texts one after the other. It goes forward only, and remembers which
// closing marks do not come any more, so its time is linear in the text whatever
// that holds.
type lexer struct {
	rules    *lexRules
	src      string
	i        int
	line     int32
	begin    int // offset of the line
	fresh    bool
	tokens   []token
	comments []comment
	lost     map[string]bool // closing marks that the rest of the text lacks
	waiting  []string        // documents in place that begin with the next line
	// open counts brackets, branches are the conditions of the preprocessor that
	// have not ended, and conditions says which tokens stand under some.
	open       int
	branches   []branch
	conditions []underIf
}

// lex splits a text into tokens and comments. They are good until the next text.
func (x *lexer) lex(rules *lexRules, src string) ([]token, []comment) {
	if x.lost == nil {
		x.lost = make(map[string]bool)
	}
	clear(x.lost)
	*x = lexer{rules: rules, src: src, line: 1, fresh: true, tokens: slices.Grow(x.tokens[:0], len(src)/5), comments: x.comments[:0], lost: x.lost}
	if strings.HasPrefix(src, "\ufeff") { // a mark of the encoding
		x.i, x.begin = len("\ufeff"), len("\ufeff")
	}
	if strings.HasPrefix(src, "#!") && !strings.HasPrefix(src, "#![") {
		x.i = x.lineEnd(0)
	}
	if rules.tag != "" {
		x.outside()
	}
	for x.i < len(src) {
		x.step()
	}
	return x.tokens, x.comments
}

func (x *lexer) lineEnd(i int) int {
	if n := strings.IndexByte(x.src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(x.src)
}

// newlines counts the lines that begin in a piece that was read whole.
func (x *lexer) newlines(from, to int) {
	if n := strings.Count(x.src[from:to], "\n"); n > 0 {
		x.line += int32(n) //nolint:gosec // files are bounded by Limits
		x.begin = from + strings.LastIndexByte(x.src[from:to], '\n') + 1
	}
}

func (x *lexer) has(s string) bool { return strings.HasPrefix(x.src[x.i:], s) }

// emit adds what ends at end as a token and goes there.
func (x *lexer) emit(k kind, end int) {
	s := x.src[x.i:end]
	x.tokens = append(x.tokens, token{kind: k, first: x.fresh, line: x.line, col: small(x.i - x.begin), off: small(x.i), hash: Hash(s), s: s})
	x.fresh = false
	if k == text { // others are in one line
		x.newlines(x.i, end)
	}
	x.i = end
}

// small makes an int32 of a number that Limits bound.
func small(n int) int32 { return int32(n) } //nolint:gosec // see above

func (x *lexer) step() {
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

func (x *lexer) word() {
	i := x.i + 1
	if i < len(x.src) && x.src[i] == '@' && x.src[x.i] == '@' && x.rules.at {
		i++
	}
	for class := &x.rules.table.class; i < len(x.src) && class[x.src[i]]&inner != 0; {
		i++
	}
	if x.rules.query && i < len(x.src) && (x.src[i] == '?' || x.src[i] == '!') && (i+1 >= len(x.src) || x.src[i+1] != '=') {
		i++
	}
	x.emit(word, i)
}

func (x *lexer) number() {
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
	x.emit(number, i)
}

func (x *lexer) op() {
	for _, o := range x.rules.table.operators[x.src[x.i]] {
		if x.has(o) {
			x.emit(op, x.i+len(o))
			return
		}
	}
	if x.rules.tag != "" && x.has("?>") {
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
	x.emit(op, x.i+1)
}

// outside passes over what is no code, to the next tag.
func (x *lexer) outside() {
	n := strings.Index(x.src[x.i:], x.rules.tag)
	end := len(x.src)
	if n >= 0 {
		end = x.i + n + len(x.rules.tag)
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
func (x *lexer) comment() bool {
	for _, open := range x.rules.line {
		if x.has(open) && !(open == "#" && x.has("#[") && x.rules.tag != "") {
			end := x.lineEnd(x.i)
			if x.rules.tag != "" { // a closing tag ends it, too
				if n := strings.Index(x.src[x.i:end], "?>"); n >= 0 {
					end = x.i + n
				}
			}
			x.note(end)
			return true
		}
	}
	if b := x.rules.block; b != "" && x.has(b) {
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

func (x *lexer) note(end int) {
	x.comments = append(x.comments, comment{line: x.line, off: small(x.i), alone: x.fresh, s: strings.TrimRight(x.src[x.i:end], "\r")})
	x.newlines(x.i, end)
	x.i = end
}

// blockEnd finds the end of a block comment; -1 when it has none.
func (x *lexer) blockEnd(open string) int {
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
		if x.rules.nested {
			depth += strings.Count(x.src[i:i+n], open)
		}
		i += n + len(closing)
		if depth--; depth <= 0 {
			return i
		}
	}
}

// str reads a string, a character or a pattern, if one begins here.
func (x *lexer) str() bool {
	c := x.src[x.i]
	switch {
	case c == '\'' && x.rules.char:
		if end := charEnd(x.src, x.i+1); end >= 0 {
			x.emit(text, end)
			return true
		}
		return false
	case c == '/' && x.rules.regex:
		if end := x.regexEnd(); end >= 0 {
			x.emit(text, end)
			return true
		}
		return false
	case c == '%' && x.rules.percent:
		return x.percent()
	case c == '<' && x.rules.documents != "" && x.document():
		return true
	}
	at := x.i
	for at < len(x.src) && at < x.i+3 && strings.IndexByte(x.rules.prefixes, x.src[at]) >= 0 {
		at++
	}
	if x.rules.hashes && at > x.i && at < len(x.src) && (x.src[at] == '#' || x.src[at] == '"') && strings.IndexByte(x.src[x.i:at], 'r') >= 0 {
		return x.hashed(at)
	}
	if x.rules.raw && at < len(x.src) && x.src[at] == '"' {
		if end := x.sharpEnd(at); end >= 0 {
			x.emit(text, end)
			return true
		}
		return false
	}
	for n := range x.rules.quotes {
		q := &x.rules.quotes[n]
		if strings.HasPrefix(x.src[at:], q.open) && (at == x.i || !q.name) {
			end := x.quoteEnd(q, at)
			if end < 0 {
				continue
			}
			if q.name {
				x.emit(word, end)
			} else {
				x.emit(text, end)
			}
			return true
		}
	}
	return false
}

// quoteEnd finds the end of a string that opens at i; -1 when it has none.
func (x *lexer) quoteEnd(q *quote, i int) int {
	if q.lines && x.lost[q.open] {
		return -1
	}
	end := x.closing(q, q.escape, i+len(q.open), 0)
	if end < 0 && q.lines {
		x.lost[q.open] = true
	}
	return end
}

// closing finds the end of a string from i on. Without one, a string of one line
// ends with the line.
func (x *lexer) closing(q *quote, escape byte, i, deep int) int {
	for i < len(x.src) {
		c := x.src[i]
		switch {
		case escape != 0 && c == escape:
			i += 2
		case c == '\n' && !q.lines:
			return i
		case q.code != "" && deep < 4 && strings.HasPrefix(x.src[i:], q.code):
			if q.code == "{" && strings.HasPrefix(x.src[i:], "{{") { // is a brace
				i += 2
				continue
			}
			i = x.embedded(q, i+len(q.code), deep)
		case c == q.close[0] && strings.HasPrefix(x.src[i:], q.close):
			i += len(q.close)
			if q.doubled && strings.HasPrefix(x.src[i:], q.close) {
				i += len(q.close)
				continue
			}
			return i
		default:
			i++
		}
	}
	if q.lines {
		return -1
	}
	return len(x.src)
}

// embedded passes over code inside of a string, with the strings in it.
func (x *lexer) embedded(q *quote, i, deep int) int {
	for open := 1; i < len(x.src); {
		switch c := x.src[i]; c {
		case '{':
			open++
		case '}':
			if open--; open == 0 {
				return i + 1
			}
		case '\n':
			if !q.lines {
				return i
			}
		case '"', '\'', '`':
			if c == q.close[0] && c != '`' && deep > 0 {
				return i
			}
			inner := quote{close: x.src[i : i+1], lines: c == '`'}
			if c == '`' {
				inner.code = q.code
			}
			end := x.closing(&inner, '\\', i+1, deep+1)
			if end < 0 { // nothing closes it any more
				return len(x.src)
			}
			i = end
			continue
		}
		i++
	}
	return i
}

// charEnd returns the end of a literal of one character whose quote ends at i.
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

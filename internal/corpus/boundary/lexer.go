package boundary

import (
	"bytes"
	"unicode/utf8"
)

// form is a string or a comment of a language.
type form struct {
	open  string
	close string // "" for the end of the line
	// escape is the byte that escapes the one after it; 0 for none.
	escape  byte
	comment bool
	// apart is set if it begins only after a blank or at the margin.
	apart bool
	// lines is set if it may continue in the next line.
	lines bool
	// char is set for a literal of one character: 'x' and '\n', but not the lifetimes of
	// Rust ('a).
	char bool
	// pattern is set for the regular expressions of JavaScript and Ruby, which begin where
	// no division can.
	pattern bool
	// here is set for the beginning of a here document: <<END.
	here bool
}

// Classes of bytes by what they may begin.
const (
	classPlain = iota
	classOpen
	classClose
	classForm
)

// lexer follows brackets, strings and comments through a text.
type lexer struct {
	forms [][]form // by the first byte of what opens them
	class [256]uint8
	// depth is the number of open brackets.
	depth int
	// last is the last byte of code that is not blank; 0 before the first.
	last byte
	// open is the form that continues in the next line; nil for none.
	open *form
	// until is the word that ends the open here document; nil for none.
	until []byte
	// since counts the bytes of the open form or here document.
	since int
}

func newLexer(l *language) *lexer {
	x := &lexer{forms: make([][]form, 256)}
	for _, c := range []byte("{([") {
		x.class[c] = classOpen
	}
	for _, c := range []byte("})]") {
		x.class[c] = classClose
	}
	for _, f := range l.forms {
		x.class[f.open[0]] = classForm
		x.forms[f.open[0]] = append(x.forms[f.open[0]], f)
	}
	return x
}

// inside reports whether the next line continues a string or a comment.
func (x *lexer) inside() bool { return x.open != nil || x.until != nil }

// walk reads a line of code, or more of it.
func (x *lexer) walk(text []byte) {
	i := x.resume(text)
	for i < len(text) {
		from := i
		for i < len(text) && x.class[text[i]] == classPlain {
			i++
		}
		x.noteLast(text[from:i])
		if i == len(text) {
			return
		}
		switch x.class[text[i]] {
		case classForm:
			i = x.form(text, i)
			continue
		case classOpen:
			x.depth++
		case classClose:
			x.depth = max(x.depth-1, 0)
		}
		x.last = text[i]
		i++
	}
}

// noteLast records the last byte of plain code that is not blank.
func (x *lexer) noteLast(plain []byte) {
	for i := len(plain) - 1; i >= 0; i-- {
		if plain[i] > ' ' {
			x.last = plain[i]
			return
		}
	}
}

// resume continues the form that is open, and returns where it ends in the line. A form
// that does not end within holdBytes was misread.
func (x *lexer) resume(text []byte) int {
	if !x.inside() {
		return 0
	}
	if x.since += len(text) + 1; x.since > holdBytes {
		x.open, x.until, x.depth, x.last = nil, nil, 0, ';'
		return 0
	}
	if x.until != nil {
		if bytes.Equal(bytes.TrimSuffix(bytes.TrimSpace(text), []byte(";")), x.until) {
			x.until = nil
		}
		return len(text)
	}
	end := x.open.end(text, 0)
	if end < 0 {
		return len(text)
	}
	if !x.open.comment {
		x.last = '"'
	}
	x.open = nil
	return end
}

// form reads the form that begins at i, if any, and returns where it ends.
func (x *lexer) form(text []byte, i int) int {
	for n := range x.forms[text[i]] {
		f := &x.forms[text[i]][n]
		if !bytes.HasPrefix(text[i:], []byte(f.open)) || f.apart && i > 0 && text[i-1] > ' ' {
			continue
		}
		if end := x.enter(f, text, i+len(f.open)); end >= 0 {
			if !f.comment {
				x.last = '"'
			}
			return end
		}
	}
	x.last = text[i]
	return i + 1
}

// enter reads the rest of a form whose beginning ends at i, and returns where it ends; -1
// if the form does not begin there.
func (x *lexer) enter(f *form, text []byte, i int) int {
	switch {
	case f.char:
		return charEnd(text, i)
	case f.here:
		return x.hereDocument(text, i)
	case f.pattern:
		return x.patternEnd(text, i)
	case f.close == "":
		return len(text)
	}
	if end := f.end(text, i); end >= 0 {
		return end
	}
	if f.lines {
		x.open, x.since = f, 0
	}
	return len(text)
}

// end returns where a form ends in which text[i:] begins; -1 if not in this text.
func (f *form) end(text []byte, i int) int {
	if f.escape == 0 {
		if n := bytes.Index(text[i:], []byte(f.close)); n >= 0 {
			return i + n + len(f.close)
		}
		return -1
	}
	for i < len(text) {
		switch c := text[i]; {
		case c == f.escape:
			i += 2
		case c == f.close[0] && bytes.HasPrefix(text[i:], []byte(f.close)):
			return i + len(f.close)
		default:
			i++
		}
	}
	return -1
}

// charEnd returns the end of a literal of one character whose quote ends at i.
func charEnd(text []byte, i int) int {
	const longest = len(`\U0010FFFF`)
	if i < len(text) && text[i] == '\\' {
		if n := bytes.IndexByte(text[min(i+2, len(text)):min(i+longest+2, len(text))], '\''); n >= 0 {
			return i + 2 + n + 1
		}
		return -1
	}
	_, size := utf8.DecodeRune(text[i:])
	if i+size < len(text) && text[i+size] == '\'' {
		return i + size + 1
	}
	return -1
}

// patternEnd returns the end of a regular expression whose slash ends at i.
func (x *lexer) patternEnd(text []byte, i int) int {
	if x.last != 0 && bytes.IndexByte([]byte("(,=:[!&|?{};+-*%~^<>"), x.last) < 0 {
		return -1
	}
	const longest = 1000 // a longer one was a division
	class := false
	for to := min(len(text), i+longest); i < to; i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return -1
}

// hereDocument reads the word after << and returns where it ends. The rest of the line is
// code.
func (x *lexer) hereDocument(text []byte, i int) int {
	for i < len(text) && (text[i] == '-' || text[i] == '~' || text[i] == ' ') {
		i++
	}
	if i < len(text) && (text[i] == '\'' || text[i] == '"' || text[i] == '\\') {
		i++
	}
	from := i
	for i < len(text) && (text[i] == '_' || text[i] >= 'A' && text[i] <= 'Z' || i > from &&
		(text[i] >= 'a' && text[i] <= 'z' || text[i] >= '0' && text[i] <= '9')) {
		i++
	}
	if i == from {
		return -1
	}
	x.until, x.since = bytes.Clone(text[from:i]), 0
	if i < len(text) && (text[i] == '\'' || text[i] == '"') {
		i++
	}
	return i
}

package checkconfig

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// readJSON reads JSON with comments and trailing commas as code, which keeps the lines.
func readJSON(text []byte) ([]setting, bool) {
	tokens := syntax.Tokens("a.js", string(text))
	var plain strings.Builder
	for i := range tokens {
		last := i+1 < len(tokens) && (tokens[i+1].S == "}" || tokens[i+1].S == "]")
		if tokens[i].S != "," || !last {
			plain.WriteString(tokens[i].S + " ")
		}
	}
	if !json.Valid([]byte(plain.String())) {
		return nil, false
	}
	return (&codeReader{tokens: tokens}).settings(), true
}

// readCode reads what looks like a setting in a program: literals, by the names and calls
// around them. Code is not run, so that a computed value is not known.
func readCode(name string, text []byte) []setting {
	lang := syntax.LanguageOf(name)
	r := &codeReader{tokens: syntax.Tokens(name, string(text))}
	if lang != nil {
		r.ends, r.colons, r.delegates = lang.Name == "ruby", lang.Name == "python", lang.Name == "kotlin"
	}
	return r.settings()
}

func (r *codeReader) settings() []setting {
	for r.i < len(r.tokens) {
		r.block(nil, "", 0)
		r.i++ // a bracket that closes nothing
	}
	return r.all
}

// codeReader walks through the tokens of a program.
type codeReader struct {
	tokens []lex.Token
	i      int
	all    []setting
	ends   bool // words open blocks, which "end" closes
	colons bool // a colon at the end of a line opens a block
	// delegates is set if "by" comes between a declared name and its value.
	delegates bool
}

// statement is the state within a statement: the names before its values.
type statement struct {
	of        string // the declared name that it is about, which is no key
	head, key string
	items     int
	named     bool // head is complete: a value follows
	used      bool // it has a value or a block
}

// path returns the keys of a value in the statement.
func (s *statement) path(at []string) []string {
	for _, name := range []string{s.of, s.head, s.key} {
		if name != "" {
			at = joined(at, name)
		}
	}
	return at
}

// block reads up to the bracket that closes the block.
func (r *codeReader) block(at []string, closes string, depth int) {
	var s statement
	list := closes == "]" || closes == ")"
	for ; r.i < len(r.tokens) && len(r.all) <= maxSettings; r.i++ {
		t := &r.tokens[r.i]
		if t.First && !list && !r.continued() {
			s = statement{items: s.items}
		}
		switch {
		case t.S == closes, closes == "" && (t.S == "}" || t.S == ")" || t.S == "]" || t.S == "end"):
			r.bare(at, &s, list)
			return
		case t.S == "{", t.S == "[", t.S == "(", t.S == "do", r.ends && t.First && opensBlock(t.S):
			r.inner(at, &s, depth)
		case t.S == ",":
			r.bare(at, &s, list)
			if s.key, s.items = "", s.items+1; list || s.head == "" {
				s = statement{items: s.items}
			}
		case t.S == ";":
			s = statement{items: s.items}
		case r.delegates && t.S == "by": // before it is a name of the project
			s = statement{items: s.items, of: "#id " + s.head}
		case t.S == ":" || t.S == "=>" || t.S == "=" || t.S == "+=" || t.S == ":=":
			s.named = true
		default:
			r.operand(at, &s, t)
		}
	}
}

// operand reads a literal or a name.
func (r *codeReader) operand(at []string, s *statement, t *lex.Token) {
	switch {
	case t.Kind == lex.Text && (r.at(1) == ":" || r.at(1) == "=>"):
		s.key = value(t)
	case t.Kind == lex.Text && strings.HasPrefix(t.S, "%") && len(t.S) > 3:
		for _, word := range strings.Fields(t.S[3 : len(t.S)-1]) {
			r.add(at, s, word)
		}
	case t.Kind == lex.Text, t.Kind == lex.Number, t.Kind == lex.Word && literal(t.S):
		r.add(at, s, value(t))
	case t.Kind == lex.Word:
		r.word(at, s, t.S)
	}
}

// bare records an item of a list that is only a name.
func (r *codeReader) bare(at []string, s *statement, list bool) {
	if list && s.head != "" && !s.used {
		r.all = append(r.all, setting{path: at, value: s.head, line: int(r.tokens[r.i].Line)})
	}
}

// opensBlock reports whether a word at the begin of a line opens a block in Ruby.
func opensBlock(w string) bool {
	switch w {
	case "def", "class", "module", "begin", "case", "if", "unless", "while", "until":
		return true
	}
	return false
}

// continued reports whether a line continues the statement of the one before.
func (r *codeReader) continued() bool {
	if r.i == 0 {
		return false
	}
	before := r.tokens[r.i-1].S
	switch r.tokens[r.i].S {
	case ".", "->", "{", "?", ":":
		return true
	}
	return before == "," || before == "=" ||
		before == "=>" || before == ":" && !r.colons || before == "+" || before == "||" || before == "&&"
}

func (r *codeReader) at(n int) string {
	if r.i+n < 0 || r.i+n >= len(r.tokens) {
		return ""
	}
	return r.tokens[r.i+n].S
}

// inner reads a block within a statement.
func (r *codeReader) inner(at []string, s *statement, depth int) {
	open := r.at(0)
	closes, bracket := map[string]string{"{": "}", "[": "]", "(": ")"}[open]
	if !bracket {
		closes = "end"
	}
	r.i++
	if s.used = true; depth > maxDepth {
		return
	}
	inside := s.path(at)
	if open == "[" || open == "{" && s.head == "" && s.key == "" {
		inside = joined(inside, fmt.Sprintf("#%d", s.items))
	}
	before := len(r.all)
	r.block(inside, closes, depth+1)
	if open == "(" {
		r.command(s, inside, before)
	}
	s.named = s.named || open != "("
}

// command joins the arguments of a call that runs a command.
func (r *codeReader) command(s *statement, at []string, from int) {
	name := s.head[strings.LastIndexAny(s.head, ".:>")+1:]
	if name != "run" && name != "exec" && name != "commandLine" && name != "run_always" || len(r.all) < from+2 {
		return
	}
	words := make([]string, 0, len(r.all)-from)
	for _, a := range r.all[from:] {
		if len(a.path) == len(at) {
			words = append(words, a.value)
		}
	}
	line := r.all[from].line
	r.all = append(r.all[:from], setting{path: at, value: strings.Join(words, " "), line: line})
}

// word continues the name of a statement, or is a value.
func (r *codeReader) word(at []string, s *statement, w string) {
	next := r.at(1)
	switch joins := r.at(-1); {
	case next == ":" && joins != "?" && r.tokens[r.i+1].Off == r.tokens[r.i].Off+int32(len(w)):
		s.key, s.named = w, false
	case (joins == "." || joins == "::" || joins == "->" || joins == "?.") && s.key == "" && s.head != "":
		if r.at(-2) == ")" { // a chain of calls
			s.head, _, _ = strings.Cut(s.head, ".")
		}
		s.head += "." + w
	case s.head == "" && s.key == "":
		s.head = w
	case next == "." || next == "(" || next == "::" || next == "->" || next == "{":
		if s.key == "" && !s.named {
			s.head = w // the words before were modifiers
		}
	case joins == "." || joins == "::" || joins == "->":
	case joins == ":" && s.key == "" || s.named || s.head != "" && s.key == "":
		if !keyword(s.head) {
			r.add(at, s, w)
			return
		}
		s.head = w
	}
}

func (r *codeReader) add(at []string, s *statement, v string) {
	s.used = true
	r.all = append(r.all, setting{path: s.path(at), value: v, line: int(r.tokens[r.i].Line)})
}

// literal reports whether a word is a value in many languages.
func literal(w string) bool {
	switch w {
	case "true", "false", "True", "False", "null", "nil", "None":
		return true
	}
	return false
}

// keyword reports whether a word begins a declaration, whose name follows.
func keyword(w string) bool {
	switch w {
	case "const", "let", "var", "val", "export", "default", "def", "function", "static", "return", "import", "from", "new",
		"async", "await", "public", "private", "final", "class", "if", "else", "for", "in", "use", "require", "fun", "apply":
		return true
	}
	return false
}

func value(t *lex.Token) string {
	if t.Kind == lex.Text {
		return lex.Unquote(t.S)
	}
	return strings.ReplaceAll(strings.ToLower(t.S), "_", "")
}

package mutate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// file is a text with its tokens.
type file struct {
	path, src string
	tokens    []lex.Token
	lines     []int // where each line begins
	style     style
}

// style is how a family of languages writes what is changed.
type style struct {
	not      string // negates a condition in parentheses
	brackets bool   // conditions stand in parentheses
	block    string // ends a condition without them; empty: the line does
	nothing  string // the value that a return may have instead; empty if types forbid it
	skip     string // the statement without effect; empty if there is none
}

func styleOf(path string) style {
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "go", "rs":
		return style{not: "!", block: "{"}
	case "py", "pyi":
		return style{not: "not ", block: ":", nothing: "None", skip: "pass"}
	case "rb":
		return style{not: "!", nothing: "nil", skip: "nil"}
	case "php":
		return style{not: "!", brackets: true, nothing: "null", skip: ""}
	case "java", "kt", "kts", "cs":
		return style{not: "!", brackets: true}
	}
	return style{not: "!", brackets: true, nothing: "undefined", skip: "void 0"}
}

func newFile(path, src string) *file {
	f := &file{path: path, src: src, tokens: syntax.Tokens(path, src), lines: []int{0}, style: styleOf(path)}
	for i := range len(src) {
		if src[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// line returns the line of a byte, counted from 1.
func (f *file) line(at int) int {
	i, found := slices.BinarySearch(f.lines, at)
	if found {
		return i + 1
	}
	return i
}

// edits returns the changes of the tokens in the selected lines.
func (f *file) edits(selects func(line int) bool) []edit {
	all := f.earlyReturns(selects)
	loads := false // the line names other files
	for i := range f.tokens {
		t := &f.tokens[i]
		if t.First {
			loads = slices.Contains([]string{"import", "from", "package", "use", "using", "include", "require"}, t.S) ||
				strings.Contains(f.textOfLine(int(t.Line)), "require(")
		}
		if loads || !selects(int(t.Line)) {
			continue
		}
		switch t.Kind {
		case lex.Op:
			all = f.operator(all, i)
		case lex.Word:
			all = f.word(all, i)
		case lex.Number:
			all = f.number(all, i)
		case lex.Text:
			all = f.text(all, i)
		}
	}
	return all
}

func (f *file) textOfLine(line int) string {
	text, _, _ := strings.Cut(f.src[f.lines[line-1]:], "\n")
	return text
}

func end(t *lex.Token) int { return int(t.Off) + len(t.S) }

// replace is an edit of one token.
func replace(t *lex.Token, with string, r rank) edit { return edit{int(t.Off), end(t), with, r} }

// operator changes an operator to its opposite.
func (f *file) operator(all []edit, i int) []edit {
	t := &f.tokens[i]
	switch t.S {
	case "==", "!=", "===", "!==", "<=", ">=":
		opposite := map[string]string{"==": "!=", "!=": "==", "===": "!==", "!==": "===", "<=": ">", ">=": "<"}
		return append(all, replace(t, opposite[t.S], rankCondition))
	case "&&":
		return append(all, replace(t, "||", rankLogic))
	case "||":
		return append(all, replace(t, "&&", rankLogic))
	case "+=":
		return append(all, replace(t, "-=", rankOperator))
	case "-=":
		return append(all, replace(t, "+=", rankOperator))
	case "++":
		return append(all, replace(t, "--", rankOperator))
	case "--":
		return append(all, replace(t, "++", rankOperator))
	case "!":
		if i+1 < len(f.tokens) && int(f.tokens[i+1].Off) == end(t) {
			return append(all, replace(t, "", rankCondition))
		}
	}
	opposite := map[string]string{"<": ">=", ">": "<=", "+": "-", "-": "+", "*": "/", "/": "*", "%": "*"}[t.S]
	if opposite == "" || !f.isBinary(i) {
		return all
	}
	r := rankOperator
	if t.S == "<" || t.S == ">" {
		r = rankCondition
	}
	return append(all, replace(t, opposite, r))
}

// isBinary reports whether an operator stands between two values: with values around it, and the
// same blanks on both sides, other than a pointer, a type parameter or a sign.
func (f *file) isBinary(i int) bool {
	if i == 0 || i+1 == len(f.tokens) {
		return false
	}
	before, t, after := &f.tokens[i-1], &f.tokens[i], &f.tokens[i+1]
	opens := after.Kind != lex.Op || slices.Contains([]string{"(", "[", "-", "!"}, after.S)
	closes := before.Kind != lex.Op && !isKeyword(before.S) || before.S == ")" || before.S == "]"
	spaced := int(t.Off) > end(before)
	if spaced != (int(after.Off) > end(t)) || !spaced && (t.S == "<" || t.S == ">") {
		return false
	}
	return opens && closes
}

func isKeyword(s string) bool {
	return slices.Contains([]string{"return", "case", "in", "of", "and", "or", "not", "if", "elif", "while", "yield",
		"await", "else", "print", "echo"}, s)
}

// word changes conditions, returns, truth values and statements, which begin with a word.
func (f *file) word(all []edit, i int) []edit {
	t := &f.tokens[i]
	if i > 0 && f.tokens[i-1].S == "." {
		return all
	}
	switch t.S {
	case "true", "false", "True", "False":
		opposite := map[string]string{"true": "false", "false": "true", "True": "False", "False": "True"}
		return append(all, replace(t, opposite[t.S], rankConstant))
	case "and":
		return append(all, replace(t, "or", rankLogic))
	case "or":
		return append(all, replace(t, "and", rankLogic))
	case "if", "elif", "elsif", "unless":
		return f.condition(all, i)
	case "return":
		return f.result(all, i)
	}
	if t.First && f.style.skip != "" && !isKeyword(t.S) {
		return f.statement(all, i)
	}
	return all
}

// condition negates the condition behind a word.
func (f *file) condition(all []edit, i int) []edit {
	first := i + 1
	if first >= len(f.tokens) || f.tokens[first].S == "let" {
		return all
	}
	depth := 0
	for k := first; k < len(f.tokens); k++ {
		t := &f.tokens[k]
		if depth == 0 && k > first && f.style.block == "" && !f.style.brackets && t.First { // Ruby's line ends it
			return f.negate(all, first, k-1)
		}
		switch {
		case t.Kind != lex.Op:
		case depth == 0 && k > first && f.style.block != "" && t.S == f.style.block:
			return f.negate(all, first, k-1)
		case depth == 0 && t.S == ";":
			if f.style.block != "{" {
				return all
			}
			first = k + 1 // the statement before a condition in Go
		case strings.Contains("([{", t.S):
			depth++
		case strings.Contains(")]}", t.S):
			if depth--; depth < 0 {
				return all
			}
			if depth == 0 && f.style.brackets {
				return f.negate(all, first, k)
			}
		}
	}
	return all
}

// negate puts the tokens from first to last into a negation.
func (f *file) negate(all []edit, first, last int) []edit {
	if last < first {
		return all
	}
	from, to := int(f.tokens[first].Off), end(&f.tokens[last])
	text := f.style.not + "(" + f.src[from:to] + ")"
	if f.style.brackets {
		text = "(" + f.style.not + f.src[from:to] + ")"
	}
	return append(all, edit{from, to, text, rankCondition})
}

// result makes a return give nothing.
func (f *file) result(all []edit, i int) []edit {
	last := f.lastOf(i)
	if f.style.nothing == "" || last == i || f.src[f.tokens[i+1].Off:end(&f.tokens[last])] == f.style.nothing {
		return all
	}
	return append(all, edit{int(f.tokens[i+1].Off), end(&f.tokens[last]), f.style.nothing, rankReturn})
}

// statement leaves out a statement that is only a call.
func (f *file) statement(all []edit, i int) []edit {
	last := f.lastOf(i)
	if last == i || f.tokens[last].S != ")" {
		return all
	}
	depth := 0
	for k := i; k < last; k++ { // a name with dots, then one call
		t := &f.tokens[k]
		switch {
		case t.S == "(" && t.Kind == lex.Op:
			depth++
		case t.S == ")" && t.Kind == lex.Op:
			depth--
		case depth == 0 && t.Kind != lex.Word && t.S != ".":
			return all
		case depth == 0 && k > i && t.Kind == lex.Word && f.tokens[k-1].S != ".":
			return all
		}
	}
	return append(all, edit{int(f.tokens[i].Off), end(&f.tokens[last]), f.style.skip, rankStatement})
}

// lastOf returns the last token of the statement that begins with a token: before a semicolon, the end
// of the block, or a line that begins outside of all brackets.
func (f *file) lastOf(i int) int {
	depth := 0
	for k := i + 1; k < len(f.tokens); k++ {
		t := &f.tokens[k]
		if depth == 0 && (t.First && t.S != "." || t.S == ";" || t.S == "}") {
			return k - 1
		}
		if t.Kind == lex.Op && strings.Contains("([{", t.S) {
			depth++
		}
		if t.Kind == lex.Op && strings.Contains(")]}", t.S) {
			if depth--; depth < 0 {
				return k - 1
			}
		}
	}
	return len(f.tokens) - 1
}

// number adds one to an integer, and makes other numbers 0.
func (f *file) number(all []edit, i int) []edit {
	t := &f.tokens[i]
	n, err := strconv.ParseInt(t.S, 10, 32)
	if err == nil {
		return append(all, replace(t, strconv.FormatInt(n+1, 10), rankConstant))
	}
	if x, err := strconv.ParseFloat(t.S, 64); err == nil && x != 0 {
		return append(all, replace(t, "0.0", rankConstant))
	}
	return all
}

// text empties a string. Comments in the form of a string, patterns and raw strings stay.
func (f *file) text(all []edit, i int) []edit {
	t := &f.tokens[i]
	s := strings.TrimLeft(t.S, "bfruBFRU")
	if t.First || len(s) < 3 || strings.HasPrefix(s, `"""`) || strings.HasPrefix(s, "'''") ||
		s[0] != s[len(s)-1] || s[0] != '"' && s[0] != '\'' || s[0] == '\'' && f.style.block == "{" {
		return all
	}
	return append(all, replace(t, t.S[:len(t.S)-len(s)]+s[:1]+s[:1], rankText))
}

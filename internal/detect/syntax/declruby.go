package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// blocksToEnd notes the end of each Ruby block in match.
func (u *unit) blocksToEnd() {
	var open []int32
	loop := int32(-1) // the line of a while, whose do opens no block
	for i := range u.tok {
		t := &u.tok[i]
		if t.Kind != lex.Word || u.at(i-1) == "." || u.at(i-1) == "&." || u.symbol(i) {
			continue
		}
		switch t.S {
		case "def":
			open = u.leftOpen(open, i)
			if !u.endless(i) {
				open = append(open, small(i))
			}
		case "class", "module", "begin", "case":
			open = append(open, small(i))
		case "do":
			if t.Line != loop {
				open = append(open, small(i))
			}
			loop = -1
		case "if", "unless", "while", "until", "for":
			if u.begins(i) {
				open = append(open, small(i))
				if t.S != "if" && t.S != "unless" {
					loop = t.Line
				}
			}
		case "end":
			open = u.notOfThis(open, i)
			if len(open) > 0 {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				u.match[last], u.match[i] = small(i), last
			}
		}
	}
}

// leftOpen drops open blocks that must have ended before the method at i, by their indentation.
// Something in them was not understood.
func (u *unit) leftOpen(open []int32, i int) []int32 {
	if !u.tok[i].First {
		return open
	}
	for n := len(open) - 1; n >= max(0, len(open)-maxNested); n-- {
		o := int(open[n])
		if u.at(o) == "class" || u.at(o) == "module" || u.margin(o) < u.tok[i].Col {
			return open
		}
		if u.at(o) == "def" {
			for _, left := range open[n:] {
				u.match[left] = small(i - 1)
			}
			return open[:n]
		}
	}
	return open
}

// notOfThis drops open blocks that do not belong to the end at i, by their indentation.
func (u *unit) notOfThis(open []int32, i int) []int32 {
	if !u.tok[i].First {
		return open
	}
	for n := len(open) - 1; n >= max(0, len(open)-maxNested); n-- {
		if o := int(open[n]); u.margin(o) == u.tok[i].Col || u.tok[o].Col == u.tok[i].Col {
			return open[:n+1]
		}
	}
	return open
}

// margin returns the column in which the line of the token at i begins.
func (u *unit) margin(i int) int32 {
	for n := i; n > max(0, i-maxBlock); n-- {
		if u.tok[n].First {
			return u.tok[n].Col
		}
	}
	return u.tok[i].Col
}

// symbol reports whether a word is part of :word or word:.
func (u *unit) symbol(i int) bool {
	t := &u.tok[i]
	end := int(t.Off) + len(t.S)
	before := t.Off > 0 && u.src[t.Off-1] == ':' && (t.Off < 2 || u.src[t.Off-2] != ':')
	return before || end+1 < len(u.src) && u.src[end] == ':' && u.src[end+1] != ':'
}

var blockWords = sync.OnceValue(wordSet("else then do and or return begin ensure"))

// begins reports whether the keyword at i begins a statement, unlike a trailing if.
func (u *unit) begins(i int) bool {
	if u.tok[i].First || i == 0 {
		return true
	}
	before := &u.tok[i-1]
	if before.Kind == lex.Op {
		return before.S != ")" && before.S != "]" && before.S != "}"
	}
	return before.Kind == lex.Word && blockWords()[before.S]
}

// endless reports whether the method at i is of the form def name = value.
func (u *unit) endless(i int) bool {
	j := i + 1
	for u.isWord(j) && u.at(j+1) == "." {
		j += 2
	}
	j++
	if u.at(j) == "(" {
		j = u.closer(j)
	}
	return u.at(j) == "=" && j < len(u.tok) && u.tok[j].Line == u.tok[i].Line && u.src[u.tok[j].Off-1] == ' '
}

// declareEnds finds the declarations of Ruby.
func (u *unit) declareEnds() {
	private := false
	for i := range u.tok {
		t := &u.tok[i]
		if t.Kind != lex.Word || u.at(i-1) == "." || u.symbol(i) {
			continue
		}
		switch t.S {
		case "define_method":
			u.definedMethod(i)
		case "def", "class", "module":
			if t.S != "def" {
				private = false
			}
			u.declareRuby(i, private || u.at(i-1) == "private" && t.S == "def")
		case "private", "protected", "public":
			if t.First && (i+1 >= len(u.tok) || u.tok[i+1].First) {
				private = t.S != "public"
			}
			if t.S != "public" {
				u.hide(i)
			}
		}
	}
}

// definedMethod reads the method with a literal name that the call at i defines.
func (u *unit) definedMethod(i int) {
	name := i + 1
	for u.at(name) == "(" || u.at(name) == ":" {
		name++
	}
	title := strings.TrimPrefix(lex.Unquote(strings.TrimPrefix(u.at(name), ":")), ":")
	if !strings.HasPrefix(title, "test_") {
		return
	}
	for j := name + 1; j < len(u.tok) && u.tok[j].Line == u.tok[i].Line; j++ {
		if (u.at(j) == "do" || u.at(j) == "{") && u.match[j] > small(j) {
			u.decls = append(u.decls, decl{kind: declFunction, name: strings.Clone(title), at: name, start: i, body: j + 1,
				end: int(u.match[j]) + 1})
			return
		}
	}
}

// hide makes the methods private whose names follow the word at i.
func (u *unit) hide(i int) {
	end := u.lineEnd(i)
	for j := i + 1; j < end; j++ {
		if !u.symbol(j) {
			continue
		}
		for k := range u.decls {
			if d := &u.decls[k]; d.name == strings.TrimPrefix(u.at(j), ":") && d.kind == declFunction {
				d.modifiers = append(d.modifiers, "private")
			}
		}
	}
}

func (u *unit) declareRuby(i int, private bool) {
	at := i + 1
	for u.isWord(at) && (u.at(at+1) == "." || u.at(at+1) == "::") {
		at += 2
	}
	name := u.at(at)
	if u.kindAt(at) == lex.Op && u.at(i) != "def" || name == "" {
		return
	}
	d := decl{kind: declFunction, name: name, at: at, start: i, body: min(at+1, len(u.tok)), end: u.lineEnd(at)}
	if m := u.match[i]; m > int32(i) {
		d.end = int(m) + 1
	}
	if u.at(at+1) == "(" && u.at(i) == "def" {
		d.body = u.closer(at + 1)
	}
	if u.at(i) != "def" {
		d.kind = DeclContainer
	}
	if private {
		d.modifiers = []string{"private"}
	}
	u.decls = append(u.decls, d)
}

// declareCalls finds the suites and tests that are calls with a title.
func (u *unit) declareCalls() {
	titled := u.titledSpecs()
	for i := range u.tok {
		t := &u.tok[i]
		if titled && t.Kind == lex.Text && t.First {
			u.declareTitled(i)
		}
		if t.Kind != lex.Word {
			continue
		}
		suite := u.lang.suites[t.S]
		if !suite && !u.lang.tests[t.S] || u.lang.shape == ends && u.symbol(i) {
			continue
		}
		if before := u.at(i - 1); before == "." && !oneOf(u.at(i-2), "t", "RSpec", "Deno", "test", "QUnit") || oneOf(before,
			"->", "function", "fun", "def", "::") {
			continue
		}

		u.declareCall(i, suite)
	}
}

// declareCall reads such a call: it.each(rows)("title", ...), describe "title" do.
func (u *unit) declareCall(i int, suite bool) {
	d := decl{kind: declTest, start: i, at: i, calls: []string{u.at(i)}}
	if suite {
		d.kind = declSuite
	}
	j := i + 1
	for j < len(u.tok) {
		switch {
		case u.at(j) == "." && u.isWord(j+1):
			d.calls = append(d.calls, u.at(j+1))
			if u.at(j+1) == "describe" {
				d.kind = declSuite
			}
			j += 2
			continue
		case u.at(j) == "[" && u.kindAt(j+1) == lex.Text && u.at(j+2) == "]" && u.lang.shape == braces: // describe["skip"]
			d.calls = append(d.calls, lex.Unquote(u.at(j+1)))
			j += 3
			continue
		// each(rows), skipIf(x)
		case u.at(j) == "(" && len(d.calls) > 1 && u.at(u.closer(j)) == "(" && d.calls[len(d.calls)-1] != "describe":
			if open := u.listNamed(u.at(j+1), j); u.isWord(j+1) && u.at(j+2) == ")" && open >= 0 { // each(rows)
				d.tables = append(d.tables, open)
			} else if rows := u.rows(j); len(rows) > 0 {
				d.cases = append(d.cases, rows...)
			} else if open := u.listOver(j+1, u.closer(j)-1); open >= 0 && u.kindAt(open) != lex.Text {
				d.tables = append(d.tables, open)
			} else if open >= 0 {
				d.cases = append(d.cases, u.listCases(open)...)
			}
			j = u.closer(j)
			continue
		case u.kindAt(j) == lex.Text && u.at(j+1) == "(" && u.at(j)[0] == '`': // each`table`
			d.tables = append(d.tables, j)
			j++
			continue
		}
		break
	}
	if u.lang.shape == ends {
		u.rubyCall(&d, j)
		return
	}
	if u.at(j) == ")" && u.at(j+1) == "(" && u.opener(j) >= 0 { // (slow ? it.skip : it)("title", ...)
		if a, ok := u.skipsAs(u.opener(j)+1, j); ok {
			d.start, d.calls = u.opener(j), []string{u.at(i), map[bool]string{true: "skip", false: "skipIf"}[a.always]}
			j++
		}
	}
	if u.at(j) != "(" {
		return
	}
	title := j + 1
	if u.lang.Name == "kotlin" && oneOf(u.at(i), "withData", "xwithData", "withTests", "withContexts") {
		u.dataCall(&d, j)
		return
	}
	if u.kindAt(title) != lex.Text &&
		!(u.at(title) == "{" || u.isWord(title) && (u.at(title+1) == "," || u.at(title+1) == "." || u.at(title+1) == ")" &&
			d.kind == declSuite)) {
		return
	}
	d.body, d.end = title+1, u.closer(j)
	if u.kindAt(title) == lex.Text {
		d.name = strings.Clone(lex.Unquote(u.at(title)))
	} else {
		d.name = u.text(title, u.commaAfter(title, d.end))
	}
	if u.lang.Name == "kotlin" && !u.kotestBlock(&d) {
		return
	}
	if u.lang.Name != "kotlin" && u.at(title+1) != "," || !u.lang.TestFile(u.path) && !u.holdsFunction(d.body, d.end) {
		return // no body: not a test
	}
	if u.lang.Name == "php" { // it(...)->skip()
		for u.at(d.end) == "->" && u.isWord(d.end+1) {
			d.calls = append(d.calls, u.at(d.end+1))
			if u.at(d.end+1) == "with" && u.at(d.end+2) == "(" {
				d.cases = append(d.cases, u.rows(d.end+2)...)
			}
			d.end += 2
			if u.at(d.end) == "(" {
				d.end = u.closer(d.end)
			}
		}
	}
	u.decls = append(u.decls, d)
}

// dataCall reads the rows of a Kotest table whose parenthesis opens at open, and its test.
func (u *unit) dataCall(d *decl, open int) {
	list, apart := open, false
	if o := u.listAt(open+1, u.closer(open)); o >= 0 && rowMakers()[u.at(o-1)] {
		list = o
	} else if u.isWord(open+1) && u.at(open+2) == ")" {
		if o := u.listNamed(u.at(open+1), open); o >= 0 {
			d.tables, apart = append(d.tables, o), true
		}
	}
	if !apart {
		d.cases = u.elements(list)
	}
	d.kind, d.name = declTest, "withData"
	d.body, d.end = open, u.closer(open)
	if u.at(d.end) == "{" {
		d.body, d.end = d.end, u.closer(d.end)
		u.decls = append(u.decls, *d)
	}
}

// holdsFunction reports whether a function begins in [from, to).
func (u *unit) holdsFunction(from, to int) bool {
	return anyOf(from, min(to, from+30), func(i int) bool { return oneOf(u.at(i), "=>", "function", "{") })
}

func (u *unit) commaAfter(i, to int) int {
	for ; i < to; i++ {
		switch u.at(i) {
		case ",":
			return i
		case "(", "[", "{":
			i = u.closer(i) - 1
		}
	}
	return max(i-1, 0)
}

// rubyCall reads the title and the block of a call whose words end before j.
func (u *unit) rubyCall(d *decl, j int) {
	line := u.tok[d.at].Line
	if d.at > 0 && !u.tok[d.at].First && u.at(d.at-1) != "." && u.at(d.at-1) != "focus" {
		return
	}
	if u.at(j) == "(" {
		j++
	}
	from := j
	for j < len(u.tok) && (u.tok[j].Line == line || u.at(j-1) == "," || u.kindAt(j) == lex.Text) {
		if u.match[j] <= small(j) || u.at(j) != "do" && (u.at(j) != "{" || j <= d.at || u.at(j-1) == ",") {
			j++
			continue
		}
		d.body, d.end = j+1, int(u.match[j])+1
		if u.kindAt(from) == lex.Text {
			d.name = strings.Clone(lex.Unquote(u.at(from)))
		} else {
			d.name = u.text(from, j)
		}
		if d.name == "" { // it { is_expected.to ... }
			d.name = u.text(d.body, d.end-1)
		}
		u.decls = append(u.decls, *d)
		if d.kind == declTest {
			u.inside = max(u.inside, d.end)
		}
		return
	}
	if d.kind == declTest && u.kindAt(from) == lex.Text && d.at >= u.inside { // no block: pending
		d.name, d.body, d.end = strings.Clone(lex.Unquote(u.at(from))), from+1, max(u.lineEnd(d.at), from+1)
		d.calls = append(d.calls, "pending")
		u.decls = append(u.decls, *d)
	}
}

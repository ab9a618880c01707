package syntax

import (
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// declareCalls finds the suites and tests that are calls with a title.
func (u *unit) declareCalls() {
	for i := range u.tok {
		t := &u.tok[i]
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
	if oneOf(u.at(i), "withData", "xwithData", "withTests", "withContexts") {
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
	if u.lang.afterTitle == nil && u.at(title+1) != "," || u.lang.afterTitle != nil && !u.lang.afterTitle(u, &d) ||
		!u.lang.TestFile(u.path) && !u.holdsFunction(d.body, d.end) {
		return // no body: not a test
	}
	if u.lang.chained != nil {
		u.lang.chained(u, &d)
	}
	u.decls = append(u.decls, d)
}

// holdsFunction reports whether a function begins in [from, to).
func (u *unit) holdsFunction(from, to int) bool {
	return anyOf(from, min(to, from+30), func(i int) bool { return oneOf(u.at(i), "=>", "function", "{") })
}

func (u *unit) commaAfter(i, to int) int {
	if i = u.find(i, to, ","); i < to {
		return i
	}
	return max(i-1, 0)
}

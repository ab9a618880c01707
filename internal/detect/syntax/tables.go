package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// tableCases adds the rows of named tables: those of a provider or of a list of the file.
func (u *unit) tableCases(t *Test, d *decl) {
	for _, at := range d.tables {
		if u.kindAt(at) == lex.Text {
			u.addRows(t, u.textRows(at, true))
		} else {
			u.addRows(t, u.elements(at))
		}
	}
	for _, a := range d.annotations {
		for j := a.from; j < a.to && (a.name == "CsvSource" || a.name == "TableSource"); j++ {
			if u.at(j) == "textBlock" && u.kindAt(j+2) == lex.Text {
				u.addRows(t, u.textRows(j+2, false))
			}
		}
	}
	for _, name := range u.providers(d) {
		u.addRows(t, u.namedRows(name, d))
	}
	u.classRows(t, d)
	if u.lang.readRows != nil {
		u.lang.readRows(u, t, d)
	}
}

// classRows adds the rows for which a class or group of tests runs.
func (u *unit) classRows(t *Test, d *decl) {
	for p := d.parent; p >= 0; p = u.decls[p].parent {
		class := &u.decls[p]
		if class.kind != DeclContainer {
			if class.kind == declSuite {
				u.addRows(t, class.cases)
			}
			continue
		}
		u.addRows(t, u.casesOf(class))
		if !u.names("Parameterized") {
			continue
		}
		for i := p + 1; i < len(u.decls) && u.decls[i].start < class.end; i++ {
			m := &u.decls[i]
			if m.annotatedBy(func(s string) bool { return strings.HasSuffix(s, "Parameters") }) && m.body < m.end {
				u.addRows(t, u.rowsGiven(m.body, m.end))
			}
		}
	}
}

// addRows adds separate rows to a test.
func (u *unit) addRows(t *Test, rows []Case) {
	var all multiset.Hashes
	for i := range rows {
		all = append(all, rows[i].All...)
	}
	t.Cases, t.All = append(t.Cases, rows...), multiset.Sum(t.All, all)
}

// rowMakers are calls that make a list of their arguments.
var rowMakers = sync.OnceValue(wordSet("of listOf setOf mapOf arrayOf sequenceOf asList List Set Map array vec " +
	"list tuple dict freeze from intArrayOf mutableListOf Array table"))

// providers returns the row providers in the annotations of a test and the comment before it.
func (u *unit) providers(d *decl) []string {
	var all []string
	for _, a := range d.annotations {
		switch a.name {
		case "DataProvider", "DataProviderExternal", "MethodSource", "FieldSource", "TestCaseSource", "MemberData",
			"DynamicData", "ClassData", "dataProvider":
			n := len(all)
			for j := a.from; j < a.to; j++ {
				if u.kindAt(j) == lex.Text || u.isWord(j) && (u.at(j-1) == "(" || u.at(j-1) == ".") && u.at(j-2) == "nameof" ||
					u.at(j-2) == "typeof" {
					all = append(all, lex.Unquote(u.at(j)))
				}
			}
			if len(all) == n && a.name == "MethodSource" {
				all = append(all, d.name)
			}
		case "Test": // of TestNG
			for j := a.from; j < a.to; j++ {
				if u.at(j) == "dataProvider" && u.at(j+1) == "=" && u.kindAt(j+2) == lex.Text {
					all = append(all, lex.Unquote(u.at(j+2)))
				}
			}
		case "parametrize", "expand", "with":
			for j := a.from; j < a.to; j++ {
				if u.opens(j) && !u.isWord(j-1) { // rows, not the name of a list of them
					j = u.closer(j) - 1
					continue
				}
				if u.isWord(j) && (u.at(j-1) == "," || u.at(j-1) == "(") && (u.at(j+1) == ")" || u.at(j+1) == ",") {
					all = append(all, u.at(j))
				}
			}
		}
	}
	for _, n := range u.notesBefore(u.line(d.start)) {
		if !strings.Contains(n.S, "@dataProvider") || int(n.Line)+strings.Count(n.S, "\n") < u.line(d.start)-2 {
			continue
		}
		for _, m := range docProvider().FindAllStringSubmatch(n.S, 4) {
			all = append(all, m[1])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// namedRows returns the rows of a function or a variable.
func (u *unit) namedRows(name string, near *decl) []Case {
	if dot := strings.LastIndexAny(name, "#."); dot >= 0 {
		name = name[dot+1:]
	}
	best := u.provider(name, near)
	if best >= 0 && u.decls[best].at != near.at {
		return u.rowsGiven(u.decls[best].body, u.decls[best].end)
	}
	if open := u.listNamed(name, len(u.tok)); open >= 0 {
		return u.listCases(open)
	}
	return nil
}

// provider returns the function that provides the rows of a name; -1 for none.
func (u *unit) provider(name string, near *decl) int {
	best := -1
	for i := range u.decls {
		d := &u.decls[i]
		if d.body >= d.end || u.tests[i] || best >= 0 && d.parent != near.parent {
			continue
		}
		if d.name == name || slices.ContainsFunc(d.annotations, func(a annotation) bool { // @DataProvider(name = "words")
			return a.name == "DataProvider" &&
				slices.ContainsFunc(u.tok[a.from:a.to],
					func(t lex.Token) bool { return t.Kind == lex.Text && lex.Unquote(t.S) == name })
		}) {
			best = i
		}
	}
	return best
}

// rowsGiven returns the rows that a function yields, or the list that it returns.
func (u *unit) rowsGiven(from, to int) []Case {
	var yielded []Case
	open := -1
	for j := from; j < to; j++ {
		if !u.isWord(j) {
			continue
		}
		switch u.at(j) {
		case "yield":
			first := j + 1
			if u.at(first) == "return" {
				first++
			}
			end := u.statementEnd(first)
			if end = u.trimmed(first, end); first < end {
				yielded = append(yielded, u.row(first, end))
			}
			j = end - 1
		case "return":
			if o := u.listAt(j+1, u.statementEnd(j+1)); o >= 0 {
				open = o
			}
		}
	}
	if len(yielded) > 0 {
		return yielded
	}
	if open < 0 {
		open = u.listAt(from, to)
	}
	if open < 0 {
		return nil
	}
	return u.elements(u.innerList(open))
}

// listAt returns the opening bracket of the list in [from, to); -1 for none.
func (u *unit) listAt(from, to int) int {
	for j := from; j < min(to, from+maxTypes); j++ {
		if u.kindAt(j) == lex.Text {
			return -1
		}
		switch s := u.at(j); s {
		case "[", "{":
			if s == "[" && u.at(j+1) == "]" { // a type
				j++
				continue
			}
			if j == from && s == "{" && !u.lang.braceLists { // a block
				continue
			}
			return j
		case "(":
			if u.at(j+1) == ")" {
				j++
				continue
			}
			if j == from || rowMakers()[u.at(j-1)] {
				return j
			}
		case ";", "=>":
			if s == ";" || j > from {
				return -1
			}
		}
	}
	return -1
}

// listNamed returns the bracket of the list assigned to a name before i, or anywhere; -1 for none.
func (u *unit) listNamed(name string, i int) int {
	from := u.valueNamed(name, i)
	if from < 0 || u.lang.typedLists && u.at(from) != "[" && u.at(from) != "map" {
		return -1
	}
	end := u.statementEnd(from)
	if u.lang.typed && u.at(from) == "{" { // an array, or an object
		return from
	}
	if u.lang.typedLists {
		return u.listWritten(from, end)
	}
	if open := u.listAt(from, end); open >= 0 {
		return u.innerList(open)
	}
	return u.listWritten(from, end)
}

// innerList returns the only list in the brackets at open, as in new Map([...]), or else open.
func (u *unit) innerList(open int) int {
	end := u.closer(open) - 1
	if u.at(open) != "(" || u.commaAfter(open+1, end) < end-1 {
		return open
	}
	if inner := u.listWritten(open+1, end); inner > open && u.closer(inner) == end {
		return inner
	}
	return open
}

// textRows returns the rows of a table that is a string, one a line, without the header.
func (u *unit) textRows(i int, header bool) []Case {
	var all []Case
	line := u.line(i)
	for s := range strings.Lines(strings.Trim(u.at(i), "`\"")) {
		n := line
		line++
		s = strings.TrimSpace(s)
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		if header {
			header = false
			continue
		}
		var b multiset.Hashes
		key := firstHash
		for _, cell := range strings.FieldsFunc(s, func(c rune) bool { return c == '|' || c == ',' || c == ';' }) {
			cell = strings.TrimSpace(cell)
			b, key = append(b, lex.TextHash(cell)), mix(key, cell)
		}
		slices.Sort(b)
		all = append(all, Case{Line: n, Key: key, All: b, Literals: b, S: strings.Clone(Clip(s))})
	}
	return all
}

// rows returns the cases in the parentheses that open at i: the elements of their last list.
func (u *unit) rows(i int) []Case {
	open := -1
	for j := i + 1; j < u.closer(i)-1; j++ {
		switch s := u.at(j); {
		case u.kindAt(j) != lex.Op:
		case s == "[" || s == "{":
			open = j
			j = u.closer(j) - 1
		case s == "(":
			j = u.closer(j) - 1
		}
	}
	if open < 0 {
		if u.kindAt(i+1) == lex.Text { // rows as arguments
			return u.elements(i)
		}
		return nil
	}
	return u.elements(open)
}

// elements returns the comma-separated elements of the brackets that open at i.
func (u *unit) elements(i int) []Case {
	var all []Case
	for _, part := range u.parts(i+1, u.closer(i)-1) {
		all = append(all, u.row(part[0], part[1]))
	}
	return all
}

func (u *unit) row(from, to int) Case {
	tokens := u.tok[from:to]
	return Case{at: from, Off: u.rowOff(from, to), Line: u.line(from),
		Key: mixAll(firstHash, tokens), All: u.bagOf(tokens), Literals: u.once(appendLiterals, tokens), S: u.text(from, to)}
}

// rowOff reports whether a row is skipped or expected to fail.
func (u *unit) rowOff(from, to int) bool {
	for j := from + 1; j < to; j++ {
		switch s := u.at(j); s {
		case "skip", "xfail":
			if u.at(j-1) == "." && u.at(j-2) == "mark" {
				return true
			}
		case "Ignore", "Explicit", "IgnoreReason", "Skip":
			if u.at(j-1) == "." && u.at(j+1) == "(" || u.at(j+1) == "=" && u.at(j+2) != "null" && u.at(j+2) != "false" {
				return true
			}
		}
	}
	return false
}

// rowAnnotations are annotations that are one row each; tableAnnotations hold a list of rows.
var (
	rowAnnotations   = sync.OnceValue(wordSet("InlineData TestCase TestFixture DataRow case test_case TestWith example"))
	tableAnnotations = sync.OnceValue(
		func() set { return words("parametrize ValueSource CsvSource EnumSource values expand") })
)

// casesOf returns the rows in the annotations of a test.
func (u *unit) casesOf(d *decl) []Case {
	all := d.cases
	for _, a := range slices.Backward(d.annotations) {
		open := a.from
		for open < a.to && u.at(open) != "(" {
			open++
		}
		if open >= a.to {
			continue
		}
		switch {
		case rowAnnotations()[a.name]:
			all = append(all, u.row(open, a.to))
		case tableAnnotations()[a.name]:
			if u.at(open+1) != "textBlock" {
				all = append(all, u.rows(open)...)
			}
		}
	}
	return all
}

// afterCall returns the end of the call of the word at i, with its block.
func (u *unit) afterCall(i int) int {
	j := i + 1
	if u.at(j) == "(" {
		j = u.closer(j)
	}
	if s := u.at(j); s == "{" || s == "do" {
		j = u.closer(j)
	}
	return j
}

package source

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/bag"
	"github.com/perdure/perdure/internal/detect/lex"
)

// tableCases adds the rows of tables that have a name: what a provider gives, what a
// list of the file holds.
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
	if u.lang.Name == "go" {
		u.rangedRows(t, d)
	}
}

// addRows adds rows that stand apart from a test: what it says is said for each of
// them.
func (u *unit) addRows(t *Test, rows []Case) {
	var all bag.Bag
	for i := range rows {
		all = append(all, rows[i].All...)
	}
	t.Cases, t.All = append(t.Cases, rows...), bag.Join(t.All, all)
}

// rowMakers are calls that make a list of what they are given.
var rowMakers = sync.OnceValue(func() set {
	return words("of listOf setOf mapOf arrayOf sequenceOf asList List Set Map array vec list tuple dict freeze from intArrayOf mutableListOf Array table")
})

// providers are the names by which the annotations of a test, and the comment before
// it, say where its rows are.
func (u *unit) providers(d *decl) []string {
	var all []string
	for _, a := range d.annotations {
		switch a.name {
		case "DataProvider", "DataProviderExternal", "MethodSource", "FieldSource", "TestCaseSource", "MemberData", "DynamicData", "ClassData", "dataProvider":
			n := len(all)
			for j := a.from; j < a.to; j++ {
				if u.kindAt(j) == lex.Text || u.isWord(j) && (u.at(j-1) == "(" || u.at(j-1) == ".") && u.at(j-2) == "nameof" || u.at(j-2) == "typeof" {
					all = append(all, lex.Unquote(u.at(j)))
				}
			}
			if len(all) == n && a.name == "MethodSource" {
				all = append(all, d.name)
			}
		case "parametrize", "expand", "with":
			for j := a.from; j < a.to; j++ {
				if u.isWord(j) && (u.at(j-1) == "," || u.at(j-1) == "(") && (u.at(j+1) == ")" || u.at(j+1) == ",") {
					all = append(all, u.at(j))
				}
			}
		}
	}
	if u.lang.Name == "php" {
		for _, n := range u.notesBefore(u.line(d.start)) {
			if int(n.Line)+strings.Count(n.S, "\n") < u.line(d.start)-2 {
				continue
			}
			for _, m := range docProvider().FindAllStringSubmatch(n.S, 4) {
				all = append(all, m[1])
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

var docProvider = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`@dataProvider\s+(?:\w+::)?(\w+)`) })

// namedRows are the rows that a function gives, or that a variable holds.
func (u *unit) namedRows(name string, near *decl) []Case {
	if dot := strings.LastIndexAny(name, "#."); dot >= 0 {
		name = name[dot+1:]
	}
	best := -1
	for i := range u.decls {
		d := &u.decls[i]
		if d.name == name && !u.tests[i] && d.body < d.end && (best < 0 || d.parent == near.parent) {
			best = i
		}
	}
	if best >= 0 && u.decls[best].at != near.at {
		return u.rowsGiven(u.decls[best].body, u.decls[best].end)
	}
	if open := u.listNamed(name, len(u.tok)); open >= 0 {
		return u.elements(open)
	}
	return nil
}

// rowsGiven are the rows that a function yields, or the list that it returns.
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
			for end > first && (u.at(end-1) == ";") {
				end--
			}
			if first < end {
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
	return u.elements(open)
}

// listAt is the bracket that opens the list which stands in [from, to); -1 for none.
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
			if j == from && s == "{" && u.lang.Name != "python" && u.lang.Name != "csharp" && u.lang.Name != "ruby" { // a block
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

// listNamed is the bracket that opens the list which a name is given nearest before
// i, or anywhere; -1 for none.
func (u *unit) listNamed(name string, i int) int {
	if u.given == nil {
		u.given = u.assignments()
	}
	from := -1
	for _, at := range u.given[name] {
		if from < 0 || at < i {
			from = at
		}
	}
	if from < 0 || u.lang.Name == "go" && u.at(from) != "[" && u.at(from) != "map" {
		return -1
	}
	return u.listAt(from, u.statementEnd(from))
}

// rangedRows adds the rows of the lists of a package of Go that a test goes through.
func (u *unit) rangedRows(t *Test, d *decl) {
	for j := d.body; j < d.end; j++ {
		if u.at(j) != "range" || !u.isWord(j+1) || u.at(j+2) != "{" {
			continue
		}
		open := u.listNamed(u.at(j+1), j)
		if open < 0 || open > d.start && open < d.end {
			continue
		}
		for open >= 0 && u.at(open-1) == "struct" { // the type of a row
			if open = u.closer(open); u.at(open) != "{" {
				open = -1
			}
		}
		if open >= 0 {
			u.addRows(t, u.elements(open))
		}
	}
}

// textRows are the rows of a table that is a string: a line each, but the first one
// when it names the columns.
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
		var b bag.Bag
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

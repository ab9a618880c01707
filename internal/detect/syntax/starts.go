package syntax

import (
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// Start is a call that makes a runner run tests that it does not find otherwise: the suite of a
// package, a list of classes.
type Start struct {
	Line int
	Key  uint64
	Of   string // the type or class; empty for all of a package
	S    string
}

// readStarts finds the code that makes runners run tests.
func (u *unit) readStarts(m *Model) {
	if !u.inTests {
		return
	}
	for i := range u.tok {
		if !u.isWord(i) || u.at(i+1) != "(" {
			continue
		}
		switch s := u.at(i); {
		case u.lang.Name == "go" && s == "Run" && u.at(i-1) == "." && (u.at(i-2) == "suite" || u.at(i-2) == "suites"):
			u.start(m, i, u.typeIn(i+2, u.closer(i+1)))
		case u.lang.Name == "go" && (s == "RunSpecs" || s == "RunSpecsWithDefaultAndCustomReporters" || s == "TestingT" &&
			u.at(i+3) == ")"):
			u.start(m, i, "")
		case s == "SelectClasses" || s == "SuiteClasses" || s == "addTestSuite" || s == "addTest" && u.lang.Name != "php":
			for j := i + 2; j < u.closer(i+1); j++ {
				if u.isWord(j) && (u.at(j+1) == "." && u.at(j+2) == "class" || u.at(j+1) == "::" && u.at(j+2) == "class") {
					u.start(m, i, u.at(j))
				}
			}
		}
	}
}

func (u *unit) start(m *Model, i int, of string) {
	of = strings.Clone(of)
	m.Starts = append(m.Starts, Start{u.line(i), mix(mix(firstHash, u.at(i)), of), of, u.lineText(i)})
}

// typeIn returns the type of the value created in [from, to): new(A), &A{}, NewA().
func (u *unit) typeIn(from, to int) string {
	for j := to - 1; j >= from; j-- {
		if u.isWord(j) && u.at(j) != "new" && (strings.Contains(u.at(j), "Suite") || u.at(j-1) == "&" || u.at(j-2) == "new") {
			return strings.TrimPrefix(u.at(j), "New")
		}
	}
	return ""
}

// readNever notes code that ends a file or excludes its tests before the test at i is declared.
func (u *unit) readNever(i int, note func(s Skipping, at, to int)) {
	d := &u.decls[i]
	if u.ended == nil {
		u.ended = u.fileEnds()
	}
	for _, at := range u.ended {
		if at < d.start || u.lang.Name == "python" {
			under := u.endsUnder(at)
			switch {
			case u.at(at) == "def":
				note(Always, at, u.lineEnd(at))
			case under < 0:
				note(Always, at, u.statementEnd(at))
			case slices.ContainsFunc(u.tok[under:min(under+maxCondition, len(u.tok))],
				func(t lex.Token) bool { return t.Line == u.tok[under].Line && (t.S == ">=" || t.S == ">") }):
				note(Always, under, u.statementEnd(at)) // the new one counts
			default:
				note(Sometimes, under, u.statementEnd(at))
			}
		}
	}
}

// endsUnder returns the beginning of the condition under which the file ends at i; -1 for none.
func (u *unit) endsUnder(i int) int {
	if u.lang.Name == "ruby" { // return if x
		for j := i + 1; j < len(u.tok) && !u.tok[j].First; j++ {
			if u.at(j) == "if" || u.at(j) == "unless" {
				return j
			}
		}
	}
	if u.tok[i].Col == 0 {
		return -1
	}
	for j := i - 1; j > max(0, i-maxCondition); j-- {
		if u.at(j) == "if" || u.at(j) == "unless" {
			return j
		}
	}
	return i
}

// fileEnds returns the words that leave a file early, before the declarations after them.
func (u *unit) fileEnds() []int {
	all := []int{}
	switch u.lang.Name {
	case "php", "ruby":
		for i := range u.tok {
			if s := u.at(i); u.isWord(i) && (s == "return" || s == "exit" || s == "die" && u.lang.Name == "php" ||
				s == "__halt_compiler") && u.tok[i].First && u.alone(i) && u.around(i) < 0 && !u.inBlock(i) {
				all = append(all, i)
			}
		}
	case "python":
		for i := range u.decls {
			if d := &u.decls[i]; d.name == "load_tests" && d.parent < 0 && d.kind == declFunction && !u.loads(d) {
				all = append(all, d.start)
			}
		}
	}
	return all
}

// alone reports whether the word at i has no operand.
func (u *unit) alone(i int) bool {
	return oneOf(u.at(i+1), ";", "}", "(", "if", "unless", "end") ||
		u.lang.Name == "ruby" && (i+1 >= len(u.tok) || u.tok[i+1].First || u.kindAt(i+1) == lex.Number)
}

// inBlock reports whether the token at i is in a closure that is an argument.
func (u *unit) inBlock(i int) bool {
	for j := i - 1; j >= 0; j-- {
		switch u.at(j) {
		case "}", ")", "]":
			if o := u.opener(j); o > 0 {
				j = o
			}
		case "(", "[", "do":
			return true
		case "{":
			before := j - 1
			if u.at(before) == ")" && u.opener(before) > 0 {
				if w := u.at(u.opener(before) - 1); w != "if" && w != "elseif" {
					return true
				}
				j = u.opener(before) - 1
			} else if u.at(before) != "else" && u.at(before) != ";" && before >= 0 {
				return true
			}
		}
	}
	return false
}

// loads reports whether load_tests of Python returns some of its argument, or discovers tests.
func (u *unit) loads(d *decl) bool {
	given := words("loader tests standard_tests suite addTest addTests addTestSuite discover loadTestsFromModule " +
		"loadTestsFromTestCase loadTestsFromName loadTestsFromNames DocTestSuite")
	for j := d.at + 2; j < u.closer(min(d.at+1, len(u.tok)-1)); j++ {
		given[u.at(j)] = u.isWord(j)
	}
	return slices.ContainsFunc(u.tok[d.body:d.end], func(t lex.Token) bool { return t.Kind == lex.Word && given[t.S] })
}

// datasetTests returns the named tables that any file may use: dataset('words', [...]).
func (u *unit) datasetTests() []*Test {
	if u.lang.Name != "php" || !u.inTests {
		return nil
	}
	var all []*Test
	for i := range u.tok {
		if u.at(i) != "dataset" || u.at(i+1) != "(" || u.kindAt(i+2) != lex.Text || u.at(i-1) == "->" || u.at(i-1) == "::" {
			continue
		}
		end := u.closer(i + 1)
		rows := u.rowsGiven(i+3, end)
		if len(rows) == 0 {
			continue
		}
		t := &Test{Name: "dataset " + lex.Unquote(u.at(i+2)), Leaf: lex.Unquote(u.at(i + 2)), Table: true, Line: u.line(i),
			BodyHash: mixAll(firstHash, u.tok[i:end])}
		u.addRows(t, rows)
		t.Literals = u.once(appendLiterals, u.tok[i:end])
		t.Telling = t.All
		all = append(all, t)
	}
	return all
}

// addedRows adds the seed values of a Go fuzz test: f.Add(...).
func (u *unit) addedRows(t *Test, d *decl) {
	if u.lang.Name != "go" || !strings.HasPrefix(d.name, "Fuzz") {
		return
	}
	for j := d.body; j < d.end; j++ {
		if u.at(j) == "Add" && u.at(j-1) == "." && u.at(j-2) == "f" && u.at(j+1) == "(" {
			t.Cases = append(t.Cases, u.row(j+2, max(u.closer(j+1)-1, j+3)))
		}
	}
}

// HasType reports whether a version of a file has a type, or methods of it.
func (m *Model) HasType(name string) bool {
	h := Hash(name)
	return m.Rest.Has(h) || slices.ContainsFunc(m.Funcs,
		func(f *Function) bool { return f.All.Has(h) || strings.HasPrefix(f.Name, name+".") }) ||
		slices.ContainsFunc(m.Tests, func(t *Test) bool { return strings.HasPrefix(t.Name, name+".") })
}

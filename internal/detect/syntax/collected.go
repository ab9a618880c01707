package syntax

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// collected tells whether the runner finds the test at i: by what stands around it and
// how it is declared.
func (u *unit) collected(i int) bool {
	d := &u.decls[i]
	switch u.lang.Name {
	case "python":
		return !u.shadowed(i)
	case "ruby":
		return d.kind != declFunction || !has(d.modifiers, "private") && !u.shadowed(i) && u.inherits(d.parent)
	case "php":
		return d.kind != declFunction || !has(d.modifiers, "private") && !has(d.modifiers, "protected") &&
			u.inherits(d.parent)
	case "java", "kotlin":
		if d.kind != declFunction {
			return true
		}
		return !has(d.modifiers, "private") && !(has(d.modifiers, "static") && u.jupiter()) && u.nested(d.parent)
	case "csharp":
		return u.sharpCollected(d)
	}
	return true
}

// shadowed tells whether another function of the same scope has the name of the one
// at i, and comes after it; or something else is given its name.
func (u *unit) shadowed(i int) bool {
	d := &u.decls[i]
	if d.kind != declFunction {
		return false
	}
	if u.lastOf()[placeOf(u, i)] > i {
		return d.parent >= 0 || u.lang.shape != indents || u.tok[d.start].Col == 0
	}
	for _, h := range u.offHeads() { // del test_a, test_a = None
		if h >= d.end && d.parent < 0 && u.tok[h].Col == 0 &&
			(u.at(h) == "del" && u.at(h+1) == d.name || u.at(h) == d.name && u.at(h+1) == "=") {
			return true
		}
	}
	return false
}

// place is where a function is declared, by its name.
type place struct {
	parent int
	col    int32
	name   string
}

func placeOf(u *unit, i int) place {
	d := &u.decls[i]
	return place{d.parent, u.tok[d.start].Col, d.name}
}

// lastOf has the last function of each name and place.
func (u *unit) lastOf() map[place]int {
	if u.last == nil {
		u.last = make(map[place]int)
		for i := range u.decls {
			if u.decls[i].kind == declFunction {
				u.last[placeOf(u, i)] = i
			}
		}
	}
	return u.last
}

// offHeads are the statements of Python that say of tests that they are not to be
// collected, or are skipped.
func (u *unit) offHeads() []int {
	if u.offAt == nil {
		u.offAt = []int{}
		for _, head := range u.heads {
			h := int(head)
			if s := u.at(h); s == "__test__" || s == "pytestmark" || s == "del" || u.at(h+2) == "__test__" ||
				u.at(h+1) == "=" && u.at(h+2) == "None" {
				u.offAt = append(u.offAt, h)
			}
		}
	}
	return u.offAt
}

// inherits tells whether the class at i has a base: runners find tests by it. Modules
// and traits have none, and are part of classes.
func (u *unit) inherits(i int) bool {
	if i < 0 || !u.inTests {
		return true
	}
	d := &u.decls[i]
	switch u.lang.Name {
	case "ruby":
		if u.at(d.at-1) != "class" || u.at(d.at+1) == "<" {
			return true
		}
		return anyOf(d.body, min(d.end, d.body+20), func(j int) bool { return u.at(j) == "include" })
	case "php":
		if u.at(d.start) == "trait" || u.at(d.at-1) == "trait" {
			return true
		}
		return slices.ContainsFunc(u.tok[d.at:d.body], func(t lex.Token) bool { return t.S == "extends" })
	}
	return true
}

// jupiter tells whether a file uses JUnit since its fifth version.
func (u *unit) jupiter() bool { return u.names("jupiter") }

// names tells whether a word stands at the head of the file, as a part of what it
// imports.
func (u *unit) names(s string) bool {
	return slices.ContainsFunc(u.tok[:min(len(u.tok), 400)], func(t lex.Token) bool { return t.S == s })
}

// nested tells whether a class in a class, with tests, is one that JUnit looks into.
func (u *unit) nested(i int) bool {
	if i < 0 || u.decls[i].parent < 0 || u.decls[u.decls[i].parent].kind != DeclContainer || !u.jupiter() {
		return true
	}
	d := &u.decls[i]
	if d.annotatedBy(func(s string) bool { return s == "Nested" }) {
		return u.nested(d.parent)
	}
	return u.at(d.at-1) != "class"
}

// sharpCollected tells whether a method of C# is public where its runner asks for that,
// in a class that MSTest finds.
func (u *unit) sharpCollected(d *decl) bool {
	for _, a := range d.annotations {
		if (a.name == "Fact" || a.name == "Theory") && d.parent >= 0 &&
			(has(u.decls[d.parent].modifiers, "internal") || has(u.decls[d.parent].modifiers, "private")) {
			return false
		}
		switch a.name {
		case "Test", "TestCase", "TestMethod", "DataTestMethod", "TestCaseSource":
			if has(d.modifiers, "private") || has(d.modifiers, "protected") || has(d.modifiers, "internal") {
				return false
			}
		}
		if strings.HasSuffix(a.name, "TestMethod") && d.parent >= 0 && u.names("TestTools") {
			class := &u.decls[d.parent]
			return has(class.modifiers, "partial") ||
				class.annotatedBy(func(s string) bool { return strings.HasSuffix(s, "TestClass") })
		}
	}
	return true
}

// neverDeclared notes a test that stands in a function of its file which nothing calls,
// or hands on.
func (u *unit) neverDeclared(i int, note func(s Skipping, at, to int)) {
	switch u.lang.Name {
	case "javascript", "typescript", "ruby":
	default:
		return
	}
	p := u.decls[i].parent
	for p >= 0 && u.decls[p].kind != declFunction {
		p = u.decls[p].parent
	}
	if u.decls[i].kind == declFunction || p < 0 || u.tests[p] || u.decls[p].name == "" || u.exports[u.decls[p].name] {
		return
	}
	d := &u.decls[p]
	if has(d.modifiers, "export") || has(d.modifiers, "default") || u.at(d.start-1) == ":" ||
		u.at(d.start-1) == "default" || d.name == "exports" {
		return
	}
	for j := range u.tok {
		if u.at(j) != d.name || u.kindAt(j) == lex.Op || j >= d.start && j < d.end {
			continue
		}
		if u.at(j+1) != "=" || u.at(j-1) == "." || j < d.start-2 { // not the name that it is given
			return
		}
	}
	note(Always, d.start, min(d.body+1, d.end))
}

// abstractIn is the name of the abstract class that a test stands in: it runs in those
// that inherit from it. Empty for none.
func (u *unit) abstractIn(i int) string {
	for j := u.decls[i].parent; j >= 0; j = u.decls[j].parent {
		if d := &u.decls[j]; d.kind == DeclContainer && has(d.modifiers, "abstract") {
			return d.name
		}
	}
	return ""
}

// offByName notes what says of a module or a class of Python that its tests are not to
// be collected, or are skipped.
func (u *unit) offByName(i int, note func(s Skipping, at, to int)) {
	if u.lang.Name != "python" {
		return
	}
	name := u.decls[i].name
	for _, h := range u.offHeads() {
		switch {
		case u.at(h) == "__test__" && u.at(h+1) == "=" && u.at(h+2) == "False":
		case u.at(h) == name && u.at(h+2) == "__test__" && u.at(h+4) == "False":
			note(Always, h, u.lineEnd(h))
			continue
		case u.at(h) == "pytestmark" && u.tok[h].Col > 0:
		default:
			continue
		}
		p := u.around(h)
		if p >= 0 && u.decls[p].kind != DeclContainer {
			continue
		}
		if u.within(i, p) {
			u.noteMark(h, note)
		}
	}
}

// noteMark notes what the statement at h says of the tests below it.
func (u *unit) noteMark(h int, note func(s Skipping, at, to int)) {
	end := u.lineEnd(h)
	if u.at(h) == "__test__" {
		note(Always, h, end)
		return
	}
	for j := h; j < end; j++ {
		switch s := u.at(j); {
		case s == "skip" || s == "skipif" && u.constant(j+2):
			note(Always, h, end)
		case s == "skipif":
			note(Sometimes, j, end)
		}
	}
}

// strictNames are the names of files in which runners look for tests, by language:
// how their stem begins or ends.
var strictNames = sync.OnceValue(func() map[string][2][]string {
	script := [2][]string{{"test-"}, {".test", ".spec", "_test", "-test", "_spec", "-spec", ".e2e", ".cy"}}
	jvm := [2][]string{{"Test", "IT"}, {"Test", "Tests", "TestCase", "IT", "ITCase", "Spec"}}
	return map[string][2][]string{
		"go": {nil, {"_test"}}, "python": {{"test_"}, {"_test"}}, "ruby": {{"test_"}, {"_spec", "_test"}},
		"php":        {nil, {"Test"}},
		"javascript": script, "typescript": script, "java": jvm, "kotlin": jvm,
	}
})

// Collected tells by the name of a file whether runners look for tests in it, as far
// as they go by that. It asks for more than TestFile, which takes what tests use as
// well.
func (l *Language) Collected(name string) bool {
	base := path.Base(name)
	if l.Name == "rust" { // each file beside the sources of tests is a program of its own
		return path.Base(path.Dir(name)) == "tests"
	}
	stem := strings.TrimSuffix(base, path.Ext(base))
	forms := strictNames()[l.Name]
	return !strings.HasPrefix(base, "_") && !strings.HasPrefix(base, ".") &&
		(slices.ContainsFunc(forms[0], func(s string) bool { return strings.HasPrefix(stem, s) }) ||
			slices.ContainsFunc(forms[1], func(s string) bool { return strings.HasSuffix(stem, s) }))
}

// testModules are the modules that a file of Rust declares for its tests, each in a
// file of its own: #[cfg(test)] mod tests;
func (u *unit) testModules() []string {
	var all []string
	for i := range u.tok {
		if u.at(i) != "mod" || u.at(i+2) != ";" {
			continue
		}
		for j := i - 1; j > 0 && u.at(j) == "]" && u.opener(j) > 0; j = u.opener(j) - 2 { // attributes
			if open := u.opener(j); u.at(open+1) == "cfg" && u.at(open+3) == "test" && u.at(open+4) == ")" {
				all = append(all, strings.Clone(u.at(i+1)))
				break
			}
		}
	}
	return all
}

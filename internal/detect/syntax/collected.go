package syntax

import (
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// collected reports whether the runner finds the test at i, by the declarations around it.
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
		return d.kind != declFunction || !has(d.modifiers, "private") &&
			!(has(d.modifiers, "static") && u.jupiter()) && u.nested(d.parent)
	case "csharp":
		return u.sharpCollected(d)
	}
	return true
}

// shadowed reports whether a later declaration of the same scope replaces the function at i.
func (u *unit) shadowed(i int) bool {
	d := &u.decls[i]
	if d.kind != declFunction {
		return false
	}
	if u.lastOf()[placeOf(u, i)] > i {
		return d.parent >= 0 || u.lang.shape != indents || u.tok[d.start].Col == 0
	}
	return slices.ContainsFunc(u.offHeads(), func(h int) bool { // del test_a, test_a = None
		return h >= d.end && d.parent < 0 && u.tok[h].Col == 0 &&
			(u.at(h) == "del" && u.at(h+1) == d.name || u.at(h) == d.name && u.at(h+1) == "=")
	})
}

// place is the scope and name of a function.
type place struct {
	parent int
	col    int32
	name   string
}

func placeOf(u *unit, i int) place {
	d := &u.decls[i]
	return place{d.parent, u.tok[d.start].Col, d.name}
}

// lastOf returns the last function of each name and place.
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

// inherits reports whether the class at i has a base class, by which runners find tests. Modules
// and traits count, as they are mixed into classes.
func (u *unit) inherits(i int) bool {
	if i < 0 || !u.inTests {
		return true
	}
	d := &u.decls[i]
	switch u.lang.Name {
	case "ruby":
		return u.at(d.at-1) != "class" || u.at(d.at+1) == "<" ||
			anyOf(d.body, min(d.end, d.body+20), func(j int) bool { return u.at(j) == "include" })
	case "php":
		return u.at(d.start) == "trait" || u.at(d.at-1) == "trait" ||
			anyOf(d.at, d.body, func(j int) bool { return u.at(j) == "extends" })
	}
	return true
}

// names reports whether a word occurs near the top of the file, as in an import.
func (u *unit) names(s string) bool {
	return slices.ContainsFunc(u.tok[:min(len(u.tok), 400)], func(t lex.Token) bool { return t.S == s })
}

// abstractIn returns the abstract class around a test, whose subclasses run it; empty for none.
func (u *unit) abstractIn(i int) string {
	for j := u.decls[i].parent; j >= 0; j = u.decls[j].parent {
		if d := &u.decls[j]; d.kind == DeclContainer && has(d.modifiers, "abstract") {
			return d.name
		}
	}
	return ""
}

// strictNames are the prefixes and suffixes of test file names that runners require, by language.
var strictNames = sync.OnceValue(func() map[string][2][]string {
	script := [2][]string{{"test-"}, {".test", ".spec", "_test", "-test", "_spec", "-spec", ".e2e", ".cy"}}
	jvm := [2][]string{{"Test", "IT"}, {"Test", "Tests", "TestCase", "IT", "ITCase", "Spec"}}
	return map[string][2][]string{
		"go": {nil, {"_test"}}, "python": {{"test_"}, {"_test"}}, "ruby": {{"test_"}, {"_spec", "_test"}},
		"php":        {nil, {"Test"}},
		"javascript": script, "typescript": script, "java": jvm, "kotlin": jvm,
	}
})

// Collected reports whether runners look for tests, not only helpers, in a file of this name.
func (l *Language) Collected(name string) bool {
	base := path.Base(name)
	if l.Name == "rust" { // each file of the folder is a program
		return path.Base(path.Dir(name)) == "tests"
	}
	stem := strings.TrimSuffix(base, path.Ext(base))
	forms := strictNames()[l.Name]
	return !strings.HasPrefix(base, "_") && !strings.HasPrefix(base, ".") &&
		(slices.ContainsFunc(forms[0], func(s string) bool { return strings.HasPrefix(stem, s) }) ||
			slices.ContainsFunc(forms[1], func(s string) bool { return strings.HasSuffix(stem, s) }))
}

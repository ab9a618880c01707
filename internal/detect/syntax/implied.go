package syntax

import (
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// Strengths counts the assertions of a test by their strength.
func (t *Test) Strengths() [Exact + 1]int {
	var n [Exact + 1]int
	for i := range t.Asserts {
		n[t.Asserts[i].Strength]++
	}
	return n
}

// implied reports whether a stronger assertion implies one that a value exists.
func (u *unit) implied(a, b *Assertion, was, by [2]int) bool {
	if b.Strength <= Weak || !presence()[plain(a.Name)] {
		return false
	}
	return !anyOf(was[0], was[1], func(i int) bool {
		return u.kindAt(i) != lex.Op && u.at(i) != a.Name &&
			!slices.ContainsFunc(u.tok[by[0]:by[1]], func(t lex.Token) bool { return t.S == u.at(i) })
	})
}

// presence are assertions that a value exists, or that a call failed.
var presence = sync.OnceValue(wordSet("error notnil notnull assertnotnull isnotnull isnotnil assertisnotnone " +
	"notempty isnotempty assertnotempty tobedefined tobetruthy truthy exists exist"))

// saysFailure reports whether an assertion always fails: fail("not reached"), assert.fail().
func (u *unit) saysFailure(i, end int) bool {
	for ; i < end && u.at(i) != "("; i++ {
		if plain(u.at(i)) == "fail" {
			return true
		}
	}
	return false
}

// marksPlace reports whether an assertion only records that a place was reached, among assertions
// that are counted: assert.ok("the hook was called").
func (u *unit) marksPlace(i, begin, end int) bool {
	if u.lang.Name == "csharp" && u.at(i+2) == "Pass" && u.assertsWithin(end, u.testEnd(i)) {
		return false // NUnit ends the test there
	}
	args := u.arguments(i, begin, end)
	return u.at(i) == "pass" || u.at(i) == "addToAssertionCount" ||
		len(args) == 1 && args[0][1]-args[0][0] == 1 && u.kindAt(args[0][0]) == lex.Text
}

// testEnd returns the end of the test around the token at i.
func (u *unit) testEnd(i int) int {
	for n := range u.decls {
		if d := &u.decls[n]; u.tests[n] && d.at < i && i < d.end {
			return d.end
		}
	}
	return i
}

// asksKind reports whether an assertion only tests the type or a method of a value.
func (u *unit) asksKind(begin, end int) bool {
	for j := begin; j < end; j++ {
		if !u.isWord(j) {
			continue
		}
		switch s := plain(u.at(j)); {
		case kinds()[s]:
			return u.at(j+1) == "(" || u.at(j+1) == "<" || u.lang.shape == ends || s == "typeof" || s == "instanceof"
		case (s == "a" || s == "an") && u.at(j-1) == "." && u.at(j+1) == "(":
			return true
		}
	}
	return false
}

// kinds are words, as by plain, that test the type of a value.
var kinds = sync.OnceValue(wordSet("typeof instanceof callable hasattr isinstance issubclass respondto bea bean " +
	"beaninstanceof beakindof beinstanceof assertrespondto assertinstanceof assertisinstance assertkindof " +
	"shouldbeinstanceof shouldbetypeof tobeinstanceof tobetypeof istype isinstanceof isassignablefrom " +
	"isassignableto methodexists iscallable classexists functionexists beoftype beassignableto " +
	"isexactlyinstanceof mustbeinstanceof mustrespondto implements isfunction assertiscallable tobecallable"))

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

// implied tells whether an assertion that something is there says nothing that a
// stronger one about it does not say: an error that is asked for its text is one.
func (u *unit) implied(a, b *Assertion, was, by [2]int) bool {
	if b.Strength <= Weak || !presence()[plain(a.Name)] {
		return false
	}
	return !anyOf(was[0], was[1], func(i int) bool {
		return u.kindAt(i) != lex.Op && u.at(i) != a.Name &&
			!slices.ContainsFunc(u.tok[by[0]:by[1]], func(t lex.Token) bool { return t.S == u.at(i) })
	})
}

// presence are assertions that something is there, or failed.
var presence = sync.OnceValue(wordSet("error notnil notnull assertnotnull isnotnull isnotnil assertisnotnone " +
	"notempty isnotempty assertnotempty tobedefined tobetruthy truthy exists exist"))

// saysFailure tells of calls that always fail: fail("not reached"), assert.fail().
func (u *unit) saysFailure(i, end int) bool {
	for ; i < end && u.at(i) != "("; i++ {
		if plain(u.at(i)) == "fail" {
			return true
		}
	}
	return false
}

// marksPlace tells of a call that only says that a place was reached:
// assert.ok("the hook was called"), among assertions that are counted.
func (u *unit) marksPlace(i, begin, end int) bool {
	if u.lang.Name == "csharp" && u.at(i+2) == "Pass" && u.assertsWithin(end, u.testEnd(i)) {
		return false // NUnit ends the test there
	}
	args := u.arguments(i, begin, end)
	return u.at(i) == "pass" || u.at(i) == "addToAssertionCount" ||
		len(args) == 1 && args[0][1]-args[0][0] == 1 && u.kindAt(args[0][0]) == lex.Text
}

// testEnd is where the test ends that the token at i stands in.
func (u *unit) testEnd(i int) int {
	for n := range u.decls {
		if d := &u.decls[n]; u.tests[n] && d.at < i && i < d.end {
			return d.end
		}
	}
	return i
}

// asksKind tells of an assertion that asks of nothing but a kind: whether something is a
// function, or of a class, or has a method.
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

// kinds are words, without capitals and underscores, that ask what something is.
var kinds = sync.OnceValue(wordSet("typeof instanceof callable hasattr isinstance issubclass respondto bea bean " +
	"beaninstanceof beakindof beinstanceof assertrespondto assertinstanceof assertisinstance assertkindof " +
	"shouldbeinstanceof shouldbetypeof tobeinstanceof tobetypeof istype isinstanceof isassignablefrom " +
	"isassignableto methodexists iscallable classexists functionexists beoftype beassignableto " +
	"isexactlyinstanceof mustbeinstanceof mustrespondto implements isfunction assertiscallable tobecallable"))

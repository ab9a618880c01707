package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// Strength is the degree to which an assertion determines a value.
type Strength uint8

// The degrees.
const (
	Trivial Strength = iota // cannot fail
	Weak                    // a value exists
	Partial                 // a part, or a bound
	Exact
)

// strengthOf returns the strength of a name, as by plain, if known.
func strengthOf(name string) (Strength, bool) {
	s, ok := strengths()[name]
	return s, ok
}

var strengths = sync.OnceValue(func() map[string]Strength {
	all := make(map[string]Strength)
	for s := range strings.FieldsSeq(
		`tobetruthy tobedefined tobefalsy assertnotnull isnotnull notnil assertisnotnone asserttrue assertfalse true false ok notok
		exists exist notempty isnotempty assertnotempty assertisinstance isinstanceof tobeinstanceof instanceof nothrow assertdoesnotthrow noerror tobenull isnull nil assertnull
		isnotnil assertnotisinstance doesnotthrow anything bepresent bepresent betruthy befalsey benil assert truthy falsy notnull shouldnotbenull beok assertinstanceof
		assertissubclass benull notbenull istrue isfalse tobetrue beoftype tohavebeencalled assertcalled called notblank shouldbetrue betrue befalse refute assertnil
		refutenil mustbenil assertok asserterr throws assertthrows error notequal notbe assertnotequal assertnotequals isnotequalto tothrow raises
		assertraises raiseerror assertraise throw arenotequal arenotsame isempty`) {
		all[s] = Weak
	}
	for s := range strings.FieldsSeq(
		`tocontain tomatch tomatchobject contains assertin assertincludes include includes startwith startswith endswith assertregex assertmatch match
		matches matchesregex greaterthan lessthan greater less tobegreaterthan tobelessthan len haslength tohavelength hassize havelength assertcontains stringcontaining
		arraycontaining objectcontaining containsexactly contain have containskey haskey hasitem assertstringcontainsstring containselement subset
		tohaveproperty tobecloseto isgreaterthan islessthan mustinclude matchobject assertgreater assertless assertmatches almostequal assertalmostequal asserthaskey assertcount`) {
		all[s] = Partial
	}
	for s := range strings.FieldsSeq(
		`tobe toequal tostrictequal assertequal assertequals asserteq assertne equal equals eq deepequal sameas isequalto assertsame mustequal shouldbe be eql
		strictequal deepstrictequal is same beequalto assertjsonequal jsoneq tomatchsnapshot tomatchinlinesnapshot tothrowerror tohavebeencalledwith calledwith
		assertcalledwith assertcalledoncewith errorcontains erroris erroras assertsnapshot assertdebugsnapshot assertequalscanonicalizing assertarrayequals
		assertlistequal assertdictequal assertiterableequals isequaltocomparingfieldbyfield assertnumequal exactly assertjson equalerror samevalue areequal aresame`) {
		all[s] = Exact
	}
	return all
})

// Weak reports whether an assertion tests at most that a value exists.
func (a *Assertion) Weak() bool { return a.Strength <= Weak }

// Expects reports whether an assertion expects an error.
func (a *Assertion) Expects() bool {
	return containsAny(plain(a.Name), "throw", "raise", "panic", "reject", "exception", "fail", "err")
}

// measure returns the matcher and the strength of an assertion.
func (u *unit) measure(i, begin, end int) (string, Strength) {
	name, best, known := u.at(i), Weak, false
	for j := begin; j < end; j++ {
		if u.at(j) == "(" && j > i { // arguments do not count
			j = u.closer(j) - 1
			continue
		}
		if !u.isWord(j) {
			continue
		}
		if s, ok := strengthOf(plain(u.at(j))); ok {
			if !known || s > best {
				name, best = u.at(j), s
			}
			known = true
		}
	}
	if known && best > Weak {
		return name, best
	}
	condition, compares := best, false
	for j := begin; j < end; j++ {
		switch s := u.at(j); s {
		case "==", "===", "!=", "!==":
			if u.isNothing(j+1) || u.isNothing(j-1) {
				condition = max(condition, Weak)
			} else {
				condition = Exact
			}
			compares = true
		case "equals", "Equal", "DeepEqual", "is", "eq", "Equals", "isEqual", "Is", "compareTo", "Diff":
			condition, compares = Exact, true
		case "in", "contains", "Contains", "startsWith", "endsWith", "startswith", "endswith", "HasPrefix", "HasSuffix",
			"includes", "matches", "any", "any?", "include?", "<=", ">=":
			condition, compares = max(condition, Partial), true
		case "<", ">":
			if u.kindAt(j+1) == lex.Number || u.kindAt(j-1) == lex.Number {
				condition, compares = max(condition, Partial), true
			}
		}
	}
	if !known && !compares {
		return name, Exact // of an unknown library
	}
	return name, condition
}

// isNothing reports whether the token at i is null or the like.
func (u *unit) isNothing(i int) bool {
	s := u.at(i)
	return s == "nil" || s == "null" || s == "None" || s == "undefined"
}

// namesComparison excludes helpers that take only what to search for.
func (u *unit) namesComparison(i int) bool {
	s := u.at(i)
	_, ok := strengthOf(plain(s))
	return ok || oneOf(s, "assert", "expect", "Assert", "refute")
}

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

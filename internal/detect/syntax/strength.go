package syntax

import (
	"strings"
	"sync"
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

package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// noteSoft notes the condition [from, to) of a block that cannot throw.
func (u *unit) noteSoft(f *Function, from, to, bodyFrom, bodyTo int) {
	for j := bodyFrom; j < bodyTo; j++ {
		s := u.at(j)
		if !u.isWord(j) {
			continue
		}
		if u.lang.throws[s] || u.at(j+1) == "(" && !loggingCalls()[plain(s)] && !u.makesEmpty(j) || u.lang.shape == ends &&
			u.at(j-1) == "." && !loggingCalls()[plain(s)] && u.at(j+1) != "." {
			return
		}
	}
	f.Soft = append(f.Soft, u.condition(from, to))
}

// noteOff notes the condition of a block that does not run in production.
func (u *unit) noteOff(f *Function, from, to int) {
	c := u.condition(from, to)
	c.Off = true
	f.Soft = append(f.Soft, c)
}

// noteTold notes the subject of a call that only logs, or only runs in some builds.
func (u *unit) noteTold(f *Function, i int) {
	if to := u.closer(i + 1); to-i < 60 {
		f.Soft = append(f.Soft, u.condition(i+2, max(to-1, i+2)))
	}
}

// onlyInDebug are calls without effect in production builds.
var onlyInDebug = sync.OnceValue(wordSet("assert debug_assert debug_assert_eq debug_assert_ne writelineif " +
	"assertif"))

// onlyReports reports whether the call at i only logs, or has no effect in production builds.
func (u *unit) onlyReports(i int) bool {
	s := plain(strings.TrimPrefix(u.at(i), "$"))
	switch {
	case onlyInDebug()[s]:
		return u.lang.Name == "php" && u.at(i-1) != "::" && u.at(i-1) != "->" || u.lang.Name == "java" ||
			u.lang.Name == "csharp" || u.at(i-2) == "console" || u.at(i-2) == "Debug"
	case loggingCalls()[s]:
		return u.at(i-1) == "." || u.at(i-1) == "->" || u.statementBegins(i)
	}
	return false
}

// never reports whether the condition [from, to) cannot hold: one of its conjuncts is a name that
// the file only assigns false.
func (u *unit) never(from, to int) bool {
	for j := from; j < to; j++ {
		before, after := u.at(j-1), u.at(j+1)
		and := before == "&&" || before == "and" || after == "&&" || after == "and"
		whole := from+1 == to || from+3 == to && before == "("
		if u.isWord(j) && (and || whole) && !oneOf(before, "!", "not", ".") && after != "(" && after != "." &&
			u.alwaysFalse(u.at(j)) {
			return true
		}
	}
	return false
}

// switchedOn reports whether a condition tests the build or the environment.
func (u *unit) switchedOn(from, to int) bool {
	for j := from; j < to; j++ {
		switch s := u.at(j); s {
		case "cfg":
			return u.at(j+1) == "!" && (u.at(j+3) == "feature" || u.at(j+3) == "debug_assertions")
		case "__debug__", "DEBUG", "NODE_ENV", "getenv", "Getenv", "GetEnvironmentVariable":
			return true
		case "env":
			return u.at(j-1) == "." && (u.at(j-2) == "process" || u.at(j-2) == "meta")
		case "environ", "ENV":
			return u.at(j-1) == "." || u.at(j+1) == "["
		}
	}
	return false
}

// alwaysFalse reports whether false is the only value assigned to a name.
func (u *unit) alwaysFalse(name string) bool {
	if !u.givenFalse()[name] {
		return false
	}
	given := 0
	h := Hash(name)
	for i := range u.tok {
		t := &u.tok[i]
		if t.Hash != h || t.Kind != lex.Word || t.S != name {
			continue
		}
		j := i + 1
		for n := 0; n < 3 && (u.at(j) == ":" || u.isWord(j) && u.at(j) != "false"); n++ { // a type
			j++
		}
		switch s := u.at(j); {
		case s == "=" || s == ":=":
			if !strings.EqualFold(u.at(j+1), "false") || given > 0 {
				return false
			}
			given++
		case strings.HasSuffix(s, "=") && len(s) == 2 && strings.Contains("|&+-", s[:1]), u.at(i-1) == "&" &&
			u.lang.Name == "go":
			return false
		}
	}
	return given == 1
}

// givenFalse returns every name that may be assigned false.
func (u *unit) givenFalse() set {
	if u.falseNames == nil {
		u.falseNames = make(set)
		for i := range u.tok {
			if s := u.at(i); (s == "=" || s == ":=") && strings.EqualFold(u.at(i+1), "false") {
				for j := max(i-4, 0); j < i; j++ {
					u.falseNames[u.at(j)] = true
				}
			}
		}
	}
	return u.falseNames
}

// makesEmpty reports whether the call at i makes an empty value.
func (u *unit) makesEmpty(i int) bool {
	return (emptyMakers()[plain(u.at(i))] || u.at(i) == "new" || u.at(i-1) == "new") && u.closer(i+1)-i <= 5
}

// replacesFailure reads expressions that replace what a call throws by another value: Kotlin's runCatching,
// and C#'s TryParse with an ignored result. They count as handlers that drop the error.
func (u *unit) replacesFailure(i int) *handler {
	switch s := u.at(i); {
	case s == "then" && u.at(i-1) == "." && u.at(i+1) == "(" && u.lang.handlers["catch"] && u.lang.lines &&
		!u.lang.functions["fun"]:
		return u.secondOfThen(i)
	case s == "suppress" && u.at(i+1) == "(" && u.lang.Name == "python" && !u.inTests:
		colon := u.closer(i+1) + 1
		guarded := u.once(appendTelling,
			u.tok[min(colon, len(u.tok)):max(min(colon, len(u.tok)), u.indentedEnd(i, colon, len(u.tok)))])
		return &handler{Line: u.line(i), S: u.text(i, u.closer(i+1)), Dropped: true, Expected: u.expectsAbsence(i),
			Guarded: guarded}
	case s == "runCatching" && u.at(i+1) == "{" && u.lang.Name == "kotlin":
		end := u.closer(i + 1)
		next := u.at(end + 1)
		if u.at(end) == "." && next != "getOrDefault" && next != "getOrNull" && next != "getOrElse" || u.at(end) != "." &&
			!u.statementBegins(i) {
			return nil
		}
		if next == "getOrElse" && u.fails(end+2, u.closer(end+2)) {
			return nil
		}
		return &handler{Line: u.line(i), S: u.text(i, min(end+2, len(u.tok))), Broad: true, Dropped: true,
			Guarded: u.once(appendTelling, u.tok[i+1:end])}
	case u.lang.Name == "csharp" && strings.HasPrefix(s, "TryParse") && u.at(i+1) == "(" && u.statementBegins(i):
		first := i + 2
		for first < u.closer(i+1) && u.at(first) != "," {
			first++
		}
		guarded := append(u.once(appendTelling, u.tok[max(i-2, 0):i]), u.once(appendTelling, u.tok[i+2:first])...)
		return &handler{Line: u.line(i), S: u.text(i-2, u.closer(i+1)), Broad: true, Dropped: true,
			Guarded: multiset.Sum(guarded, nil)}
	}
	return nil
}

// secondOfThen reads the failure callback of a promise that returns a fallback value.
func (u *unit) secondOfThen(i int) *handler {
	end := u.closer(i+1) - 1
	args := u.arguments(i, i, end+1)
	if len(args) != 2 {
		return nil
	}
	for k := args[1][0]; k < args[1][1]; k++ {
		if u.at(k) == "=>" && u.at(k+1) != "{" && !u.callsAny(k+1, args[1][1]) {
			from, _ := u.guarded(i)
			return &handler{Line: u.line(i), S: u.text(i, min(end, i+14)), Broad: true, Fallback: true,
				Guarded: u.once(appendTelling, u.tok[from:i])}
		}
	}
	return nil
}

// fails reports whether anything in [from, to) throws.
func (u *unit) fails(from, to int) bool {
	return anyOf(from, min(to, len(u.tok)), func(j int) bool {
		return u.lang.throws[u.at(j)] || u.at(j) == "error" && u.at(j+1) == "("
	})
}

// usesFallback reports whether the handler [from, to) only logs and uses an empty value.
func (u *unit) usesFallback(from, to int) bool {
	if to-from > 40 {
		return false
	}
	gives := false
	for j := from; j < min(to, len(u.tok)); j++ {
		s := u.at(j)
		switch {
		case !u.isWord(j):
		case s == "return":
			if gives = u.emptyValue(j+1, to) || u.writtenOut(j+1, min(u.statementEnd(j), to)); !gives {
				return false
			}
		case u.lang.throws[s] || u.lang.handlers[s], s == "if" || s == "exit":
			return false
		case u.at(j+1) == "(" && !loggingCalls()[plain(s)] && !u.makesEmpty(j) && u.at(j-1) != "new" && s != "new":
			return false
		}
	}
	return gives || to > from && u.lang.Name != "go" && u.lastIsEmpty(from, to)
}

// emptyValue reports whether an empty value is at i, with or without a type conversion.
func (u *unit) emptyValue(i, to int) bool {
	if u.emptyResult(i) || u.zeroResult(i) || u.isWord(i) && u.at(i+1) == "(" && u.makesEmpty(i) {
		return true
	}
	switch u.at(i) {
	case "null", "undefined", "[", "{", `""`, "''", "nil", "None", "false", "default":
		if s := u.at(i); s == "[" || s == "{" {
			return u.closer(i) == i+2 && u.at(i+2) == "as"
		}
		return u.at(i+1) == "as" && i+1 < to
	case "new", "Optional", "Collections", "List", "Map", "Set", "Array", "Enumerable":
		for j := i; j < min(to, i+8); j++ {
			if u.at(j) == "(" {
				return u.closer(j) == j+2
			}
		}
	}
	return false
}

// lastIsEmpty reports whether the result of a block is an empty value.
func (u *unit) lastIsEmpty(from, to int) bool {
	if !u.givesLast() {
		return false
	}
	last := to - 1
	for last > from && !u.tok[last].First {
		last--
	}
	return u.emptyValue(last, to)
}

// expectsAbsence reports whether the handler at i is for an expected absence, end or cancellation.
func (u *unit) expectsAbsence(i int) bool {
	for j := i + 1; j < min(i+14, len(u.tok)) && u.at(j) != "{" && u.tok[j].Line == u.tok[i].Line; j++ {
		if u.isWord(j) && absences().MatchString(u.at(j)) {
			return true
		}
	}
	return false
}

var absences = lazyregexp.New(`(?i)not_?found|no_?such|noent|missing|notexist|doesnotexist|lookup|` +
	`stopiteration|import_?error|key_?error|index_?error|attribute_?error|name_?error|cancel|interrupt|abort|timeout|` +
	`closed|exists|unicode|unsupported|notimplemented|noclassdef|eof|brokenpipe|connectionreset`)

package syntax

import (
	"strings"

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
		if u.lang.throws[s] || u.at(j+1) == "(" && !loggingCalls()[plain(s)] || u.lang.shape == ends &&
			u.at(j-1) == "." && !loggingCalls()[plain(s)] && u.at(j+1) != "." {
			return
		}
	}
	f.Soft = append(f.Soft, u.condition(from, to))
}

// replacesFailure reads expressions that replace what a call throws by another value: Kotlin's runCatching,
// and C#'s TryParse with an ignored result. They count as handlers that drop the error.
func (u *unit) replacesFailure(i int) *handler {
	switch s := u.at(i); {
	case s == "then" && u.at(i-1) == "." && u.at(i+1) == "(" && u.lang.handlers["catch"] && u.lang.lines &&
		!u.lang.functions["fun"]:
		return nil
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

// fails reports whether anything in [from, to) throws.
func (u *unit) fails(from, to int) bool {
	return anyOf(from, min(to, len(u.tok)), func(j int) bool {
		return u.lang.throws[u.at(j)] || u.at(j) == "error" && u.at(j+1) == "("
	})
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

package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// readShape notes stubs, bodies that always return true, and early returns.
func (u *unit) readShape(f *Function, d *decl) {
	from, to := d.body, d.end
	if from < to && u.at(from) == "{" {
		from, to = from+1, to-1
	}
	if u.lang.shape == ends && to > from && u.at(to-1) == "end" {
		to--
	}
	if u.lang.shape == indents && from < to && u.kindAt(from) == lex.Text && u.tok[from].First {
		from++ // a docstring
	}
	for from < to && (u.at(from) == "=" || u.at(from) == "=>") {
		from++
	}
	f.Stub = u.isStub(from, to)
	last := u.trimmed(from, to)
	yes := last-from <= 2 && last > from && strings.EqualFold(u.at(last-1), "true")
	f.Agrees = yes && checks().MatchString(f.Leaf)
	f.AlwaysTrue = yes && equalityNames()[f.Leaf]
	if u.at(from) == "return" && u.lang.Name != "rust" {
		if end := u.statementEnd(from); end < to-3 {
			f.Early, f.EarlyLine = true, u.line(from)
		}
	}
}

var equalityNames = sync.OnceValue(wordSet("__eq__ equals Equals eq == eql? __ne__ equal isEqual"))

// unimplemented are the words of a body that is not written yet.
var unimplemented = sync.OnceValue(wordSet("NotImplementedError NotImplementedException NotImplemented " +
	"UnsupportedOperationException TODO todo unimplemented"))

// isStub reports whether a body is empty, returns a constant, or says that it is not implemented.
func (u *unit) isStub(from, to int) bool {
	if to = u.trimmed(from, to); to-from > 12 {
		return false
	}
	if to <= from || to-from == 1 && u.at(from) == "pass" || anyOf(from, to, func(j int) bool {
		return unimplemented()[u.at(j)] ||
			u.kindAt(j) == lex.Text && strings.Contains(strings.ToLower(u.at(j)), "not implemented")
	}) {
		return true
	}
	if u.at(from) == "return" {
		from++
	}
	return from >= to || u.fixedTokens(from, to) || u.emptyResult(from) && to-from <= 2
}

package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// readFunctions notes the functions and containers of a file, and the tokens outside them.
func (u *unit) readFunctions(m *Model) {
	for i := range u.decls {
		if k := u.decls[i].kind; (k == declFunction || k == DeclContainer) && !u.tests[i] {
			m.Funcs = append(m.Funcs, u.function(i))
		}
	}
	u.scratch = u.scratch[:0]
	at := 0 // declarations are ordered by their beginnings
	for i := range u.decls {
		if d := &u.decls[i]; d.kind == declFunction || d.kind == declTest {
			u.scratch = appendBag(u.scratch, u.tok[at:max(at, d.start)])
			at = max(at, d.end)
		}
	}
	u.scratch = appendBag(u.scratch, u.tok[at:])
	m.Rest = u.sorted()
	u.readDeclares(m)
	u.readOffers(m)
}

// appendCalls appends the names that are called.
func (u *unit) appendCalls(b multiset.Hashes, from, to int) multiset.Hashes {
	for i := from; i < to; i++ {
		if u.called(i) {
			b = append(b, u.tok[i].Hash)
		}
	}
	return b
}

// function reads a declaration.
func (u *unit) function(i int) *Function {
	d := &u.decls[i]
	tokens := u.tok[d.start:d.end]
	f := &Function{
		Name: u.fullName(i), Leaf: d.leaf(), Line: u.line(d.at), Kind: d.kind, Tokens: len(tokens),
		Lines: u.line(d.end-1) - u.line(d.start) + 1, Test: u.inTests || u.inTestCode(i),
	}
	f.Public = !f.Test && u.public(i)
	f.Deprecated, f.Overrides = u.deprecated(d), u.overrides(d)
	f.All = u.bagOf(tokens)
	if d.kind == DeclContainer {
		return f
	}
	inner := 0 // end of the function literal inside this one
	u.off = 0
	for j := d.body; j < d.end; j++ {
		if u.lang.literalEnd != nil && j >= inner {
			inner = u.lang.literalEnd(u, j, d.end)
		}
		if (j >= u.off || u.at(j) == "if") && (j >= inner || u.at(j) != "return") {
			u.readStatement(f, j, d)
		}
	}
	u.scratch = u.appendCalls(u.scratch[:0], d.body, d.end)
	f.BodyHash, f.Calls, f.Dropped = u.mixed(firstHash, d.body, d.end), u.sorted(), d.dropped
	u.readShape(f, d)
	if u.lang.countTries != nil {
		u.lang.countTries(u, f, d)
	}
	u.readAskers(f, d)
	return f
}

// inTestCode reports whether a declaration is in a test module or class in production code.
func (u *unit) inTestCode(i int) bool {
	for ; i >= 0; i = u.decls[i].parent {
		d := &u.decls[i]
		if slices.ContainsFunc(d.annotations, func(a annotation) bool {
			return a.name == "cfg" && a.to-a.from < 8 && u.at(a.from+2) == "test" || a.name == "test" && u.lang.testModules
		}) || d.kind == DeclContainer && (d.name == "tests" || d.name == "test") && u.lang.testModules {
			return true
		}
	}
	return false
}

// readStatement notes the guard, handler or throw that begins at i.
func (u *unit) readStatement(f *Function, i int, d *decl) {
	if !u.isWord(i) || u.at(i+1) != "(" && u.at(i+1) != "!" && u.at(i) != "runCatching" &&
		!u.lang.statements.may(u.tok[i].Hash) {
		return
	}
	if u.lang.replaces != nil {
		if h := u.lang.replaces(u, i); h != nil {
			f.Handlers = append(f.Handlers, *h)
			return
		}
	}
	if u.lang.readStatement != nil && u.lang.readStatement(u, f, i, d) {
		return
	}
	s := u.at(i)
	switch {
	case s == "if" || s == "unless" && u.lang.shape == ends || s == "elif" || s == "elseif" || s == "guard":
		if u.at(i-1) != "." {
			u.readCondition(f, i, d)
		}
	case u.lang.handlers[s]:
		if h := u.handlerAt(i); h != nil {
			h.Cleans = u.cleansUp(i)
			h.Rethrows, h.Plain = u.passesOn(i)
			u.readOutcome(h, i)
			if h.Dropped {
				from, to := u.guarded(i)
				h.Guarded, h.Expected = u.once(appendTelling, u.tok[from:to]), u.expectsAbsence(i)
			}
			f.Handlers = append(f.Handlers, *h)
		}
	case u.lang.throws[s]:
		f.Throws++
		if u.at(i-1) == "??" || u.at(i-1) == "?:" {
			f.Guards = append(f.Guards, u.instead(i, d.body))
		}
	case s == "return":
		if u.emptyResult(i+1) || u.zeroResult(i+1) {
			f.Empties++
		}
	case u.exits(i): // ends the program
	case u.at(i+1) == "(" && (u.statementBegins(i) || givesBack()[s]) && guardCall(s):
		to := u.closer(i + 1)
		key := mix(1, s)
		calm := !guardWords()[plain(s)]
		about := u.once(appendTelling, u.tok[i+1:to])
		if !calm && len(about) > 0 { // there may be several of them
			key = u.mixed(key, i+1, to)
		}
		g := Guard{Called: true, Throws: !calm, Line: u.line(i), Key: key, Words: u.once(appendTelling, u.tok[i:to]),
			S: u.text(i, to)}
		f.Guards = append(f.Guards, g)
	case u.at(i+1) == "(" && passers()[s]:
		u.readPassed(f, i)
	}
}

// statementBegins reports whether a call is a statement or the result of one.
func (u *unit) statementBegins(i int) bool {
	j := i - 1
	for j > 0 && (u.at(j) == "." || u.at(j) == "->" || u.at(j) == "::") {
		j -= 2
	}
	if u.at(j) == "await" {
		j--
	}
	return j < 0 || u.tok[j+1].First && !goesOn(u.at(j), u.at(j+1)) && u.at(j) != "(" || oneOf(u.at(j), ";", "{", "}")
}

// emptyResult reports whether a return at i has no value, null, false or an empty list.
func (u *unit) emptyResult(i int) bool {
	switch u.at(i) {
	case "null", "nil", "None", "undefined", "false", "False", "NULL":
		return u.at(i+1) == ";" || u.at(i+1) == "}" || i+1 >= len(u.tok) || u.tok[i+1].First
	case ";", "}":
		return true
	case "[", "{":
		return u.match[i] == small(i+1)
	}
	return i >= len(u.tok) || u.tok[i].First
}

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
	f.AlwaysTrue = equalityNames()[f.Leaf] && last-from <= 2 && last > from && strings.EqualFold(u.at(last-1), "true")
	if u.at(from) == "return" {
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

// zeroResult reports whether a return at i has the value 0, "" or default.
func (u *unit) zeroResult(i int) bool {
	if next := u.at(i + 1); next != ";" && next != "}" && i+1 < len(u.tok) && !u.tok[i+1].First {
		return false
	}
	switch s := u.at(i); u.kindAt(i) {
	case lex.Number:
		return strings.Trim(s, "0.") == ""
	case lex.Text:
		return lex.Unquote(s) == ""
	default:
		return s == "default"
	}
}

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

// readDeclares notes the names of declarations, and names that are neither called nor read from a
// value or a package.
func (u *unit) readDeclares(m *Model) {
	if u.inTests {
		return
	}
	u.scratch = u.scratch[:0]
	for i := range u.decls {
		u.scratch = append(u.scratch, Hash(u.decls[i].leaf()))
	}
	imports := false
	for i := range u.tok {
		if u.tok[i].First {
			imports = oneOf(u.at(i), "import", "from", "use", "using", "require")
		}
		member := oneOf(u.at(i-1), ".", "?.", "->", "::") && u.at(i+1) != "="
		if u.isWord(i) && !imports && !member && !oneOf(u.at(i+1), "(", ".", "?.", "->", "::") {
			u.scratch = append(u.scratch, u.tok[i].Hash)
		}
	}
	m.Declares = u.sortedOnce()
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
		if u.lang.Name == "go" && j >= inner && u.at(j) == "func" && u.at(j+1) == "(" {
			inner = u.literalEnd(j, d.end)
		}
		if (j >= u.off || u.at(j) == "if") && (j >= inner || u.at(j) != "return") {
			u.readStatement(f, j, d)
		}
	}
	u.scratch = u.appendCalls(u.scratch[:0], d.body, d.end)
	f.BodyHash, f.Calls, f.Dropped = u.mixed(firstHash, d.body, d.end), u.sorted(), d.dropped
	u.readShape(f, d)
	u.countTries(f, d)
	u.readAskers(f, d)
	return f
}

// inTestCode reports whether a declaration is in a test module or class in production code.
func (u *unit) inTestCode(i int) bool {
	for ; i >= 0; i = u.decls[i].parent {
		d := &u.decls[i]
		if slices.ContainsFunc(d.annotations, func(a annotation) bool {
			return a.name == "cfg" && a.to-a.from < 8 && u.at(a.from+2) == "test" || a.name == "test" && u.lang.Name == "rust"
		}) || d.kind == DeclContainer && (d.name == "tests" || d.name == "test") && u.lang.Name == "rust" {
			return true
		}
	}
	return false
}

// overrides reports whether a method overrides another one: it says so, or calls it.
func (u *unit) overrides(d *decl) bool {
	if has(d.modifiers, "override") || d.annotatedBy(func(s string) bool { return strings.EqualFold(s, "override") }) {
		return true
	}
	return anyOf(d.body, min(d.end, d.body+60), func(j int) bool {
		s := u.at(j)
		return (s == "super" || s == "parent" || s == "base") &&
			anyOf(j+1, j+5, func(k int) bool { return u.at(k) == d.name && u.at(k+1) == "(" })
	})
}

// public reports whether other packages may use a declaration.
func (u *unit) public(i int) bool {
	d := &u.decls[i]
	if d.parent >= 0 && u.decls[d.parent].kind == declFunction {
		return false
	}
	if d.parent >= 0 && u.decls[d.parent].kind == DeclContainer && u.lang.Name != "rust" && u.lang.Name != "php" &&
		!u.public(d.parent) {
		return false
	}
	switch u.lang.Name {
	case "go":
		return u.goPublic(d)
	case "python":
		return !strings.HasPrefix(d.name, "_")
	case "ruby":
		return !has(d.modifiers, "private") && !strings.HasPrefix(d.name, "_")
	case "java", "csharp":
		return has(d.modifiers, "public")
	case "kotlin":
		return !has(d.modifiers, "private") && !has(d.modifiers, "internal") && !has(d.modifiers, "protected")
	case "rust":
		return has(d.modifiers, "pub") || u.at(d.start) == "pub" || u.at(d.at-2) == "pub"
	case "php":
		magic := strings.HasPrefix(d.name, "__") // without explicit callers
		return !magic && (d.parent < 0 || has(d.modifiers, "public"))
	}
	if d.parent >= 0 { // a member of a class
		return !strings.HasPrefix(d.name, "_") && !strings.HasPrefix(d.name, "#") && !has(d.modifiers, "private") &&
			!has(d.modifiers, "protected")
	}
	return has(d.modifiers, "export") || u.exportedLater(d)
}

// deprecated reports whether a declaration is marked as deprecated.
func (u *unit) deprecated(d *decl) bool {
	if d.annotatedBy(func(s string) bool { return strings.EqualFold(s, "deprecated") || s == "Obsolete" }) {
		return true
	}
	line := u.line(d.start)
	for _, n := range u.notesBefore(line) {
		if int(n.Line)+strings.Count(n.S, "\n") >= line-2 && strings.Contains(strings.ToLower(n.S), "deprecated") {
			return true
		}
	}
	return anyOf(d.body, min(d.end, d.body+40), func(j int) bool { // warnings.warn(..., DeprecationWarning)
		s := u.at(j)
		return s == "DeprecationWarning" || s == "deprecate" || s == "trigger_deprecation"
	})
}

// readStatement notes the guard, handler or throw that begins at i.
func (u *unit) readStatement(f *Function, i int, d *decl) {
	if !u.isWord(i) || u.at(i+1) != "(" && u.at(i+1) != "!" && u.at(i) != "runCatching" &&
		!u.lang.statements.may(u.tok[i].Hash) {
		return
	}
	if h := u.replacesFailure(i); h != nil {
		f.Handlers = append(f.Handlers, *h)
		return
	}
	s := u.at(i)
	switch {
	case s == "if" || s == "unless" && u.lang.shape == ends || s == "elif" || s == "elseif" || s == "guard":
		if u.at(i-1) != "." {
			u.readCondition(f, i, d)
		}
	case s == "case" && u.lang.Name == "go":
		u.readCase(f, i, d)
	case u.lang.handlers[s]:
		if h := u.handlerAt(i); h != nil {
			h.Cleans = u.cleansUp(i)
			h.Rethrows, h.Plain = u.passesOn(i)
			u.readOutcome(h, i)
			if h.Dropped || h.Fallback {
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
		if u.failingValue(i+1, u.statementEnd(i)) {
			f.Failing++
		}
	case u.exits(i):
		f.Failing++
	case s == "assert" && u.tok[i].First && u.lang.Name == "python":
		u.readAssert(f, i)
	case u.lang.Name == "rust" && u.at(i+1) == "!" && (s == "assert" || s == "assert_eq" || s == "assert_ne"):
		to := u.closer(i + 2)
		f.Guards = append(f.Guards, Guard{Line: u.line(i), Key: u.mixed(1, i, to),
			Words: u.once(appendTelling, u.tok[i:to]), S: u.text(i, to)})

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
		u.readLimits(&g, i, to)
		if u.readParts(&g, i+2, to-1, true); presences(s) {
			g.Asks = asksPresence
		}
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

// guardCall reports whether a name is that of a call that checks something and throws.
func guardCall(s string) bool {
	s = plain(strings.TrimPrefix(s, "$"))
	return guardWords()[s] || slices.ContainsFunc([]string{"validate", "sanitize", "sanitise", "ensure", "authorize",
		"authorise", "authenticate", "checkargument", "checknotnull", "checkstate", "throwif", "verifysignature",
		"checkpermission", "checkaccess", "assertvalid", "requirepermission"},
		func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// readPassed notes a check that is passed to a call for each element: all.forEach(check).
func (u *unit) readPassed(f *Function, i int) {
	to := u.closer(i + 1)
	name := u.at(to - 2)
	if to-i > 6 || !u.isWord(to-2) || !guardCall(name) && !Vouches(name) || u.at(i-1) != "." {
		return
	}
	f.Guards = append(f.Guards, Guard{Called: true, Line: u.line(i), Key: mix(1, name), S: u.text(u.chainBegin(i), to),
		Words: u.once(appendTelling, u.tok[u.chainBegin(i):to])})
}

// passers are calls that apply a function to each element.
var passers = sync.OnceValue(wordSet("forEach each for_each ForEach onEach"))

var guardWords = sync.OnceValue(wordSet("require requirenotnull check checknotnull requirenonnull verify notnull " +
	"escape"))

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

// readCondition notes a guard: a condition under which the function throws or returns an error.
func (u *unit) readCondition(f *Function, i int, d *decl) {
	from, to := i+1, i+1
	bodyFrom, bodyTo := 0, 0
	switch u.lang.shape {
	case indents:
		colon := u.colon(i+1, d.end)
		to = max(colon-1, from)
		bodyFrom, bodyTo = colon, u.indentedEnd(i, colon, d.end)
	case ends:
		to = u.lineEnd(i + 1)
		if u.begins(i) {
			bodyFrom, bodyTo = to, max(int(u.match[i]), to)
		} else {
			for bodyFrom = i; bodyFrom > d.body && !u.tok[bodyFrom].First; {
				bodyFrom--
			}
			bodyTo = i
		}
	default:
		bodyFrom, bodyTo, to = u.bracesCondition(i, d.end)
	}
	if to <= from || bodyTo <= bodyFrom {
		return
	}
	if i < u.off {
		return
	}
	u.noteCondition(f, from, to, bodyFrom, min(bodyTo, bodyFrom+maxBlock))
	if bodyTo-bodyFrom > 60 {
		return
	}
	bodyTo = min(bodyTo, len(u.tok))
	u.noteEmpty(f, from, to, bodyFrom, bodyTo)
	why := u.leaves(bodyFrom, bodyTo)
	if why == staysIn {
		u.noteSoft(f, from, to, bodyFrom, bodyTo)
		u.readIgnored(f, i, [2]int{from, to}, [2]int{bodyFrom, bodyTo})
		u.readFixed(f, bodyFrom, bodyTo, from, to)
		return
	}
	g := Guard{Line: u.line(i), Key: mixAll(0, u.tok[from:to]), Words: u.once(appendTelling, u.tok[from:to]),
		S: u.text(i, to), Throws: why == throwsOut}
	u.readLimits(&g, from, to)
	u.readParts(&g, from, to, u.at(i) == "unless")
	g.Told = u.readTold(bodyFrom, bodyTo)
	g.Names = u.once(appendAsked, u.tok[u.roundOf(i, from):min(to+1, len(u.tok))])
	g.Whole, g.Lacks = u.bagOf(u.tok[min(i, bodyFrom):max(to, bodyTo)]), u.saysLack(bodyFrom, bodyTo)
	g.Failure = u.lang.Name == "go" && anyOf(from, to, func(j int) bool {
		return strings.HasPrefix(strings.ToLower(u.at(j)), "err") && u.at(j+1) == "!=" && u.at(j+2) == "nil"
	})
	if u.at(i) == "unless" {
		g.Key = mix(g.Key, "unless")
	}
	g.Of = u.resultOf(i, from, to)
	g.Weak = why == returnsFalse && !g.Failure
	if g.Failure {
		call := u.at(u.failedCall(i, from, to))
		g.Key, g.Words = mix(7, call), multiset.Hashes{Hash(call)}
		g.Inline = anyOf(from, to, func(j int) bool { return u.at(j) == "(" })
	}
	f.Guards = append(f.Guards, g)
}

// maxBlock is the length in tokens up to which the end of a block is searched for; longer blocks
// are not judged.
const maxBlock = 200

// bracesCondition returns the block after a condition, and the end of the condition.
func (u *unit) bracesCondition(i, end int) (bodyFrom, bodyTo, to int) {
	if u.at(i+1) == "(" && u.lang.Name != "go" && u.lang.Name != "rust" {
		to = u.closer(i + 1)
		if u.at(to) == "{" {
			return to + 1, u.closer(to) - 1, to
		}
		return to, min(u.statementEnd(to), end), to
	}
	for j := i + 1; j < min(end, i+80); j++ {
		switch u.at(j) {
		case "(", "[":
			j = u.closer(j) - 1
		case "{":
			return j + 1, u.closer(j) - 1, j
		case ";":
			if u.lang.Name != "go" {
				return 0, 0, i + 1
			}
		}
	}
	return 0, 0, i + 1
}

// leaving is the way in which a block leaves its function.
type leaving uint8

const (
	staysIn leaving = iota
	throwsOut
	returnsError
	returnsFalse
)

// leaves reports whether a short block throws or returns an error.
func (u *unit) leaves(from, to int) leaving {
	deep := u.whole.Under(from - 1).Deep
	for j := from; j < to; j++ {
		s := u.at(j)
		switch {
		case u.whole.Under(j).Deep > deep: // in some builds only
		case (s == "if" || s == "for" || s == "switch") && u.isWord(j) && u.lang.shape != ends, s == "try":
			return staysIn // another condition, or an error, decides what follows
		case u.isWord(j) && u.lang.throws[s] && (s != "Err" || u.at(j+1) == "(") && u.at(j-1) != ".", u.exits(j):
			return throwsOut
		case refusals()[s], u.kindAt(j) == lex.Number && oneOf(s, "400", "401", "403", "404", "422", "409", "429"):
			return returnsError
		case s == "return":
			for k := j + 1; k < to; k++ {
				w := u.at(k)
				if w == "false" || w == "False" || u.at(k) == "-" && u.at(k+1) == "1" {
					return returnsFalse
				}
				if strings.Contains(strings.ToLower(w), "err") || strings.Contains(w, "nvalid") {
					return returnsError
				}
			}
		}
	}
	return staysIn
}

// readFixed counts special cases: a comparison with a literal that returns a constant.
func (u *unit) readFixed(f *Function, from, to, condFrom, condTo int) {
	if u.at(from) != "return" || !u.fixedTokens(from+1, min(to, from+2)) {
		return
	}
	if anyOf(condFrom, condTo, func(j int) bool {
		return (u.at(j) == "==" || u.at(j) == "===") && (u.kindAt(j+1) == lex.Text || u.kindAt(j+1) == lex.Number)
	}) {
		f.Fixed++
	}
}

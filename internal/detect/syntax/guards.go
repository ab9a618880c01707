package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

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

// givesBack are checks that return their argument, so that they may be part of an expression.
var givesBack = sync.OnceValue(wordSet("requireNonNull checkNotNull requireNotNull checkNotNullParameter"))

// readCondition notes a guard: a condition under which the function throws or returns an error.
func (u *unit) readCondition(f *Function, i int, d *decl) {
	from := i + 1
	bodyFrom, bodyTo, to := u.block(i, d.end)
	if u.lang.shape == ends && !u.begins(i) { // before it, on its line
		bodyFrom, bodyTo = i, i
		for bodyFrom > d.body && !u.tok[bodyFrom].First {
			bodyFrom--
		}
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
	if why == staysIn && !u.leavesAfter(bodyTo, d.end) {
		u.noteSoft(f, from, to, bodyFrom, bodyTo)
		if u.lang.ErrorValues {
			u.readIgnored(f, i, [2]int{from, to}, [2]int{bodyFrom, bodyTo})
		}
		u.readFixed(f, bodyFrom, bodyTo, from, to)
		return
	}
	g := Guard{Line: u.line(i), Key: mixAll(0, u.tok[from:to]), Words: u.once(appendTelling, u.tok[from:to]),
		S: u.text(i, to), Throws: why == throwsOut}
	g.Told = u.readTold(bodyFrom, bodyTo)
	g.Names = u.once(appendAsked, u.tok[u.roundOf(i, from):min(to+1, len(u.tok))])
	g.Whole, g.Lacks = u.bagOf(u.tok[min(i, bodyFrom):max(to, bodyTo)]), u.saysLack(bodyFrom, bodyTo)
	g.Failure = u.lang.ErrorValues && anyOf(from, to, func(j int) bool {
		return strings.HasPrefix(strings.ToLower(u.at(j)), "err") && u.at(j+1) == "!=" && u.at(j+2) == "nil"
	})
	if u.at(i) == "unless" {
		g.Key = mix(g.Key, "unless")
	}
	g.Of = u.resultOf(i, from, to)
	g.Weak = why == returnsFalse && !g.Failure || why == staysIn
	if g.Failure {
		call := u.at(u.failedCall(i, from, to))
		g.Key, g.Words = mix(7, call), multiset.Hashes{Hash(call)}
		g.Inline = anyOf(from, to, func(j int) bool { return u.at(j) == "(" })
	}
	f.Guards = append(f.Guards, g)
}

// block returns the block of the condition after the word at i, and the end of the condition.
func (u *unit) block(i, end int) (from, to, head int) {
	switch u.lang.shape {
	case indents:
		from = u.colon(i+1, end)
		return from, u.indentedEnd(i, from, end), max(from-1, i+1)
	case ends:
		head = u.lineEnd(i + 1)
		return head, max(int(u.match[i]), head), head
	}
	return u.bracesCondition(i, end)
}

// bracesCondition returns the block after a condition, and the end of the condition.
func (u *unit) bracesCondition(i, end int) (bodyFrom, bodyTo, to int) {
	if u.at(i+1) == "(" && !u.lang.bareHeads {
		to = u.closer(i + 1)
		if u.at(to) == "{" {
			return to + 1, u.closer(to) - 1, to
		}
		return to, min(u.statementEnd(to), end), to
	}
	stops := []string{"{", ";"}
	if u.lang.initialisers {
		stops = stops[:1]
	}
	if j := u.find(i+1, min(end, i+maxBlock), stops...); j < min(end, i+maxBlock) && u.at(j) == "{" {
		return j + 1, u.closer(j) - 1, j
	}
	return 0, 0, i + 1
}

// maxBlock is the length in tokens up to which the end of a block is searched for; longer blocks
// are not judged.
const maxBlock = 200

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

// leavesAfter reports whether the statement after a block that ends at i throws or returns an error,
// so that the function fails with and without the condition of the block.
func (u *unit) leavesAfter(i, end int) bool {
	if u.at(i) == "}" || u.at(i) == "end" {
		i++
	}
	why := u.leaves(i, min(u.statementEnd(i), end))
	return why == throwsOut || why == returnsError
}

// refusals are names of responses that reject a request.
var refusals = sync.OnceValue(wordSet("StatusUnauthorized StatusForbidden StatusBadRequest StatusNotFound " +
	"StatusUnprocessableEntity StatusConflict StatusTooManyRequests StatusMethodNotAllowed UNAUTHORIZED FORBIDDEN " +
	"BAD_REQUEST UNPROCESSABLE_ENTITY HTTP_400_BAD_REQUEST HTTP_401_UNAUTHORIZED HTTP_403_FORBIDDEN Unauthorized " +
	"Forbid BadRequest"))

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

// instead returns the guard of a value whose absence throws at i: a ?? throw b.
func (u *unit) instead(i, body int) Guard {
	from := i - 1
	for from > max(body+1, i-80) {
		s := u.at(from - 1)
		if u.kindAt(from-1) == lex.Op {
			if (s == ")" || s == "]" || s == "}") && u.opener(from-1) > body &&
				(s != "}" || !u.tok[from].First || strings.HasPrefix(u.at(from), "?")) {
				from = u.opener(from - 1)
				continue
			}
			if strings.Contains(";{}([,", s) || s == "=>" {
				break
			}
		}
		if u.lang.lines && u.tok[from].First && u.at(from) != "?:" && u.at(from) != "." && u.at(from) != "?." {
			break
		}
		from--
	}
	g := Guard{Line: u.line(i), Key: mixAll(0, u.tok[from:i-1]), Words: u.once(appendTelling, u.tok[from:i-1]),
		S: u.text(from, u.statementEnd(i)), Throws: true}
	g.Told = u.readTold(i, u.statementEnd(i))
	return g
}

// unwrapped removes the parentheses around [from, to).
func (u *unit) unwrapped(from, to int) (begin, end int) {
	for u.at(from) == "(" && u.closer(from) == to && to-from > 2 {
		from, to = from+1, to-1
	}
	return from, to
}

// readTold returns the words in the strings of a guard or handler in [from, to).
func (u *unit) readTold(from, to int) multiset.Hashes {
	u.scratch = u.scratch[:0]
	for i := from; i < min(to, len(u.tok)); i++ {
		if u.kindAt(i) != lex.Text || len(u.tok[i].S) > maxTold {
			continue
		}
		for w := range strings.FieldsFuncSeq(u.tok[i].S,
			func(c rune) bool { return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') }) {
			if len(w) > 2 {
				u.scratch = append(u.scratch, Hash(w))
			}
		}
	}
	return u.sortedOnce()
}

// maxTold is the length of the longest text whose words are noted.
const maxTold = 300

// saysLack reports whether a block mentions missing support or implementation.
func (u *unit) saysLack(from, to int) bool {
	return anyOf(from, to, func(j int) bool { return containsAny(strings.ToLower(u.at(j)), "support", "implement") })
}

// resultOf returns the call that produced the variable of the condition [from, to), or the error
// passed to a callback; 0 for none.
func (u *unit) resultOf(i, from, to int) uint32 {
	for u.at(from) == "(" || u.at(from) == "!" {
		from++
	}
	if !u.isWord(from) || from >= to {
		return 0
	}
	name := u.at(from)
	for j := i - 1; j > max(0, i-80); j-- {
		switch s := u.at(j); {
		case (s == "=" || s == ":=") && u.at(j-1) == name && u.lang.ErrorValues:
			for k := j + 1; k < i; k++ {
				if u.at(k) == "(" && u.isWord(k-1) {
					return Hash(u.at(k - 1))
				}
			}
			return 0
		case s == "=>" && strings.HasPrefix(name, "err"): // f(a, (err, b) => { if (err) ... })
			return u.calledBack(j, name)
		}
	}
	return 0
}

// roundOf returns the beginning of the names that the condition of the statement at i is about: its
// own, or the list of the loop around it if that has no other statement.
func (u *unit) roundOf(i, from int) int {
	if s := u.at(i - 1); s != "{" && s != ":" && u.lang.shape != ends || u.lang.shape == ends && !u.tok[i].First {
		return from
	}
	for j := i - 2; j > max(0, i-20) && u.at(j) != ";" && u.at(j) != "}"; j-- {
		if u.isWord(j) && rounds()[u.at(j)] {
			return j + 1
		}
	}
	return from
}

var rounds = sync.OnceValue(wordSet("for foreach each forEach"))

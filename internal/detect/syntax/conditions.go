package syntax

import (
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Condition is one under which a function returns early: what remains of a check that was
// rewritten.
type Condition struct {
	Key   uint64
	Words multiset.Hashes
}

// noteCondition notes the condition [from, to) of the block [bodyFrom, bodyTo).
func (u *unit) noteCondition(f *Function, from, to, bodyFrom, bodyTo int) {
	if !u.departs(bodyFrom, min(bodyTo, len(u.tok))) {
		return
	}
	c := u.condition(from, to)
	f.Conditions = append(f.Conditions, c)
}

func (u *unit) condition(from, to int) Condition {
	return Condition{Key: mixAll(0, u.tok[from:to]), Words: u.once(appendTelling, u.tok[from:to])}
}

// noteEmpty notes the condition [from, to) if the block [bodyFrom, bodyTo) returns nothing.
func (u *unit) noteEmpty(f *Function, from, to, bodyFrom, bodyTo int) {
	for j := bodyFrom; j < bodyTo; j++ {
		if u.isWord(j) && u.at(j) == "return" && u.emptyResult(j+1) {
			f.Emptied = append(f.Emptied, u.condition(from, to))
			return
		}
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
	u.readLimits(&g, from, i-1)
	g.Asks, g.Told = u.asks(from, i-1), u.readTold(i, u.statementEnd(i))
	return g
}

// departs reports whether a block throws, or returns a value that is not empty, constant or nil.
func (u *unit) departs(from, to int) bool {
	for j := from; j < to; j++ {
		s := u.at(j)
		if !u.isWord(j) {
			continue
		}
		if u.lang.throws[s] && (s != "Err" || u.at(j+1) == "(") && u.at(j-1) != "." {
			return true
		}
		if s != "return" || u.emptyResult(j+1) {
			continue
		}
		end := min(u.statementEnd(j), to)
		for end > j && u.at(end-1) == ";" {
			end--
		}
		if end-j > 1 && u.at(end-1) != "nil" && !u.fixedTokens(j+1, end) {
			return true
		}
	}
	return false
}

package syntax

import (
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Limit is a number that a value is compared with.
type Limit struct {
	Op    string // the operator before it
	Value float64
}

// readLimits notes the operators and numbers in the condition [from, to) of a guard.
func (u *unit) readLimits(g *Guard, from, to int) {
	u.scratch = u.scratch[:0]
	for i := from; i < to; i++ {
		switch t := &u.tok[i]; {
		case t.S == "||" || t.S == "or":
		case t.Kind == lex.Number:
			op := u.at(i - 1)
			if v, err := strconv.ParseFloat(strings.ReplaceAll(t.S, "_", ""), 64); err == nil {
				if op == "-" {
					op, v = u.at(i-2), -v
				}
				g.Limits = append(g.Limits, Limit{strings.Clone(op), v})
				continue
			}
			u.scratch = append(u.scratch, t.Meaning())
		case t.Kind != lex.Op:
			u.scratch = append(u.scratch, t.Meaning())
		}
	}
}

// checks matches names of functions that check whether a value is allowed or valid.
var checks = lazyregexp.New(`^(?:[Ii]s_?)?(?:[Vv]alid|[Aa]llowed|[Pp]ermitted|[Aa]uthori[sz]ed|` +
	`[Aa]uthenticated|[Tt]rusted)[!?]?$|^(?:[Ii]s|[Hh]as|[Cc]an|[Mm]ay|[Cc]heck|[Vv]alidate|[Vv]erify|[Aa]llows?|` +
	`[Aa]uthori[sz]e)(?:[A-Z_]\w*)?[!?]?$`)

// readAssert notes an assertion in Python production code, other than a type hint.
func (u *unit) readAssert(f *Function, i int) {
	if u.inTests {
		return
	}
	end := u.statementEnd(i)
	if comma := u.commaAfter(i+1, end); u.at(comma) == "," { // before the message
		end = comma
	}
	from, end := u.unwrapped(i+1, end)
	to := from
	for ; to < end && u.at(to) != ";"; to++ {
		switch s := u.at(to); {
		case s == "None" || s == "isinstance" || s == "callable" || s == "issubclass":
			return
		case u.kindAt(to) == lex.Op && (s == "(" || s == "["):
			for k := to; k < u.closer(to); k++ {
				if u.at(k) == "isinstance" {
					return
				}
			}
			to = u.closer(to) - 1
		}
	}
	if to-from < 3 {
		return
	}
	g := Guard{Line: u.line(i), Key: mixAll(0, u.tok[from:to]), Words: u.once(appendTelling, u.tok[from:to]),
		S: u.text(i, to), Throws: true}
	u.readLimits(&g, i+1, to)
	g.Names, g.Whole = u.once(appendAsked, u.tok[i+1:min(to+1, len(u.tok))]), u.bagOf(
		u.tok[i:min(u.statementEnd(i), len(u.tok))])
	f.Guards = append(f.Guards, g)
}

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

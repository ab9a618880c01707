package syntax

import (
	"strconv"
	"strings"
	"sync"

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
		end := u.trimmed(j, min(u.statementEnd(j), to))
		if end-j > 1 && u.at(end-1) != "nil" && !u.fixedTokens(j+1, end) {
			return true
		}
	}
	return false
}

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

// asking is the kind of question that a condition asks.
type asking uint8

const (
	asksOther asking = iota
	// asksPresence: whether a value exists or has a type.
	asksPresence
	// asksBounds: whether it is within limits, has a format or is one of a list.
	asksBounds
)

// Bounds reports whether a condition limits a value, Presence whether it tests existence.
func (a asking) Bounds() bool { return a == asksBounds }

func (a asking) Presence() bool { return a == asksPresence }

// asks returns the kind of the condition [from, to).
func (u *unit) asks(from, to int) asking {
	bounds, presence, long, far, kind := false, true, false, false, false
	for i := from; i < to; i++ {
		s := u.at(i)
		switch u.kindAt(i) {
		case lex.Op:
			bounds = bounds || oneOf(s, "<", ">", "<=", ">=", "=~", "!~") || strings.HasPrefix(s, "..")
		case lex.Number:
			if s != "0" && s != "1" {
				far, presence = true, false
			}
		case lex.Text:
			if u.at(i-1) == "[" {
				continue // the position of a substring
			}
			presence = presence && (kind || len(s) <= 2)
			far = far || len(s) > 2
		case lex.Word:
			has := asksAs(&u.tok[i])
			kind, long, bounds = kind || has&asKind != 0, long || has&asLength != 0, bounds || has&asBounds != 0
			if has&(asKind|asLength|asPresence) == 0 && u.at(i+1) == "(" && i > from {
				presence = false
			}
		default:
		}
	}
	switch {
	case bounds && (far || !long):
		return asksBounds
	case presence && !bounds:
		return asksPresence
	}
	return asksOther
}

// The kinds of words in conditions.
const (
	asKind = 1 << iota
	asLength
	asBounds
	asPresence
)

// asksAs returns the kind of a word in a condition; 0 for most.
func asksAs(t *lex.Token) uint8 {
	if !askedSieve().may(t.Hash) {
		return 0
	}
	return askedAs()[t.S]
}

var askedAs = sync.OnceValue(func() map[string]uint8 {
	all := make(map[string]uint8)
	for as, names := range map[uint8]string{
		asBounds: "matches match MatchString is_match preg_match IsMatch fullmatch matchEntire in_array between test",
		asLength: "len length size count Count Length strlen bytesize trim strip TrimSpace",
		asKind:   "typeof isinstance instanceof is_string is_int is_array is_numeric",
		asPresence: "is_nan isNaN IsNaN is_none is_some is_finite isFinite isEmpty is_empty empty IsNullOrEmpty " +
			"IsNullOrWhiteSpace isBlank isNullOrBlank isNullOrEmpty " +
			"isset is_null isPresent isNull requireNonNull requireNotNull checkNotNull ThrowIfNull notNull",
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = as
		}
	}
	return all
})

var askedSieve = sync.OnceValue(func() *sieve {
	all := new(sieve)
	for name := range askedAs() {
		all.add(Hash(name))
	}
	return all
})

// presences reports whether a call tests whether a value exists.
func presences(name string) bool { return askedAs()[name] == asPresence }

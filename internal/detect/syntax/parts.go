package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

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

// readParts notes the alternatives under which the condition [from, to) of a guard fails; if all is
// set, the condition has to hold.
func (u *unit) readParts(g *Guard, from, to int, all bool) {
	from, to = u.unwrapped(from, to)
	if s := u.at(from); (s == "!" || s == "not") && u.at(from+1) == "(" && u.closer(from+1) == to {
		from, to, all = from+2, to-1, !all
	}

	for i := from; i <= to; i++ {
		s := u.at(i)
		if i < to && u.kindAt(i) == lex.Op && (s == "(" || s == "[" || s == "{") {
			i = u.closer(i) - 1
			continue
		}
		ends := i == to || all && (s == "&&" || s == "and") || !all && (s == "||" || s == "or")
		if s == "," && u.kindAt(i) == lex.Op && all {
			to, ends = i, true // then the message follows
		}
		if !ends || i > len(u.tok) {
			continue
		}

	}
	g.Asks = u.asks(from, to)
}

// unwrapped removes the parentheses around [from, to).
func (u *unit) unwrapped(from, to int) (begin, end int) {
	for u.at(from) == "(" && u.closer(from) == to && to-from > 2 {
		from, to = from+1, to-1
	}
	return from, to
}

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

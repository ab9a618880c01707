package syntax

import (
	"sync"

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

// presences are calls that test whether a value exists.
var presences = sync.OnceValue(wordSet("is_nan isNaN IsNaN is_none is_some is_finite isFinite isEmpty is_empty empty " +
	"IsNullOrEmpty IsNullOrWhiteSpace isBlank isNullOrBlank isNullOrEmpty isset is_null isPresent isNull " +
	"requireNonNull requireNotNull checkNotNull ThrowIfNull notNull"))

package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// stretch is a part of a test that runs only under a condition, the only one that asserts.
type stretch struct {
	from, to int
	when     When
}

// markUnder notes the conditions of the assertions of a test.
func (u *unit) markUnder(t *Test, spans [][2]int) {
	if len(t.Asserts) == 0 {
		return
	}
	var all []stretch
	for _, s := range spans {
		all = u.stretches(all, s[0], s[1])
	}
	for i := range t.Asserts {
		a := &t.Asserts[i]
		for n := range all {
			if all[n].from <= a.at && a.at < all[n].to {
				a.Under = &all[n].when
				break
			}
		}
	}
}

// stretches appends those among the tokens [from, to).
func (u *unit) stretches(all []stretch, from, to int) []stretch {
	for j := from; j < to; j++ {
		if !u.isWord(j) {
			continue
		}
		s, ok := stretch{}, false
		switch w := u.at(j); {
		case w == "if" || w == "unless" && u.lang.shape == ends:
			s, ok = u.ifStretch(j, to)
		case (w == "return" || w == "next") && u.lang.shape == ends && u.tok[j].First &&
			(u.at(j+1) == "if" || u.at(j+1) == "unless"):
			end := u.lineEnd(j)
			s, ok = stretch{end, u.outdent(j, to), u.whenBetween(j+2, end, u.at(j+1) == "unless")}, true
		case onlyIf()[w] && (u.at(j-1) == "." || u.at(j-1) == "?."), u.at(j-1) == "?." && scopes()[w]:
			if end := u.afterCall(j); end > j+1 {
				s, ok = stretch{j + 2, end, u.whenBetween(j, j+1, true)}, true
			}
		}
		if ok && s.from < s.to {
			all = append(all, s)
		}
	}
	return all
}

var (
	// onlyIf are calls whose function runs only under a condition.
	onlyIf = sync.OnceValue(wordSet("onFailure onSuccess ifPresent ifSome IfSome"))
	scopes = sync.OnceValue(wordSet("let also run apply"))
)

// ifStretch returns the block of the if at i, or the code after one that leaves the test.
func (u *unit) ifStretch(i, to int) (stretch, bool) {
	if u.at(i-1) == "else" {
		return stretch{}, false
	}
	if u.lang.shape == indents && !u.isHead(i) || u.lang.shape == ends && (!u.tok[i].First || u.match[i] < 0) {
		return stretch{}, false
	}
	bodyFrom, bodyTo, head := u.block(i, to)
	if bodyFrom <= i || bodyTo <= bodyFrom || bodyTo > to || u.alternative(i, bodyFrom, bodyTo) {
		return stretch{}, false
	}
	when := u.whenBetween(i+1, head, u.at(i) == "if")
	asserted := u.assertsWithin(bodyFrom, bodyTo, nil)
	if !u.endsWithReturn(bodyFrom, bodyTo) {
		return stretch{bodyFrom, bodyTo, when}, asserted
	}
	when.RunsWhen = !when.RunsWhen
	return stretch{bodyTo, u.outdent(i, to), when}, !asserted
}

// alternative reports whether code runs if the condition of the if at i does not hold.
func (u *unit) alternative(i, from, to int) bool {
	if u.lang.shape == ends {
		return anyOf(from, to, func(j int) bool {
			w := u.at(j)
			return (w == "else" || w == "elsif") && u.tok[j].First && u.tok[j].Col == u.tok[i].Col
		})
	}
	next := u.at(to)
	if next == "}" || next == ";" {
		next = u.at(to + 1)
	}
	return next == "else" || next == "elif" || next == "elseif"
}

// endsWithReturn reports whether a block ends with a return without a value.
func (u *unit) endsWithReturn(from, to int) bool {
	last := to - 1
	for last > from && (u.at(last) == ";" || u.at(last) == "}") {
		last--
	}
	if u.at(last-1) == "@" { // return@test
		last -= 2
	}
	return last >= from && (u.at(last) == "return" || u.at(last) == "next" && u.lang.shape == ends)
}

// outdent returns the end of the block around the statement at i.
func (u *unit) outdent(i, to int) int {
	if u.lang.shape != braces {
		for j := i + 1; j < to; j++ {
			if u.tok[j].First && u.tok[j].Col < u.tok[i].Col {
				return j
			}
		}
		return to
	}
	for j := i; j < to; j++ {
		switch u.at(j) {
		case "{", "(", "[":
			if end := u.closer(j); end > j {
				j = end - 1
			}
		case "}":
			return j
		}
	}
	return to
}

// whenBetween returns the condition [from, to).
func (u *unit) whenBetween(from, to int, runs bool) When {
	var b strings.Builder
	var asks multiset.Hashes
	for j := from; j < min(to, from+maxCondition, len(u.tok)); j++ {
		b.WriteString(u.at(j))
		asks = append(asks, u.tok[j].Hash)
	}
	slices.Sort(asks)
	return When{Condition: platform.Condition{Language: u.lang.Name, Text: b.String(), RunsWhen: runs},
		Line: u.line(from), S: u.text(from, min(to, len(u.tok))), Asks: asks}
}

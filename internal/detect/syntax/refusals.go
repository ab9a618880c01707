package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// readRefusals counts the default branches, and those of them that begin by throwing.
func (u *unit) readRefusals(f *Function, d *decl) {
	if f.Test {
		return
	}
	for i := d.body; i < d.end; i++ {
		if !u.isWord(i) {
			continue
		}
		next := u.at(i + 1)
		switch u.at(i) {
		case "else":
			if next == "if" || u.lang.shape == ends && !u.tok[i].First {
				continue
			}
		case "default":
			if next != ":" && next != "->" && next != "=>" {
				continue
			}
		case "_":
			if next != "=>" && (next != ":" || u.at(i-1) != "case") {
				continue
			}
		default:
			continue
		}
		f.Elses++
		from := i + 1
		for s := u.at(from); u.kindAt(from) == lex.Op && (s == ":" || s == "{" || s == "->" || s == "=>"); s = u.at(from) {
			from++
		}
		if to := min(u.statementEnd(from), d.end); u.fails(from, to) && !u.saysLack(from, to) {
			f.Refuses++
		}
	}
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

// asksForm reports whether the condition [from, to) matches a pattern or calls a check.
func (u *unit) asksForm(from, to int) bool {
	for j := from; j < to; j++ {
		s := u.at(j)
		switch {
		case u.kindAt(j) == lex.Text && strings.HasPrefix(s, "/") && len(s) > 4:
			return true
		case u.isWord(j) && (patterns()[plain(s)] || Vouches(s)):
			return true
		}
	}
	return false
}

// patterns are names of calls that match a pattern.
var patterns = sync.OnceValue(wordSet("fullmatch matches ismatch pregmatch match test matchstring matchesentire " +
	"containsmatchin matchentire regexmatch"))

// softQuestions are names of calls that test a part of a value.
var softQuestions = sync.OnceValue(wordSet("startswith endswith startwith endwith hasprefix hassuffix contains " +
	"includes include strcontains strstartswith strendswith isempty isblank isnullorempty isnullorwhitespace " +
	"length len size count strlen strpos indexof empty trim strip trimspace"))

// asksPart reports whether all calls in the condition [from, to) test a part of a value.
func (u *unit) asksPart(from, to int) bool {
	parts := 0
	for j := from; j < to; j++ {
		if u.isWord(j) && softQuestions()[plain(u.at(j))] {
			parts++
		} else if u.called(j) {
			return false
		}
	}
	return parts > 0
}

// counted returns the names of the counters in [from, to).
func (u *unit) counted(from, to int) multiset.Hashes {
	u.scratch = u.scratch[:0]
	for j := from; j < to; j++ {
		if !u.isWord(j) {
			continue
		}
		next := u.at(j + 1)
		if next == "++" || next == "+=" && u.kindAt(j+2) == lex.Number || u.at(j-1) == "++" || next == "+" &&
			u.at(j+2) == "+" && u.at(j+3) == ";" {
			u.scratch = append(u.scratch, u.tok[j].Hash)
		}
	}
	return u.sortedOnce()
}

// logsQuietly reports whether [from, to) only logs at a level that is off by default.
func (u *unit) logsQuietly(from, to int) bool {
	quiet := false
	for j := from; j < to; j++ {
		s := u.at(j)
		if u.kindAt(j) == lex.Op && (s == "=" || s == "++" || s == "+=" || s == "<<") {
			return false
		}
		if !u.isWord(j) {
			continue
		}
		low := plain(s)
		quiet = quiet || quietly()[low]
		if u.lang.throws[s] || s == "if" || u.exits(j) || s == "return" && !u.emptyResult(j+1) || u.at(j+1) == "(" &&
			!loggingCalls()[low] && !quietly()[low] && !harmless(s) {
			return false
		}
	}
	return quiet
}

// quietly are calls and levels of logging that are off by default.
var quietly = sync.OnceValue(wordSet("debug trace fine finer finest verbose logdebug logtrace debugf tracef " +
	"logverbose silly debugprint"))

// answersWell reports whether [from, to) returns success: a code such as 201, or a name for it.
func (u *unit) answersWell(from, to int) bool {
	for j := from; j < to; j++ {
		if !u.isWord(j) || u.at(j) != "return" {
			continue
		}
		for k := j + 1; k < min(u.statementEnd(j), to); k++ {
			s := u.at(k)
			if u.kindAt(k) == lex.Number && len(s) == 3 && strings.HasPrefix(s, "20") || u.isWord(k) && wellWords()[plain(s)] {
				return true
			}
		}
	}
	return false
}

var wellWords = sync.OnceValue(wordSet("ok statusok created statuscreated nocontent statusnocontent accepted " +
	"statusaccepted success httpok http200ok http201created"))

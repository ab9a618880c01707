package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
)

// Exits counts the exits of a program with an error code and those with success.
type Exits struct {
	Telling, Well int
	Line          int // of the last success
	S             string
	Handed        multiset.Hashes // calls whose result is the exit code
}

// readExits notes how a program ends.
func (u *unit) readExits(m *Model) {
	if u.inTests {
		return
	}
	for i := range u.tok {
		if !u.isWord(i) || !exitWords()[u.at(i)] {
			continue
		}
		if named := u.at(i); strings.HasSuffix(named, "SUCCESS") || strings.HasSuffix(named, "FAILURE") { // ExitCode::FAILURE
			if u.at(i-1) == "::" || u.at(i-1) == "." {
				m.Exits.count(u, i, strings.HasSuffix(named, "SUCCESS"))
			}
			continue
		}
		from, to := i+2, i+2
		switch next := u.at(i + 1); {
		case next == "(":
			to = u.closer(i+1) - 1
		case next == "=" && plain(u.at(i)) == "exitcode":
			to = u.statementEnd(from)
		case u.lang.shape == ends && u.tok[i].First && u.kindAt(i+1) == lex.Number:
			from, to = i+1, i+2
		default:
			continue
		}
		s := strings.TrimSuffix(u.text(from, to), ";")
		well := s == "" || s == "0" || strings.EqualFold(s, "true") || strings.HasSuffix(s, "SUCCESS")
		if m.Exits.count(u, i, well); !well {
			m.Exits.Handed = multiset.Sum(m.Exits.Handed, u.calledIn(from, to))
		}
	}
}

// count counts the exit at i.
func (e *Exits) count(u *unit, i int, well bool) {
	if well {
		e.Well++
		e.Line, e.S = u.line(i), u.lineText(i)
	} else {
		e.Telling++
	}
}

// exitWords are the calls that end a program and the names of exit codes.
var exitWords = sync.OnceValue(wordSet("exit Exit exitProcess exit! SystemExit die reallyExit exitCode ExitCode " +
	"_exit SUCCESS FAILURE EXIT_SUCCESS EXIT_FAILURE"))

// CodeIgnored reports whether a call is still made whose result is no longer the exit code.
func CodeIgnored(was, now *Model) bool {
	for _, call := range multiset.Difference(was.Exits.Handed, now.Exits.Handed) {
		calls := func(m *Model) int {
			n := m.Rest.Count(call)
			for _, f := range m.Funcs {
				n += f.Calls.Count(call)
			}
			return n
		}
		if n := calls(now); n > 0 && n == calls(was) && len(now.Exits.Handed) == 0 {
			return true
		}
	}
	return false
}

// failureWord reports whether a name in lower case says that something failed.
func failureWord(s string) bool {
	return containsAny(s, "fail", "err", "invalid", "reject", "denied", "unavailable")
}

// exits reports whether the word at i ends the process with an error code, or sets it.
func (u *unit) exits(i int) bool {
	switch u.at(i) {
	case "exit", "Exit", "exitProcess", "_exit":
		if u.at(i+1) == "(" {
			return u.at(i+2) != "0" && u.at(i+2) != ")"
		}
		return u.lang.shape == ends && u.at(i-1) != "." && u.kindAt(i+1) == lex.Number && u.at(i+1) != "0"
	case "exitCode", "ExitCode":
		return u.at(i+1) == "=" && u.kindAt(i+2) == lex.Number && u.at(i+2) != "0"
	}
	return false
}

package source

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/lex"
)

// Exits counts the places where a program ends with a code that may tell of a failure,
// and those where it ends with success.
type Exits struct {
	Telling, Well int
	Line          int // of the last one with success
	S             string
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
		from, to := i+2, i+2
		switch next := u.at(i + 1); {
		case next == "(":
			to = u.closer(i+1) - 1
		case next == "=" && plain(u.at(i)) == "exitcode":
			to = u.statementEnd(from)
		case u.lang.Name == "ruby" && u.tok[i].First && u.kindAt(i+1) == lex.Number:
			from, to = i+1, i+2
		default:
			continue
		}
		if s := strings.TrimSuffix(u.text(from, to), ";"); s == "" || s == "0" || strings.EqualFold(s, "true") || strings.HasSuffix(s, "SUCCESS") {
			m.Exits.Well++
			m.Exits.Line, m.Exits.S = u.line(i), u.lineText(i)
		} else {
			m.Exits.Telling++
		}
	}
}

// exitWords are the calls that end a program, and what says with which code it will.
var exitWords = sync.OnceValue(func() set {
	return words("exit Exit exitProcess exit! SystemExit die reallyExit exitCode ExitCode _exit")
})

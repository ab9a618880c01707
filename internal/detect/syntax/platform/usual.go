package platform

import (
	"cmp"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// A usual machine runs Linux on amd64, as in CI. A condition that limits a test to other machines
// switches it off.

// truth is the value of a condition on a usual machine, if known.
type truth int8

const (
	no      truth = -1
	unknown truth = 0
	yes     truth = 1
)

// Off reports whether the condition switches the test off on usual machines.
func (c *Condition) Off() bool { return c.usually() == yes }

// usually returns whether the test is skipped on a usual machine.
func (c *Condition) usually() truth {
	e := expression{given: c.Given}
	v := e.of(cmp.Or(c.Own, c.Text))
	if c.RunsWhen {
		return -v
	}
	return v
}

// expression parses a condition in the form of Condition.Text.
type expression struct {
	s     string
	given map[string]string
	deep  int
}

// maxDeep is the maximum depth of names that stand for names.
const maxDeep = 6

// of returns the value of a text.
func (e *expression) of(s string) truth {
	if e.deep >= maxDeep {
		return unknown
	}
	for {
		rest := strings.TrimLeft(s, " {;:=")
		for _, word := range [...]string{"return", "skip:", "todo:"} {
			rest = strings.TrimPrefix(rest, word)
		}
		if strings.HasPrefix(rest, "(") && strings.Count(rest, "(") > strings.Count(rest, ")") {
			rest = rest[1:] // the unclosed one of the if
		}
		if rest == s {
			break
		}
		s = rest
	}
	s = strings.TrimSuffix(s, "(") // of the call of the chosen function
	inner := expression{s: s, given: e.given, deep: e.deep + 1}
	return inner.chosen()
}

// chosen parses a condition, or a choice by one: cond ? test.skip : test.
func (e *expression) chosen() truth {
	v := e.either()
	rest, ok := strings.CutPrefix(e.s, "?")
	if !ok {
		return v
	}
	first, _, two := strings.Cut(rest, ":")
	if two && !skipping().MatchString(first) {
		return -v
	}
	return v
}

func (e *expression) either() truth {
	v := e.both()
	for e.take("||") || e.take("or ") || e.take(" or ") {
		v = max(v, e.both())
	}
	return v
}

func (e *expression) both() truth {
	v := e.one()
	for e.take("&&") || e.take("and ") || e.take(" and ") {
		v = min(v, e.one())
	}
	return v
}

// take skips a prefix and reports whether it was there.
func (e *expression) take(piece string) bool {
	rest, ok := strings.CutPrefix(e.s, piece)
	if ok {
		e.s = rest
	}
	return ok
}

// one parses an operand.
func (e *expression) one() truth {
	e.s = strings.TrimLeft(e.s, " ")
	if e.take("!") || e.take("not ") || strings.HasPrefix(e.s, "not(") && e.take("not") {
		return -e.one()
	}
	end := e.atomEnd()
	atom := e.s[:end]
	e.s = e.s[end:]
	name, open, called := strings.Cut(atom, "(")
	whole := called && strings.HasSuffix(open, ")") && closedAtEnd(atom[len(name):])
	switch {
	case whole && name == "", whole && (name == "cfg!" || name == "cfg" || name == "cfg_attr"):
		return e.of(open[:len(open)-1])
	case whole && (name == "any" || name == "all"):
		return e.several(open[:len(open)-1], name == "all")
	}
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(name, "?"), "this."), "self."),
		"$this->")
	if text := e.given[name]; text != "" && (!called || open == ")" || open == "") {
		return e.of(text)
	}
	return ofUsual(atom)
}

// several parses the comma-separated conditions of any or all.
func (e *expression) several(list string, all bool) truth {
	inner := expression{s: list, given: e.given, deep: e.deep + 1}
	v := inner.either()
	for inner.take(",") {
		if w := inner.either(); all {
			v = min(v, w)
		} else {
			v = max(v, w)
		}
	}
	return v
}

// atomEnd returns the end of the next operand.
func (e *expression) atomEnd() int {
	deep := 0
	for i := 0; i < len(e.s); i++ {
		switch c := e.s[i]; c {
		case '"', '\'', '`':
			if n := strings.IndexByte(e.s[i+1:], c); n >= 0 {
				i += n + 1
			}
		case '(', '[', '{':
			deep++
		case ')', ']', '}':
			if deep--; deep < 0 {
				return i
			}
		case ',', ':', ';':
			if deep == 0 && !strings.HasPrefix(e.s[i:], "::") && (i == 0 || e.s[i-1] != ':') {
				return i
			}
		case '?':
			if deep == 0 && i+1 < len(e.s) && strings.IndexByte("(.?&|) ", e.s[i+1]) < 0 {
				return i
			}
		case '&', '|':
			if deep == 0 && i+1 < len(e.s) && e.s[i+1] == c {
				return i
			}
		case ' ':
			if rest := e.s[i:]; deep == 0 && (strings.HasPrefix(rest, " and ") || strings.HasPrefix(rest, " or ")) {
				return i
			}
		case 'a', 'o': // no blank follows a parenthesis or string
			if rest := e.s[i:]; deep == 0 && i > 0 && strings.IndexByte(")]\"'", e.s[i-1]) >= 0 &&
				(strings.HasPrefix(rest, "and ") || strings.HasPrefix(rest, "or ")) {
				return i
			}
		}
	}
	return len(e.s)
}

// closedAtEnd reports whether the first parenthesis is closed by the last one.
func closedAtEnd(s string) bool {
	deep := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			deep++
		case ')':
			if deep--; deep == 0 {
				return i == len(s)-1
			}
		}
	}
	return false
}

// ofUsual returns the value of an operand on a usual machine.
func ofUsual(atom string) truth {
	if ofEnvironment().MatchString(atom) {
		atom = named().ReplaceAllString(atom, "")
	}
	if doubtful().MatchString(atom) {
		return unknown
	}
	v := unknown
	switch {
	case separator().MatchString(atom):
		if v = no; strings.Contains(atom, `"/"`) || strings.Contains(atom, `'/'`) {
			v = yes
		}
	case usual().MatchString(atom):
		v = yes
	case unusual().MatchString(atom):
		v = no
	}
	if denied().MatchString(atom) {
		v = -v
	}
	if nothing().MatchString(atom) {
		v = -v
	}
	return v
}

var (
	usual   = lazyregexp.New(`(?i)linux|posix|unix\b|amd64|x86_64|\bx64\b|debug_assertions|^test$`)
	unusual = lazyregexp.New(`(?i)windows|win32|win64|\bwin\b|["'^/]win|win_platform|\bnt\b|mswin|mingw|msys|` +
		`cygwin|darwin|mac_?os|\bmac\b|\bosx\b|freebsd|openbsd|netbsd|solaris|arm64|aarch64|\barm\b|s390x|riscv|\bmiri\b|` +
		`tarpaulin|\bloom\b|\bfuzzing\b|is_?win\b`)
	separator = lazyregexp.New(`(?i)separator(?:char)?\b.*[=(]|\bpath\.sep\b|\bos\.sep\b`)
	// doubtful matches words for capabilities of a system.
	doubtful = lazyregexp.New(`(?i)support|avail|missing|without|lack|need|fail|broken|\bhas|can_|\bcan[A-Z]|` +
		`using|version|release|distro|feature|uid\b|hasattr|exist|docker|musl|\bwsl`)
	denied   = lazyregexp.New(`!==?|!~|\bnot in\b|\bis not\b|(?i)neq\(|notequals?\(`)
	nothing  = lazyregexp.New(`={1,3}(?:-1|false|False|nil|null|None)$|<0$`)
	skipping = lazyregexp.New(`\.skip\b|\.todo\b|\bx(?:it|test|describe)\b|^skip\b`)
	// otherSystem matches names of tests about another system.
	otherSystem = lazyregexp.New(`[wW]in(?:32|64|[A-Z_])|(?i:windows|unc_?path|mac_?os|darwin|arm64|powershell|` +
		`registry_?key|drive_?letter)`)
)

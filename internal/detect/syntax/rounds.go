package syntax

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// Round is a number that determines how often something is asserted: the end of a loop, repetitions
// of a test, generated examples.
type Round struct {
	Line int
	Key  uint64 // of the tokens around it
	N    int
	S    string
}

// readRounds notes the rounds of a test, except numbers that also occur elsewhere in it.
func (u *unit) readRounds(t *Test, d *decl, helpers set) {
	left := maxSkipCalls
	for j := d.start; j < d.end && left > 0; j++ {
		if u.kindAt(j) != lex.Number || !u.endsRounds(j, d, helpers) {
			continue
		}
		left--
		digits := strings.ReplaceAll(u.at(j), "_", "")
		if suffix := strings.IndexFunc(digits, func(c rune) bool { return c < '0' || c > '9' }); suffix > 0 {
			digits = digits[:suffix]
		}
		n, err := strconv.Atoi(digits)
		if err != nil || u.again(j, d) {
			continue
		}
		from, to := j, j+1
		for from > d.start && u.tok[from-1].Line == u.tok[j].Line {
			from--
		}
		for to < d.end && u.tok[to].Line == u.tok[j].Line {
			to++
		}
		t.Rounds = append(t.Rounds, Round{Line: u.line(j), Key: mixAll(mixAll(firstHash, u.tok[from:j]), u.tok[j+1:to]),
			N: n, S: u.text(from, to)})
	}
}

// again reports whether the number at i occurs in a test twice.
func (u *unit) again(i int, d *decl) bool {
	return anyOf(d.body, d.end, func(j int) bool {
		return j != i && u.tok[j].Hash == u.tok[i].Hash && u.at(j) == u.at(i)
	})
}

// endsRounds reports whether the number at i determines how often an assertion runs.
func (u *unit) endsRounds(i int, d *decl, helpers set) bool {
	before, last := u.at(i-1), u.at(i-2)
	if (before == "=" || before == ":" || before == "(") && roundNames()[last] {
		return true
	}
	loop := false
	switch before {
	case "<", "<=", "..", "..=", "..<", "until":
		loop = true
	case "=":
		loop = last == ".."
	case "(", ",":
		loop = last == "range" || last == "repeat" || before == "," && oneOf(u.at(i-4), "range", "Range", "rangeClosed")
		if u.at(i-3) == "parametrize" || u.at(i-1) == "(" && last == "range" && i < d.at {
			return true
		}
	case "range":
		loop = u.lang.Name == "go"
	}
	if !loop && (u.at(i+1) != "." || u.at(i+2) != "times") {
		return false
	}
	from := i
	for from > d.body && u.tok[from-1].Line == u.tok[i].Line {
		from--
	}
	if !slices.ContainsFunc(u.tok[from:i+1], func(t lex.Token) bool { return roundWords()[t.S] }) && u.at(i+2) != "times" {
		return false
	}
	return u.assertsIn([2]int{i, u.roundsEnd(i, d)}, helpers)
}

// roundsEnd returns the end of the body of the loop with the number at i in its head.
func (u *unit) roundsEnd(i int, d *decl) int {
	if u.lang.shape == indents {
		n := u.headIndex(i)
		for k := n + 1; n >= 0 && k < len(u.heads); k++ {
			if h := int(u.heads[k]); u.tok[h].Col <= u.headCol(i) || h >= d.end {
				return h
			}
		}
		return d.end
	}
	for j := i; j < min(d.end, i+maxTypes); j++ {
		if s := u.at(j); s == "{" || s == "do" {
			return min(u.closer(j), d.end)
		}
	}
	return i
}

var (
	roundWords = sync.OnceValue(wordSet("for repeat range rangeClosed Range times"))
	// roundNames are the options of frameworks for the number of repetitions.
	roundNames = sync.OnceValue(wordSet("RepeatedTest Repeat max_examples numRuns with_cases cases iterations " +
		"trials tries MaxTest checkAll PropTestConfig invocationCount repeats"))
)

// macroTests returns the Rust tests that a macro generates, with its arguments as rows.
func (u *unit) macroTests() []*Test {
	if u.lang.Name != "rust" {
		return nil
	}
	var all []*Test
	for i := range u.tok {
		if u.at(i) != "macro_rules" || u.at(i+1) != "!" || u.at(i+3) != "{" {
			continue
		}
		end := u.closer(i + 3)
		if !u.writesTests(i+4, end) {
			continue
		}
		name := u.at(i + 2)
		t := &Test{Name: name + "!", Leaf: name, Line: u.line(i + 2)}
		for j := range u.tok {
			if j >= i && j < end || u.at(j) != name || u.at(j+1) != "!" || u.match[min(j+2, len(u.tok)-1)] < 0 {
				continue
			}
			if u.at(j+2) == "{" || slices.ContainsFunc(u.tok[j+2:u.closer(j+2)], func(t lex.Token) bool { return t.S == "=>" }) {
				t.Cases = append(t.Cases, u.elements(j+2)...)
			} else {
				t.Cases = append(t.Cases, u.row(j+3, max(u.closer(j+2)-1, j+4)))
			}
		}
		t.All, t.BodyHash = u.bagOf(u.tok[i:end]), mixAll(firstHash, u.tok[i:end])
		for _, c := range t.Cases {
			t.BodyHash = mixHash(t.BodyHash, uint32(c.Key)) //nolint:gosec // a hash of it
			t.All = append(t.All, c.All...)
			t.Literals = append(t.Literals, c.Literals...)
		}
		slices.Sort(t.All)
		slices.Sort(t.Literals)
		t.Telling = t.All
		if len(t.Cases) > 0 {
			all = append(all, t)
		}
	}
	return all
}

// writesTests reports whether a macro generates tests.
func (u *unit) writesTests(from, to int) bool {
	return anyOf(from, to, func(j int) bool { return u.at(j) == "test" && u.at(j-1) == "[" && u.at(j+1) == "]" })
}

package syntax

import (
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// skipPlace is a condition under which a test is skipped.
type skipPlace struct {
	t      *Test
	at, to int
	// declares is set when the test is declared only if the condition holds.
	declares bool
}

// readWhens reads the conditions of skips, and whether the file uses what they require.
func (u *unit) readWhens() {
	if len(u.skipPlaces) == 0 {
		return
	}
	if u.given == nil {
		u.given = u.assignments()
	}
	w := &whenReader{unit: u, own: make(map[int]bool), known: make(map[int]int)}
	for _, p := range u.skipPlaces {
		w.take(p.at, p.to)
	}
	for _, p := range u.skipPlaces {
		if _, ok := w.known[p.at]; !ok {
			w.known[p.at] = w.read(p)
		}
	}
	for n := range w.conditions {
		c := &w.conditions[n]
		c.Used = w.used(c)
	}
	for _, p := range u.skipPlaces {
		c := &w.conditions[w.known[p.at]]
		p.t.Whens = append(p.t.Whens, When{c.Condition, u.line(p.at), u.text(p.at, p.to), c.asks})
	}
}

// whenReader reads the conditions of one file.
type whenReader struct {
	*unit
	// own are the tokens of the skips, which do not count as uses.
	own        map[int]bool
	conditions []when
	known      map[int]int // conditions by position
	left       int         // expansions of one condition
}

type when struct {
	platform.Condition
	names []string // of variables and the requirements
	asked map[string]bool
	asks  multiset.Hashes
}

func (w *whenReader) take(from, to int) {
	for j := from; j < min(to, from+maxWhen); j++ {
		w.own[j] = true
	}
}

// maxWhen is the number of tokens of a condition that are read.
const maxWhen = 120

// read reads the condition of a skip.
func (w *whenReader) read(p skipPlace) int {
	at := p.at
	from, end, runs := w.whenOf(at, p.to)
	if p.declares {
		runs = !runs
	}
	if s := w.at(from); s == "!" || s == "not" {
		from, runs = from+1, !runs
	}
	c := when{Condition: platform.Condition{Language: w.lang.Name, RunsWhen: runs, Given: make(map[string]string)},
		asked: make(map[string]bool)}
	if (w.at(at-1) == "=" || w.at(at-1) == "." && w.at(at-3) == "=") && w.isWord(at-4) {
		c.names = append(c.names, w.at(at-4)) // np = pytest.importorskip("numpy")
	}
	c.Tried = from == at && w.tried(at)
	w.left = 8
	var b strings.Builder
	c.Own = w.say(&b, &c, from, min(end, from+maxWhen), true)
	c.Text = b.String()
	slices.Sort(c.asks)
	w.conditions = append(w.conditions, c)
	return len(w.conditions) - 1
}

// tried reports whether the skip at i handles a failure of code without assertions: a missing
// feature of the machine.
func (u *unit) tried(i int) bool {
	handler := -1
	if u.lang.shape == indents {
		n := u.headIndex(i)
		for col := u.headCol(i); n >= 0; n-- {
			if h := int(u.heads[n]); u.tok[h].Col < col {
				handler = h
				break
			}
		}
	} else {
		for j := i - 1; j > max(0, i-maxCondition) && handler < 0; j-- {
			if s := u.at(j); s == "}" && u.opener(j) > 0 {
				j = u.opener(j)
			} else if u.lang.handlers[s] {
				handler = j
			}
		}
	}
	if handler < 0 || !u.lang.handlers[u.at(handler)] {
		return false
	}
	from, to := u.guarded(handler)
	return from < to && !u.assertsWithin(from, to, nil)
}

// whenOf returns the condition in the tokens of a skip, and whether the test runs when it holds.
func (u *unit) whenOf(at, to int) (from, end int, runs bool) {
	for j := at; j < min(to, at+maxWhen); j++ {
		switch s := u.at(j); s {
		case "if", "elif", "unless", "when", "guard", "while":
			if j > at && u.lang.shape == braces {
				continue
			}
			return j + 1, u.headEnd(j, to), s == "unless" || s == "guard"
		case "skipIf", "skipif", "SkipWhen", "If", "DisabledIf", "assumeFalse":
			if u.at(j+1) == "(" {
				return j + 2, u.firstArgument(j + 1), false
			}
		case "skipUnless", "runIf", "SkipUnless", "IfNot", "Unless", "assumeTrue", "assumeThat", "That":
			if u.at(j+1) == "(" {
				return j + 2, u.firstArgument(j + 1), true
			}
		case "enabled", "enabledIf", "cfg":
			return j + 1, to, true
		}
		if s := u.at(j); strings.HasPrefix(s, "Enabled") || strings.HasPrefix(s, "Requires") ||
			strings.HasPrefix(s, "onlyOn") || u.lang.restricts != nil && u.lang.restricts(u, j, to) {
			return j, to, true
		}
	}
	return at, to, false
}

// firstArgument returns the end of the first argument of a call, including a message before it.
func (u *unit) firstArgument(open int) int {
	end := u.closer(open) - 1
	comma := u.find(open+1, end, ",")
	if comma == open+2 && u.kindAt(comma-1) == lex.Text {
		comma = u.find(comma+1, end, ",")
	}
	return min(comma, end)
}

// headEnd returns the end of the condition after the word at i.
func (u *unit) headEnd(i, to int) int {
	switch u.lang.shape {
	case indents:
		return u.colon(i+1, to) - 1
	case ends:
		for j := i + 1; j < to; j++ {
			if u.tok[j].First || u.at(j) == "then" {
				return j
			}
		}
		return to
	}
	if u.at(i+1) == "(" {
		return u.closer(i+1) - 1
	}
	return min(u.find(i+1, to, "{"), to)
}

// say appends tokens in normal form and notes their names, replaced by their values when full is
// set. It returns the tokens alone.
func (w *whenReader) say(b *strings.Builder, c *when, from, to int, first bool) string {
	var names []int
	begin := b.Len()
	for j := from; j < min(to, len(w.tok)); j++ {
		s := w.at(j)
		switch w.kindAt(j) {
		case lex.Text:
			if message(s) {
				continue
			}
			w.ask(c, lex.Unquote(s))
		case lex.Word:
			if b.Len() > 0 && w.isWord(j-1) && j > from {
				b.WriteByte(' ')
			}
			if w.at(j-1) == "." && strings.HasSuffix(w.at(j-2), "env") {
				w.ask(c, s)
			} else if w.at(j-1) != "." && w.at(j-1) != "->" && w.at(j+1) != "=" {
				names = append(names, j)
			}
			if (first || w.at(j-1) == "typeof") && w.at(j+1) != "(" && (w.at(j+1) != "." || len(w.given[s]) > 0) &&
				w.at(j+1) != "::" && !plainWords()[s] && !w.lang.skips[s] && !w.lang.tests[s] && !w.lang.suites[s] {
				c.names = append(c.names, s)
			}
		}
		b.WriteString(s)
	}
	own := b.Len()
	for _, j := range names {
		w.expand(b, c, j)
	}
	return b.String()[begin:own]
}

// message reports whether a string is a message: it has blanks, and is not a comparison.
func message(s string) bool {
	s = lex.Unquote(s)
	return strings.Contains(s, " ") && !strings.HasPrefix(s, "<") && !strings.HasPrefix(s, ">") &&
		!strings.HasPrefix(s, "=") && !strings.HasPrefix(s, "^")
}

// ask notes a string that may be a name.
func (w *whenReader) ask(c *when, s string) {
	if len(s) < 2 || len(s) > 100 || plainWords()[strings.ToLower(s)] {
		return
	}
	s = strings.Clone(s)
	c.names, c.asked[s] = append(c.names, s), true
	c.asks = append(c.asks, Hash(s), lex.TextHash(s))
	if parts := strings.FieldsFunc(s, func(r rune) bool { return r == '.' || r == '/' }); len(parts) > 1 {
		c.names = append(c.names, parts[len(parts)-1])
	}
}

// plainWords do not name a requirement.
var plainWords = sync.OnceValue(wordSet("true false yes no on off null nil none undefined err error ok e t self " +
	"this if not and or is in reason fail failed test tests ctx context os sys process env ENV path fs exec " +
	"string String bool int version named matches value String? disabledReason strict"))

// expand appends the value of the variable or small function of the file named at i.
func (w *whenReader) expand(b *strings.Builder, c *when, i int) {
	name := w.at(i)
	if w.left--; w.left < 0 || plainWords()[name] && name != "err" && name != "ok" && name != "error" {
		return
	}
	from, to := w.valueOf(i), -1
	if from >= 0 {
		to = min(w.statementEnd(from), from+40)
		w.take(from-4, to)
	} else if w.at(i+1) == "(" || w.lang.shape == ends {
		for n := range w.decls {
			if d := &w.decls[n]; d.kind == declFunction && d.name == name && d.end-d.body < maxWhen && !w.tests[n] {
				from, to = d.body, d.end
				w.take(d.start, d.end)
				break
			}
		}
	}
	if from < 0 || w.own[-1-from] {
		return
	}
	w.own[-1-from] = true
	b.WriteByte(' ')
	c.Given[name] = w.say(b, c, from, to, false)
	delete(w.own, -1-from)
}

// used reports whether the file, without the skips, uses the requirements of a condition.
func (w *whenReader) used(c *when) bool {
	for _, name := range c.names {
		low := strings.ToLower(name)
		for _, prefix := range []string{"has_", "have_", "no_", "with_"} {
			low = strings.TrimPrefix(low, prefix)
		}
		low = strings.TrimSuffix(strings.TrimSuffix(low, "_available"), "_installed")
		if w.uses(name, low, c.asked[name]) {
			return true
		}
	}
	return false
}

// uses reports whether a token outside the skips is a name or, if asked is set, contains it.
func (w *whenReader) uses(name, low string, asked bool) bool {
	return anyOf(0, len(w.tok), func(j int) bool {
		switch s := w.at(j); {
		case w.own[j]:
		case w.isWord(j):
			return s == name || len(low) > 2 && (strings.EqualFold(s, low) || len(s) > len(low) && s[len(low)] == '_' &&
				strings.EqualFold(s[:len(low)], low))
		case w.kindAt(j) == lex.Text:
			return asked && (lex.Unquote(s) == name || len(name) > 3 && strings.Contains(s, name))
		}
		return false
	})
}

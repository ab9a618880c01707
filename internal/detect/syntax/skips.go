package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// noteSkip notes one way in which a test is skipped.
func (u *unit) noteSkip(t *Test, s Skipping, at, to int) {
	if s > t.Skip {
		t.Skip, t.SkipLine, t.SkipText = s, u.line(at), u.text(at, to)
	}
	if s == Sometimes {
		u.skipPlaces = append(u.skipPlaces, skipPlace{t: t, at: at, to: to})
	}
}

// readSkips notes whether a test, or a declaration around it, is skipped, focused or failing.
func (u *unit) readSkips(t *Test, i int) {
	note := func(s Skipping, at, to int) { u.noteSkip(t, s, at, to) }
	for j := i; j >= 0; j = u.decls[j].parent {
		d := &u.decls[j]
		for _, a := range d.annotations {
			if alias, ok := u.noteAlias(a.name); ok {
				a = alias
			}
			s, fails := u.annotationSkips(&a)
			if s == Always && u.whole.Under(a.from).Deep > u.whole.Under(d.at).Deep {
				s = Sometimes
			}
			note(s, a.from, a.to)
			t.Fails = t.Fails || fails && j == i
		}
		for n, call := range d.calls {
			switch {
			case n > 0 && u.lang.chainSkips != nil && u.lang.chainSkips(u, d, call, note):
			case u.lang.skipped[call], n > 0 && (call == "skip" || call == "todo" || call == "pending"), call == "pending":
				note(Always, d.at, min(d.at+4, len(u.tok)))
			case n > 0 && (call == "skipIf" || call == "runIf"):
				note(Sometimes, d.start, max(d.body-1, d.at+1))
			case u.lang.focused[call], n > 0 && call == "only":
				t.Focus = true
			case n > 0 && (call == "failing" || call == "fails"):
				t.Fails = true
			}
		}
	}
	for j := i; j >= 0; j = u.decls[j].parent {
		if u.tests[j] {
			u.readSkipCalls(j, note)
		}
	}
	if c := u.whole.Under(u.decls[i].at); c.Deep > 0 && t.Skip == Runs {
		t.Skip, t.SkipLine, t.SkipText = Sometimes, int(c.Line), strings.Clone(Clip(c.S))
		t.Whens = append(t.Whens, When{Condition: platform.Condition{Language: u.lang.Name, Text: t.SkipText,
			RunsWhen: true}, Line: t.SkipLine, S: t.SkipText})
	}
	u.otherSkips(t, i, note)
	u.hookedSkips(i, note)
}

// readSkipCalls notes the calls that skip a test or the tests inside it.
func (u *unit) readSkipCalls(i int, note onSkip) {
	left := maxSkipCalls
	for _, span := range u.spans(i) {
		for j := max(span[0], u.decls[i].at+1); j < span[1]; j++ {
			if !u.isWord(j) || left == 0 {
				continue
			}
			if s, at, to := u.skipsBy(&u.decls[i], j); s != Runs {
				left--
				note(s, at, to)
			}
			if s := u.skipsHere(&u.decls[i], j); s != Runs {
				left--
				note(s, u.conditionBefore(&u.decls[i], j), u.statementEnd(j))
			}
		}
	}
}

// conditionBefore returns the beginning of the condition of the call at i; i for none nearby.
func (u *unit) conditionBefore(d *decl, i int) int {
	for j := i; j > max(d.body, i-maxCondition); j-- {
		switch u.at(j) {
		case "if", "elif", "unless", "when", "case", "guard":
			if u.lang.shape == braces && u.at(j) != "case" && u.closedBefore(j, i) {
				continue
			}
			return j
		}
	}
	return i
}

// closedBefore reports whether the block of the condition at i ends before to.
func (u *unit) closedBefore(i, to int) bool {
	open := u.headEnd(i, to)
	if u.at(i+1) == "(" {
		open++
	}
	return u.at(open) == "{" && u.closer(open) <= to
}

// maxCondition is the length in tokens of the longest condition shown with a skip.
const maxCondition = 40

// maxSkipCalls is the number of calls of one test that are read.
const maxSkipCalls = 100

// annotationSkips returns the effect of an annotation on a test.
func (u *unit) annotationSkips(a *annotation) (s Skipping, fails bool) {
	open := a.from
	for open < a.to && u.at(open) != "(" {
		open++
	}
	if anyOf(open, a.to, func(j int) bool {
		s, value := u.at(j), u.at(j+2)
		return u.at(j+1) == "=" && (s == "Skip" && value != "null" || s == "enabled" && value == "false" ||
			s == "Ignore" || s == "IgnoreReason" || s == "Explicit" && value == "true")
	}) {
		return Always, false
	}
	if u.lang.annotated != nil {
		if s, decided := u.lang.annotated(u, a, open); decided {
			return s, false
		}
	}
	switch {
	case a.name == "xfail" || a.name == "expectedFailure" || a.name == "should_panic" || a.name == "ExpectedToFail":
		return Runs, true
	case !u.lang.skips[a.name]:
		return Runs, false
	case conditionalSkips()[a.name] && !u.constant(open+1):
		return Sometimes, false
	}
	return Always, false
}

var conditionalSkips = sync.OnceValue(wordSet("skipif skipIf skipUnless DisabledOnOs DisabledIf EnabledIf " +
	"EnabledOnOs DisabledIfEnvironmentVariable EnabledIfEnvironmentVariable EnabledIfSystemProperty DisabledOnJre " +
	"EnabledOnJre DisabledIfSystemProperty RequiresPhp RequiresPhpExtension RequiresPhpunit RequiresFunction " +
	"RequiresMethod RequiresSetting RequiresOperatingSystem RequiresOperatingSystemFamily"))

// constant reports whether an argument is a constant.
func (u *unit) constant(i int) bool {
	s := strings.ToLower(u.at(i))
	ends := u.at(i+1) == ")" || u.at(i+1) == "," || u.at(i+1) == ":" || u.at(i+1) == "{"
	return ends && (s == "true" || s == "false" || u.kindAt(i) == lex.Number)
}

// skipsHere returns how the word at i skips its test.
func (u *unit) skipsHere(d *decl, i int) Skipping {
	s := u.at(i)
	option := u.at(i+1) == ":" && (u.at(i+2) == "true" || u.kindAt(i+2) == lex.Text)
	if option && (s == "skip" || s == "todo") && (u.at(i-1) == "{" || u.at(i-1) == ",") && u.lang.shape == braces &&
		u.inHead(d, i) {
		return Always
	}
	if u.lang.skipsAt == nil {
		if !u.lang.skips[s] || u.at(i+1) != "(" {
			return Runs
		}
	} else if s, decided := u.lang.skipsAt(u, d, i); decided {
		return s
	}
	if strings.HasPrefix(s, "assume") || strings.HasPrefix(s, "assuming") {
		if u.at(i+2) == "false" && s == "assumeTrue" || u.at(i+2) == "true" && s == "assumeFalse" {
			return Always
		}
		return Sometimes
	}
	if u.conditional(d, i) {
		return Sometimes
	}
	return Always
}

// inHead reports whether i is in the options of a test, before its function.
func (u *unit) inHead(d *decl, i int) bool {
	return !anyOf(d.at, i, func(j int) bool { return u.at(j) == "=>" || u.at(j) == "function" })
}

// conditional reports whether the code at i depends on a condition that is not constant.
func (u *unit) conditional(d *decl, i int) bool {
	switch u.lang.shape {
	case indents:
		for n := u.headIndex(i); n >= 0 && int(u.heads[n]) >= d.body; n-- {
			head := int(u.heads[n])
			if w := u.at(head); u.tok[head].Col < u.headCol(i) && (w == "if" || w == "elif" || w == "else" || w == "except" ||
				w == "for") && u.tok[head].Col > u.tok[d.start].Col {
				return !u.constant(head + 1)
			}
		}
		return false
	case ends:
		line := u.tok[i].Line
		for j := i; j < len(u.tok) && u.tok[j].Line == line; j++ {
			if u.at(j) == "if" || u.at(j) == "unless" {
				return !u.constant(j + 1)
			}
		}
		for j := i; j > d.body; j-- {
			if w := u.at(j); oneOf(w, "if", "unless", "rescue", "case") && u.tok[j].First && int(u.match[j]) > i {
				return true
			}
		}
		return false
	}
	for j := i - 1; j > d.at; j-- {
		s := u.at(j)
		switch {
		case u.kindAt(j) == lex.Op && (s == ")" || s == "}" || s == "]") && u.opener(j) > 0:
			if s == ")" && u.at(u.opener(j)-1) == "if" && u.at(j+1) != "{" && j+3 >= i {
				return !u.constant(u.opener(j) + 1)
			}
			j = u.opener(j)
		case u.kindAt(j) == lex.Op && s == "{":
			k := j - 1
			for k > d.at && u.at(k) != "{" && (u.at(k) != ";" || u.lang.initialisers) && u.at(k) != "}" {
				if w := u.at(k); w == "if" || w == "case" || w == "switch" || w == "catch" || w == "else" {
					return u.at(k) != "if" || !u.constant(k+1) && !u.constant(k+2)
				}
				if w := u.at(k); w == "=>" || w == "function" || w == "fun" || w == "fn" || w == "func" {
					break
				}
				k--
			}
		}
	}
	return false
}

// otherSkips notes the skips of single runners and languages: names, modifiers after the title,
// build directives, an early return.
func (u *unit) otherSkips(t *Test, i int, note onSkip) {
	d := &u.decls[i]
	for j := i; j >= 0 && u.lang.readSkips != nil; j = u.decls[j].parent {
		u.lang.readSkips(u, t, &u.decls[j], note)
	}
	if s, at := u.leavesAtOnce(d); s != Runs {
		note(s, at, min(u.statementEnd(at), d.end))
	}
}

// leavesAtOnce returns whether the first statement of a test ends it, and its position.
func (u *unit) leavesAtOnce(d *decl) (Skipping, int) {
	i := u.firstStatement(d)
	if i < 0 || i >= d.end {
		return Runs, 0
	}
	if u.passes(i) && u.statementEnd(i) < d.end-2 {
		return Always, i
	}
	if u.at(i) != "if" {
		return u.bareReturn(i, d.end), i
	}
	if u.lang.shape == ends {
		return Runs, 0
	}
	then, _, to := u.block(i, d.end)
	if to <= i+1 || u.bareReturn(then, d.end) == Runs {
		return Runs, 0
	}
	if u.constant(i+1) || u.constant(i+2) {
		return Always, i
	}
	return Sometimes, i
}

// bareReturn returns how a return without a value skips the statements after it.
func (u *unit) bareReturn(i, end int) Skipping {
	if u.at(i) != "return" || i+5 > end {
		return Runs
	}
	switch next := u.at(i + 1); {
	case u.lang.shape == ends && (next == "if" || next == "unless") && !u.tok[i+1].First:
		return Sometimes
	case next == ";" || next == "}" || u.tok[i+1].First:
		return Always
	}
	return Runs
}

// firstStatement returns the beginning of the body of a test; -1 for none.
func (u *unit) firstStatement(d *decl) int {
	if u.lang.shape != braces {
		i := d.body
		if u.kindAt(i) == lex.Text && i < len(u.tok) && u.tok[i].First {
			i++ // a docstring
		}
		return i
	}
	for j := d.body; j < min(d.end, d.body+60); j++ {
		if u.at(j) != "{" || u.kindAt(j) != lex.Op {
			continue
		}
		if before := u.at(j - 1); j == d.body || before != "," && before != "(" {
			return j + 1
		}
		j = u.closer(j) - 1
	}
	return -1
}

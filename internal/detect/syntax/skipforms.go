package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/platform"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// otherSkips notes the skips of single runners and languages: names, modifiers after the title,
// build directives, an early return.
func (u *unit) otherSkips(t *Test, i int, note func(s Skipping, at, to int)) {
	d := &u.decls[i]
	for j := i; j >= 0; j = u.decls[j].parent {
		switch u.lang.Name {
		case "kotlin":
			u.kotestSkips(t, &u.decls[j], note)
		case "javascript", "typescript":
			u.options(t, &u.decls[j], note)
		case "php":
			u.docRequires(t, &u.decls[j])
		case "ruby":
			u.metadata(t, &u.decls[j], note)
		}
	}
	if s, at := u.leavesAtOnce(d); s != Runs {
		note(s, at, min(u.statementEnd(at), d.end))
	}
}

// docRequires reads requirements in the comment before a test, such as @requires extension gd.
func (u *unit) docRequires(t *Test, d *decl) {
	line := u.line(d.start)
	for _, n := range u.notesBefore(line) {
		if last := int(n.Line) + strings.Count(n.S, "\n"); last >= line || last < line-2 ||
			!strings.Contains(n.S, "@requires") {
			continue
		}
		for _, m := range requirement().FindAllStringSubmatch(n.S, 8) {
			what, name := strings.ToLower(m[1]), strings.TrimSpace(m[2])
			w := whenReader{unit: u}
			c := platform.Condition{Language: u.lang.Name, RunsWhen: true, Text: "Requires" + what + "('" + name + "')",
				Used: w.uses(name, strings.ToLower(name), false)}
			switch what {
			case "extension":
				c.Text = "RequiresPhpExtension('" + name + "')"
			case "php":
				c.Text = "RequiresPhp('" + name + "')"
			case "os", "osfamily":
				c.Text = "RequiresOperatingSystem('" + name + "')"
			}
			s := strings.Clone(strings.TrimSpace(m[0]))
			t.Whens = append(t.Whens, When{Condition: c, Line: int(n.Line), S: s})
			if t.Skip == Runs {
				t.Skip, t.SkipLine, t.SkipText = Sometimes, int(n.Line), s
			}
		}
	}
}

var requirement = lazyregexp.New(`@requires\s+(PHP|extension|OSFAMILY|OS|function|setting)\s+([^\n*]+)`)

// options reads the options between a test's title and function, such as { only: true }.
func (u *unit) options(t *Test, d *decl, note func(s Skipping, at, to int)) {
	if d.kind != declTest && d.kind != declSuite || u.at(d.body) != "," {
		return
	}
	open := d.body + 1
	if u.isWord(open) && u.at(open+1) == "," { // by name
		open = u.valueOf(open)
	}
	if u.at(open) != "{" {
		return
	}
	end := u.closer(open) - 1
	for j := open + 1; j < end; j++ {
		if u.opens(j) {
			j = u.closer(j) - 1
			continue
		}
		if before := u.at(j - 1); before != "{" && before != "," {
			continue
		}
		short := u.at(j+1) == "," || u.at(j+1) == "}" // { skip }
		switch u.at(j) {
		case "only":
			t.Focus = t.Focus || u.at(j+1) == ":" && u.at(j+2) == "true"
		case "skip", "todo":
			value := j + 2
			if short {
				value = j
			}
			if short || u.at(j+1) == ":" {
				u.option(value, j, min(u.commaAfter(j, end)+1, end), note)
			}
		}
	}
}

// option notes a skip, in [at, to), by the value at i or that of the variable there.
func (u *unit) option(i, at, to int, note func(s Skipping, at, to int)) {
	if u.isWord(i) && (u.at(i+1) == "," || u.at(i+1) == "}") {
		if given := u.valueOf(i); given >= 0 {
			i = given
		}
	}
	ends := u.at(i+1) == "," || u.at(i+1) == "}" || u.endsStatement(i+1)
	switch value := u.at(i); {
	case ends && (value == "false" || value == "undefined" || value == "null"):
	case ends && (value == "true" || u.kindAt(i) == lex.Text):
		note(Always, at, to)
	case u.at(at) == "skip":
		note(Sometimes, at, to)
	}
}

// valueOf returns the beginning of the value assigned to the name at i; -1 for none.
func (u *unit) valueOf(i int) int { return u.valueNamed(u.at(i), i) }

// valueNamed returns the beginning of the value last assigned to a name before i, or anywhere; -1 for none.
func (u *unit) valueNamed(name string, i int) int {
	if u.given == nil {
		u.given = u.assignments()
	}
	from := -1
	for _, at := range u.given[name] {
		if from < 0 || at < i {
			from = at
		}
	}
	return from
}

// metadata reads the options between the title of an RSpec group or example and its block.
func (u *unit) metadata(t *Test, d *decl, note func(s Skipping, at, to int)) {
	if d.kind != declTest && d.kind != declSuite {
		return
	}
	for j := d.at + 1; j < d.body-1; j++ {
		if !u.isWord(j) || !u.symbol(j) || u.at(j+1) == "false" || u.at(j+2) == "false" {
			continue
		}
		switch u.at(j) {
		case "if", "unless":
			if u.at(j+1) != "true" {
				u.noteDeclared(j, d.body-1, note)
			}
		case "skip", "pending":
			note(Always, d.at, d.body)
		case "focus":
			t.Focus = true
		}
	}
}

// pestSkip notes the condition in it(...)->skip(condition), if any.
func (u *unit) pestSkip(d *decl, note func(s Skipping, at, to int)) bool {
	for j := d.end - 1; j > d.body; j-- {
		if u.at(j) == ")" && u.opener(j) > d.at {
			j = u.opener(j)
			if u.at(j-1) == "skip" && u.at(j-2) == "->" && u.at(j+1) != ")" && u.kindAt(j+1) != lex.Text && !u.constant(j+1) {
				note(Sometimes, j-1, u.closer(j))
				return true
			}
		}
	}
	return false
}

// leavesAtOnce returns whether the first statement of a test ends it, and its position.
func (u *unit) leavesAtOnce(d *decl) (Skipping, int) {
	i := u.firstStatement(d)
	if i < 0 || i >= d.end {
		return Runs, 0
	}
	if u.at(i) == "Assert" && u.at(i+2) == "Pass" && u.lang.Name == "csharp" && u.statementEnd(i) < d.end-2 {
		return Always, i
	}
	if u.at(i) != "if" {
		return u.bareReturn(i, d.end), i
	}
	if u.lang.shape == ends {
		return Runs, 0
	}
	then, _, to := u.bracesCondition(i, d.end)
	if u.lang.shape == indents {
		then = u.colon(i+1, d.end)
		to = then - 1
	}
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

// destructures reports whether a test's function destructures its argument into a name.
func (u *unit) destructures(d *decl, name string) bool {
	for j := d.body; j < min(d.end, d.body+20) && u.at(j) != "=>"; j++ {
		if u.at(j) == name && (u.at(j-1) == "{" || u.at(j-1) == ",") && (u.at(j+1) == "}" || u.at(j+1) == ",") {
			return true
		}
	}
	return false
}

// builtSometimes returns whether a Rust condition is more than cfg(test).
func (u *unit) builtSometimes(open, to int) Skipping {
	if u.at(open+1) == "test" && u.at(open+2) == ")" {
		return Runs
	}
	if anyOf(open, to, func(j int) bool { return u.at(j) == "any" && u.at(j+2) == ")" }) {
		return Always
	}
	return Sometimes
}

// rustSkip returns the condition on a whole file: #![cfg(feature = "disk")].
func (u *unit) rustSkip() (Skipping, int) {
	for i := 0; i+4 < min(len(u.tok), 60); i++ {
		if u.at(i) == "#" && u.at(i+1) == "!" && u.at(i+2) == "[" && u.at(i+3) == "cfg" && u.at(i+4) == "(" {
			return u.builtSometimes(i+4, u.closer(i+4)), i
		}
	}
	return Runs, 0
}

// pestSystems are the methods by which Pest skips tests on some systems.
var pestSystems = sync.OnceValue(wordSet("skipOnWindows skipOnMac skipOnLinux onlyOnWindows onlyOnMac onlyOnLinux " +
	"skipOnCi skipLocally"))

// pestSystem notes it(...)->skipOnLinux().
func (u *unit) pestSystem(d *decl, call string, note func(s Skipping, at, to int)) {
	for j := d.end - 1; j > d.at; j-- {
		if u.at(j) == call && u.at(j-1) == "->" {
			note(Sometimes, j, j+1)
			return
		}
	}
}

// sharpConditions matches C# attributes that restrict a test to some machines.
var sharpConditions = lazyregexp.New(`^(?:Platform|PlatformSpecific|OSCondition|OSSkipCondition|` +
	`SkipOnPlatform|CICondition)$|(?i:(?:windows|win|mac|osx|macos|linux|unix)(?:only)?(?:fact|theory)$)|^(?:Manual|` +
	`Local|Nightly|DebugOnly|SkipOnCI|NotOnCI)(?:Fact|Theory)$`)

// sharpOnly reports whether the attribute with the name at i lists where a test runs.
func (u *unit) sharpOnly(i, to int) bool {
	if u.lang.Name != "csharp" || !sharpConditions().MatchString(u.at(i)) || strings.HasPrefix(u.at(i), "Skip") ||
		u.at(i) == "OSSkipCondition" || strings.HasPrefix(u.at(i), "Not") {
		return false
	}
	return !anyOf(i, to, func(j int) bool { return u.at(j) == "Exclude" })
}

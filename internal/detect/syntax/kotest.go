package syntax

import (
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// titledSpecs reports whether the file may have Kotest tests of the form "adds" { ... }.
func (u *unit) titledSpecs() bool {
	return u.lang.Name == "kotlin" && u.inTests &&
		(u.names("kotest") || u.names("kotlintest") || u.names("StringSpec") || u.names("FreeSpec") || u.names("WordSpec"))
}

// declareTitled reads the test or group whose title is at i: "a" {}, "a".config(...) {}, "a" - {},
// "a" should {}.
func (u *unit) declareTitled(i int) {
	d := decl{kind: declTest, name: strings.Clone(lex.Unquote(u.at(i))), start: i, at: i, body: i + 1, end: i + 1,
		calls: []string{""}}
	u.passConfig(&d)
	switch u.at(d.end) {
	case "-", "should", "Should", "When", "`when`", "shouldNot":
		d.kind = declSuite
		d.end++
	}
	if u.at(d.end) != "{" || u.tok[d.end].First {
		return
	}
	d.end = u.closer(d.end)
	u.decls = append(u.decls, d)
}

// kotestBlock skips the rest of a Kotest call after its title, and reports whether it may be a
// test, as other libraries use the same words.
func (u *unit) kotestBlock(d *decl) bool {
	u.passConfig(d)
	block := u.at(d.end) == "{"
	switch u.at(d.at) {
	case "then", "and", "And", "scenario", "`when`", "expect":
		if !block || u.kindAt(d.body-1) != lex.Text {
			return false
		}
	}
	if block {
		d.end = u.closer(d.end)
	}
	return true
}

// passConfig skips .config(...).
func (u *unit) passConfig(d *decl) {
	if u.at(d.end) == "." && u.at(d.end+1) == "config" && u.at(d.end+2) == "(" {
		d.end = u.closer(d.end + 2)
	}
}

// kotestSkips notes the skips in the title and the options of a test or group: "!adds",
// .config(enabled = false), .config(enabledIf = { System.getenv("CI") == null }).
func (u *unit) kotestSkips(t *Test, d *decl, note func(s Skipping, at, to int)) {
	if d.kind != declTest && d.kind != declSuite {
		return
	}
	if strings.HasPrefix(d.name, "!") {
		note(Always, d.at, min(d.at+4, len(u.tok)))
	}
	t.Focus = t.Focus || d.kind == declTest && strings.HasPrefix(d.name, "f:")
	for j := d.body; j < d.end && u.at(j) != "{"; j++ {
		if u.at(j) != "config" || u.at(j-1) != "." || u.at(j+1) != "(" {
			continue
		}
		end := u.closer(j+1) - 1
		for k := j + 2; k < end; k++ {
			if u.at(k+1) == "=" && (u.at(k) == "enabled" || strings.HasPrefix(u.at(k), "enabledIf") ||
				strings.HasPrefix(u.at(k), "enabledOr")) {
				u.kotestOption(k, min(u.commaAfter(k, end)+1, end), note)
			}
		}
		return
	}
}

// kotestOption notes the option at i that enables or disables tests.
func (u *unit) kotestOption(i, end int, note func(s Skipping, at, to int)) {
	value := i + 2
	if u.at(value) == "{" {
		value++
	}
	switch {
	case u.at(value) == "true" && u.constant(value) || u.at(value) == "true" && u.at(value+1) == "}":
	case u.at(value) == "false" && (u.constant(value) || u.at(value+1) == "}"), u.at(value) == "Enabled" &&
		u.at(value+2) == "disabled" && u.at(i+2) == "{":
		note(Always, i, end)
	default:
		note(Sometimes, i, end)
	}
}

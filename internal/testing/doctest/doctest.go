// Package doctest compares generated parts of documents with what the tests generate.
package doctest

import (
	"os"
	"strings"
	"testing"
)

// Part is a generated part of a document, between the lines of two comments.
type Part struct {
	File string
	// Name is what the part has, such as "cases".
	Name string
	// Package and Test name the test that generates the part.
	Package, Test string
}

// Check fails the test if the part of the document is not text. With update it writes it
// instead.
func (p Part) Check(t testing.TB, text string, update bool) {
	t.Helper()
	raw, err := os.ReadFile(p.File)
	if err != nil {
		t.Fatal(err)
	}
	command := "go test ./" + p.Package + " -run " + p.Test + " -update"
	want, ok := replace(string(raw), "<!-- "+p.Name+": "+command+" -->\n", "<!-- end of "+p.Name+" -->\n", text)
	switch {
	case !ok:
		t.Fatalf("%s has no part for the %s", p.File, p.Name)
	case update:
		if err := os.WriteFile(p.File, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	case want != string(raw):
		t.Errorf("%s differs; %s writes it", p.File, command)
	}
}

// replace replaces what is between two lines, and reports whether both are there.
func replace(text, begin, end, with string) (string, bool) {
	before, rest, begins := strings.Cut(text, begin)
	_, after, ends := strings.Cut(rest, end)
	return before + begin + with + "\n" + end + after, begins && ends
}

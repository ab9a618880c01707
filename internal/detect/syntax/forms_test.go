package syntax_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Code for all languages asks the forms of a language and does not test its name.
func TestNamesOfLanguagesAreNotTested(t *testing.T) {
	t.Parallel()
	byName := regexp.MustCompile(`\b(?:lang|l)\.Name\s*[!=]=|switch\b.*\b(?:lang|l)\.Name\s*\{|\[\w*\.?lang\.Name\]`)
	var files []string
	for _, pattern := range []string{"*.go", "../*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := byName.Find(text); found != nil && filepath.Base(name) != "forms_test.go" {
			t.Errorf("%s tests the name of a language: %s", name, found)
		}
	}
}

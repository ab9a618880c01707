package perdure_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestActionsArePinned: a tag of an action can be moved to other code, the hash of a commit
// cannot.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	uses, pinned := regexp.MustCompile(`uses:\s*(.*)`), regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v[0-9.]+$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: %s is not pinned to a commit with its version in a comment", file, m[1])
			}
		}
		if !strings.Contains(string(text), "permissions:\n  contents: read") {
			t.Errorf("%s: the workflow has more rights than to read", file)
		}
	}
}

// TestDependenciesAreReviewed: docs/dependencies.md has a row for each direct dependency and
// no other.
func TestDependenciesAreReviewed(t *testing.T) {
	t.Parallel()
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(mod), -1) {
		direct[m[1]] = true
	}
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\S+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = true
		if !direct[m[1]] {
			t.Errorf("%s is listed and not a direct dependency", m[1])
		}
	}
	for name := range direct {
		if !listed[name] {
			t.Errorf("%s has no row in docs/dependencies.md", name)
		}
	}
}

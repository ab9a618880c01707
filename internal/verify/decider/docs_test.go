package decider_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/verify/decider"
)

var update = flag.Bool("update", false, "write docs/deciders.md instead of comparing it")

// docs/deciders.md is generated from the table.
func TestDocsOfTable(t *testing.T) {
	t.Parallel()
	name := filepath.Join("..", "..", "..", "docs", "deciders.md")
	got := tableDocs()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Error("docs/deciders.md is not current; go test ./internal/verify/decider -run Docs -update writes it")
	}
}

func tableDocs() string {
	var b strings.Builder
	b.WriteString(`# Files that decide what a check runs

Generated from internal/verify/decider/table.yaml; do not edit. [Loops](loops.md#files-that-decide-what-the-check-runs)
says what a change of such a file does. The first matching row applies. Names are those of files in any folder, a slash
at the end means everything below such a folder, an asterisk any beginning or end. Files in folders named testdata, 
fixtures, ` + "`__fixtures__`, `__snapshots__`" + ` and cassettes decide nothing.

| Ecosystem | Part | Decides | Files |
|---|---|---|---|
`)
	last := ""
	for _, r := range decider.Table() {
		shown := r.Ecosystem
		if shown == last {
			shown = ""
		}
		last = cmp.Or(r.Ecosystem, last)
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` |\n", shown, r.Part, r.Decides, r.Files())
	}
	b.WriteString(`
Besides:

| Part | Decides | Files |
|---|---|---|
| collection | which tests run, which lines coverage counts, what is an error | ` + configurations + ` |
| collection | a test is not collected any more | ` + movedTests + ` |
| build | a script with the name of a check is run by a file of the project | ` + scripts + ` |
| loader | a new file is loaded instead of another one | ` + shadowing + ` |

A manifest (package.json, go.mod, Cargo.toml, pyproject.toml, requirements, Pipfile, Gemfile, composer.json) that only
gains dependencies of a registry, and its lock file, are named; the check uses them as they are. A file of which
only comments or empty lines changed is not named.
`)
	return b.String()
}

// Long cells of the table.
const (
	configurations = "configuration of test runners, coverage and linters, as in " +
		"[detection](detection.md#fixtures-and-protected-files)"
	movedTests = "a test file that is moved to where its runner does not look: for another system or machine, in " +
		"`testdata`, with an underscore (Go); a name that pytest, jest, vitest, Surefire, RSpec or PHPUnit does not match; " +
		"a folder that they skip; a folder below `tests/` (Rust)"
	scripts = "a script such as check.sh or run_tests.py that a makefile, a script of a package manager or another " +
		"script names"
	shadowing = "a module with the name of a library that the manifests declare, of one of Python, or of the runner; a " +
		"package with the name of a module next to it; a .js file next to the .ts file; a class among the tests with the " +
		"name of one of the code; compiled code next to the source"
)

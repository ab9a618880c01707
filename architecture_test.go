package perdure_test

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestArchitecture requires that the files and symbols exist that
// docs/architecture.md names as answers, and that files and folders exist which
// any current page names. Decisions and the changelog describe the past.
func TestArchitecture(t *testing.T) {
	t.Parallel()
	files := handWritten(t)
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	answers := placesNamed(string(page))
	if len(answers) < 12 {
		t.Errorf("docs/architecture.md answers %d questions, want at least 12", len(answers))
	}
	report(t, checkPlaces(answers, files), nil)
	known := make(map[string]bool)
	for _, f := range files {
		known[f.path], known[f.dir()] = true, true
	}
	pages := []string{
		"README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/README.md", "docs/architecture.md", "docs/tour.md",
		"docs/concepts.md", "docs/guarantees.md", "docs/operations.md", "docs/loops.md", "docs/check.md", "docs/detection.md",
	}
	for _, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range pathsNamed(string(text)) {
			if _, err := os.Stat(named); err != nil && !known[named] {
				t.Errorf("%s names %s, which does not exist", name, named)
			}
		}
	}
}

// TestDocGo requires that the files exist that the package comment names.
func TestDocGo(t *testing.T) {
	t.Parallel()
	for _, f := range handWritten(t) {
		if f.test || f.ast.Doc == nil {
			continue
		}
		for _, name := range goFile.FindAllString(f.ast.Doc.Text(), -1) {
			if _, err := os.Stat(path.Join(f.dir(), name)); err != nil {
				t.Errorf("%s: the package comment names %s, which does not exist", f.path, name)
			}
		}
	}
	report(t, checkDocSymbols(handWritten(t)), nil)
}

// checkDocSymbols finds symbols that package comments name with the folder of their
// package, as internal/detect.Run, and that do not exist.
func checkDocSymbols(files []*sourceFile) []finding {
	symbols, dirs := make(map[string]bool), byDir(files)
	for _, f := range files {
		for _, name := range declaredNames(f) {
			symbols[f.dir()+"."+name] = true
		}
	}
	var found []finding
	for _, f := range files {
		if f.test || f.ast.Doc == nil {
			continue
		}
		for _, m := range dirSymbol.FindAllStringSubmatch(f.ast.Doc.Text(), -1) {
			if dirs[m[1]] != nil && m[2] != "go" && !symbols[m[0]] {
				found = append(found, finding{
					key:  "symbol " + f.path + " " + m[0],
					text: fmt.Sprintf("%s: the package comment names %s, which does not exist", f.path, m[0]),
				})
			}
		}
	}
	return found
}

// declaredNames returns the names that a file declares, T.M for methods.
func declaredNames(f *sourceFile) []string {
	var names []string
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			names = append(names, functionName(fn))
			continue
		}
		for _, spec := range decl.(*ast.GenDecl).Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

var (
	dirSymbol = regexp.MustCompile(`\b(internal(?:/[a-z]+)+|loop)\.(\w+(?:\.[A-Z]\w*)?)`)
	goFile    = regexp.MustCompile(`\b[a-z][a-z0-9_]*\.go\b`)
	answerRow = regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\| `([^`]+)` \\|$")
	namedPath = regexp.MustCompile(
		"`((?:internal|cmd|docs|e2e|examples|bench|handoff|loop|model|agent|rlm|worker|client)" +
			"/[a-z0-9_/.-]+)`")
)

// answer is a place that the page of the architecture names.
type answer struct{ file, symbol string }

func placesNamed(page string) []answer {
	var all []answer
	for _, m := range answerRow.FindAllStringSubmatch(page, -1) {
		all = append(all, answer{m[1], m[2]})
	}
	return all
}

// pathsNamed returns the paths of the module that a page names in code quotes.
func pathsNamed(page string) []string {
	var all []string
	for _, m := range namedPath.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(m[1], "…") {
			all = append(all, strings.TrimSuffix(m[1], "/"))
		}
	}
	return all
}

func checkPlaces(answers []answer, files []*sourceFile) []finding {
	symbols := make(map[answer]bool)
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				symbols[answer{f.path, functionName(fn)}] = true
			}
		}
	}
	var found []finding
	for _, a := range answers {
		if !symbols[a] {
			found = append(found, finding{
				key:  "place " + a.file + " " + a.symbol,
				text: fmt.Sprintf("docs/architecture.md names %s in %s, which does not exist", a.symbol, a.file),
			})
		}
	}
	return found
}

func TestArchitectureRule(t *testing.T) {
	t.Parallel()
	page := "| a thing | `a.go` | `T.M` |\n| another | `a.go` | `F` |\n| gone | `b.go` | `F` |\n\n" +
		"See `loop/x.go` and `x.go`.\n"
	files := sources(t, map[string]string{"a.go": "package a\n\nfunc F() {}\n\nfunc (t *T) M() {}\n"})
	if diff := cmp.Diff([]string{"place b.go F"}, keys(checkPlaces(placesNamed(page), files))); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"loop/x.go"}, pathsNamed(page)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	named := sources(t, map[string]string{
		"a/doc.go": "// Package a begins with loop.F and internal/c.T.M of loop.U.\n" +
			"// See loop/x.go, loop.G, internal/c.T.N, and encoding/json.Decoder.\npackage a\n",
		"loop/b.go":       "package loop\n\ntype U int\n\nfunc F() {}\n",
		"internal/c/c.go": "package c\n\nfunc (t *T) M() {}\n",
	})
	want := []string{"symbol a/doc.go internal/c.T.N", "symbol a/doc.go loop.G"}
	if diff := cmp.Diff(want, keys(checkDocSymbols(named))); diff != "" {
		t.Errorf("symbols of package comments (-want +got):\n%s", diff)
	}
}

package perdure_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The rules of the house are tests: layers_test.go says who may import whom,
// sizes_test.go how large things may grow, names_test.go what is not done
// here. All of them read the same parsed files; each rule is a function from
// files to findings, so that it can be shown to catch what it is for.

// modulePath is the module's import path, as in go.mod.
const modulePath = "github.com/perdure/perdure"

// sourceFile is one parsed Go file of the module.
type sourceFile struct {
	path      string // from the module's root, with slashes
	src       []byte
	fset      *token.FileSet
	ast       *ast.File
	test      bool
	generated bool
}

// dir is the folder of the file, which is also the package's path in the
// module; "." is the root.
func (f *sourceFile) dir() string { return path.Dir(f.path) }

func (f *sourceFile) line(p token.Pos) int { return f.fset.Position(p).Line }

// at names a place for a finding.
func (f *sourceFile) at(p token.Pos) string { return fmt.Sprintf("%s:%d", f.path, f.line(p)) }

// imports maps the names by which this file knows the packages it imports to
// their paths.
func (f *sourceFile) imports() map[string]string {
	names := make(map[string]string, len(f.ast.Imports))
	for _, spec := range f.ast.Imports {
		p := strings.Trim(spec.Path.Value, `"`)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	return names
}

// houseFiles parses every Go file of the module once.
var houseFiles = sync.OnceValues(func() ([]*sourceFile, error) {
	var files []*sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(name, entry.Name())
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := parseFile(fset, filepath.ToSlash(name), src)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

func skipFolder(name, base string) error {
	if name == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return filepath.SkipDir
	}
	return nil
}

func parseFile(fset *token.FileSet, name string, src []byte) (*sourceFile, error) {
	tree, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &sourceFile{
		path: name, src: src, fset: fset, ast: tree,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(tree),
	}, nil
}

// handWritten returns the module's files without generated ones.
func handWritten(t *testing.T) []*sourceFile {
	t.Helper()
	files, err := houseFiles()
	if err != nil {
		t.Fatalf("read the module's source: %v", err)
	}
	if len(files) == 0 {
		t.Fatal("no Go file found; the tests expect to run in the module's root")
	}
	return slices.DeleteFunc(slices.Clone(files), func(f *sourceFile) bool { return f.generated })
}

// sources parses a map of file names to text; for the tests of the rules.
func sources(t *testing.T, texts map[string]string) []*sourceFile {
	t.Helper()
	var files []*sourceFile
	fset := token.NewFileSet()
	for name, text := range texts {
		f, err := parseFile(fset, name, []byte(text))
		if err != nil {
			t.Fatalf("parse %s: %v", name, err)
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b *sourceFile) int { return strings.Compare(a.path, b.path) })
	return files
}

// byDir groups files by their folder.
func byDir(files []*sourceFile) map[string][]*sourceFile {
	dirs := make(map[string][]*sourceFile)
	for _, f := range files {
		dirs[f.dir()] = append(dirs[f.dir()], f)
	}
	return dirs
}

// finding is one breach of a rule. The key is stable while lines move, so that
// exceptions can name it.
type finding struct {
	key  string // "function loop/loop.go Run"
	text string // for people: place, number, limit
}

// report fails the test for each finding that no exception covers, and for
// each exception that covers nothing any more. An exception maps a finding's
// key to the reason why it stands.
func report(t *testing.T, findings []finding, exceptions map[string]string) {
	t.Helper()
	used := make(map[string]bool)
	for _, f := range findings {
		if exceptions[f.key] != "" {
			used[f.key] = true
			continue
		}
		t.Errorf("%s\n\t(key of an exception: %q)", f.text, f.key)
	}
	for key, reason := range exceptions {
		if !used[key] {
			t.Errorf("exception %q (%s) covers nothing any more: delete it", key, reason)
		}
	}
}

// keys returns the sorted keys of findings; for the tests of the rules.
func keys(findings []finding) []string {
	var all []string
	for _, f := range findings {
		all = append(all, f.key)
	}
	slices.Sort(all)
	return all
}

// sortedNames returns the keys of a map in order.
func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

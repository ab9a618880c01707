package perdure_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestSystems checks the types of all packages as they are built for other systems. A build of
// them takes minutes, and only what the compiler refuses counts here. Bodies of functions of other
// modules are not read.
func TestSystems(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"windows", "darwin"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			checkTypes(t, system)
		})
	}
}

func checkTypes(t *testing.T, system string) {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	list, err := packages.Load(&packages.Config{
		Context: t.Context(),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedDeps | packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax,
		Env: append(slices.Clone(givenEnv()), "GOOS="+system, "CGO_ENABLED=0", "GOFLAGS="),
		ParseFile: func(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
			file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			if file != nil && !strings.HasPrefix(name, root) {
				for _, d := range file.Decls {
					if f, ok := d.(*ast.FuncDecl); ok {
						f.Body = nil
					}
				}
			}
			return file, err
		},
	}, "./...")
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 100 {
		t.Errorf("%d packages were read", len(list))
	}
	for _, pkg := range list {
		for _, err := range pkg.Errors {
			t.Error(err)
		}
	}
}

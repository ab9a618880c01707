package perdure_test

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// signatureExceptions: key of a finding to the reason why it stands.
var signatureExceptions = map[string]string{}

// Not parallel, because of what typeChecker changes.
func TestSignatures(t *testing.T) { //nolint:paralleltest // see above
	files, err := houseFiles()
	if err != nil {
		t.Fatalf("read the module's source: %v", err)
	}
	report(t, checkSignatures(t, files, publicPackages), signatureExceptions)
}

// checkSignatures finds types of internal packages in the exported declarations
// of public packages: another module cannot name these types, so it cannot set the
// field or write the function that takes them.
func checkSignatures(t *testing.T, files []*sourceFile, public []string) []finding {
	t.Helper()
	c := newTypeChecker(t, files)
	var found []finding
	for _, dir := range public {
		pkg, err := c.Import(path.Join(modulePath, dir))
		if err != nil {
			t.Fatalf("check types of %s: %v", dir, err)
		}
		for _, name := range pkg.Scope().Names() {
			if token.IsExported(name) {
				e := &exposure{pkg: pkg, dir: dir, seen: make(map[types.Type]bool)}
				e.object(pkg.Scope().Lookup(name))
				found = append(found, e.found...)
			}
		}
	}
	if err := errors.Join(c.failed...); err != nil {
		t.Fatalf("read the standard library: %v", err)
	}
	return found
}

// typeChecker checks the types of the module's packages from their parsed files,
// without the bodies of functions. It reads the standard library in the same way
// and takes packages of other modules as empty. So it needs no build and about two
// seconds; types of other modules are unknown to it.
type typeChecker struct {
	files map[string][]*sourceFile // by folder
	done  map[string]*types.Package
	std   types.Importer
	// failed are the packages of the standard library that could not be read.
	failed []error
}

// newTypeChecker turns cgo off in go/build's default context until the test ends,
// or reading package net would run the cgo tool.
func newTypeChecker(t *testing.T, files []*sourceFile) *typeChecker {
	t.Helper()
	cgo := build.Default.CgoEnabled
	build.Default.CgoEnabled = false
	t.Cleanup(func() { build.Default.CgoEnabled = cgo })
	if build.Default.GOROOT == "" { // this binary was built with -trimpath
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatalf("find the standard library: %v", err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	return &typeChecker{files: byDir(files), done: make(map[string]*types.Package), std: standardLibrary()}
}

// standardLibrary reads each package of the standard library once.
var standardLibrary = sync.OnceValue(func() types.Importer {
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
})

// Import returns a package with the types of its declarations.
func (c *typeChecker) Import(importPath string) (*types.Package, error) {
	if pkg := c.done[importPath]; pkg != nil {
		return pkg, nil
	}
	dir, ours := strings.CutPrefix(importPath+"/", modulePath+"/")
	first, _, _ := strings.Cut(importPath, "/")
	switch {
	case !ours && !strings.Contains(first, "."):
		pkg, err := c.std.Import(importPath)
		if err != nil {
			c.failed = append(c.failed, err)
		}
		return pkg, err
	case !ours:
		c.done[importPath] = types.NewPackage(importPath, path.Base(importPath))
		c.done[importPath].MarkComplete()
		return c.done[importPath], nil
	}
	dir = path.Clean(dir)
	fset, trees := token.NewFileSet(), []*ast.File{}
	for _, f := range c.files[dir] {
		if !f.test && built(f) {
			fset, trees = f.fset, append(trees, f.ast)
		}
	}
	if len(trees) == 0 {
		return nil, fmt.Errorf("no Go file in %s", dir)
	}
	cfg := types.Config{Importer: c, IgnoreFuncBodies: true, Error: func(error) {}} // errors of unknown types
	c.done[importPath], _ = cfg.Check(importPath, fset, trees, nil)
	return c.done[importPath], nil
}

// built reports whether the file belongs to a build for this system.
func built(f *sourceFile) bool {
	context := build.Default
	context.OpenFile = func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.src)), nil }
	ok, err := context.MatchFile(f.dir(), path.Base(f.path))
	return ok && err == nil
}

// exposure collects what one exported declaration exposes.
type exposure struct {
	pkg   *types.Package
	dir   string
	seen  map[types.Type]bool
	found []finding
}

func (e *exposure) object(obj types.Object) {
	name, isType := obj.(*types.TypeName)
	if !isType {
		e.typ(obj.Name(), obj.Type())
		return
	}
	if alias, ok := obj.Type().(*types.Alias); ok {
		e.params(obj.Name(), alias.TypeParams())
		e.typ(obj.Name(), alias.Rhs())
		return
	}
	if named, ok := name.Type().(*types.Named); ok {
		e.declared(obj.Name(), named)
	}
}

// declared walks a type of the package itself: its type parameters, what it is
// made of, and its methods, those of embedded fields included.
func (e *exposure) declared(at string, named *types.Named) {
	if e.seen[named] {
		return
	}
	e.seen[named] = true
	e.params(at, named.TypeParams())
	e.typ(at, named.Underlying())
	if types.IsInterface(named) {
		return
	}
	methods := types.NewMethodSet(types.NewPointer(named))
	for i := range methods.Len() {
		if m := methods.At(i).Obj(); m.Exported() {
			e.typ(at+"."+m.Name(), m.Type())
		}
	}
}

func (e *exposure) params(at string, list *types.TypeParamList) {
	for i := range list.Len() {
		e.typ(at, list.At(i).Constraint())
	}
}

// typ walks a type that stands in the declaration called at.
func (e *exposure) typ(at string, t types.Type) {
	switch t := t.(type) {
	case *types.Alias:
		e.named(at, t, t.Obj(), t.TypeArgs())
	case *types.Named:
		e.named(at, t, t.Obj(), t.TypeArgs())
	case *types.Map:
		e.typ(at, t.Key())
		e.typ(at, t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		e.typ(at, t.Elem())
	case *types.Signature:
		e.params(at, t.TypeParams())
		e.typ(at, t.Params())
		e.typ(at, t.Results())
	case *types.Tuple:
		for i := range t.Len() {
			e.typ(at, t.At(i).Type())
		}
	case *types.Struct:
		for i := range t.NumFields() {
			if f := t.Field(i); f.Exported() {
				e.typ(at+"."+f.Name(), f.Type())
			}
		}
	case *types.Interface:
		for i := range t.NumExplicitMethods() {
			if m := t.ExplicitMethod(i); m.Exported() {
				e.typ(at+"."+m.Name(), m.Type())
			}
		}
		for i := range t.NumEmbeddeds() {
			e.typ(at, t.EmbeddedType(i))
		}
	case *types.Union:
		for i := range t.Len() {
			e.typ(at, t.Term(i).Type())
		}
	}
}

// named notes a type of an internal package, and walks one that the package does
// not export: a caller gets its fields and methods all the same.
func (e *exposure) named(at string, t types.Type, obj *types.TypeName, args *types.TypeList) {
	for i := range args.Len() {
		e.typ(at, args.At(i))
	}
	pkg := obj.Pkg()
	if pkg == nil { // error, any, comparable
		return
	}
	rel, ours := strings.CutPrefix(pkg.Path(), modulePath+"/")
	switch named, declared := t.(*types.Named); {
	case ours && slices.Contains(strings.Split(rel, "/"), "internal"):
		name := rel + "." + obj.Name()
		e.found = append(e.found, finding{
			key:  "exposes " + e.dir + " " + at + " " + name,
			text: fmt.Sprintf("%s: exported %s has the type %s of an internal package", e.dir, at, name),
		})
	case pkg == e.pkg && !obj.Exported() && declared:
		e.declared(at, named)
	}
}

// Not parallel, because of what typeChecker changes.
func TestSignaturesRule(t *testing.T) { //nolint:paralleltest // see above
	const inner = "// Package in is.\npackage in\n\ntype T struct{}\ntype G[K any] struct{}\nfunc F() T { return T{} }\n"
	const start = "package out\nimport (\"context\"; \"iter\"; \"" + modulePath + "/internal/in\")\n" +
		"var _ context.Context\nvar _ iter.Seq[in.T]\n"
	tests := []struct {
		name, src string
		want      []string // where
	}{
		{"nothing", "type a = in.T\nfunc f(in.T) {}\ntype T struct { f in.T }\nfunc (T) m(in.T) {}", nil},
		{"function", "func F(context.Context, ...*in.T) {}", []string{"F"}},
		{"result", "func F() (map[string][]in.T, error) { return nil, nil }", []string{"F"}},
		{"field", "type T struct { F chan in.T; G struct { H [2]in.T } }", []string{"T.F", "T.G.H"}},
		{"method", "type T int\nfunc (*T) M(func(in.T)) {}", []string{"T.M"}},
		{"interface", "type I interface { M() in.T; m(in.T) }", []string{"I.M"}},
		{"definition", "type T in.T\ntype U []in.T", []string{"U"}},
		{"alias", "type T = in.T", []string{"T"}},
		{"variable without a type", "var V = in.F()", []string{"V"}},
		{"constraint", "type T[K in.G[int]] struct{}\nfunc F[K interface{ ~int; M(in.T) }]() {}", []string{"F.M", "T"}},
		{"argument of the standard library's", "func F() iter.Seq2[int, in.T] { return nil }", []string{"F"}},
		{"generic", "type T struct { F *in.G[string] }", []string{"T.F"}},
		{"type that is not exported",
			"type t struct { F in.T }\nfunc (t) M() in.T { return in.T{} }\nfunc F() *t { return nil }", []string{"F.F", "F.M"}},
		{"embedded", "type e struct{}\nfunc (e) M(in.T) {}\ntype T struct { e }", []string{"T.M"}},
		{"embedded itself", "type T struct { *in.T }", []string{"T.T"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { //nolint:paralleltest // as above
			files := sources(t, map[string]string{"internal/in/in.go": inner, "out/out.go": start + test.src})
			var got []string
			for _, key := range keys(checkSignatures(t, files, []string{"out"})) {
				got = append(got, strings.Fields(key)[2])
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

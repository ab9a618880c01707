package perdure_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// The limits. Code aims lower: functions of 40 lines, files of 100 to 350, three
// methods an interface, four parameters. A package has no limit: it is split when
// it holds two subjects.
const (
	maxFunctionLines    = 100
	maxNesting          = 4
	maxLineColumns      = 120 // a tab counts as one
	maxFileLines        = 600
	maxTestFileLines    = 1000
	maxInterfaceMethods = 5
	maxParameters       = 5
)

// sizeExceptions: key of a finding to the reason why it stands.
var sizeExceptions = map[string]string{
	"parameters internal/storage/sqldb/vfs_linux.go openFile": "the signature is SQLite's",
}

func TestSizes(t *testing.T) {
	t.Parallel()
	report(t, checkSizes(handWritten(t)), sizeExceptions)
}

func checkSizes(files []*sourceFile) []finding {
	var found []finding
	for _, f := range files {
		found = append(found, checkFileLength(f)...)
		found = append(found, checkLineLength(f)...)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				found = append(found, checkFunction(f, n)...)
			case *ast.TypeSpec:
				found = append(found, checkInterface(f, n)...)
			}
			return true
		})
		if !f.test {
			found = append(found, checkDocumented(f)...)
		}
	}
	for dir, group := range byDir(files) {
		found = append(found, checkPackage(dir, group)...)
	}
	return found
}

func checkFileLength(f *sourceFile) []finding {
	limit := maxFileLines
	if f.test {
		limit = maxTestFileLines
	}
	lines := strings.Count(string(f.src), "\n")
	if lines <= limit {
		return nil
	}
	return []finding{{
		key:  "file " + f.path,
		text: fmt.Sprintf("%s: %d lines, at most %d", f.path, lines, limit),
	}}
}

// checkLineLength finds long lines. Lines of raw strings are text that cannot be
// broken, and the reason of a //nolint comment stands in its line.
func checkLineLength(f *sourceFile) []finding {
	raw := map[int]bool{}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
			for line := f.line(lit.Pos()); line <= f.line(lit.End()); line++ {
				raw[line] = true
			}
		}
		return true
	})
	var found []finding
	for i, line := range strings.Split(string(f.src), "\n") {
		columns := utf8.RuneCountInString(line)
		if columns > maxLineColumns && !raw[i+1] && !strings.Contains(line, "//nolint:") {
			found = append(found, finding{
				key:  "line " + f.path,
				text: fmt.Sprintf("%s:%d: %d columns, at most %d", f.path, i+1, columns, maxLineColumns),
			})
		}
	}
	return found
}

// functionName is "Name" or "Type.Name".
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	return receiverType(fn) + "." + fn.Name.Name
}

func receiverType(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	for {
		switch inner := t.(type) {
		case *ast.StarExpr:
			t = inner.X
		case *ast.IndexExpr:
			t = inner.X
		case *ast.IndexListExpr:
			t = inner.X
		case *ast.Ident:
			return inner.Name
		default:
			return "?"
		}
	}
}

// longOnPurpose is the comment that lets a function exceed the line limit; the
// reason after the second slashes is part of it.
var longOnPurpose = regexp.MustCompile(`^//nolint:funlen // \S+`)

func excused(fn *ast.FuncDecl) bool {
	if fn.Doc == nil {
		return false
	}
	for _, c := range fn.Doc.List {
		if longOnPurpose.MatchString(c.Text) {
			return true
		}
	}
	return false
}

// tableLines returns how many lines of a function of a test file are rows of
// tables: data, which is read row by row.
func tableLines(f *sourceFile, fn *ast.FuncDecl) int {
	lines := 0
	if !f.test {
		return 0
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if ok {
			lines += f.line(lit.End()) - f.line(lit.Pos())
		}
		return !ok
	})
	return lines
}

func checkFunction(f *sourceFile, fn *ast.FuncDecl) []finding {
	var found []finding
	name := functionName(fn)
	add := func(kind string, n, limit int) {
		if n > limit {
			found = append(found, finding{
				key:  kind + " " + f.path + " " + name,
				text: fmt.Sprintf("%s: %s: %s %d, at most %d", f.at(fn.Pos()), name, kind, n, limit),
			})
		}
	}
	add("parameters", fn.Type.Params.NumFields(), maxParameters)
	if fn.Body == nil {
		return found
	}
	if !excused(fn) {
		add("lines", f.line(fn.Body.End())-f.line(fn.Type.Pos())+1-tableLines(f, fn), maxFunctionLines)
	}
	add("nesting", nesting(fn.Body), maxNesting)
	return found
}

// nesting is how many control structures enclose the deepest statement. An
// else-if is as deep as its if, a case as deep as its switch, and a function
// literal as deep as the statement it stands in.
func nesting(root ast.Node) int {
	depth, deepest := 0, 0
	var visit func(n ast.Node)
	inside := func(n ast.Node) {
		depth++
		deepest = max(deepest, depth)
		visit(n)
		depth--
	}
	visit = func(n ast.Node) {
		ast.Inspect(n, func(child ast.Node) bool {
			if child == nil || child == n {
				return true
			}
			switch s := child.(type) {
			case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
				inside(s)
				return false
			case *ast.IfStmt:
				if outer, ok := n.(*ast.IfStmt); ok && outer.Else == child {
					visit(s)
				} else {
					inside(s)
				}
				return false
			}
			return true
		})
	}
	visit(root)
	return deepest
}

func checkInterface(f *sourceFile, spec *ast.TypeSpec) []finding {
	itf, ok := spec.Type.(*ast.InterfaceType)
	if !ok {
		return nil
	}
	var found []finding
	methods := 0
	for _, m := range itf.Methods.List {
		methods += len(m.Names)
		fn, ok := m.Type.(*ast.FuncType)
		if !ok || len(m.Names) == 0 {
			continue
		}
		if n := fn.Params.NumFields(); n > maxParameters {
			name := spec.Name.Name + "." + m.Names[0].Name
			found = append(found, finding{
				key:  "parameters " + f.path + " " + name,
				text: fmt.Sprintf("%s: %s: parameters %d, at most %d", f.at(m.Pos()), name, n, maxParameters),
			})
		}
	}
	if methods > maxInterfaceMethods {
		found = append(found, finding{
			key: "interface " + f.path + " " + spec.Name.Name,
			text: fmt.Sprintf("%s: interface %s: methods %d, at most %d", f.at(spec.Pos()), spec.Name.Name, methods,
				maxInterfaceMethods),
		})
	}
	return found
}

// checkDocumented wants a comment on every exported constant, variable, type,
// function, and method of an exported type. The comment of a group counts for
// all of the group.
func checkDocumented(f *sourceFile) []finding {
	var found []finding
	add := func(name *ast.Ident, full string) {
		found = append(found, finding{
			key:  "undocumented " + f.path + " " + full,
			text: fmt.Sprintf("%s: exported %s has no comment", f.at(name.Pos()), full),
		})
	}
	for _, decl := range f.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			public := d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiverType(d)))
			if public && d.Doc == nil {
				add(d.Name, functionName(d))
			}
		case *ast.GenDecl:
			for _, name := range undocumentedNames(d) {
				add(name, name.Name)
			}
		}
	}
	return found
}

func undocumentedNames(d *ast.GenDecl) []*ast.Ident {
	if d.Doc != nil && d.Lparen.IsValid() && d.Tok != token.TYPE {
		return nil
	}
	var names []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			if s.Doc != nil || s.Comment != nil || d.Doc != nil {
				continue
			}
			for _, name := range s.Names {
				if name.IsExported() {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// checkPackage requires a package comment. A folder with test files only has none.
func checkPackage(dir string, files []*sourceFile) []finding {
	onlyTests := true
	for _, f := range files {
		if f.ast.Doc != nil && !f.test {
			return nil
		}
		onlyTests = onlyTests && f.test
	}
	if onlyTests {
		return nil
	}
	return []finding{{
		key:  "undocumented package " + dir,
		text: fmt.Sprintf("package %s has no package comment", dir),
	}}
}

func TestSizesRule(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\tprintln()\n", maxFunctionLines)
	tests := []struct {
		name string
		file string
		src  string
		want []string
	}{
		{"fine", "a.go", "// Package a is.\npackage a\n\n// F does.\nfunc F(a, b, c, d, e int) {}\n", nil},
		{"long function", "a.go", "// Package a is.\npackage a\n\nfunc f() {\n" + long + "}\n", []string{"lines a.go f"}},
		{"table of a test", "a_test.go", "package a\n\nfunc f() {\n\tx := []int{\n" + strings.Repeat("\t\t1,\n",
			maxFunctionLines) + "\t}\n}\n", nil},
		{"table of a program", "a.go", "// Package a is.\npackage a\n\nfunc f() {\n\tx := []int{\n" +
			strings.Repeat("\t\t1,\n", maxFunctionLines) + "\t}\n}\n", []string{"lines a.go f"}},
		{"excused", "a.go", "// Package a is.\npackage a\n\n//nolint:funlen // an interpreter loop\nfunc f() {\n" + long +
			"}\n", nil},
		{"excused without a reason", "a.go", "// Package a is.\npackage a\n\n//nolint:funlen\nfunc f() {\n" + long + "}\n",
			[]string{"lines a.go f"}},
		{"long file", "a.go", "// Package a is.\npackage a\n" + strings.Repeat("\n", maxFileLines), []string{"file a.go"}},
		{"long test file", "a_test.go", "package a\n" + strings.Repeat("\n", maxFileLines), nil},
		{"long line", "a.go", "// Package a is.\npackage a\n\n//" + strings.Repeat("ä", maxLineColumns-2) + "\n//" +
			strings.Repeat("a", maxLineColumns-1) + "\n", []string{"line a.go"}},
		{"long line of a raw string", "a.go", "// Package a is.\npackage a\n\nvar x = `\n" +
			strings.Repeat("a", maxLineColumns+1) + "`\n", nil},
		{"long line with a reason", "a.go", "// Package a is.\npackage a\n\nvar x = 1 //nolint:unused // " +
			strings.Repeat("a", maxLineColumns) + "\n", nil},
		{"parameters", "a.go", "// Package a is.\npackage a\n\nfunc (t *T[K]) f(a, b, c, d, e, g int) {}\n",
			[]string{"parameters a.go T.f"}},
		{"interface", "a.go", "// Package a is.\npackage a\n\ntype i interface { a(); b(); c(); d(); e(); f() }\n",
			[]string{"interface a.go i"}},
		{"interface parameters", "a.go", "// Package a is.\npackage a\n\ntype i interface { a(b, c, d, e, f, g int) }\n",
			[]string{"parameters a.go i.a"}},
		{"no package comment", "b/a.go", "package a\n", []string{"undocumented package b"}},
		{"undocumented", "a.go", "// Package a is.\npackage a\n\ntype T int\n\nfunc (T) M() {}\n\nconst C = 1\n\nvar (\n" +
			"\tV = 1 // why\n\tW = 2\n)\n\nfunc F() {}\n",
			[]string{"undocumented a.go C", "undocumented a.go F", "undocumented a.go T", "undocumented a.go T.M",
				"undocumented a.go W"}},
		{"documented group", "a.go", "// Package a is.\npackage a\n\n// Kinds of it.\nconst (\n\tA = 1\n\tB = 2\n)\n", nil},
		{"unexported receiver", "a.go", "// Package a is.\npackage a\n\nfunc (t t) M() {}\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := keys(checkSizes(sources(t, map[string]string{test.file: test.src})))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNesting(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		body string
		want int
	}{
		{"flat", "f(); g()", 0},
		{"block", "{ f() }", 0},
		{"if", "if a { f() }", 1},
		{"else if chain", "if a { f() } else if b { g() } else if c { h() } else { i() }", 1},
		{"inside else", "if a { f() } else { if b { g() } }", 2},
		{"for if switch", "for { if a { switch b { case 1: f() } } }", 3},
		{"select", "for { select { case <-c: if a { f() } } }", 3},
		{"literal keeps the depth", "for { go func() { if a { f() } }() }", 2},
		{"deepest counts", "for { for { for { for { for { } } } } }; if a { }", 5},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := sources(t, map[string]string{"a.go": "package a\nfunc x() { " + test.body + " }\n"})[0]
			if got := nesting(f.ast.Decls[0].(*ast.FuncDecl).Body); got != test.want {
				t.Errorf("nesting(%s) = %d, want %d", test.body, got, test.want)
			}
		})
	}
}

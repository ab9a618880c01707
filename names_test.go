package perdure_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nameExceptions: key of a finding to the reason why it stands.
var nameExceptions = map[string]string{
	"call internal/testing/testdb/each.go context.Background": "the fresh store is made once, for all tests of a process",
	"call internal/process/guard/enter_unix.go os.Exit": "a guard process is this binary started again; it ends " +
		"before the program's main begins",
	"global internal/process/failpoint/failpoint.go enabled": "set by the linker, or once by TestMain, before " +
		"anything runs",
	"global internal/process/guard/guard.go entered": "a fact about the whole process, like its arguments",
	"global rlm/internal/repl/engine/starlark/starlark.go entered": "a fact about the whole " +
		"process, like its arguments",
	"call rlm/internal/repl/engine/starlark/starlark.go os.Exit": "the interpreter is this binary started again; it ends " +
		"where main would begin",
}

// ban is a function of another package that is not called here, and where it
// is after all.
type ban struct {
	pkg, name string // name "Print*" stands for all names with that beginning
	why       string
	tests     bool // also in test files
	allowed   func(place) bool
}

// place is where a banned name was found.
type place struct {
	file *sourceFile
	// enclosing are the nodes around it, outermost first.
	enclosing []ast.Node
}

// program reports whether the place is in package main.
func (p place) program() bool { return p.file.ast.Name.Name == "main" }

// function is the name of the declared function around the place.
func (p place) function() string {
	for _, n := range p.enclosing {
		if fn, ok := n.(*ast.FuncDecl); ok {
			return functionName(fn)
		}
	}
	return ""
}

// inBubble reports whether the place is inside a call of synctest.Test, where
// sleeping moves the simulated clock and takes no time.
func (p place) inBubble() bool {
	for _, n := range p.enclosing {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Test" {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "synctest" {
				return true
			}
		}
	}
	return false
}

// boundedYAML is why the YAML library is not called elsewhere.
const boundedYAML = "read YAML with internal/text/yamltext, which bounds it"

func bans() []ban {
	yamlText := func(p place) bool { return p.file.dir() == "internal/text/yamltext" }
	inMain := func(p place) bool { return p.program() && p.function() == "main" }
	exit := func(p place) bool { return inMain(p) || p.function() == "TestMain" }
	return []ban{
		{pkg: "time", name: "Sleep", why: "wait for a signal, or use synctest", tests: true, allowed: place.inBubble},
		{pkg: "os", name: "Exit", why: "only main and TestMain exit", tests: true, allowed: exit},
		{pkg: "log", name: "*", why: "log with the component's slog.Logger, return errors", tests: true},
		{pkg: "context", name: "Background", why: "take a ctx; only programs and tests start one", allowed: place.program},
		{pkg: "context", name: "TODO", why: "take a ctx; only programs and tests start one", tests: true},
		{pkg: "fmt", name: "Print*", why: "print through the CLI's env", allowed: place.program},
		{pkg: "github.com/goccy/go-yaml", name: "Unmarshal*", why: boundedYAML, allowed: yamlText},
		{pkg: "github.com/goccy/go-yaml", name: "NewDecoder", why: boundedYAML, allowed: yamlText},
		{pkg: "github.com/goccy/go-yaml/parser", name: "Parse*", why: boundedYAML, allowed: yamlText},
		{pkg: "os", name: "Getwd", why: "take a root directory; only programs ask for theirs", allowed: place.program},
	}
}

func (b ban) matches(pkg, name string) bool {
	if pkg != b.pkg {
		return false
	}
	if prefix, ok := strings.CutSuffix(b.name, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return name == b.name
}

func TestNames(t *testing.T) {
	t.Parallel()
	report(t, checkNames(handWritten(t)), nameExceptions)
}

func checkNames(files []*sourceFile) []finding {
	var found []finding
	for _, f := range files {
		found = append(found, checkBans(f, bans())...)
		found = append(found, checkInit(f)...)
		found = append(found, checkComments(f)...)
		if !f.test {
			found = append(found, checkErrorTexts(f)...)
		}
	}
	for _, group := range byDir(files) {
		written := writtenNames(group)
		for _, f := range group {
			if !f.test {
				found = append(found, checkGlobals(f, written)...)
			}
		}
	}
	return found
}

// walk calls fn for each node of the file with the nodes around it.
func walk(f *sourceFile, fn func(n ast.Node, enclosing []ast.Node)) {
	var stack []ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		fn(n, stack)
		stack = append(stack, n)
		return true
	})
}

func checkBans(f *sourceFile, list []ban) []finding {
	var found []finding
	imports := f.imports()
	walk(f, func(n ast.Node, enclosing []ast.Node) {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return
		}
		x, ok := sel.X.(*ast.Ident)
		if !ok {
			return
		}
		for _, b := range list {
			here := place{file: f, enclosing: enclosing}
			switch {
			case !b.matches(imports[x.Name], sel.Sel.Name):
			case f.test && !b.tests:
			case b.allowed != nil && b.allowed(here):
			default:
				found = append(found, finding{
					key:  "call " + f.path + " " + x.Name + "." + sel.Sel.Name,
					text: fmt.Sprintf("%s: %s.%s: %s", f.at(sel.Pos()), x.Name, sel.Sel.Name, b.why),
				})
			}
		}
	})
	return found
}

func checkInit(f *sourceFile) []finding {
	var found []finding
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			found = append(found, finding{
				key:  "init " + f.path,
				text: fmt.Sprintf("%s: init: hidden work at start-up; call it where it is needed", f.at(fn.Pos())),
			})
		}
	}
	return found
}

var (
	openEnd  = regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`)
	numbered = regexp.MustCompile(`\b(TODO|FIXME|XXX)\(#?\d+\)`)
)

func checkComments(f *sourceFile) []finding {
	var found []finding
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if openEnd.MatchString(c.Text) && !numbered.MatchString(c.Text) {
				found = append(found, finding{
					key:  "comment " + f.path,
					text: fmt.Sprintf("%s: an open end carries a number, as in TODO(#12): %s", f.at(c.Pos()), c.Text),
				})
			}
		}
	}
	return found
}

// checkGlobals wants no package-level variables but those that stay as they
// are: sentinel errors, embedded files, values computed when they are first used,
// arrays that the package never writes to (the language has no constant ones), and
// assertions named "_".
func checkGlobals(f *sourceFile, written map[string]bool) []finding {
	var found []finding
	for _, decl := range f.ast.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.VAR {
			continue
		}
		for _, spec := range d.Specs {
			s := spec.(*ast.ValueSpec)
			if embedded(d.Doc) || embedded(s.Doc) {
				continue
			}
			for i, name := range s.Names {
				if stays(f, s, i) || table(s, i) && !written[name.Name] {
					continue
				}
				found = append(found, finding{
					key: "global " + f.path + " " + name.Name,
					text: fmt.Sprintf("%s: package-level variable %s: put it into a struct, return it from a function, or use "+
						"sync.OnceValue", f.at(name.Pos()), name.Name),
				})
			}
		}
	}
	return found
}

func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

func stays(f *sourceFile, s *ast.ValueSpec, i int) bool {
	name := s.Names[i].Name
	if name == "_" || strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err") {
		return true
	}
	if i >= len(s.Values) {
		return false
	}
	call, ok := s.Values[i].(*ast.CallExpr)
	if !ok {
		return false
	}
	return calls(f, call, "sync", "OnceValue", "OnceValues", "OnceFunc") ||
		calls(f, call, modulePath+"/internal/text/lazyregexp", "New")
}

// calls reports whether a call is one of the functions of a package.
func calls(f *sourceFile, call *ast.CallExpr, pkg string, names ...string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && f.imports()[x.Name] == pkg && slices.Contains(names, sel.Sel.Name)
}

// table reports whether a variable is an unexported array given with its values.
func table(s *ast.ValueSpec, i int) bool {
	if s.Names[i].IsExported() || i >= len(s.Values) {
		return false
	}
	literal, ok := s.Values[i].(*ast.CompositeLit)
	if !ok {
		return false
	}
	array, ok := literal.Type.(*ast.ArrayType)
	return ok && array.Len != nil
}

// writtenNames are the identifiers a package assigns to, whole or in part, or
// lets others write to by taking an address or a slice.
func writtenNames(files []*sourceFile) map[string]bool {
	names := make(map[string]bool)
	note := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.Ident:
				names[x.Name] = true
				return
			default:
				return
			}
		}
	}
	for _, f := range files {
		walk(f, func(n ast.Node, _ []ast.Node) {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, e := range n.Lhs {
					note(e)
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					note(n.X)
				}
			case *ast.SliceExpr:
				note(n.X)
			}
		})
	}
	return names
}

// checkErrorTexts reads the arguments of errors.New and fmt.Errorf, and the
// fields Msg and Hint.
func checkErrorTexts(f *sourceFile) []finding {
	var found []finding
	imports := f.imports()
	read := func(e ast.Expr) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING || !strings.Contains(strings.ToLower(lit.Value), "failed to") {
			return
		}
		found = append(found, finding{
			key:  "wording " + f.path,
			text: fmt.Sprintf("%s: an error says what was being done, not that it failed: %s", f.at(lit.Pos()), lit.Value),
		})
	}
	walk(f, func(n ast.Node, _ []ast.Node) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) > 0 {
				if x, ok := sel.X.(*ast.Ident); ok && errorMaker(imports[x.Name], sel.Sel.Name) {
					read(n.Args[0])
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Msg" || key.Name == "Hint") {
				read(n.Value)
			}
		}
	})
	return found
}

func errorMaker(pkg, name string) bool {
	return pkg == "errors" && name == "New" || pkg == "fmt" && name == "Errorf"
}

func TestNamesRule(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		file string
		src  string
		want []string
	}{
		{"sleep", "a/a_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }",
			[]string{"call a/a_test.go time.Sleep"}},
		{"sleep under another name", "a/a.go", "package a\nimport clock \"time\"\nvar _ = clock.Sleep",
			[]string{"call a/a.go clock.Sleep"}},
		{"sleep in a bubble", "a/a_test.go", "package a\nimport (\"time\"; \"testing/synctest\")\n" +
			"func f() { synctest.Test(t, func() { time.Sleep(1) }) }", nil},
		{"another Sleep", "a/a.go", "package a\nfunc f() { time.Sleep(1) }", nil},
		{"exit", "a/a.go", "package a\nimport \"os\"\nfunc f() { os.Exit(1) }", []string{"call a/a.go os.Exit"}},
		{"exit in main", "cmd/perdure/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }", nil},
		{"exit beside main", "cmd/perdure/main.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }",
			[]string{"call cmd/perdure/main.go os.Exit"}},
		{"exit in TestMain", "a/a_test.go", "package a\nimport \"os\"\nfunc TestMain() { os.Exit(1) }", nil},
		{"log", "a/a.go", "package a\nimport \"log\"\nfunc f() { log.Fatal(1) }", []string{"call a/a.go log.Fatal"}},
		{"print", "a/a.go", "package a\nimport \"fmt\"\nfunc f() { fmt.Println(1) }", []string{"call a/a.go fmt.Println"}},
		{"print in an example", "a/example_test.go", "package a\nimport \"fmt\"\nfunc f() { fmt.Println(1) }", nil},
		{"background", "a/a.go", "package a\nimport \"context\"\nfunc f() { context.Background() }",
			[]string{"call a/a.go context.Background"}},
		{"background in a test", "a/a_test.go", "package a\nimport \"context\"\nfunc f() { context.Background() }", nil},
		{"YAML", "a/a.go", "package a\nimport \"github.com/goccy/go-yaml/parser\"\nfunc f() { parser.ParseBytes() }",
			[]string{"call a/a.go parser.ParseBytes"}},
		{"YAML, bounded", "internal/text/yamltext/a.go",
			"package yamltext\nimport yaml \"github.com/goccy/go-yaml\"\nfunc f() { yaml.Unmarshal() }", nil},
		{"getwd", "a/a.go", "package a\nimport \"os\"\nfunc f() { os.Getwd() }", []string{"call a/a.go os.Getwd"}},
		{"init", "a/a_test.go", "package a\nfunc init() {}", []string{"init a/a_test.go"}},
		{"init method", "a/a.go", "package a\nfunc (t T) init() {}", nil},
		{"open end", "a/a.go", "package a\n// TODO: later", []string{"comment a/a.go"}},
		{"numbered open end", "a/a.go", "package a\n// TODO(#12): later", nil},
		{"globals", "a/a.go", "package a\nimport (\"regexp\"; \"sync\")\nvar x = 1\nvar y []string\nvar ErrZ = 1\n" +
			"var _ = 2\nvar re = regexp.MustCompile(``)\nvar once = sync.OnceValue(f)",
			[]string{"global a/a.go re", "global a/a.go x", "global a/a.go y"}},
		{"lazy global", "a/a.go", "package a\nimport \"github.com/perdure/perdure/internal/text/lazyregexp\"\n" +
			"var x = lazyregexp.New(`a`)\nvar y = once()\nfunc once() func() int { return f }",
			[]string{"global a/a.go y"}},
		{"table", "a/a.go", "package a\nvar x = [...]string{\"a\"}\nfunc f() string { return x[0] }", nil},
		{"table written to", "a/a.go", "package a\nvar x = [...]string{\"a\"}\nfunc f() { x[0] = \"b\" }",
			[]string{"global a/a.go x"}},
		{"table lent out", "a/a.go", "package a\nvar x = [...]string{\"a\"}\nfunc f() []string { return x[:] }",
			[]string{"global a/a.go x"}},
		{"exported table", "a/a.go", "package a\nvar X = [...]string{\"a\"}", []string{"global a/a.go X"}},
		{"slice", "a/a.go", "package a\nvar x = []string{\"a\"}", []string{"global a/a.go x"}},
		{"embed", "a/a.go", "package a\n//go:embed x.sql\nvar x string\nvar (\n//go:embed *.md\ny embed.FS\n)", nil},
		{"global in a test", "a/a_test.go", "package a\nvar x = 1", nil},
		{"wording", "a/a.go", "package a\nimport (\"errors\"; \"fmt\")\nfunc f() { errors.New(\"failed to x\"); " +
			"fmt.Errorf(\"Failed to y: %w\", e); g(\"failed to z\") }",
			[]string{"wording a/a.go", "wording a/a.go"}},
		{"wording of a field", "a/a.go", "package a\nvar _ = Error{Msg: \"failed to x\"}", []string{"wording a/a.go"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := keys(checkNames(sources(t, map[string]string{test.file: test.src})))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

package syntax

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
)

// goFile reads the declarations of Go from its syntax tree. The parser continues after errors, so a
// broken file loses only the broken parts.
type goFile struct {
	*unit
	fset *gotoken.FileSet
	base int
}

func (u *unit) declareGo() {
	fset := gotoken.NewFileSet()
	u.bytes = append(u.bytes[:0], u.src...)
	file, err := parser.ParseFile(fset, u.path, u.bytes, parser.SkipObjectResolution|parser.AllErrors)
	if file == nil {
		return
	}
	g := &goFile{unit: u, fset: fset, base: fset.File(file.FileStart).Base()}
	inTests := strings.HasSuffix(u.path, "_test.go")
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			g.function(d, inTests)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok {
					g.typeSpec(d, t)
				}
			}
		}
	}
	if err != nil {
		g.afterErrors(inTests)
	}
}

// afterErrors finds functions that the parser skipped.
func (g *goFile) afterErrors(inTests bool) {
	at := func(i int) bool { return g.tok[i].S == "func" && g.tok[i].Kind == lex.Word && g.tok[i].Col == 0 }
	known := make(map[int]bool)
	for i := range g.decls {
		known[g.decls[i].start] = true
	}
	for i := range g.decls { // a broken one ends where the next begins
		d := &g.decls[i]
		for j := d.start + 1; j < d.end; j++ {
			if at(j) {
				d.body, d.end = min(d.body, j), j
			}
		}
	}
	for i := range g.tok {
		if !at(i) || known[i] || !g.isWord(i+1) {
			continue
		}
		n := len(g.decls)
		g.worded(i)
		if len(g.decls) > n {
			d := &g.decls[n]
			for j := i + 1; j < d.end; j++ {
				if at(j) {
					d.body, d.end = min(d.body, j), j
				}
			}
			d.test = inTests && (goTestName(d.name, "Test") && d.name != "TestMain" || goTestName(d.name, "Fuzz"))
		}
	}
}

// token returns the index of the first token at or after a position.
func (g *goFile) token(pos gotoken.Pos) int {
	off := int32(int(pos) - g.base) //nolint:gosec // files are bounded by Limits
	n, _ := slices.BinarySearchFunc(g.tok, off, func(t lex.Token, off int32) int { return int(t.Off) - int(off) })
	return n
}

func (g *goFile) function(f *ast.FuncDecl, inTests bool) {
	d := decl{kind: declFunction, name: f.Name.Name, start: g.token(f.Pos()), at: g.token(f.Name.Pos()),
		end: g.token(f.End())}
	d.body = d.end
	if f.Body != nil {
		d.body = g.token(f.Body.Pos())
	}
	receiver := ""
	if f.Recv != nil && len(f.Recv.List) > 0 {
		receiver = typeName(f.Recv.List[0].Type)
		d.name = receiver + "." + d.name
	}
	if d.start >= d.end {
		return
	}
	name := f.Name.Name
	switch {
	case !inTests || f.Body == nil:
	case f.Recv == nil && (goTestName(name, "Test") && name != "TestMain" || goTestName(name, "Fuzz")) &&
		f.Type.Params.NumFields() == 1:
		d.test = true
	case f.Recv == nil && goTestName(name, "Example") && f.Type.Params.NumFields() == 0:
		d.test = g.hasOutput(f)
	case goTestName(name, "Test") && f.Type.Params.NumFields() == 0 && strings.Contains(receiver, "Suite"):
		d.test = true
	}
	switch {
	case d.test:
		d.cases = g.tables(f.Body)
	case !inTests && f.Body != nil:
		g.scratch = g.scratch[:0]
		for _, name := range droppedCalls(f) {
			g.scratch = append(g.scratch, Hash(name))
		}
		d.dropped = g.sorted()
	}
	g.decls = append(g.decls, d)
	if d.test {
		g.subtests(f.Body)
	}
}

// hasOutput reports whether an example has an output comment.
func (g *goFile) hasOutput(f *ast.FuncDecl) bool {
	from, to := g.fset.Position(f.Body.Pos()).Line, g.fset.Position(f.Body.End()).Line
	return slices.ContainsFunc(g.notes, func(n lex.Comment) bool {
		return int(n.Line) >= from && int(n.Line) <= to && strings.Contains(strings.ToLower(n.S), "output:")
	})
}

func goTestName(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && (rest == "" || rest[0] < 'a' || rest[0] > 'z')
}

// typeName returns the name of a receiver's type.
func typeName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// subtests finds calls of Run with a literal title.
func (g *goFile) subtests(body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || sel.Sel.Name != "Run" {
			return true
		}
		title, ok := call.Args[0].(*ast.BasicLit)
		if !ok || title.Kind != gotoken.STRING {
			return true
		}
		if _, ok := call.Args[1].(*ast.FuncLit); !ok {
			return true
		}
		d := decl{kind: declTest, name: strings.Clone(lex.Unquote(title.Value)), start: g.token(call.Pos()),
			at: g.token(sel.Sel.Pos()), body: g.token(call.Args[1].Pos()), end: g.token(call.End())}
		if d.start < d.end {
			g.decls = append(g.decls, d)
		}
		return true
	})
}

// tables returns the rows of the tables in a test: lists or maps of composite literals.
func (g *goFile) tables(body *ast.BlockStmt) []Case {
	var rows []Case
	ast.Inspect(body, func(n ast.Node) bool {
		list, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch list.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
		default:
			return true
		}
		for _, e := range list.Elts {
			value := e
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				value = kv.Value
			}
			if _, ok := value.(*ast.CompositeLit); !ok {
				return true
			}
			if from, to := g.token(e.Pos()), g.token(e.End()); from < to {
				rows = append(rows, g.row(from, to))
			}
		}
		return false
	})
	return rows
}

func (g *goFile) typeSpec(gen *ast.GenDecl, t *ast.TypeSpec) {
	d := decl{kind: DeclContainer, name: t.Name.Name, start: g.token(t.Pos()), at: g.token(t.Name.Pos()),
		end: g.token(t.End())}
	d.body = min(d.at+1, d.end)
	if !gen.Lparen.IsValid() {
		d.start = g.token(gen.Pos())
	}
	if d.start < d.end {
		g.decls = append(g.decls, d)
	}
}

// goBuild returns the build constraint of a file.
func goBuild(notes []lex.Comment) string {
	for i := range notes {
		if rest, ok := strings.CutPrefix(notes[i].S, "//go:build "); ok {
			return strings.Clone(strings.TrimSpace(rest))
		}
	}
	return ""
}

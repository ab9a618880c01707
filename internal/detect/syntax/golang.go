package syntax

import (
	"go/ast"
	"go/build/constraint"
	"go/parser"
	gotoken "go/token"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/discard"
	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
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
		for _, name := range discard.Calls(f) {
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

// goBuild returns the build constraint of a file, in either of its forms.
func (u *unit) goBuild() string {
	var older []string
	for i := 0; i < len(u.notes) && len(u.tok) > 0 && u.notes[i].Line < u.tok[0].Line; i++ {
		if x, err := constraint.Parse(u.notes[i].S); err == nil {
			if older = append(older, x.String()); constraint.IsGoBuild(u.notes[i].S) {
				return x.String()
			}
		}
	}
	return strings.Join(older, " && ")
}

func golang() Language {
	return Language{
		Name: "go", exts: []string{".go"}, lines: true,
		rules: lex.Rules{Line: []string{"//"}, Block: "/*", Char: true,
			Quotes: []lex.Quote{doubleQuote(), {Open: "`", Close: "`", Lines: true}}},
		functions: words("func"),
		skips:     words("Skip Skipf SkipNow"),
		asserts: words("Error Errorf Fatal Fatalf Fail FailNow Expect Ω Eventually Consistently DeepEqual EqualError " +
			"ErrorIs ErrorAs ErrorContains Nil NotNil NoError Equal NotEqual True False Contains Len Panics"),
		throws:       words("panic Errorf Fatal Fatalf"),
		testSuffixes: []string{"_test"}, testFolders: []string{"testdata"},
		marks: goMarks(), notes: goNotes(),
		declarations: declarations{declare: (*unit).declareGo},
		testForms: testForms{strictSuffixes: []string{"_test"}, readRows: (*unit).goRows, over: "range", typedLists: true,
			skipsAt: func(u *unit, _ *decl, i int) (s Skipping, decided bool) {
				return Runs, !u.lang.skips[u.at(i)] || u.at(i+1) != "(" || u.at(i-1) != "." || len(u.at(i-2)) > 2
			},
			subtests: true, receivers: true},
		assertionForms: assertionForms{
			isAssertion: func(u *unit, i int, helpers set) (asserts, decided bool) {
				return u.at(i+1) == "(" && u.goAsserts(i, helpers), true
			},
			isBare: func(u *unit, i, end int, alone bool) bool {
				return (u.at(i) == "Expect" || u.at(i) == "Ω") && !alone && u.endsStatement(end)
			},
			failing: words("Error Errorf Fatal Fatalf Fail FailNow"), handle: "t",
		},
		functionForms: functionForms{public: (*unit).goPublic, readStatement: (*unit).readCase,
			literalEnd: (*unit).goLiteralEnd, bareHeads: true, initialisers: true, ErrorValues: true,
			asks: words("Args Executable Caller Callers FuncForPC Stack ReadBuildInfo Lookup Getenv LookupEnv")},
	}
}

func goMarks() []markRule {
	return []markRule{
		{GuardVoid, inCode, 0.85, []string{"&& false {", "if false &&"}},
		{RunnerAsked, inCode, 0.9, []string{"testing . Testing ( )", `flag . Lookup ( "test.v" )`,
			`HasSuffix ( os . Args [ 0 ] , ".test" )`, `HasSuffix ( os . Args [ 0 ] , "_test" )`}},
		{ExitTrick, anywhere, 0.9, []string{"os . Exit ( 0 )"}},
		{ChecksOff, inCode, 0.85, []string{"InsecureSkipVerify : true"}},
		{ErrorSwallowed, inCode, 0.85, []string{"_ = err"}},
	}
}

func goNotes() []commentRule {
	return sharedNotes(
		comments(ComplaintOff, 0.6, ":", "nolint"),
		comments(ComplaintOff, 0.6, " :", "nosec"),
		comments(ComplaintOff, 0.6, " ", "lint:ignore"),
		comments(ComplaintOff, 0.85, " ", "lint:file-ignore"),
		comments(ComplaintOff, 0.6, ":", "revive:disable"),
		comments(CoverageExcluded, 0.6, "", "coverage:ignore", "coverage-ignore"),
	)
}

func (u *unit) goPublic(d *decl) bool {
	hidden := func(folder string) bool { return folder == "internal" || folder == "cmd" || folder == "main" }
	if slices.ContainsFunc(strings.Split(path.Dir(u.path), "/"), hidden) {
		return false
	}
	unexported := func(part string) bool { return part == "" || part[0] < 'A' || part[0] > 'Z' }
	return !slices.ContainsFunc(strings.Split(d.name, "."), unexported) && (len(u.tok) < 2 || u.at(1) != "main")
}

// goAsserts reports whether a call of Go asserts: by t, by an assertion library, or given t.
func (u *unit) goAsserts(i int, helpers set) bool {
	s, on := u.at(i), u.at(i-2)
	if u.at(i-1) == "." {
		if u.lang.failing[s] && len(on) <= 2 &&
			(strings.HasSuffix(on, "t") || strings.HasSuffix(on, "b") || oneOf(on, "f", "s", "c")) {
			return true
		}
		if goAssertObjects()[on] || (on == ")" || len(on) == 1) && (u.lang.asserts[s] || s == "Assert" || s == "Check") {
			return s != "New" && s != "Run" && s[0] >= 'A' && s[0] <= 'Z'
		}
		return (assertLike(s) || helpers["."+s]) && u.at(i+2) == "t"
	}
	return helpers[s] || u.lang.asserts[s] && s[0] == 'E' || u.at(i+2) == "t" && u.at(i+3) != ")" && s != "Run" &&
		(assertLike(s) || strings.HasPrefix(s, "test") || oneOf(s, "check", "assert", "verify", "expect")) || s == "Expect"
}

var goAssertObjects = sync.OnceValue(
	func() set { return words("assert require is must qt check td should suite gt so") })

// errorOf returns the names of the call that a condition err != nil is about; nil for other
// conditions.
func (u *unit) errorOf(begin, end int) multiset.Hashes {
	for j := begin; j < end && u.at(j) != "{"; j++ {
		if u.at(j) == "(" {
			return nil // the call is in the condition
		}
		if strings.HasPrefix(u.at(j), "err") && u.at(j+1) == "!=" && u.at(j+2) == "nil" && u.at(j+3) == "{" {
			if at := u.failedCall(begin, begin+1, j); at > 0 {
				names := multiset.Hashes{Hash(u.at(at))}
				if u.at(at-1) == "." && u.isWord(at-2) {
					names = multiset.Sum(names, multiset.Hashes{Hash(u.at(at - 2))})
				}
				return names
			}
		}
	}
	return nil
}

// said returns the literals and names in the failure messages of a Go test.
func (u *unit) said(spans [][2]int) multiset.Hashes {
	all := u.scratch[:0]
	for _, span := range spans {
		for j := span[0]; j < span[1]; j++ {
			if u.at(j) == "(" && u.at(j-2) == "." && sayers()[u.at(j-1)] {
				end := min(u.closer(j), span[1])
				all = append(appendLiterals(all, u.tok[j:end]), u.tok[j-1].Meaning())
				j = end - 1
			}
		}
	}
	u.scratch = all
	return u.sortedOnce()
}

var sayers = sync.OnceValue(wordSet("Error Errorf Fatal Fatalf Log Logf"))

// sendsError reports whether the if at i, of Go, sends an error to a channel that the file receives
// from: a goroutine must not end the test itself.
func (u *unit) sendsError(i int) bool {
	open := u.headEnd(i, len(u.tok))
	if !strings.HasPrefix(u.at(open-3), "err") || u.at(open-2) != "!=" || u.at(open-1) != "nil" || u.at(open+2) != "<" ||
		u.at(open+3) != "-" {
		return false
	}
	return anyOf(0, len(u.tok), func(j int) bool {
		return u.at(j) == u.at(open+1) && (u.at(j-1) == "-" && u.at(j-2) == "<" && !u.isWord(j-3) || u.at(j-1) == "range")
	})
}

// goRows adds the rows of the package-level lists that a Go test ranges over, and the seed values
// of a fuzz test: f.Add(...).
func (u *unit) goRows(t *Test, d *decl) {
	fuzz := strings.HasPrefix(d.name, "Fuzz")
	for j := d.body; j < d.end; j++ {
		if fuzz && u.at(j) == "Add" && u.at(j-1) == "." && u.at(j-2) == "f" && u.at(j+1) == "(" {
			t.Cases = append(t.Cases, u.row(j+2, max(u.closer(j+1)-1, j+3)))
		}
		if u.at(j) != "range" || !u.isWord(j+1) || u.at(j+2) != "{" {
			continue
		}
		if open := u.listNamed(u.at(j+1), j); open >= 0 && (open < d.start || open >= d.end) {
			u.addRows(t, u.listCases(open))
		}
	}
}

// readCase notes the case of a Go switch without a value at i.
func (u *unit) readCase(f *Function, i int, d *decl) bool {
	if u.at(i) != "case" {
		return false
	}
	colon := u.find(i+1, min(d.end, i+80), ":")
	end := u.find(colon+1, min(d.end, colon+maxBlock), "case", "default", "}")
	if colon > i+1 && u.at(colon) == ":" {
		u.noteCondition(f, i+1, colon, colon+1, end)
	}
	return true
}

// goLiteralEnd returns the end of the Go function literal at i; i for none.
func (u *unit) goLiteralEnd(i, end int) int {
	if u.at(i) != "func" || u.at(i+1) != "(" {
		return i
	}
	for j := u.closer(i + 1); j < min(end, i+80); j++ {
		switch u.at(j) {
		case "(", "[":
			j = u.closer(j) - 1
		case "{":
			if w := u.at(j - 1); w != "interface" && w != "struct" {
				return u.closer(j)
			}
			j = u.closer(j) - 1
		case ",", ";", ")":
			return i // a type only
		}
	}
	return i
}

// readIgnored notes a Go call whose error only ends a loop round, or the function without an error.
func (u *unit) readIgnored(f *Function, i int, condition, body [2]int) {
	from, to := condition[0], condition[1]
	endsRound := body[1]-body[0] <= 2 && oneOf(u.at(body[0]), "continue", "break")
	alone := !anyOf(from, to, func(j int) bool { return u.at(j) == "&&" })
	if !endsRound && !(alone && (u.returnsNoError(body[0], body[1]) || u.onlyAssigns(body[0], body[1]))) {
		return
	}
	for j := from; j < to; j++ {
		if strings.HasPrefix(u.at(j), "err") && u.at(j+1) == "!=" && u.at(j+2) == "nil" {
			if at := u.failedCall(i, from, to); at >= 0 && !cleanNames()[u.at(at)] {
				f.Ignored = multiset.Sum(f.Ignored, multiset.Hashes{Hash(u.at(at))})
			}
			return
		}
	}
}

// returnsNoError reports whether a Go block returns a nil error.
func (u *unit) returnsNoError(from, to int) bool {
	for j := from; j < to; j++ {
		if u.at(j) == "return" && u.isWord(j) {
			end := min(u.statementEnd(j), to)
			return end-j > 3 && u.at(end-1) == "nil" && u.at(end-2) == "," && !u.fails(from, to)
		}
	}
	return false
}

// onlyAssigns reports whether a Go block only assigns variables.
func (u *unit) onlyAssigns(from, to int) bool {
	return to-from >= 3 && u.isWord(from) && u.at(from+1) == "=" && !anyOf(from, to, func(j int) bool {
		s := u.at(j)
		return u.isWord(j) && (oneOf(s, "return", "if", "for", "goto") || strings.HasPrefix(strings.ToLower(s), "err"))
	})
}

// failedCall returns the call whose error a check of Go is about, in the condition or the statement
// before it; -1 for none.
func (u *unit) failedCall(i, from, to int) int {
	name := -1
	for j := from; j < to; j++ {
		if u.at(j) == "(" && u.isWord(j-1) {
			return j - 1
		}
	}
	for j := i - 1; j > max(0, i-80); j-- {
		if u.at(j) == "(" && u.isWord(j-1) && u.tok[j-1].Line >= u.tok[i-1].Line-3 {
			name = j - 1
		}
		if u.at(j) == "=" || u.at(j) == ":=" {
			break
		}
	}
	return name
}

// handsOn reports whether TestMain of Go exits with the result of the tests, or passes m to a
// function that does. Its other exits belong to processes that tests start.
func (u *unit) handsOn() bool {
	for i := range u.decls {
		d := &u.decls[i]
		if d.name != "TestMain" {
			continue
		}
		for j := d.body; j < d.end; j++ {
			if s := u.at(j); u.at(j+1) == "(" && u.at(j+2) == "m" &&
				(u.at(j+3) == "," || s == "Exit" && u.at(j+3) == "." && u.at(j+4) == "Run") {
				return true
			}
		}
	}
	return false
}

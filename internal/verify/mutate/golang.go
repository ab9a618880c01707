package mutate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// earlyReturns makes functions of Go return zero values at once. The rest of the function stays, so
// that what it uses is still used.
func (f *file) earlyReturns(selects func(line int) bool) []edit {
	if !strings.HasSuffix(f.path, ".go") {
		return nil
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, f.path, f.src, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	var all []edit
	for _, d := range tree.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || fn.Name.Name == "main" || fn.Name.Name == "init" {
			continue
		}
		at := func(p token.Pos) int { return set.PositionFor(p, false).Offset }
		first, last := set.PositionFor(fn.Pos(), false).Line, set.PositionFor(fn.End(), false).Line
		for line := first; line <= last; line++ {
			if selects(line) {
				zero := f.zeros(fn.Type.Results, at)
				brace := at(fn.Body.Lbrace)
				all = append(all, edit{brace, brace + 1, "{ if true { return" + zero + " };", rankReturn})
				break
			}
		}
	}
	return all
}

// zeros returns the zero values of results.
func (f *file) zeros(results *ast.FieldList, at func(token.Pos) int) string {
	if results == nil {
		return ""
	}
	var values []string
	for _, field := range results.List {
		zero := "*new(" + f.src[at(field.Type.Pos()):at(field.Type.End())] + ")"
		for range max(1, len(field.Names)) {
			values = append(values, zero)
		}
	}
	return " " + strings.Join(values, ", ")
}

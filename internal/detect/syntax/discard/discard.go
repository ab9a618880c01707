// Package discard finds the calls of a Go function whose last result, by convention its error, is
// discarded: statements, assignments to _, and variables that are overwritten before they are read.
package discard

import (
	"go/ast"
	"go/token"
	"slices"
)

// dropper finds the calls of one function.
type dropper struct {
	results map[string]bool // named results of the function
	found   []string
	left    int // nodes that may still be visited
	looker  looker
}

// maxLooked bounds the work for one function; results beyond it count as used.
const maxLooked = 100_000

// Calls returns the names of calls whose last result is discarded, with repetitions.
func Calls(f *ast.FuncDecl) []string {
	d := &dropper{left: maxLooked}
	d.named(f.Type)
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			d.named(n.Type)
		case *ast.BlockStmt:
			d.list(n.List, f.Body)
		case *ast.CaseClause:
			d.list(n.Body, f.Body)
		case *ast.CommClause:
			d.list(n.Body, f.Body)
		case *ast.DeferStmt:
			d.drop(n.Call)
		case *ast.GoStmt:
			d.drop(n.Call)
		}
		return true
	})
	return d.found
}

func (d *dropper) named(t *ast.FuncType) {
	if t.Results == nil {
		return
	}
	for _, f := range t.Results.List {
		for _, n := range f.Names {
			if d.results == nil {
				d.results = make(map[string]bool)
			}
			d.results[n.Name] = true
		}
	}
}

// list visits the statements of a block.
func (d *dropper) list(all []ast.Stmt, body *ast.BlockStmt) {
	for i, s := range all {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok {
				d.drop(call)
			}
		case *ast.AssignStmt:
			d.assigned(s, all[i+1:], body)
		}
	}
}

// assigned decides whether the last result of a call is used.
func (d *dropper) assigned(s *ast.AssignStmt, next []ast.Stmt, body *ast.BlockStmt) {
	if len(s.Rhs) != 1 {
		return
	}
	call, ok := s.Rhs[0].(*ast.CallExpr)
	if !ok {
		return
	}
	name, ok := s.Lhs[len(s.Lhs)-1].(*ast.Ident)
	if !ok {
		return // it is kept in a field
	}
	if name.Name == "_" {
		d.drop(call)
		return
	}
	d.looker = looker{dropper: d, name: name.Name}
	if !d.looker.through(next) {
		// Its block ends. A variable of its own ends with it.
		own := s.Tok == token.DEFINE && !(d.results[name.Name] && slices.Contains(body.List, ast.Stmt(s)))
		if !d.looker.found && !own {
			ast.Walk(&d.looker, body)
		}
	}
	if !d.looker.found {
		d.drop(call)
	}
}

// drop notes a call by its first name: the a in a(x).b(y).
func (d *dropper) drop(call *ast.CallExpr) {
	for {
		switch f := call.Fun.(type) {
		case *ast.Ident:
			d.found = append(d.found, f.Name)
			return
		case *ast.SelectorExpr:
			inner, ok := f.X.(*ast.CallExpr)
			if !ok {
				d.found = append(d.found, f.Sel.Name)
				return
			}
			call = inner
		default:
			return
		}
	}
}

// writes reports whether a statement assigns a variable.
func writes(s ast.Stmt, name string) bool {
	a, ok := s.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { return isIdent(e, name) })
}

// looker reports whether code uses a variable: not in an assignment to it, in _ = err, in a
// condition of an empty block, or in another variable of that name. A function has one looker, as
// it may have many variables.
type looker struct {
	*dropper
	name  string
	found bool
}

// through visits the statements of a block until one uses the variable; it reports whether one
// overwrote it before.
func (l *looker) through(all []ast.Stmt) (over bool) {
	for _, s := range all {
		if ast.Walk(l, s); l.found {
			return false
		}
		if writes(s, l.name) {
			return true
		}
	}
	return false
}

// Visit continues with the nodes that may use the variable.
func (l *looker) Visit(n ast.Node) ast.Visitor {
	if l.left--; l.left < 0 {
		l.found = true
	}
	if l.found || !l.goesInto(n) || l.found {
		return nil
	}
	return l
}

// goesInto visits a node and reports whether its children are to be visited.
func (l *looker) goesInto(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.AssignStmt:
		l.assign(n)
	case *ast.IfStmt:
		if n.Init != nil && writes(n.Init, l.name) {
			ast.Walk(l, n.Init)
			return false
		}
		return n.Init != nil || n.Else != nil || len(n.Body.List) > 0
	case *ast.BlockStmt:
		l.through(n.List)
	case *ast.DeferStmt: // reads the last value only
	case *ast.CaseClause:
		if l.each(n.List); !l.found {
			l.through(n.Body)
		}
	case *ast.ValueSpec:
		l.each(n.Values)
	case *ast.KeyValueExpr:
		ast.Walk(l, n.Value)
	case *ast.SelectorExpr:
		ast.Walk(l, n.X)
	case *ast.ReturnStmt:
		l.found = len(n.Results) == 0 && l.results[l.name]
		return true
	case *ast.Ident:
		l.found = n.Name == l.name
		return true
	default:
		return true
	}
	return false
}

// each visits expressions until one uses the variable.
func (l *looker) each(all []ast.Expr) {
	for _, e := range all {
		if !l.found {
			ast.Walk(l, e)
		}
	}
}

func (l *looker) assign(a *ast.AssignStmt) {
	blank := !slices.ContainsFunc(a.Lhs, func(e ast.Expr) bool { return !isIdent(e, "_") })
	for _, e := range a.Rhs {
		if !l.found && !(blank && isIdent(e, l.name)) {
			ast.Walk(l, e)
		}
	}
	for _, e := range a.Lhs {
		if _, ok := e.(*ast.Ident); !l.found && !ok {
			ast.Walk(l, e)
		}
	}
}

func isIdent(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}

package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	starjson "go.starlark.net/lib/json"
	starmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/perdure/perdure"
)

// maxSteps bounds the steps of a statement, to about a second.
const maxSteps = 10_000_000

// language returns the dialect of Starlark.
func language() *syntax.FileOptions {
	return &syntax.FileOptions{Set: true, While: true, TopLevelControl: true, GlobalReassign: true}
}

// evaluator runs Starlark statements on the variables of a state. Before a statement it
// reads the variables in it; afterwards it writes the assigned and changed ones, or none
// after an error.
type evaluator struct {
	*target
	// local, unless nil, receives the values as JSON instead of the state, which is only read.
	local map[string]json.RawMessage
	own   perdure.TaskID // the task whose state it is, in a tree
	// functions are the functions of the session, which are not variables.
	functions starlark.StringDict
	print     func(text string)
	asJSON    bool // print expressions as JSON
	steps     uint64
}

// modules returns the modules, which variables of the same name hide.
func modules() starlark.StringDict {
	return starlark.StringDict{"json": starjson.Module, "math": starmath.Module}
}

// fetched is a variable before a statement.
type fetched struct {
	variable perdure.Variable
	encoded  string // in Starlark's encoding
}

// frame is the environment of a statement.
type frame struct {
	thread  *starlark.Thread
	globals starlark.StringDict
	read    map[string]fetched
}

// lookup returns the value of this session, else that of the state.
func (e *evaluator) lookup(ctx context.Context, name string) (perdure.Variable, error) {
	if value, ok := e.local[name]; ok {
		return perdure.Variable{Name: name, Value: value}, nil
	}
	return e.Var(ctx, e.ref, name)
}

// frame reads the named variables. Call the returned function after use.
func (e *evaluator) frame(ctx context.Context, named map[string]bool) (*frame, func(), error) {
	f := &frame{globals: modules(), read: make(map[string]fetched),
		thread: &starlark.Thread{Name: "perdure repl", Print: func(_ *starlark.Thread, text string) { e.print(text) }}}
	f.thread.SetMaxExecutionSteps(e.steps)
	f.thread.OnMaxSteps = func(t *starlark.Thread) { t.Cancel(fmt.Sprintf("more than %d steps", e.steps)) }
	maps.Copy(f.globals, e.functions)
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if e.functions.Has(name) || !perdure.ValidName(name) {
			continue
		}
		v, err := e.lookup(ctx, name)
		if errors.Is(err, perdure.ErrNotFound) {
			if e.own != 0 && slices.Contains(functionsOfRuns(), name) {
				f.globals[name] = refused(name)
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		value, err := starlark.Call(f.thread, starjson.Module.Members["decode"], starlark.Tuple{starlark.String(v.Value)},
			nil)
		if err != nil {
			return nil, nil, fmt.Errorf("read variable %q: %w", name, err)
		}
		encoded, err := f.encode(value)
		if err != nil {
			return nil, nil, fmt.Errorf("read variable %q: %w", name, err)
		}
		f.globals[name], f.read[name] = value, fetched{v, encoded}
	}
	stop := context.AfterFunc(ctx, func() { f.thread.Cancel("interrupted") })
	return f, func() { stop() }, nil
}

func (f *frame) encode(v starlark.Value) (string, error) {
	out, err := starlark.Call(f.thread, starjson.Module.Members["encode"], starlark.Tuple{v}, nil)
	if err != nil {
		return "", errors.New(strings.TrimPrefix(plain(err).Error(), "json.encode: "))
	}
	text, _ := starlark.AsString(out)
	return text, nil
}

// run executes a statement and returns the value of an expression, "" for None.
func (e *evaluator) run(ctx context.Context, file *syntax.File) (string, error) {
	n := namesOf(file)
	f, done, err := e.frame(ctx, n.named)
	if err != nil {
		return "", err
	}
	defer done()
	shown := ""
	if expr := soleExpression(file); expr != nil {
		v, err := starlark.EvalExprOptions(language(), f.thread, expr, f.globals)
		if err != nil {
			return "", plain(err)
		}
		if shown, err = e.show(f, v); err != nil {
			return "", err
		}
	} else if err := starlark.ExecREPLChunk(file, f.thread, f.globals); err != nil {
		return "", plain(err)
	}
	return shown, e.save(ctx, f, n)
}

// show returns a value as Starlark, or as JSON.
func (e *evaluator) show(f *frame, v starlark.Value) (string, error) {
	switch {
	case e.asJSON:
		text, err := f.encode(v)
		return text, plain(err)
	case v == starlark.None:
		return "", nil
	}
	return v.String(), nil
}

// value evaluates an expression to JSON.
func (e *evaluator) value(ctx context.Context, source string) (json.RawMessage, error) {
	expr, err := language().ParseExpr("", source, 0)
	if err != nil {
		return nil, plain(err)
	}
	f, done, err := e.frame(ctx, namesOf(expr).named)
	if err != nil {
		return nil, err
	}
	defer done()
	v, err := starlark.EvalExprOptions(language(), f.thread, expr, f.globals)
	if err != nil {
		return nil, plain(err)
	}
	text, err := f.encode(v)
	return json.RawMessage(text), plain(err)
}

func soleExpression(file *syntax.File) syntax.Expr {
	if len(file.Stmts) == 1 {
		if stmt, ok := file.Stmts[0].(*syntax.ExprStmt); ok {
			return stmt.X
		}
	}
	return nil
}

// functionsOfRuns are the functions that the code of a run has, and the prompt has not.
func functionsOfRuns() []string {
	return []string{"llm_query", "llm_query_batched", "rlm_query", "rlm_query_batched", "files", "search", "grep", "lines",
		"cite", "budget", "FINAL", "FINAL_VAR", "SUBMIT", "done", "SHOW_VARS"}
}

// refused is a function of the code of runs that fails when it is called at the prompt.
func refused(name string) *starlark.Builtin {
	why := "it is a function of the run's code, and the prompt has only the variables"
	if strings.Contains(name, "_query") {
		why = "a sub-call costs and is recorded in the run, so the prompt makes none; " +
			"`perdure fork TREE --at TURN` continues the run as a new tree"
	}
	return starlark.NewBuiltin(name, func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (
		starlark.Value, error) {
		return nil, fmt.Errorf("%s is refused: %s", name, why)
	})
}

// save writes the variables that a statement assigned or changed.
func (e *evaluator) save(ctx context.Context, f *frame, n *names) error {
	changes := make(map[string]string)
	for name, v := range f.globals {
		if _, ok := v.(starlark.Callable); ok {
			if n.assigned[name] {
				e.functions[name] = v
			}
			continue
		}
		was, known := f.read[name]
		if !n.assigned[name] && (!known || n.loops[name]) {
			continue
		}
		text, err := f.encode(v)
		if err != nil {
			return fmt.Errorf("variable %q: %w", name, plain(err))
		}
		if n.assigned[name] || text != was.encoded {
			changes[name] = text
			delete(e.functions, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if e.local != nil {
			e.local[name] = json.RawMessage(changes[name])
			continue
		}
		if _, err := e.SetVar(ctx, e.ref, e.spec(name, changes[name], f, n)); err != nil {
			return err
		}
	}
	return nil
}

// spec returns the new value with the other properties of the variable. It overwrites no
// change that another process made after the statement read the variable.
func (e *evaluator) spec(name, value string, f *frame, n *names) perdure.VarSpec {
	spec := perdure.VarSpec{Name: name, Value: json.RawMessage(value), Cause: perdure.Cause{Source: "repl"}}
	was, known := f.read[name]
	if !known {
		return spec
	}
	v := &was.variable
	own := v.Metadata.Scope == e.ref.Scope && (e.own == 0 || v.Task == e.own)
	if own {
		spec.Description, spec.TTL = v.Description, time.Duration(v.Metadata.TTLSeconds)*time.Second
		if (v.Type == perdure.VarFilePath || v.Type == perdure.VarFileContent) && strings.HasPrefix(value, `"`) {
			spec.Type = v.Type
		}
	}
	if n.used[name] || !n.assigned[name] {
		version := v.Version
		if !own {
			version = 0 // it must not exist
		}
		spec.IfVersion = &version
	}
	return spec
}

// plain returns an error of Starlark without its prefixes.
func plain(err error) error {
	if eval, ok := errors.AsType[*starlark.EvalError](err); ok {
		return errors.New(strings.TrimPrefix(eval.Msg, "Starlark computation cancelled: "))
	}
	if err == nil {
		return nil
	}
	return errors.New(strings.TrimPrefix(err.Error(), ":"))
}

// names are the names in a statement: all, those that are assigned at the top level, those
// whose value is used, and loop variables.
type names struct{ named, assigned, used, loops map[string]bool }

func namesOf(n syntax.Node) *names {
	out := &names{make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool)}
	out.walk(n, true)
	return out
}

func (n *names) use(name string) { n.named[name], n.used[name] = true, true }

func (n *names) walk(node syntax.Node, top bool) {
	syntax.Walk(node, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Ident:
			n.use(node.Name)
		case *syntax.DotExpr:
			n.walk(node.X, top)
			return false
		case *syntax.AssignStmt:
			if top {
				n.assign(node.LHS, node.Op != syntax.EQ)
			} else {
				n.walk(node.LHS, top)
			}
			n.walk(node.RHS, top)
			return false
		case *syntax.DefStmt:
			n.named[node.Name.Name], n.assigned[node.Name.Name] = true, top || n.assigned[node.Name.Name]
			for _, param := range node.Params {
				n.walk(param, false)
			}
			for _, stmt := range node.Body {
				n.walk(stmt, false)
			}
			return false
		case *syntax.ForStmt:
			if top {
				n.loop(node.Vars)
			}
		}
		return true
	})
}

// assign adds the targets of an assignment. Op reports whether it also uses them, as +=
// does.
func (n *names) assign(target syntax.Expr, op bool) {
	switch target := target.(type) {
	case *syntax.Ident:
		n.named[target.Name], n.assigned[target.Name] = true, true
		if op {
			n.used[target.Name] = true
		}
	case *syntax.ParenExpr:
		n.assign(target.X, op)
	case *syntax.TupleExpr:
		n.assignAll(target.List, op)
	case *syntax.ListExpr:
		n.assignAll(target.List, op)
	default:
		n.walk(target, true)
	}
}

func (n *names) assignAll(targets []syntax.Expr, op bool) {
	for _, x := range targets {
		n.assign(x, op)
	}
}

func (n *names) loop(vars syntax.Expr) {
	syntax.Walk(vars, func(node syntax.Node) bool {
		if id, ok := node.(*syntax.Ident); ok {
			n.loops[id.Name] = true
		}
		return true
	})
}

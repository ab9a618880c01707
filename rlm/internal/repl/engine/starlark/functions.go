package starlark

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	starjson "go.starlark.net/lib/json"
	starmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
	"go.starlark.net/syntax"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/pipe"
)

// call is a function that the code calls, with its arguments unpacked by name.
type call func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error)

// functions are the names that the code has: functions of the host, finals, modules, and those
// of Python's built-in functions that Starlark lacks.
func (in *interpreter) functions() starlark.StringDict {
	out := starlark.StringDict{"context": starlark.None, "math": starmath.Module, "re": reModule(), "json": jsonModule()}
	for name, f := range map[string]call{
		"llm_query": in.query, "rlm_query": in.query, "llm_query_batched": in.batch, "rlm_query_batched": in.batch,
		"budget": in.plain(), "files": in.plain(option("glob", "**")),
		"search": in.plain(required("query"), option("k", 10)),
		"grep":   in.plain(required("regex"), option("glob", "**"), option("k", 100)),
		"lines":  in.plain(required("file"), required("first"), required("last"), option("column", 1)),
		"cite":   in.plain(required("file"), required("first"), required("last")),
		"FINAL":  in.finish, "done": in.finish, "FINAL_VAR": in.finishVar, "SUBMIT": in.submit, "SHOW_VARS": in.showVars,
		"sum": sum, "round": round, "map": mapped, "filter": filtered,
	} {
		out[name] = starlark.NewBuiltin(name, f)
	}
	return out
}

// takeHelpers takes the names that only this program has off the reserved ones and returns them. All
// functions are under the name perdure as well.
func (in *interpreter) takeHelpers() starlark.StringDict {
	helpers, all := make(starlark.StringDict), make(starlark.StringDict)
	for name, v := range in.reserved {
		if name != "context" {
			all[name] = v
		}
	}
	for _, name := range []string{"budget", "files", "search", "grep", "lines", "cite", "done", "math", "re", "json",
		"sum", "round", "map", "filter"} {
		helpers[name] = in.reserved[name]
		delete(in.reserved, name)
	}
	in.reserved["perdure"] = &starlarkstruct.Module{Name: "perdure", Members: all}
	return helpers
}

func jsonModule() starlark.Value {
	m := &starlarkstruct.Module{Name: "json", Members: make(starlark.StringDict)}
	for name, v := range starjson.Module.Members {
		m.Members[name] = v
	}
	m.Members["loads"], m.Members["dumps"] = m.Members["decode"], m.Members["encode"] // as in Python
	return m
}

// request calls a function of the host.
func (in *interpreter) request(function string, args any) (json.RawMessage, error) {
	raw, err := json.Marshal(args)
	if len(raw) > in.limit.request {
		return nil, fmt.Errorf("%s: the request has %d bytes, at most %d are possible", function, len(raw), in.limit.request)
	}
	if err == nil {
		err = in.link.Send(&pipe.Answer{Type: "request", Function: function, Args: raw})
	}
	var m *pipe.Message
	if err == nil {
		m, err = in.link.Receive()
	}
	if err != nil {
		in.lost = err
		return nil, err
	}
	if m.Err != "" {
		return nil, errors.New(m.Err)
	}
	return m.Value, nil
}

// returned is the value that the host returned.
func returned(raw json.RawMessage, err error) (starlark.Value, error) {
	if err != nil {
		return nil, err
	}
	return decode(raw)
}

func (in *interpreter) query(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var prompt, model starlark.Value = nil, starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "prompt", &prompt, "model?", &model); err != nil {
		return nil, err
	}
	if long, ok := prompt.(*longValue); ok {
		return nil, long.refuse("a prompt")
	}
	return returned(in.request(b.Name(), map[string]any{"prompt": textOf(prompt), "model": modelOf(model)}))
}

func (in *interpreter) batch(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var list starlark.Iterable
	var model starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "prompts", &list, "model?", &model); err != nil {
		return nil, err
	}
	prompts := []string{}
	for v := range starlark.Elements(list) {
		if long, ok := v.(*longValue); ok {
			return nil, long.refuse("a prompt")
		}
		prompts = append(prompts, textOf(v))
	}
	return returned(in.request(b.Name(), map[string]any{"prompts": prompts, "model": modelOf(model)}))
}

// tool calls a tool of the user.
func (in *interpreter) tool(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	byName := starlark.NewDict(len(kwargs))
	for _, kw := range kwargs {
		if err := byName.SetKey(kw[0], kw[1]); err != nil {
			return nil, err
		}
	}
	list, ok := encode(starlark.NewList(args))
	named, alsoOK := encode(byName)
	if !ok || !alsoOK {
		return nil, fmt.Errorf("%s: JSON does not hold the arguments", b.Name())
	}
	return returned(in.request(engine.ToolFunction, map[string]any{"name": b.Name(), "args": json.RawMessage(list),
		"kwargs": json.RawMessage(named)}))
}

// modelOf is the model that a query names, nil if none.
func modelOf(v starlark.Value) any {
	if s, ok := starlark.AsString(v); ok {
		return s
	}
	return nil
}

// parameter is one of a function whose arguments the host checks.
type parameter struct {
	name  string
	value any // nil if it is required
}

func required(name string) parameter          { return parameter{name, nil} }
func option(name string, value any) parameter { return parameter{name, value} }

// plain is a function whose arguments are handed to the host as they are.
func (in *interpreter) plain(parameters ...parameter) call {
	return func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
		starlark.Value, error) {
		values := make([]starlark.Value, len(parameters))
		var pairs []any
		for i, p := range parameters {
			if p.value != nil {
				p.name += "?"
			}
			pairs = append(pairs, p.name, &values[i])
		}
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, pairs...); err != nil {
			return nil, err
		}
		given := make(map[string]any, len(parameters))
		for i, p := range parameters {
			given[p.name] = p.value
			if values[i] == nil {
				continue
			}
			raw, ok := encode(values[i])
			if !ok {
				return nil, fmt.Errorf("%s: %s is a %s", b.Name(), p.name, values[i].Type())
			}
			given[p.name] = json.RawMessage(raw)
		}
		return returned(in.request(b.Name(), given))
	}
}

func (in *interpreter) finish(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var v starlark.Value = starlark.String("")
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "value?", &v); err != nil {
		return nil, err
	}
	return v, in.capture(v, b.Name())
}

func (in *interpreter) finishVar(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple,
	kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var v starlark.Value
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "value", &v); err != nil {
		return nil, err
	}
	if text, ok := starlark.AsString(v); ok {
		name := strings.Trim(text, "\"' ")
		if bound, there := in.globals[name]; there {
			v = bound
		} else if name == text && isIdentifier(name) {
			return nil, fmt.Errorf("FINAL_VAR: there is no variable %q; variables of this block have no name yet: "+
				"pass the value", name)
		}
	}
	return v, in.capture(v, b.Name())
}

// isIdentifier reports whether a text could be a name.
func isIdentifier(text string) bool {
	for i, r := range text {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return text != ""
}

func (in *interpreter) submit(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var v starlark.Value = starlark.NewList(args)
	switch {
	case len(kwargs) > 0:
		fields := starlark.NewDict(len(kwargs))
		for _, kw := range kwargs {
			if err := fields.SetKey(kw[0], kw[1]); err != nil {
				return nil, err
			}
		}
		v = fields
	case len(args) == 1:
		v = args[0]
	}
	return v, in.capture(v, "SUBMIT")
}

func (in *interpreter) showVars(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (
	starlark.Value, error) {
	var lines []string
	for _, name := range in.variables() {
		lines = append(lines, name+": "+in.globals[name].Type())
	}
	if lines == nil {
		lines = []string{"(no variables)"}
	}
	return starlark.String(strings.Join(lines, "\n")), nil
}

func sum(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var list starlark.Iterable
	var total starlark.Value = starlark.MakeInt(0)
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "iterable", &list, "start?", &total); err != nil {
		return nil, err
	}
	var err error
	for v := range starlark.Elements(list) {
		if yes, ok := v.(starlark.Bool); ok { // as in Python, True counts one
			v = starlark.MakeInt(0)
			if yes {
				v = starlark.MakeInt(1)
			}
		}
		if total, err = starlark.Binary(syntax.PLUS, total, v); err != nil {
			return nil, fmt.Errorf("sum: %w", err)
		}
	}
	return total, nil
}

// round rounds half to even, as Python does.
func round(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	var number starlark.Value
	var digits starlark.Value = starlark.None
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "number", &number, "ndigits?", &digits); err != nil {
		return nil, err
	}
	f, ok := starlark.AsFloat(number)
	if !ok {
		return nil, fmt.Errorf("round: got %s, want a number", number.Type())
	}
	if digits == starlark.None {
		return starlark.NumberToInt(starlark.Float(math.RoundToEven(f)))
	}
	n, err := starlark.AsInt32(digits)
	if err != nil {
		return nil, fmt.Errorf("round: ndigits: %w", err)
	}
	if _, whole := number.(starlark.Int); whole && n >= 0 {
		return number, nil
	}
	scale := math.Pow10(n)
	return starlark.Float(math.RoundToEven(f*scale) / scale), nil
}

func mapped(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	return each(thread, b, args, kwargs, func(_, result starlark.Value) starlark.Value { return result })
}

func filtered(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (
	starlark.Value, error) {
	return each(thread, b, args, kwargs, func(v, result starlark.Value) starlark.Value {
		if result.Truth() {
			return v
		}
		return nil
	})
}

// each calls a function for each value of a list, and returns what keep makes of them.
func each(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple,
	keep func(v, result starlark.Value) starlark.Value) (starlark.Value, error) {
	var f starlark.Callable
	var list starlark.Iterable
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "function", &f, "iterable", &list); err != nil {
		return nil, err
	}
	var out []starlark.Value
	for v := range starlark.Elements(list) {
		result, err := starlark.Call(thread, f, starlark.Tuple{v}, nil)
		if err != nil {
			return nil, err
		}
		if kept := keep(v, result); kept != nil {
			out = append(out, kept)
		}
	}
	return starlark.NewList(out), nil
}

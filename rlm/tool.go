package rlm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/jsonreply"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// Tool is a program of the user that the model of a REPL or a search can have run: it reads its
// arguments as a JSON object from standard input, and writes JSON or text.
type Tool struct {
	// Command is "exec:" and the command line, as of a model.
	Command string `json:"command"`
	// Description is what the model reads of it.
	Description string `json:"description,omitempty"`
	// Parameters is a JSON Schema of the arguments, an object; empty: any object.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

const (
	maxTools            = 50
	maxDescriptionBytes = 4096
)

// tool is a tool of a run.
type tool struct {
	Tool
	name string
	by   *asked
	// shape is that of the arguments, nil for any; names are those of its properties in order.
	shape *jsonreply.Shape
	names []string
}

// checkTools reports what is wrong with the tools.
func (c *Config) checkTools(bad func(field, format string, args ...any)) {
	if len(c.Tools) > maxTools {
		bad("tools", "there are %d, the limit is %d", len(c.Tools), maxTools)
		return
	}
	if len(c.Tools) > 0 && c.Planner != PlannerRepl && c.Planner != PlannerSearch {
		bad("tools", "only planners repl and search have tools; choose one of them with --planner")
	}
	for _, name := range sortedNames(c.Tools) {
		t := c.Tools[name]
		if why := refuseToolName(name); why != "" {
			bad("tools", "%q %s", clip.Bytes(name, maxNameBytes), why)
			continue
		}
		field := func(f string) string { return "tools." + name + "." + f }
		if rest, ok := strings.CutPrefix(t.Command, programScheme); !ok || strings.TrimSpace(rest) == "" {
			bad(field("command"), "%q is not exec:COMMAND", t.Command)
		}
		checkText(bad, field("command"), t.Command, maxModelNameBytes)
		checkText(bad, field("description"), t.Description, maxDescriptionBytes)
		if _, _, err := parameters(t.Parameters); err != nil {
			bad(field("parameters"), "%s", err)
		}
	}
}

// refuseToolName returns why a tool cannot have a name, "" if it can: the code of a REPL calls it
// as a function, and it must hide none that code uses.
func refuseToolName(name string) string {
	switch {
	case len(name) > maxNameBytes || !isIdentifier(name):
		return fmt.Sprintf("is not a name of a function: at most %d ASCII letters, digits and underscores, "+
			"and not a digit first", maxNameBytes)
	case strings.HasPrefix(name, "_"), slices.Contains(reservedNames(), strings.ToLower(name)):
		return "is reserved; choose another name"
	}
	return ""
}

func isIdentifier(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == "" &&
		(name[0] < '0' || name[0] > '9')
}

// reservedNames are the names, in lower case, that the code of a REPL has, those of the requests
// of a search, keywords of Python and Starlark, and built-in functions.
func reservedNames() []string {
	return append(engine.Functions(), strings.Fields(`context answer final final_var submit done show_vars history perdure
		budget list read search load math re json asyncio
		and as assert async await break class continue def del elif else except finally for from global if import in is
		lambda nonlocal not or pass raise return try while with yield match case type true false none
		abs all any bool bytes callable chr dict dir divmod enumerate eval exec exit fail filter float format frozenset
		getattr globals hasattr hash help hex id input int isinstance issubclass iter len locals map max min next object
		open ord pow print property quit range repr reversed round set setattr slice sorted str struct sum super tuple
		vars zip`)...)
}

// parameters compiles the schema of the arguments of a tool, and returns the names of its
// properties in order.
func parameters(raw json.RawMessage) (shape *jsonreply.Shape, names []string, err error) {
	if len(raw) == 0 {
		return nil, nil, nil
	}
	if shape, err = jsonreply.Compile(raw); err != nil {
		return nil, nil, err
	}
	var schema struct {
		Type       any             `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil || schema.Type != nil && schema.Type != "object" {
		return nil, nil, errors.New(`the arguments are an object: write "type": "object"`)
	}
	return shape, memberNames(schema.Properties), nil
}

// memberNames returns the names of the members of an object in the order in which it has them.
func memberNames(object json.RawMessage) (names []string) {
	d := json.NewDecoder(bytes.NewReader(object))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		var value json.RawMessage
		if err != nil || !ok || d.Decode(&value) != nil {
			return names
		}
		names = append(names, name)
	}
	return names
}

// findTools finds the programs of the tools.
func findTools(res Resolver, cfg *Config) (map[string]*tool, error) {
	found := make(map[string]*tool, len(cfg.Tools))
	for name, t := range cfg.Tools {
		opt := cfg.modelOptions()
		opt.Tries, opt.Cache = 1, false // it can change something, and what it returns can change
		m, err := resolveModel(res, t.Command, opt)
		if err != nil {
			return nil, withTitle("tool "+name, err)
		}
		m.quiet, m.tool = true, name
		one := &tool{Tool: t, name: name, by: m}
		if one.shape, one.names, err = parameters(t.Parameters); err != nil {
			return nil, invalid(fmt.Sprintf("tools.%s.parameters: %v", name, err), "")
		}
		found[name] = one
	}
	return found, nil
}

// schema returns the JSON Schema of the arguments.
func (t *tool) schema() json.RawMessage {
	if t.shape == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return t.shape.JSON()
}

// describeTools returns the tools as the model of a REPL reads of them.
func (t team) describeTools() (all []turn.Tool) {
	for _, name := range sortedNames(t.tools) {
		one := t.tools[name]
		d := turn.Tool{Name: name, Parameters: one.names, Description: one.Description}
		if one.shape != nil {
			d.Schema = one.shape.Text
		}
		all = append(all, d)
	}
	return all
}

// modelTools returns the tools as a provider offers them.
func (t team) modelTools() (all []model.Tool) {
	for _, name := range sortedNames(t.tools) {
		one := t.tools[name]
		all = append(all, model.Tool{Name: name, Description: one.Description, Parameters: one.schema()})
	}
	return all
}

// arguments returns the object of the arguments of a call: those by name, and those by position
// in the order of the properties. A single object by position is the arguments. problem is what
// is wrong with them, for the model.
func (t *tool) arguments(args []json.RawMessage, byName json.RawMessage) (object json.RawMessage, problem string) {
	given := memberNames(byName)
	switch {
	case len(args) == 1 && len(given) == 0 && isObject(args[0]):
		object = args[0]
	case len(args) > len(t.names):
		return nil, fmt.Sprintf("%s takes arguments by name: %s(name=value)", t.name, t.name)
	default:
		var members [][]byte
		for i, value := range args {
			if slices.Contains(given, t.names[i]) {
				return nil, fmt.Sprintf("%s got two values for %s", t.name, t.names[i])
			}
			members = append(members, fmt.Appendf(nil, "%q:%s", t.names[i], value))
		}
		if len(given) > 0 {
			inner := bytes.TrimSpace(byName)
			members = append(members, inner[1:len(inner)-1])
		}
		object = slices.Concat([]byte("{"), bytes.Join(members, []byte(",")), []byte("}"))
	}
	return t.checkArguments(object)
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) }

// checkArguments checks the arguments of a call, and returns them compact.
func (t *tool) checkArguments(object json.RawMessage) (compact json.RawMessage, problem string) {
	var text bytes.Buffer
	if !isObject(object) || json.Compact(&text, object) != nil {
		return nil, fmt.Sprintf("%s takes its arguments as a JSON object", t.name)
	}
	if t.shape != nil {
		if _, problems := t.shape.CheckWhole(text.String()); len(problems) > 0 {
			return nil, fmt.Sprintf("%s: the arguments are not valid: %s", t.name, strings.Join(problems, "; "))
		}
	}
	return text.Bytes(), ""
}

// toolQuery reads a call of a tool by the code of a REPL. problem is what is wrong with it.
func (r *run) toolQuery(req *engine.Request) (q query, problem string) {
	var call struct {
		Name   string            `json:"name"`
		Args   []json.RawMessage `json:"args"`
		Kwargs json.RawMessage   `json:"kwargs"`
	}
	q.function = req.Function
	err := json.Unmarshal(req.Args, &call)
	t := r.tools[call.Name]
	if err != nil || t == nil {
		return q, fmt.Sprintf("there is no tool %q", call.Name)
	}
	object, problem := t.arguments(call.Args, call.Kwargs)
	q.tool, q.prompts = t.name, []string{clip.Storable(t.name + " " + string(object))}
	return q, problem
}

// toolValue is what the code receives of the output of a tool: the value if it is JSON, else the
// text.
func toolValue(output string) any {
	raw := bytes.TrimSpace([]byte(output))
	if json.Valid(raw) {
		return json.RawMessage(raw)
	}
	return strings.TrimRight(output, "\n")
}

// runTool runs a tool as the call of this number of the attempt. A failure of the program is a
// text that begins with "Error:", which is kept like its output: a tool is not run again for
// having failed.
func (a *attempt) runTool(ctx context.Context, position int, name, arguments string) (string, Data, error) {
	t := a.run.tools[name]
	if t == nil {
		return "", Data{}, failf(KindPlan, "tool %q is not one of this run", name)
	}
	return a.ask(ctx, position, t.by, &model.Request{Prompt: arguments})
}

// failedTool is the answer of a tool whose program failed, as the model reads it.
func failedTool(m *asked, err error) *model.Response {
	why := err.Error()
	if e, ok := errors.AsType[*model.Error](err); ok && e.Kind == model.KindFailed {
		why = strings.TrimSpace(e.Error())
	}
	return &model.Response{Text: errorText(fmt.Sprintf("tool %s: %s", m.tool, clip.Bytes(why, maxToolError))),
		StopReason: "stop", Tries: 1, Notes: []string{fmt.Sprintf("tool %s failed", m.tool)}}
}

// maxToolError bounds the text of a failure.
const maxToolError = 2000

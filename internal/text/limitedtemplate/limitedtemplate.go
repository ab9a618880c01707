// Package limitedtemplate executes text/template templates that other people wrote, with
// limits of their size, steps and output. The limits are counted, so that a template has
// the same result on every machine. The context can end an execution earlier.
//
// A range over a large number, nested ranges and templates that call themselves write
// nothing for hours, and a variable that is printed twice into itself doubles at each step.
// So each body of a range and of a template begins with an action that counts, and the
// functions that build strings count too.
package limitedtemplate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"
)

// Limits of a template.
const (
	// MaxSource is the limit of the text of a template in bytes.
	MaxSource = 64 << 10
	// MaxSteps is the limit of the executed actions. Each 64 bytes of a string that a
	// function returns, or that printf makes of an argument, count as one.
	MaxSteps = 100_000
	// MaxValue is the limit of a string that a function returns, in bytes.
	MaxValue = 256 << 10
	// MaxOutput is the limit of the output in bytes.
	MaxOutput = 4 << 20
)

// ErrLimit is the kind of the error of a template that exceeds a limit.
var ErrLimit = errors.New("template exceeds a limit")

func exceeded(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}

// stepName is the function that counts. A template that calls it only shortens its life.
const stepName = "perdure_step"

// Set is a set of templates.
type Set struct {
	parsed *template.Template
	funcs  template.FuncMap
}

// New returns an empty set whose templates can use some functions, each with one result. Their
// strings count as those of the built-in functions do.
func New(funcs template.FuncMap) *Set {
	s := &Set{parsed: template.New(""), funcs: funcs}
	s.parsed.Funcs(s.functions(new(meter)))
	return s
}

// Add parses a template and the ones that it defines.
func (s *Set) Add(name, text string) error {
	if len(text) > MaxSource {
		return exceeded("it has %d bytes, limit %d", len(text), MaxSource)
	}
	before := make(map[*parse.Tree]bool)
	for _, t := range s.parsed.Templates() {
		before[t.Tree] = true
	}
	if _, err := s.parsed.New(name).Parse(text); err != nil {
		return err
	}
	for _, t := range s.parsed.Templates() {
		if t.Tree == nil || t.Root == nil || before[t.Tree] {
			continue
		}
		if err := s.count(t.Root); err != nil {
			return err
		}
	}
	return nil
}

// Execute executes a template. When the context ends or its deadline passes, the next step
// fails, and the error matches the cause.
func (s *Set) Execute(ctx context.Context, name string, data any) (string, error) {
	set, err := s.parsed.Clone()
	if err != nil {
		return "", err
	}
	m := &meter{ended: ctx.Done(), cause: func() error { return context.Cause(ctx) }, steps: MaxSteps}
	var out strings.Builder
	if err := set.Funcs(s.functions(m)).ExecuteTemplate(&bounded{m, &out}, name, data); err != nil {
		return "", err
	}
	return out.String(), nil
}

// count puts a step before the first node of a body and of the bodies of ranges in it.
func (s *Set) count(body *parse.ListNode) error {
	nodes, err := s.inside(body)
	if err != nil {
		return err
	}
	t, err := template.New("").Funcs(s.functions(new(meter))).Parse(fmt.Sprintf("{{%s %d}}", stepName, nodes+1))
	if err != nil {
		return err
	}
	body.Nodes = append([]parse.Node{t.Root.Nodes[0]}, body.Nodes...)
	return nil
}

// inside returns the number of nodes that one execution of a list visits at most, and counts
// the bodies of its ranges.
func (s *Set) inside(list *parse.ListNode) (nodes int, err error) {
	if list == nil {
		return 0, nil
	}
	add := func(more int, problem error) {
		nodes += more
		err = errors.Join(err, problem)
	}
	branch := func(b *parse.BranchNode) {
		add(s.pipe(b.Pipe))
		add(s.inside(b.ElseList))
	}
	for _, n := range list.Nodes {
		nodes++
		switch n := n.(type) {
		case *parse.ActionNode:
			add(s.pipe(n.Pipe))
		case *parse.TemplateNode:
			add(s.pipe(n.Pipe))
		case *parse.IfNode:
			branch(&n.BranchNode)
			add(s.inside(n.List))
		case *parse.WithNode:
			branch(&n.BranchNode)
			add(s.inside(n.List))
		case *parse.RangeNode:
			branch(&n.BranchNode)
			add(0, s.count(n.List))
		}
	}
	return nodes, err
}

// pipe returns the number of nodes of a pipeline. It refuses methods with arguments that are
// not literals: their results can grow at each step, as a time that is formatted by its own
// result does.
func (s *Set) pipe(p *parse.PipeNode) (nodes int, err error) {
	if p == nil {
		return 0, nil
	}
	for i, cmd := range p.Cmds {
		nodes += len(cmd.Args)
		for j, arg := range cmd.Args {
			literal := true
			switch arg := arg.(type) {
			case *parse.PipeNode:
				more, problem := s.pipe(arg)
				nodes, err, literal = nodes+more, errors.Join(err, problem), false
			case *parse.ChainNode:
				literal = false
				if inner, ok := arg.Node.(*parse.PipeNode); ok {
					more, problem := s.pipe(inner)
					nodes, err = nodes+more, errors.Join(err, problem)
				}
			case *parse.FieldNode, *parse.VariableNode, *parse.DotNode, *parse.IdentifierNode:
				literal = false
			}
			if method(cmd.Args[0]) && (j > 0 && !literal || i > 0) {
				return nodes, errors.Join(err, fmt.Errorf("%s: a method takes only literals here", cmd))
			}
		}
	}
	return nodes, err
}

// method reports whether a node can call a method.
func method(n parse.Node) bool {
	switch n := n.(type) {
	case *parse.FieldNode, *parse.ChainNode:
		return true
	case *parse.VariableNode:
		return len(n.Ident) > 1
	}
	return false
}

// meter counts the steps of one execution.
type meter struct {
	ended          <-chan struct{} // closed when the execution has to end; nil for never
	cause          func() error    // why ended is closed
	steps, written int
}

func (m *meter) take(steps int) error {
	select {
	case <-m.ended:
		return m.cause()
	default:
	}
	if m.steps -= max(steps, 1); m.steps < 0 {
		return exceeded("more than %d steps", MaxSteps)
	}
	return nil
}

// value counts a string that a function returns.
func (m *meter) value(text string) (string, error) {
	if len(text) > MaxValue {
		return "", exceeded("a value has more than %d bytes", MaxValue)
	}
	return text, m.take(len(text) / 64)
}

// print is the function print, or println with a separator.
func (m *meter) print(line bool, args ...any) (string, error) {
	size := 0
	for _, arg := range args {
		text, ok := arg.(string)
		if !ok {
			text = fmt.Sprint(arg)
		}
		if size += len(text) + 1; size > MaxValue {
			return "", exceeded("a value has more than %d bytes", MaxValue)
		}
	}
	if line {
		return m.value(fmt.Sprintln(args...))
	}
	return m.value(fmt.Sprint(args...))
}

// maxWidth is the limit of the widths and precisions of printf.
const maxWidth = 999

// printf is the function printf. A few bytes of a format can stand for gigabytes.
func (m *meter) printf(format string, args ...any) (string, error) {
	longest, number := 0, 0
	for _, arg := range args {
		text, ok := arg.(string)
		if !ok {
			text = fmt.Sprintf("%#v", arg)
		}
		if err := m.take(len(text) / 64); err != nil {
			return "", err
		}
		longest = max(longest, len(text))
	}
	for _, c := range format {
		switch {
		case c == '*':
			return "", exceeded("printf takes no width from its arguments")
		case c >= '0' && c <= '9':
			number = min(number*10+int(c-'0'), maxWidth+1)
		default:
			number = 0
		}
		if number > maxWidth {
			return "", exceeded("a width of printf is more than %d", maxWidth)
		}
	}
	const widest = 12 // bytes that %+q writes for one character
	if verbs := strings.Count(format, "%"); verbs*(maxWidth*2+longest) > widest*MaxValue {
		return "", exceeded("printf has %d verbs and an argument of %d bytes", verbs, longest)
	}
	return m.value(fmt.Sprintf(format, args...))
}

// counted returns a function that counts the string that another one returns.
func (m *meter) counted(fn any) any {
	inner := reflect.ValueOf(fn)
	t := inner.Type()
	problem := reflect.TypeFor[error]()
	in := make([]reflect.Type, t.NumIn())
	for i := range in {
		in[i] = t.In(i)
	}
	outer := reflect.FuncOf(in, []reflect.Type{t.Out(0), problem}, t.IsVariadic())
	return reflect.MakeFunc(outer, func(args []reflect.Value) []reflect.Value {
		call := inner.Call
		if t.IsVariadic() {
			call = inner.CallSlice
		}
		out, failed := call(args)[0], reflect.Zero(problem)
		if out.Kind() == reflect.String {
			if _, err := m.value(out.String()); err != nil {
				failed = reflect.ValueOf(err)
			}
		}
		return []reflect.Value{out, failed}
	}).Interface()
}

// functions returns the functions of one execution: those of the set, the built-in ones that
// build strings, and the one that counts.
func (s *Set) functions(m *meter) template.FuncMap {
	escape := func(as func(string) string) func(args ...any) (string, error) {
		return func(args ...any) (string, error) {
			text, err := m.print(false, args...)
			if err != nil {
				return "", err
			}
			return m.value(as(text))
		}
	}
	funcs := make(template.FuncMap)
	for name, fn := range s.funcs {
		funcs[name] = m.counted(fn)
	}
	for name, fn := range (template.FuncMap{
		stepName:   func(n int) (string, error) { return "", m.take(n) },
		"print":    func(args ...any) (string, error) { return m.print(false, args...) },
		"println":  func(args ...any) (string, error) { return m.print(true, args...) },
		"printf":   m.printf,
		"html":     escape(template.HTMLEscapeString),
		"js":       escape(template.JSEscapeString),
		"urlquery": escape(func(text string) string { return template.URLQueryEscaper(text) }),
		"join": func(list []string, sep string) (string, error) {
			size := 0
			for _, text := range list {
				if size += len(text) + len(sep); size > MaxValue {
					return "", exceeded("a value has more than %d bytes", MaxValue)
				}
			}
			return m.value(strings.Join(list, sep))
		},
	}) {
		funcs[name] = fn
	}
	return funcs
}

// bounded is a writer with a limit.
type bounded struct {
	m  *meter
	to io.Writer
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.m.written += len(p); b.m.written > MaxOutput {
		return 0, exceeded("the output has more than %d bytes", MaxOutput)
	}
	return b.to.Write(p)
}

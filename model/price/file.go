package price

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure/internal/text/nearest"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// Limits of a file of prices.
const (
	maxFileBytes = 1 << 20
	// maxPrice is more than a million tokens of anything cost; beyond it
	// the file has the price of another model.
	maxPrice  = 1e6
	maxTokens = 1e9
)

// Error is what is wrong with a file of prices.
type Error struct {
	// File and Line are the place; the line is 0 when it is the whole file.
	File string
	Line int
	// Msg says what is wrong, for people.
	Msg string
	// Err is the cause, may be nil.
	Err error
}

// Error names the place first.
func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += ":" + strconv.Itoa(e.Line)
	}
	return at + ": " + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// overrides are the entries of a file.
type overrides struct {
	file    string
	date    string
	entries map[string]*override
}

// override is one entry; nil fields are left as they are in the built-in table.
type override struct {
	source string
	fields map[string]*float64
}

// The fields of an entry.
const (
	fieldInput      = "input"
	fieldOutput     = "output"
	fieldCacheRead  = "cache_read"
	fieldCacheWrite = "cache_write"
	fieldWindow     = "context_window"
	fieldMaxOutput  = "max_output"
)

func entryFields() []string {
	return []string{fieldInput, fieldOutput, fieldCacheRead, fieldCacheWrite, fieldWindow, fieldMaxOutput}
}

// find returns the entry of a model: the one of its name, else the longest that
// ends in an asterisk and begins it; nil when there is none.
func (o *overrides) find(name string) *override {
	if e := o.entries[name]; e != nil {
		return e
	}
	var best *override
	longest := -1
	for pattern, e := range o.entries {
		prefix, open := strings.CutSuffix(pattern, "*")
		if open && strings.HasPrefix(name, prefix) && len(prefix) > longest {
			best, longest = e, len(prefix)
		}
	}
	return best
}

// complete reports whether the entry has all fields, so that no other source is read.
func (o *override) complete() bool {
	return o.fields[fieldInput] != nil && o.fields[fieldWindow] != nil && o.fields[fieldMaxOutput] != nil
}

// over lays the entry over a rate.
func (o *override) over(r Rate) Rate {
	value := func(field string, otherwise float64) float64 {
		if v := o.fields[field]; v != nil {
			return *v
		}
		return otherwise
	}
	if o.fields[fieldInput] != nil { // and then output is there, too
		r.Known = true
		r.Input, r.Output = *o.fields[fieldInput], *o.fields[fieldOutput]
		r.CacheRead, r.CacheWrite = r.Input, r.Input
	}
	r.CacheRead, r.CacheWrite = value(fieldCacheRead, r.CacheRead), value(fieldCacheWrite, r.CacheWrite)
	r.Window, r.MaxOutput = int(value(fieldWindow, float64(r.Window))), int(value(fieldMaxOutput, float64(r.MaxOutput)))
	r.Source = o.source
	return r
}

// readFile reads the user's file.
func readFile(cfg Config) (*overrides, error) {
	if cfg.File == "" {
		return &overrides{}, nil
	}
	if info, err := os.Stat(cfg.File); err == nil && !info.Mode().IsRegular() { // opening a pipe waits
		return nil, &Error{File: cfg.File, Msg: "read prices: not a regular file"}
	}
	f, err := os.Open(cfg.File)
	if cfg.Optional && errors.Is(err, fs.ErrNotExist) {
		return &overrides{}, nil
	}
	var text []byte
	if err == nil {
		defer f.Close()
		text, err = io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	}
	if err != nil {
		if path, ok := errors.AsType[*fs.PathError](err); ok {
			err = path.Err // the file is named already
		}
		return nil, &Error{File: cfg.File, Msg: "read prices: " + err.Error(), Err: err}
	}
	return parse(cfg.File, text)
}

// parse reads the text of a file of prices: YAML, every key known, no key
// twice. name is for errors, which are *Error values:
//
//	date: 2026-11-01          # optional: the day the prices are from
//	models:
//	  openai:gpt-4o-mini:     # as the configuration names it; * at its end for all that begin so
//	    input: 0.15           # US dollars for a million tokens
//	    output: 0.60
//	    cache_read: 0.075     # default: input
//	    cache_write: 0.15     # default: input
//	    context_window: 128000
//	    max_output: 16384
//
// What an entry leaves out is as in the built-in table.
func parse(name string, text []byte) (o *overrides, err error) {
	p := &fileParser{file: &overrides{file: name, entries: make(map[string]*override)}}
	defer func() {
		if v := recover(); v != nil { // the library panics on some input
			o, err = nil, &Error{File: name, Msg: fmt.Sprintf("the YAML cannot be understood (%v)", v)}
		}
	}()
	tree, problem := yamltext.Parse(text, maxFileBytes)
	if problem != nil {
		return nil, &Error{File: name, Line: problem.Line, Msg: problem.Message(), Err: problem}
	}
	for i, doc := range tree.Docs {
		switch {
		case doc.Body == nil:
		case i > 0:
			return nil, p.wrong(doc.Body, "a second document begins; one is enough")
		default:
			if err := p.top(doc.Body); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range p.file.entries {
		if p.file.date != "" {
			e.source += " of " + p.file.date
		}
	}
	return p.file, nil
}

// fileParser reads one file; it ends at the first thing that is wrong.
type fileParser struct{ file *overrides }

func (p *fileParser) wrong(at ast.Node, format string, args ...any) error {
	e := &Error{File: p.file.file, Msg: fmt.Sprintf(format, args...)}
	if t := at.GetToken(); t != nil && t.Position != nil {
		e.Line = t.Position.Line
	}
	return e
}

// each calls do for each key of a mapping.
func (p *fileParser) each(n ast.Node, what string, do func(key string, at, value ast.Node) error) error {
	var entries []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		entries = m.Values
	case *ast.MappingValueNode:
		entries = []*ast.MappingValueNode{m}
	case *ast.NullNode:
		return nil
	default:
		return p.wrong(n, "%s is not a mapping; write key: value", what)
	}
	seen := make(map[string]bool)
	for _, entry := range entries {
		key, ok := entry.Key.(*ast.StringNode)
		if !ok {
			return p.wrong(entry.Key, "%s: the key %s is not text", what, entry.Key.String())
		}
		if seen[key.Value] {
			return p.wrong(key, "%s: duplicate key %q", what, key.Value)
		}
		seen[key.Value] = true
		if err := do(key.Value, key, entry.Value); err != nil {
			return err
		}
	}
	return nil
}

// unknown says that a key is unknown, and the nearest known one.
func (p *fileParser) unknown(at ast.Node, key string, known []string) error {
	if near, ok := nearest.Word(key, known); ok {
		return p.wrong(at, "unknown key %q; did you mean %q?", key, near)
	}
	return p.wrong(at, "unknown key %q; the keys are %s", key, strings.Join(known, ", "))
}

func (p *fileParser) top(n ast.Node) error {
	return p.each(n, "the file", func(key string, at, value ast.Node) error {
		switch key {
		case "date":
			p.file.date = value.GetToken().Value
			if _, err := time.Parse(time.DateOnly, p.file.date); err != nil {
				return p.wrong(value, "date: %q is not a day like 2026-11-01", p.file.date)
			}
			return nil
		case "models":
			return p.each(value, "models", p.entry)
		}
		return p.unknown(at, key, []string{"date", "models"})
	})
}

func (p *fileParser) entry(name string, at, value ast.Node) error {
	schemes := []string{schemeOpenAI, schemeAnthropic, schemeExec, schemeMock, schemeBuiltin}
	scheme, rest, _ := strings.Cut(name, ":")
	if rest == "" || !slices.Contains(schemes, scheme) {
		if near, ok := nearest.Word(scheme, schemes); ok {
			return p.wrong(at, "models: %q is not the name of a model; did you mean \"%s:%s\"?", name, near, rest)
		}
		return p.wrong(at, `models: %q is not the name of a model; write it as the configuration does, for example `+
			`"openai:%s"`, name, name)
	}
	e := &override{fields: make(map[string]*float64)}
	err := p.each(value, name, func(key string, at, value ast.Node) error { return p.field(e, key, at, value) })
	if err != nil {
		return err
	}
	for _, pair := range [][2]string{{fieldInput, fieldOutput}, {fieldOutput, fieldInput}} {
		if e.fields[pair[0]] != nil && e.fields[pair[1]] == nil {
			return p.wrong(at, "%s: %s is missing; give both prices, 0 for what is free", name, pair[1])
		}
	}
	e.source = fmt.Sprintf("%s:%d", p.file.file, at.GetToken().Position.Line)
	p.file.entries[name] = e
	return nil
}

func (p *fileParser) field(e *override, key string, at, value ast.Node) error {
	if !slices.Contains(entryFields(), key) {
		return p.unknown(at, key, entryFields())
	}
	text := value.GetToken().Value
	v, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	switch value.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
	default:
		return p.wrong(value, "%s: %q is not a number", key, text)
	}
	switch whole := key == fieldWindow || key == fieldMaxOutput; {
	case err != nil:
		return p.wrong(value, "%s: %q is not a number", key, text)
	case whole && (v != math.Trunc(v) || v < 1 || v > maxTokens):
		return p.wrong(value, "%s: %s is not a whole number of tokens from 1 to %g", key, text, maxTokens)
	case !whole && (v < 0 || v > maxPrice):
		return p.wrong(value, "%s: %s is not between 0 and %g US dollars for a million tokens", key, text, maxPrice)
	}
	e.fields[key] = &v
	return nil
}

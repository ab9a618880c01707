package rlm

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/lookup"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
)

// logContext is the variable context of a log, which its first block has.
type logContext struct {
	text  string // of a context that is no text, its JSON
	plain bool   // it is a text
	given bool   // by the user, not by the log
}

// contextOf returns the context of a log by its first block, nil if it has none.
func contextOf(b *trajectory.CodeBlock) (*logContext, error) {
	raw, ok := b.Result.Locals["context"]
	if !ok {
		raw, ok = b.Result.Locals["context_0"]
	}
	if !ok {
		return nil, nil
	}
	c := &logContext{plain: len(raw) > 0 && raw[0] == '"'}
	if c.plain {
		return c, json.Unmarshal(raw, &c.text)
	}
	c.text = string(trajectory.Python(raw))
	return c, nil
}

// addedContext returns the variables of a further context of the same REPL, and the messages before
// it, as a first block has them; nil if it has none.
func addedContext(b *trajectory.CodeBlock, number int) (vars []engine.Var) {
	if b == nil || number == 0 {
		return nil
	}
	name := fmt.Sprintf("context_%d", number)
	if b.Result.Locals[name] == nil {
		return nil
	}
	for _, n := range []string{name, fmt.Sprintf("history_%d", number-1)} {
		if raw := b.Result.Locals[n]; raw != nil {
			vars = append(vars, engine.Var{Name: n, Value: bytes.Clone(raw)})
		}
	}
	if raw := b.Result.Locals["history_0"]; raw != nil {
		vars = append(vars, engine.Var{Name: "history", Value: bytes.Clone(raw)})
	}
	return vars
}

// form is the form of the context's text, see [engine.Reference]. Remote environments log the values of
// variables as Python prints them.
func (c *logContext) form(environment string) string {
	switch {
	case !c.plain:
		return "json"
	case environment == "remote" && !c.given:
		return "repr"
	}
	return ""
}

// file is the context for the engine.
func (c *logContext) file() *engine.File {
	if c == nil {
		return nil
	}
	return &engine.File{Name: lookup.TextName, Bytes: int64(len(c.text)), Chars: -1}
}

// setup is code that sets context_0 for the rules of this program.
func (c *logContext) setup() string {
	if c.plain {
		return "context_0 = context\n"
	}
	return "import json\ncontext_0 = json.loads(context)\n"
}

// before is code that goes before each block by the rules of this program: the engine has the context as
// a text.
func (c *logContext) before() string {
	if c.plain {
		return ""
	}
	return "context = context_0\n"
}

// read answers the engine's request for bytes of the context.
func (c *logContext) read(args json.RawMessage) (engine.Reply, error) {
	var a struct {
		Offset int64 `json:"offset"`
		Length int64 `json:"length"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return engine.Reply{}, err
	}
	from := min(max(a.Offset, 0), int64(len(c.text)))
	to := min(from+min(max(a.Length, 0), lookup.MaxReadBytes), int64(len(c.text)))
	raw, err := json.Marshal(map[string][]byte{"data": []byte(c.text[from:to])})
	return engine.Reply{Value: raw}, err
}

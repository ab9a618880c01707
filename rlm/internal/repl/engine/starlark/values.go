package starlark

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	starjson "go.starlark.net/lib/json"
	"go.starlark.net/starlark"

	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/engine/pipe"
)

const (
	// manyValues and longText bound what is compared and handed out as a whole.
	manyValues = 200_000
	longText   = 16 << 20
	allVars    = 16 << 20 // bytes of all values of a block that are handed out
	maxNesting = 100
	shownRepr  = 2000
)

// known is a variable as it was after the last block.
type known struct {
	value starlark.Value
	hash  string
}

// changes returns the variables that changed and those that are gone.
func (in *interpreter) changes() (changed []pipe.Value, gone []string) {
	names, left := in.variables(), allVars
	for _, name := range names {
		v := in.globals[name]
		was, there := in.known[name]
		if there && unchangeable(v) && was.value == v {
			continue
		}
		now := in.describe(name, v, left)
		if !there || was.hash != now.SHA256 {
			changed = append(changed, now)
			if now.JSON != nil {
				left -= len(*now.JSON)
			}
		}
		in.known[name] = known{v, now.SHA256}
	}
	for _, name := range slices.Sorted(maps.Keys(in.known)) {
		if _, there := in.globals[name]; !there || in.isHelper(name) {
			gone = append(gone, name)
			delete(in.known, name)
		}
	}
	return changed, gone
}

// variables are the names of the code's own variables, sorted.
func (in *interpreter) variables() []string {
	var names []string
	for name := range in.globals {
		if _, ours := in.reserved[name]; !ours && !in.isHelper(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// unchangeable reports whether a value is one that == compares and nothing changes.
func unchangeable(v starlark.Value) bool {
	switch v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.String, starlark.Float:
		return true
	}
	return false
}

// describe describes a variable for the host, with its value if it has at most so many bytes.
func (in *interpreter) describe(name string, v starlark.Value, most int) pipe.Value {
	out := pipe.Value{Var: engine.Var{Name: name, Type: v.Type()}}
	text, exact := encode(v)
	switch {
	case exact && len(text) <= min(in.limit.value, most):
		out.JSON = &text
	case exact:
		out.Repr = cut(text)
	default:
		text = represent(v)
		out.Repr = cut(text)
	}
	sum := sha256.Sum256([]byte(text))
	out.SHA256, out.Bytes = hex.EncodeToString(sum[:]), int64(len(text))
	return out
}

// cut returns the beginning of a text.
func cut(text string) string { return cutAt(text, shownRepr) }

// cutAt returns at most so many bytes of a text.
func cutAt(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// represent returns a text that identifies a value in every run.
func represent(v starlark.Value) string {
	if f, ok := v.(*starlark.Function); ok {
		return fmt.Sprintf("<function %s at %s>", f.Name(), f.Position())
	}
	if b := (&budget{manyValues, longText}); !b.take(v, 0) {
		if n := starlark.Len(v); n >= 0 {
			return fmt.Sprintf("<%s of %d values>", v.Type(), n)
		}
		return "<large " + v.Type() + ">"
	}
	return v.String()
}

// encode returns a value as JSON, if JSON holds it exactly and it is not very large.
func encode(v starlark.Value) (text string, ok bool) {
	b := &budget{manyValues, longText}
	if !b.take(v, 0) || !exact(v) {
		return "", false
	}
	out, err := starlark.Call(&starlark.Thread{}, starjson.Module.Members["encode"], starlark.Tuple{v}, nil)
	if err != nil {
		return "", false
	}
	text, ok = starlark.AsString(out)
	return text, ok
}

// decode returns the value of a JSON text.
func decode(raw json.RawMessage) (starlark.Value, error) {
	if len(raw) == 0 {
		return starlark.None, nil
	}
	return starlark.Call(&starlark.Thread{}, starjson.Module.Members["decode"], starlark.Tuple{starlark.String(raw)}, nil)
}

// budget is how many values and how much text may be looked at.
type budget struct{ values, text int }

// take takes a value off the budget, and reports whether it was enough.
func (b *budget) take(v starlark.Value, depth int) bool {
	b.values--
	switch v := v.(type) {
	case starlark.String:
		b.text -= len(v)
	case starlark.Bytes:
		b.text -= len(v)
	}
	if b.values < 0 || b.text < 0 || depth > maxNesting {
		return false
	}
	if d, ok := v.(*starlark.Dict); ok {
		for _, item := range d.Items() {
			if !b.take(item[0], depth+1) || !b.take(item[1], depth+1) {
				return false
			}
		}
		return true
	}
	if list, ok := v.(starlark.Iterable); ok {
		for e := range starlark.Elements(list) {
			if !b.take(e, depth+1) {
				return false
			}
		}
	}
	return true
}

// exact reports whether JSON holds a value exactly. Its nesting is bounded already.
func exact(v starlark.Value) bool {
	switch v := v.(type) {
	case starlark.NoneType, starlark.Bool, starlark.Int:
		return true
	case starlark.String:
		return utf8.ValidString(string(v))
	case starlark.Float:
		return !math.IsInf(float64(v), 0) && !math.IsNaN(float64(v))
	case *starlark.List:
		for e := range v.Elements() {
			if !exact(e) {
				return false
			}
		}
		return true
	case *starlark.Dict:
		for _, item := range v.Items() {
			if _, isText := item[0].(starlark.String); !isText || !exact(item[0]) || !exact(item[1]) {
				return false
			}
		}
		return true
	}
	return false
}

// textOf returns a value as the language prints it.
func textOf(v starlark.Value) string {
	if s, ok := starlark.AsString(v); ok {
		return s
	}
	return v.String()
}

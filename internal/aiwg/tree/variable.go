package tree

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// fileScheme begins a value that is in a file.
const fileScheme = "file:"

// variable is one as it was read.
type variable struct {
	perdure.VersionRecord
	rest map[string]json.RawMessage // what nobody knows
}

// same tells whether both have one value.
func (v *variable) same(value json.RawMessage) bool { return string(v.Value) == string(value) }

// variables reads those of a state, in their order. Values in files are read.
func (r *reader) variables(o *object, scope perdure.Scope) []*variable {
	var list []*variable
	taken := make(map[string]bool)
	for _, m := range o.n.Members {
		key, n := m.Name, m.Value
		if o.n.Get(key) != n {
			continue // it stands twice
		}
		if n.Cut {
			r.note(NotRead, o.f, n.Start, "%s: the last variable %s is not whole; it was not taken", o.what, quoted(key))
			continue
		}
		v := r.variable(o, key, n)
		if v == nil {
			continue
		}
		if v.Name = validName(key, taken); v.Name != key {
			o.note(n, "%s is not a variable's name; it became %s", quoted(key), v.Name)
		}
		taken[v.Name] = true
		if len(list) == perdure.MaxVariables {
			r.note(NotRead, o.f, n.Start, "%s: variable %s is one more than the %d that a state may have", o.what, quoted(key),
				perdure.MaxVariables)
			continue
		}
		v.Metadata.Scope = scope
		list = append(list, v)
	}
	return list
}

// validName is a name that a variable may have and that is not taken.
func validName(key string, taken map[string]bool) string {
	name := key
	if !perdure.ValidName(key) {
		name = strings.Map(func(c rune) rune {
			if c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
				return c
			}
			return '_'
		}, key)
		if name == "" || name[0] >= '0' && name[0] <= '9' {
			name = "_" + name
		}
		name = name[:min(len(name), perdure.MaxVariableName)]
	}
	for i := 2; taken[name]; i++ {
		end := fmt.Sprintf("_%d", i)
		name = name[:min(len(name), perdure.MaxVariableName-len(end))] + end
	}
	return name
}

// variable reads one. A bare value is one without anything said about it.
func (r *reader) variable(o *object, key string, n *jsontree.Value) *variable {
	v := &variable{}
	in := r.object(o.f, n, o.what+": variable "+quoted(key))
	if n.Kind != jsontree.Object || in.n.Get("value") == nil {
		v.Value = compacted(n)
		if key != perdure.VarFinal || !n.IsNull() {
			in.note(n, "a bare value stands where a variable has to be; it became its value")
		}
		return r.typed(in, v, "")
	}
	if name := in.text("name"); name != key && name != "" {
		in.note(in.n.Get("name"), "it is named %s inside; the name before it counts", quoted(name))
	}
	v.Value = in.raw("value")
	v.Description, v.Source = in.cut("description", maxText), in.cut("source", maxText)
	v.CreatedAt, v.UpdatedAt = in.time("created_at"), in.time("updated_at")
	v.Accessed = in.whole("access_count")
	given := in.text("type")
	meta := in.sub("metadata")
	v.Metadata.ReadOnly = meta.flag("read_only")
	meta.get("scope") // follows from the state
	valueType := meta.text("value_type")
	r.lifetime(meta, v)
	if given == string(perdure.VarFilePath) {
		given = r.fromFile(in, v, valueType)
	}
	v.rest = in.noteLeft("the state")
	for name, value := range meta.noteLeft("the state") {
		if v.rest == nil {
			v.rest = make(map[string]json.RawMessage)
		}
		v.rest["metadata."+name] = value
	}
	return r.typed(in, v, given)
}

// maxText bounds descriptions, sources and reasons.
const maxText = 4096

func (r *reader) lifetime(meta *object, v *variable) {
	v.Metadata.TTLSeconds = int64(min(meta.number("ttl_seconds"), 1e12))
	if at := meta.time("expires_at"); !at.IsZero() {
		v.Metadata.ExpiresAt = &at
		return
	}
	if v.Metadata.TTLSeconds == 0 {
		return
	}
	from := v.UpdatedAt
	if from.IsZero() {
		from = v.CreatedAt
	}
	if from.IsZero() {
		meta.note(meta.n.Get("ttl_seconds"), "it has a time to live and no time of creation; it stays")
		v.Metadata.TTLSeconds = 0
		return
	}
	at := from.Add(time.Duration(min(v.Metadata.TTLSeconds, 1e9)) * time.Second)
	v.Metadata.ExpiresAt = &at
}

// fromFile replaces a reference by what the file holds, and returns the type.
// Without the file the reference stays.
func (r *reader) fromFile(in *object, v *variable, valueType string) string {
	var ref string
	stays := string(perdure.VarFilePath)
	if json.Unmarshal(v.Value, &ref) != nil {
		return stays
	}
	if !strings.HasPrefix(ref, fileScheme) {
		return stays // a path that is a value of its own
	}
	value, err := r.valueFile(ref, in.f.name, valueType)
	if err != nil {
		r.note(NotRead, in.f, in.n.Start, "%s: %v; the reference came in as it is", in.what, err)
		return stays
	}
	v.Value = value
	return valueType
}

// valueFile reads the file of a value: JSON by its name or because it was
// written by an export, text otherwise.
func (r *reader) valueFile(ref, from, valueType string) (json.RawMessage, error) {
	name, err := r.src.resolve(ref, from)
	if err != nil {
		return nil, err
	}
	text, err := r.src.read(name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", quoted(name), cause(err))
	}
	if len(text) > perdure.MaxVariableBytes {
		return nil, fmt.Errorf("%s has %d bytes, the limit for a value is %d", quoted(name), len(text),
			perdure.MaxVariableBytes)
	}
	if !utf8.Valid(text) {
		return nil, errors.New(quoted(name) + " is not UTF-8 text")
	}
	if !r.values[name] {
		r.values[name] = true
		r.report.Files++
	}
	if path.Ext(name) == ".json" || valueType != "" {
		if v, err := jsontree.Parse(text, jsontree.Options{}); err == nil {
			return compacted(v), nil
		}
		if valueType != "" {
			return nil, errors.New(quoted(name) + " is not JSON")
		}
		r.note(Corrected, &file{name: name}, -1, "is not JSON as its name says; it was read as text")
	}
	return mustJSON(string(text)), nil
}

// typed gives a variable a type that its value has.
func (r *reader) typed(in *object, v *variable, given string) *variable {
	if len(v.Value) > perdure.MaxVariableBytes {
		r.note(NotRead, in.f, in.n.Start, "%s has a value of %d bytes, the limit is %d", in.what, len(v.Value),
			perdure.MaxVariableBytes)
		return nil
	}
	is := kindOf(v.Value)
	t := perdure.VarType(given)
	switch {
	case t == "" || t == perdure.VarType("string") && is == perdure.VarText || t == perdure.VarType("object") &&
		is != perdure.VarText:
		if t != "" {
			in.note(in.n.Get("type"), "the type %s became %s", quoted(given), is)
		}
		t = is
	case t == is, t == perdure.VarJSON, (t == perdure.VarFilePath || t == perdure.VarFileContent) && is == perdure.VarText:
	default:
		in.note(in.n.Get("type"), "the value is not of the type %s; the type became %s", quoted(given), is)
		t = is
	}
	v.Type = t
	return v
}

// kindOf is the type of a JSON value.
func kindOf(value json.RawMessage) perdure.VarType {
	switch value[0] {
	case '"':
		return perdure.VarText
	case '{':
		return perdure.VarJSON
	case '[':
		return perdure.VarArray
	case 't', 'f':
		return perdure.VarBoolean
	case 'n':
		return perdure.VarNull
	}
	return perdure.VarNumber
}

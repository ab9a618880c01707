package tree

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// fileScheme is the prefix of a reference to a file with a value.
const fileScheme = "file:"

// metadataPrefix is the prefix of members of a variable's metadata in variable.rest.
const metadataPrefix = "metadata."

// fileKey is the member of variable.rest of a value that was in a file: the end of the
// file's name. It is not exported as a member.
const fileKey = "perdure.file"

// jsonEnd is the end of the names of files with a JSON value; all others are text.
const jsonEnd = ".json"

var endPattern = lazyregexp.New(`^\.[a-z0-9]{1,8}$`)

// isPlainEnd reports whether a file with this end holds text, not JSON.
func isPlainEnd(end string) bool { return end != jsonEnd && endPattern().MatchString(end) }

// variable is a variable as it was read.
type variable struct {
	perdure.VersionRecord
	rest map[string]json.RawMessage // unknown members
}

// same reports whether the variable has the value.
func (v *variable) same(value json.RawMessage) bool { return string(v.Value) == string(value) }

// variables reads the variables of a state in their order, and the files of their values.
func (r *reader) variables(o *object, scope perdure.Scope) []*variable {
	var list []*variable
	taken := make(map[string]bool)
	for _, m := range o.n.Members {
		key, n := m.Name, m.Value
		if o.n.Get(key) != n {
			continue // repeated
		}
		if n.Cut {
			r.note(NotRead, o.f, n.Start, "%s: the last variable %s is incomplete; it was not imported", o.what, quoted(key))
			continue
		}
		v := r.variable(o, key, n)
		if v == nil {
			continue
		}
		if v.Name = validName(key, taken); v.Name != key {
			o.note(n, "%s is not a valid variable name; it became %s", quoted(key), v.Name)
		}
		taken[v.Name] = true
		if len(list) == perdure.MaxVariables {
			r.note(NotRead, o.f, n.Start, "%s: variable %s exceeds the limit of %d variables", o.what, quoted(key),
				perdure.MaxVariables)
			continue
		}
		v.Metadata.Scope = scope
		list = append(list, v)
	}
	return list
}

// validName returns a valid variable name that is not taken.
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

// variable reads a variable; a bare value is one without metadata.
func (r *reader) variable(o *object, key string, n *jsontree.Value) *variable {
	v := &variable{}
	in := r.object(docVariable, o.f, n, o.what+": variable "+quoted(key))
	if n.Kind != jsontree.Object || in.n.Get("value") == nil {
		v.Value = compacted(n)
		if key != perdure.VarFinal || !n.IsNull() {
			in.note(n, "want an object with a value; the bare value was used")
		}
		return r.typed(in, v, "")
	}
	if name := in.text("name"); name != key && name != "" {
		in.note(in.n.Get("name"), "its name is %s; the name of the member is used", quoted(name))
	}
	v.Value = in.raw("value")
	v.Description, v.Source = in.cut("description", maxText), in.cut("source", maxText)
	v.CreatedAt, v.UpdatedAt = in.time("created_at"), in.time("updated_at")
	v.Accessed = in.whole("access_count")
	given := in.text("type")
	meta := in.sub(docVarMeta, "metadata")
	v.Metadata.ReadOnly = meta.flag("read_only")
	scopes := []string{"", string(perdure.ScopeGlobal), string(perdure.ScopeSession), string(perdure.ScopeTree),
		string(perdure.ScopeTemporary)}
	if given := meta.text("scope"); !slices.Contains(scopes, given) { // the scope follows from the state
		meta.note(meta.n.Get("scope"), "unknown scope %s; that of the state is used", quoted(given))
	}
	valueType := meta.text("value_type")
	r.lifetime(meta, v)
	end := ""
	switch {
	case given == string(perdure.VarFilePath):
		given, end = r.fromFile(in, v, valueType)
	case given == string(perdure.VarJSON) && valueType == string(perdure.VarNull):
		given = valueType
	}
	v.rest = in.noteUnread("the state")
	if end != "" {
		v.rest[fileKey] = jsontree.MustMarshal(end)
	}
	for name, value := range meta.noteUnread("the state") {
		v.rest[metadataPrefix+name] = value
	}
	return r.typed(in, v, given)
}

// maxText is the limit of descriptions, sources and reasons in bytes.
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
	from := cmp.Or(v.UpdatedAt, v.CreatedAt)
	if from.IsZero() {
		meta.note(meta.n.Get("ttl_seconds"), "ttl_seconds was ignored: the creation time is missing")
		v.Metadata.TTLSeconds = 0
		return
	}
	at := from.Add(time.Duration(min(v.Metadata.TTLSeconds, 1e9)) * time.Second)
	v.Metadata.ExpiresAt = &at
}

// fromFile replaces a reference with the content of its file and returns its type and the
// end of the file's name. If the file cannot be read, the reference is kept.
func (r *reader) fromFile(in *object, v *variable, valueType string) (kind, end string) {
	var ref string
	if json.Unmarshal(v.Value, &ref) != nil || !strings.HasPrefix(ref, fileScheme) {
		return string(perdure.VarFilePath), ""
	}
	value, err := r.valueFile(ref, in.f.name, valueType)
	if err != nil {
		r.note(NotRead, in.f, in.n.Start, "%s: %v; the reference was kept", in.what, err)
		return string(perdure.VarFilePath), ""
	}
	v.Value = value
	if end = path.Ext(ref); !isPlainEnd(end) {
		end = jsonEnd
	}
	return valueType, end
}

// valueFile reads the file of a value. It is JSON if its name ends in .json or valueType
// is set, else text.
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
	if path.Ext(name) == jsonEnd || valueType != "" && valueType != string(perdure.VarText) {
		if v, err := jsontree.Parse(text, jsontree.Options{}); err == nil {
			return compacted(v), nil
		}
		if valueType != "" {
			return nil, errors.New(quoted(name) + " is not JSON")
		}
		r.note(Corrected, &file{name: name}, -1, "is not JSON although its name ends in .json; it was read as text")
	}
	return jsontree.MustMarshal(string(text)), nil
}

// typed sets the type of a variable, to that of its value if the given one is wrong. It
// returns nil if the value is too long.
func (r *reader) typed(in *object, v *variable, given string) *variable {
	if len(v.Value) > perdure.MaxVariableBytes {
		r.note(NotRead, in.f, in.n.Start, "%s has a value of %d bytes, the limit is %d", in.what, len(v.Value),
			perdure.MaxVariableBytes)
		return nil
	}
	is := kindOf(v.Value)
	t := perdure.VarType(given)
	if in.n.Get("value") != nil && in.n.Get("type").IsNull() {
		in.noteAs(Default, nil, "there is no type; it was set to %s", is)
	}
	switch {
	case t == "" || t == perdure.VarType("string") && is == perdure.VarText || t == perdure.VarType("object") &&
		is != perdure.VarText:
		if t != "" {
			in.note(in.n.Get("type"), "type %s was read as %s", quoted(given), is)
		}
		t = is
	case t == is, t == perdure.VarJSON, (t == perdure.VarFilePath || t == perdure.VarFileContent) && is == perdure.VarText:
	default:
		in.note(in.n.Get("type"), "the value is not of type %s; the type was set to %s", quoted(given), is)
		t = is
	}
	v.Type = t
	return v
}

// kindOf returns the type of a JSON value.
func kindOf(value json.RawMessage) perdure.VarType {
	kinds := map[byte]perdure.VarType{'"': perdure.VarText, '{': perdure.VarJSON, '[': perdure.VarArray,
		't': perdure.VarBoolean, 'f': perdure.VarBoolean, 'n': perdure.VarNull}
	return cmp.Or(kinds[value[0]], perdure.VarNumber)
}

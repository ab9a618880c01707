package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// object reads the members of a JSON object one by one and collects what is
// wrong. Names must be written exactly: "Verdict" is not "verdict".
type object struct {
	path  string // of the object; empty for the outermost
	value *jsontree.Value
	text  []byte
	taken map[string]bool
	errs  *[]error
}

// parseObject reads text as exactly one JSON object without repeated names. Bytes
// that are not UTF-8 are replaced.
func parseObject(text []byte) (object, error) {
	text, _ = jsontree.ToValidUTF8(text)
	v, err := jsontree.Parse(text, jsontree.Options{MaxDepth: MaxDepth, UniqueNames: true})
	switch {
	case errors.Is(err, jsontree.ErrLimit):
		return object{}, &LimitError{What: "depth", Limit: MaxDepth}
	case errors.Is(err, jsontree.ErrName):
		return object{}, err
	case err != nil:
		return object{}, fmt.Errorf("not a JSON object: %w", err)
	case v.Kind != jsontree.Object:
		return object{}, fmt.Errorf("not a JSON object: found %s", v.Kind)
	}
	return object{value: v, text: text, taken: make(map[string]bool), errs: new([]error)}, nil
}

// take returns a member; nil if it is missing or null.
func (o object) take(name string) *jsontree.Value {
	o.taken[name] = true
	if v := o.value.Get(name); !v.IsNull() {
		return v
	}
	return nil
}

// fault records an error about a member, at its value or at the object.
func (o object) fault(name, format string, args ...any) {
	at := o.value
	if v := o.value.Get(name); v != nil {
		at = v
	}
	e := &jsontree.Error{Kind: jsontree.ErrType, Field: jsontree.Join(o.path, name), Msg: fmt.Sprintf(format, args...)}
	*o.errs = append(*o.errs, e.In(o.text, at.Start))
}

func (o object) limit(name string, limit, got int) {
	if err := within(jsontree.Join(o.path, name), limit, got); err != nil {
		*o.errs = append(*o.errs, err)
	}
}

// read decodes a member into to; want names the type.
func (o object) read(name, want string, to any) bool {
	v := o.take(name)
	if v == nil {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(v.Raw()))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		found := v.Kind.String()
		if v.Kind != jsontree.Object && v.Kind != jsontree.Array {
			found = clip.Bytes(string(v.Raw()), MaxNameBytes)
		}
		o.fault(name, "want %s, found %s", want, found)
		return false
	}
	return true
}

// string returns a string of at most limit bytes.
func (o object) string(name string, limit int) string {
	v := o.take(name)
	switch {
	case v == nil:
		return ""
	case v.Kind != jsontree.String:
		o.fault(name, "want a string, found %s", v.Kind)
	}
	s := v.Text()
	o.limit(name, limit, len(s))
	return s
}

// strings returns at most count strings of at most limit bytes.
func (o object) strings(name string, count, limit int) []string {
	v := o.take(name)
	switch {
	case v == nil:
		return nil
	case v.Kind != jsontree.Array:
		o.fault(name, "want an array of strings, found %s", v.Kind)
		return nil
	}
	o.limit(name, count, len(v.Items))
	var list []string
	for i, item := range v.Items {
		if item.Kind != jsontree.String {
			o.fault(name, "want an array of strings, found %s at [%d]", item.Kind, i)
			continue
		}
		s := item.Text()
		o.limit(fmt.Sprintf("%s[%d]", name, i), limit, len(s))
		list = append(list, s)
	}
	return list
}

func (o object) time(name string) time.Time {
	var t time.Time
	o.read(name, "a time as in RFC 3339", &t)
	return t
}

// count returns a whole number from 0.
func (o object) count(name string) int {
	var n int
	if o.read(name, "a whole number", &n) && n < 0 {
		o.fault(name, "want a whole number from 0, found %d", n)
		return 0
	}
	return n
}

// free returns an object with members of any kind; nil if it is empty.
func (o object) free(name string, limit int) map[string]any {
	var free map[string]any
	if o.read(name, "an object", &free) {
		o.limit(name, limit, len(o.value.Get(name).Raw()))
	}
	if len(free) == 0 {
		return nil
	}
	return free
}

// word returns one of the words; empty if it is missing or another.
func (o object) word(name string, words []string) string {
	s := o.string(name, MaxReplyBytes)
	if s != "" && !slices.Contains(words, s) {
		o.fault(name, "want one of %s; found %q", strings.Join(words, ", "), clip.Bytes(s, MaxNameBytes))
		return ""
	}
	return s
}

// oneOf requires a word of a list, or none.
func oneOf(field, got string, words []string) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	return fmt.Errorf("%s: want one of %s; found %q", field, strings.Join(words, ", "), clip.Bytes(got, MaxNameBytes))
}

// child returns the object of a member; ok is false if there is none.
func (o object) child(name string) (child object, ok bool) {
	child = object{path: jsontree.Join(o.path, name), value: o.take(name), text: o.text,
		taken: make(map[string]bool), errs: o.errs}
	switch {
	case child.value == nil:
		o.fault(name, "is missing")
		return child, false
	case child.value.Kind != jsontree.Object:
		o.fault(name, "want an object, found %s", child.value.Kind)
		return child, false
	}
	return child, true
}

// rest returns the members that were not taken.
func (o object) rest() map[string]json.RawMessage {
	var rest map[string]json.RawMessage
	for _, m := range o.value.Members {
		if o.taken[m.Name] {
			continue
		}
		if rest == nil {
			rest = make(map[string]json.RawMessage)
		}
		rest[m.Name] = jsontree.Compact(m.Value.Raw())
	}
	return rest
}

// marshal is JSON as people read it: without \u003c for "<".
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// withMembers puts further members behind those of an object in JSON, in the
// order of their names. None of them may be in it already.
func withMembers(doc []byte, more map[string]json.RawMessage) ([]byte, error) {
	if len(more) == 0 {
		return doc, nil
	}
	var b bytes.Buffer
	b.Write(bytes.TrimSuffix(doc, []byte("}")))
	for _, name := range slices.Sorted(maps.Keys(more)) {
		key, err := marshal(name)
		if err != nil {
			return nil, err
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(more[name])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

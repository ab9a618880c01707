package jsontree

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/nearest"
)

// Decode reads a text into what v points to, as the standard library does, but
// strictly: names must be known, written exactly and unique, and values must have
// the type of their field. The error is an [*Error] or that of an UnmarshalJSON
// method.
func Decode(text []byte, v any, o Options) error {
	o.UniqueNames, o.Partial, o.KeepDepth, o.KeepNames = true, false, 0, nil
	root, err := Parse(text, o)
	if err != nil {
		return err
	}
	d := &decoder{text: text, file: o.File}
	if d.check(root, reflect.TypeOf(v).Elem(), ""); d.err != nil {
		return d.err
	}
	err = json.Unmarshal(root.Raw(), v)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) { // a number beyond the limits of its type
		e := &Error{Kind: ErrType, File: o.File, Field: kind.Field,
			Msg: fmt.Sprintf("want %s, found %s", described(kind.Type), kind.Value)}
		return e.In(text, root.Start+max(0, int(kind.Offset)-len(strings.TrimPrefix(kind.Value, "number "))))
	}
	return err
}

type decoder struct {
	text []byte
	file string
	err  error
}

// fail records an error at an offset.
func (d *decoder) fail(kind error, offset int, field, msg string) *Error {
	e := &Error{Kind: kind, File: d.file, Field: field, Msg: msg}
	d.err = e
	return e.In(d.text, offset)
}

// readsItself reports whether a type has a method of its own that reads JSON.
func readsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// check compares a value with the type it is read into. It stops at the first
// difference.
func (d *decoder) check(v *Value, t reflect.Type, field string) {
	if d.err != nil || v.Kind == Null && field != "" {
		return
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if readsItself(t) {
		return
	}
	if want, ok := kindOf(t); ok && v.Kind != want {
		d.fail(ErrType, v.Start, field, fmt.Sprintf("want %s, found %s", described(t), v.Kind))
		return
	}
	switch {
	case t.Kind() == reflect.Struct:
		d.members(v, t, field)
	case t.Kind() == reflect.Map:
		for _, m := range v.Members {
			d.check(m.Value, t.Elem(), Join(field, m.Name))
		}
	case v.Kind == Array && t.Kind() != reflect.Interface:
		for i, item := range v.Items {
			d.check(item, t.Elem(), Join(field, fmt.Sprintf("[%d]", i)))
		}
	}
}

func (d *decoder) members(v *Value, t reflect.Type, field string) {
	fields := fieldsOf(t)
	for _, m := range v.Members {
		if i := slices.IndexFunc(fields, func(f structField) bool { return f.name == m.Name }); i >= 0 {
			d.check(m.Value, fields[i].typ, Join(field, m.Name))
			continue
		}
		if d.err != nil {
			return
		}
		names := make([]string, len(fields))
		for i, f := range fields {
			names[i] = f.name
		}
		e := d.fail(ErrName, m.Start, Join(field, m.Name), "unknown field")
		if e.Hint = "the fields are " + strings.Join(names, ", "); len(names) == 0 {
			e.Hint = ""
		}
		if near, ok := nearest.Word(m.Name, names); ok {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return
	}
}

type structField struct {
	name string
	typ  reflect.Type
}

// fieldsOf lists the fields that JSON can set, those of embedded structs included.
func fieldsOf(t reflect.Type) []structField {
	var list []structField
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		list = append(list, structField{name, f.Type})
	}
	return list
}

// kindOf returns the kind of value that a type is read from; false for any.
func kindOf(t reflect.Type) (Kind, bool) {
	switch t.Kind() {
	case reflect.String:
		return String, true
	case reflect.Bool:
		return Bool, true
	case reflect.Struct, reflect.Map:
		return Object, true
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return String, true // base64
		}
		return Array, true
	case reflect.Interface:
		return Null, false
	}
	return Number, true
}

// described names the type that is wanted.
func described(t reflect.Type) string {
	kind, _ := kindOf(t)
	switch k := t.Kind(); {
	case kind != Number:
		return kind.String()
	case k == reflect.Float32 || k == reflect.Float64:
		return "a number"
	default:
		return "a whole number"
	}
}

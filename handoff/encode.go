package handoff

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// JSON is written without the standard library, in a tenth of the time, because a
// projection is measured after every entry. The text is the same as that of
// encoding/json without escapes for HTML.

// Compact returns the checkpoint as JSON without blanks, the form that limits count. It
// fails only on values that JSON cannot hold: unknown fields that are not JSON, years
// beyond 9999. A checkpoint that [Project] returned, or that was read, has none.
func (c *Checkpoint) Compact() ([]byte, error) { return encodeObject(c) }

func encodeObject(o object) ([]byte, error) {
	e := &encoder{}
	e.object(o)
	return e.out, e.err
}

// encoder collects a text and the first error.
type encoder struct {
	out []byte
	err error
	// limit is the length after which lists are not written to their end; 0 is none.
	limit int
}

// over reports whether the text is longer than the limit.
func (e *encoder) over() bool { return e.limit > 0 && len(e.out) > e.limit }

// object writes the known fields in order and then the other members, unless a written
// field has their name.
func (e *encoder) object(o object) {
	e.out = append(e.out, '{')
	start := len(e.out)
	fields, others := o.members()
	extra := *others
	member := func(name string) {
		if len(e.out) > start {
			e.out = append(e.out, ',')
		}
		e.text(name)
		e.out = append(e.out, ':')
	}
	for _, f := range fields {
		if _, foreign := extra[f.name]; empty(f.to) && (!f.keep || foreign) {
			continue
		}
		member(f.name)
		e.value(f.to)
	}
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if slices.ContainsFunc(fields, func(f field) bool { return f.name == name && !empty(f.to) }) {
			continue // written above
		}
		member(name)
		if !json.Valid(extra[name]) {
			e.fail(fmt.Errorf("the unknown field %q is not JSON", name))
		}
		e.out = append(e.out, jsontree.Compact(extra[name])...)
	}
	e.out = append(e.out, '}')
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// empty reports whether a field has no content.
func empty(to any) bool {
	switch v := to.(type) {
	case *string:
		return *v == ""
	case *time.Time:
		return v.IsZero()
	case object:
		fields, extra := v.members()
		return len(*extra) == 0 && !slices.ContainsFunc(fields, func(f field) bool { return !empty(f.to) })
	}
	v := reflect.ValueOf(to).Elem()
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

// value writes the value of a field.
func (e *encoder) value(to any) {
	switch v := to.(type) {
	case *string:
		e.text(*v)
	case *bool:
		e.out = strconv.AppendBool(e.out, *v)
	case *int:
		e.out = strconv.AppendInt(e.out, int64(*v), 10)
	case *time.Time:
		e.time(*v)
	case **CurrentStep:
		if *v == nil {
			e.out = append(e.out, "null"...)
			return
		}
		e.object(*v)
	case object:
		e.object(v)
	case *Command, **Hashes, **Cut:
		text, err := jsontree.Marshal(v, "")
		e.out = append(e.out, text...)
		e.fail(err)
	default:
		e.stringOrList(reflect.ValueOf(to).Elem())
	}
}

func (e *encoder) stringOrList(v reflect.Value) {
	if v.Kind() == reflect.String {
		e.text(v.String())
		return
	}
	e.out = append(e.out, '[')
	for i := range v.Len() {
		if e.over() {
			return
		}
		if i > 0 {
			e.out = append(e.out, ',')
		}
		e.value(v.Index(i).Addr().Interface())
	}
	e.out = append(e.out, ']')
}

func (e *encoder) time(at time.Time) {
	if at.Year() < 0 || at.Year() > 9999 {
		e.fail(errors.New("a time is outside of the years 0 to 9999"))
	}
	e.out = append(e.out, '"')
	e.out = at.AppendFormat(e.out, time.RFC3339Nano)
	e.out = append(e.out, '"')
}

// text writes a string; bytes that are not UTF-8 become U+FFFD.
func (e *encoder) text(s string) {
	const hexDigits = "0123456789abcdef"
	e.out = append(e.out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			e.out = append(e.out, '\\', byte(r))
		case r >= ' ' && r != '\u2028' && r != '\u2029':
			e.out = utf8.AppendRune(e.out, r)
		default:
			if at := bytes.IndexRune([]byte("\b\f\n\r\t"), r); at >= 0 {
				e.out = append(e.out, '\\', "bfnrt"[at])
				continue
			}
			e.out = append(e.out, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		}
	}
	e.out = append(e.out, '"')
}

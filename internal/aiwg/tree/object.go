package tree

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// object reads the members of a JSON object leniently: what has another type
// than expected is converted where that loses nothing, and noted. Members that
// nobody asked for are left over.
type object struct {
	r    *reader
	f    *file
	n    *jsontree.Value
	what string // for notes: `task "task-0001"`
	used map[string]bool
}

// object starts reading one; of anything else it has no members.
func (r *reader) object(f *file, n *jsontree.Value, what string) *object {
	o := &object{r: r, f: f, n: n, what: what, used: make(map[string]bool)}
	if n == nil || n.Kind != jsontree.Object {
		o.n = &jsontree.Value{Kind: jsontree.Object}
		if n != nil {
			o.n.Start = n.Start
		}
	}
	seen := make(map[string]bool, len(o.n.Members))
	for _, m := range o.n.Members {
		if seen[m.Name] {
			o.note(m.Value, "%q stands twice; the last one counts", m.Name)
		}
		seen[m.Name] = true
	}
	return o
}

func (o *object) note(at *jsontree.Value, format string, args ...any) {
	off := o.n.Start
	if at != nil {
		off = at.Start
	}
	o.r.note(Corrected, o.f, off, o.what+": "+format, args...)
}

func (o *object) get(key string) *jsontree.Value {
	o.used[key] = true
	return o.n.Get(key)
}

// has tells whether there is a member that is not null.
func (o *object) has(key string) bool { return !o.n.Get(key).IsNull() }

// text reads a member as text; numbers and booleans become their text.
func (o *object) text(key string) string {
	n := o.get(key)
	if n.IsNull() {
		return ""
	}
	if n.Kind != jsontree.String {
		o.note(n, "%s is not text; what stands there became text", key)
		return string(compacted(n))
	}
	return o.clean(n, key)
}

// clean decodes a text and replaces what databases cannot hold.
func (o *object) clean(n *jsontree.Value, key string) string {
	s := n.Text()
	if strings.Contains(s, "\x00") {
		o.note(n, "characters 0 in %s became U+FFFD", key)
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}

// cut is text of at most so many bytes.
func (o *object) cut(key string, most int) string {
	s := o.text(key)
	if len(s) <= most {
		return s
	}
	o.note(o.n.Get(key), "%s has %d bytes, the limit is %d; the rest was cut", key, len(s), most)
	return clip.Prefix(s, most)
}

// number reads a member as a number that is not negative.
func (o *object) number(key string) float64 {
	n := o.get(key)
	if n.IsNull() {
		return 0
	}
	raw := n.Raw()
	if n.Kind == jsontree.String {
		raw = []byte(strings.TrimSpace(n.Text()))
		o.note(n, "%s is text; it was read as a number", key)
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || v < 0 || v > math.MaxInt64/2 {
		o.note(n, "%s is no number from 0 on; it became 0", key)
		return 0
	}
	return v
}

func (o *object) whole(key string) int64 {
	v := o.number(key)
	if v != math.Trunc(v) {
		o.note(o.n.Get(key), "%s is no whole number; it became %.0f", key, math.Trunc(v))
	}
	return int64(v)
}

func (o *object) flag(key string) bool {
	n := o.get(key)
	if !n.IsNull() && n.Kind != jsontree.Bool {
		o.note(n, "%s is neither true nor false; it became false", key)
	}
	return n != nil && string(n.Raw()) == "true"
}

// time reads an instant as RFC 3339, or as milliseconds since 1970. It is kept
// in microseconds.
func (o *object) time(key string) time.Time {
	n := o.get(key)
	if n.IsNull() {
		return time.Time{}
	}
	var at time.Time
	if n.Kind == jsontree.Number {
		at = time.UnixMilli(int64(o.number(key)))
		o.note(n, "%s is a number; it was read as milliseconds since 1970", key)
	} else {
		at = o.instant(n)
	}
	at = at.UTC().Truncate(time.Microsecond)
	if at.IsZero() || at.Year() < 1970 || at.Year() > 9999 || at.UnixMicro() == 0 {
		o.note(n, "%s is no time as 2026-02-09T10:00:00Z; it was left out", key)
		return time.Time{}
	}
	return at
}

func (o *object) instant(n *jsontree.Value) time.Time {
	text := n.Text()
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateTime, time.DateOnly} {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if layout != time.RFC3339Nano {
			o.note(n, "the time %q is without a zone; it was read as UTC", text)
		}
		return at
	}
	return time.Time{}
}

// list reads a member as a list; one value that is none becomes a list of one.
func (o *object) list(key string) []*jsontree.Value {
	n := o.get(key)
	switch {
	case n.IsNull():
		return nil
	case n.Kind != jsontree.Array:
		o.note(n, "%s is no list; it was read as one of one value", key)
		return []*jsontree.Value{n}
	}
	return n.Items
}

// sub reads a member as an object.
func (o *object) sub(key string) *object {
	n := o.get(key)
	if !n.IsNull() && n.Kind != jsontree.Object {
		o.note(n, "%s is no object; it was left out", key)
	}
	return o.r.object(o.f, n, o.what)
}

// raw reads a member as it is, in its shortest form; nil when it is missing.
func (o *object) raw(key string) json.RawMessage {
	n := o.get(key)
	if n == nil {
		return nil
	}
	return compacted(n)
}

// compacted returns a value in its shortest form, null for one that is cut; the
// complete parts of that are read one by one.
func compacted(v *jsontree.Value) json.RawMessage {
	if v.Cut {
		return json.RawMessage("null")
	}
	return jsontree.Compact(v.Raw())
}

// left returns the members that nobody asked for, nil when there are none.
func (o *object) left() map[string]json.RawMessage {
	var rest map[string]json.RawMessage
	for _, m := range o.n.Members {
		if o.used[m.Name] || m.Value.Cut {
			continue
		}
		if rest == nil {
			rest = make(map[string]json.RawMessage)
		}
		rest[m.Name] = compacted(m.Value)
	}
	return rest
}

// noteLeft records which members were kept although nobody knows them.
func (o *object) noteLeft(where string) map[string]json.RawMessage {
	rest := o.left()
	names := make([]string, 0, len(rest))
	for _, m := range o.n.Members {
		if _, ok := rest[m.Name]; ok && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	if len(names) > 0 {
		o.note(o.n.Get(names[0]), "unknown %s kept in %s", strings.Join(names, ", "), where)
	}
	return rest
}

package tree

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// object reads the members of a JSON object leniently: a value of another type than
// expected is converted if that loses nothing, and noted.
type object struct {
	r    *reader
	f    *file
	n    *jsontree.Value
	doc  document
	what string    // for notes: `task "task-0001"`
	used readNames // the members that were read
}

// readNames are names of members. They are few, because the members that are read one by one
// are those of a format.
type readNames []string

func (s readNames) has(name string) bool { return slices.Contains(s, name) }

func (s *readNames) add(name string) {
	if !s.has(name) {
		*s = append(*s, name)
	}
}

func (s *readNames) drop(name string) {
	*s = slices.DeleteFunc(*s, func(is string) bool { return is == name })
}

// object returns a reader of n as a document, without members if n is not an object.
func (r *reader) object(doc document, f *file, n *jsontree.Value, what string) *object {
	o := &object{r: r, f: f, n: n, doc: doc, what: what}
	if n == nil || n.Kind != jsontree.Object {
		o.n = &jsontree.Value{Kind: jsontree.Object}
		if n != nil {
			o.n.Start = n.Start
		}
	}
	o.noteRepeated()
	return o
}

// maxCompared is the number of members up to which comparing each with each is cheaper than
// a map.
const maxCompared = 24

// noteRepeated notes members whose name a previous member has.
func (o *object) noteRepeated() {
	list := o.n.Members
	var seen map[string]bool
	if len(list) > maxCompared {
		seen = make(map[string]bool, len(list))
	}
	for i, m := range list {
		repeated := seen[m.Name]
		if seen != nil {
			seen[m.Name] = true
		} else {
			repeated = slices.ContainsFunc(list[:i], func(is jsontree.Member) bool { return is.Name == m.Name })
		}
		if repeated {
			o.note(m.Value, "member %q is repeated; the last one is used", m.Name)
		}
	}
}

func (o *object) note(at *jsontree.Value, format string, args ...any) {
	o.noteAs(Corrected, at, format, args...)
}

func (o *object) noteAs(kind string, at *jsontree.Value, format string, args ...any) {
	off := o.n.Start
	if at != nil {
		off = at.Start
	}
	o.r.note(kind, o.f, off, o.what+": "+format, args...)
}

// get returns a member, nil if it is missing or the table of fields does not have it.
func (o *object) get(key string) *jsontree.Value {
	if !o.doc.has(key) {
		return nil
	}
	o.used.add(key)
	return o.n.Get(key)
}

// has reports whether there is a member that is not null.
func (o *object) has(key string) bool { return !o.n.Get(key).IsNull() }

// text reads a member as text. Other values become their JSON, and NUL characters,
// which databases cannot hold, U+FFFD.
func (o *object) text(key string) string {
	n := o.get(key)
	if n.IsNull() {
		return ""
	}
	if n.Kind != jsontree.String {
		o.note(n, "%s is not a string; it was converted to one", key)
		return string(compacted(n))
	}
	s := n.Text()
	if strings.Contains(s, "\uFFFD") && jsontree.LoneSurrogate(n.Raw()) {
		o.note(n, "half of a surrogate pair in %s was replaced with U+FFFD", key)
	}
	if strings.Contains(s, "\x00") {
		o.note(n, "NUL characters in %s were replaced with U+FFFD", key)
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return s
}

// cut reads a member as text of at most limit bytes.
func (o *object) cut(key string, limit int) string {
	s := o.text(key)
	if len(s) > limit {
		o.note(o.n.Get(key), "%s has %d bytes, the limit is %d; it was truncated", key, len(s), limit)
	}
	return clip.Prefix(s, limit)
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
		o.note(n, "%s is a string; it was read as a number", key)
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || v < 0 || v > math.MaxInt64/2 {
		o.note(n, "%s is not a number of at least 0; it was set to 0", key)
		return 0
	}
	return v
}

func (o *object) whole(key string) int64 {
	v := o.number(key)
	if v != math.Trunc(v) {
		o.note(o.n.Get(key), "%s is not an integer; it was truncated to %.0f", key, math.Trunc(v))
	}
	return int64(v)
}

func (o *object) flag(key string) bool {
	n := o.get(key)
	if !n.IsNull() && n.Kind != jsontree.Bool {
		o.note(n, "%s is not a boolean; it was set to false", key)
	}
	return n != nil && string(n.Raw()) == "true"
}

// time reads a time as RFC 3339 or as seconds or milliseconds since 1970, truncated to
// microseconds.
func (o *object) time(key string) time.Time {
	n := o.get(key)
	if n.IsNull() {
		return time.Time{}
	}
	var at time.Time
	if n.Kind == jsontree.Number {
		var unit string
		at, unit = loops.Since1970(o.number(key))
		o.note(n, "%s is a number; it was read as %s since 1970", key, unit)
	} else {
		at = o.parseTime(n)
	}
	at = at.UTC().Truncate(time.Microsecond)
	if at.IsZero() || at.Year() < 1970 || at.Year() > 9999 || at.UnixMicro() == 0 {
		o.note(n, "%s is not a time such as 2026-02-09T10:00:00Z; it was left out", key)
		return time.Time{}
	}
	return at
}

func (o *object) parseTime(n *jsontree.Value) time.Time {
	for _, layout := range loops.TimeLayouts() {
		at, err := time.Parse(layout, n.Text())
		if err != nil {
			continue
		}
		if layout != time.RFC3339Nano {
			o.note(n, "the time %q has no zone; it was read as UTC", n.Text())
		}
		return at
	}
	return time.Time{}
}

// timeOr returns a time, or for a missing one the known time, which is noted.
func (o *object) timeOr(at, known time.Time) time.Time {
	if !at.IsZero() || known.IsZero() {
		return at
	}
	o.noteAs(Default, nil, "there is no timestamp; it was set to %s", known.Format(time.RFC3339))
	return known
}

// list reads a member as a list; any other value becomes a list of one.
func (o *object) list(key string) []*jsontree.Value {
	n := o.get(key)
	switch {
	case n.IsNull():
		return nil
	case n.Kind != jsontree.Array:
		o.note(n, "%s is not a list; it was read as a list of one value", key)
		return []*jsontree.Value{n}
	}
	return n.Items
}

// sub reads a member as an object, which is a document.
func (o *object) sub(doc document, key string) *object {
	n := o.get(key)
	if !n.IsNull() && n.Kind != jsontree.Object {
		o.note(n, "%s is not an object; it was left out", key)
	}
	return o.r.object(doc, o.f, n, o.what)
}

// raw reads a member as compact JSON, nil if it is missing.
func (o *object) raw(key string) json.RawMessage {
	n := o.get(key)
	if n == nil {
		return nil
	}
	return compacted(n)
}

// compacted returns a value as compact JSON, null for one that is cut, whose complete
// parts are read one by one.
func compacted(v *jsontree.Value) json.RawMessage {
	if v.Cut {
		return json.RawMessage("null")
	}
	return jsontree.Compact(v.Raw())
}

// unread returns the members that were not read.
func (o *object) unread() map[string]json.RawMessage {
	rest := make(map[string]json.RawMessage)
	for _, m := range o.n.Members {
		if !o.used.has(m.Name) && !m.Value.Cut {
			rest[m.Name] = compacted(m.Value)
		}
	}
	return rest
}

// noteUnread returns the members that were not read, and notes where they are kept.
func (o *object) noteUnread(where string) map[string]json.RawMessage {
	rest := o.unread()
	var names []string
	for _, m := range o.n.Members {
		if _, ok := rest[m.Name]; ok && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	if len(names) > 0 {
		o.noteAs(Kept, o.n.Get(names[0]), "unknown members kept in %s: %s", where, strings.Join(names, ", "))
	}
	return rest
}

// checkVersion checks the version of a document, which is 1.x.y, and returns it.
func (o *object) checkVersion() string {
	v := o.get("version")
	switch {
	case v == nil:
		o.noteAs(Default, nil, "there is no version; it was read as 1.0.0")
	case v.Kind != jsontree.String || !versionPattern().MatchString(v.Text()):
		o.note(v, "the version is %s, not 1.x.y; it was read as 1.0.0", quoted(v.Scalar()))
	default:
		return v.Text()
	}
	return firstVersion
}

// firstVersion is the version of documents that are written.
const firstVersion = "1.0.0"

var versionPattern = lazyregexp.New(`^1\.[0-9]+\.[0-9]+$`)

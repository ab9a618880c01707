package loops

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// asGiven is the end of the names under which invalid members are kept.
const asGiven = "_as_given"

// fitter corrects a document so that its schema allows it.
type fitter struct {
	shape *shape
	// note notes a correction.
	note func(kind string, at *jsontree.Value, format string, args ...any)
	// given is the ID of the loop in the document, and loop its ID in the result.
	given, loop string
	// fallback has the values of required members that are missing.
	fallback map[string]*jsontree.Value
}

// document corrects a whole document. If that is not possible, it returns nil and notes
// only that.
func (x *fitter) document(v *jsontree.Value) *jsontree.Value {
	var held []func()
	note := x.note
	x.note = func(kind string, at *jsontree.Value, format string, args ...any) {
		held = append(held, func() { note(kind, at, format, args...) })
	}
	defer func() { x.note = note }()
	out, _, why := x.fit(x.shape.root, v, "")
	if why != "" {
		note(NotRead, v, "it %s; nothing was imported", why)
		return nil
	}
	for _, add := range held {
		add()
	}
	return out
}

// fit returns the corrected value, the items that do not fit into it, and why the value
// does not fit, or "".
func (x *fitter) fit(s *schema, v *jsontree.Value, at string) (out, aside *jsontree.Value, why string) {
	s, name := x.shape.resolve(s)
	switch {
	case name == "loop_id" && v.Kind == jsontree.String && v.Scalar() == x.given:
		return stringAt(v, x.loop), nil, ""
	case name == "loop_id":
		return nil, nil, "is the ID of another loop"
	case name == "path" && v.Kind == jsontree.String && x.given != x.loop:
		v = stringAt(v, strings.Replace(v.Scalar(), Folder+x.given+"/", Folder+x.loop+"/", 1))
	}
	if s.Enum != nil || s.Const != "" {
		return x.word(s, v, at)
	}
	if is := typeOf(v); !s.allows(is) {
		if v = x.convert(s, v, at); v == nil {
			return nil, nil, fmt.Sprintf("is %s, want %s", is, strings.Join(s.Type, " or "))
		}
	}
	switch v.Kind {
	case jsontree.Object:
		out, why = x.object(s, v, at)
		return out, nil, why
	case jsontree.Array:
		out, aside = x.items(s, v, at)
		return out, aside, ""
	case jsontree.String:
		out, why = x.textual(s, v, at)
		return out, nil, why
	case jsontree.Number:
		return v, nil, outside(s, v.Scalar())
	}
	return v, nil, ""
}

// typeOf returns the JSON Schema type of a value.
func typeOf(v *jsontree.Value) string {
	if v.Kind == jsontree.Number {
		if r, ok := rational(v.Scalar()); ok && r.IsInt() {
			return "integer"
		}
	}
	return v.Kind.Name()
}

// rational reads a number exactly; it returns false for one that is too long or too large.
func rational(text string) (*big.Rat, bool) {
	f, err := strconv.ParseFloat(text, 64)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, expErr := strconv.Atoi(text[i+1:]); expErr != nil || e < -400 || e > 400 {
			return nil, false
		}
	}
	if err != nil || math.IsInf(f, 0) || len(text) > 1000 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func outside(s *schema, text string) string {
	r, ok := rational(text)
	switch {
	case !ok:
		return "is a number out of range"
	case s.Minimum != nil && r.Cmp(new(big.Rat).SetFloat64(*s.Minimum)) < 0:
		return fmt.Sprintf("is %.60s, less than %v", text, *s.Minimum)
	case s.Maximum != nil && r.Cmp(new(big.Rat).SetFloat64(*s.Maximum)) > 0:
		return fmt.Sprintf("is %.60s, more than %v", text, *s.Maximum)
	}
	return ""
}

// shown quotes the beginning of a text for a note.
func shown(text string) string {
	const limit = 60
	return strconv.Quote(clip.Bytes(text, limit))
}

// synonyms returns the statuses by their names in other programs.
func synonyms() map[string]string {
	return map[string]string{"active": "running", "in_progress": "running", "started": "running", "done": "completed",
		"complete": "completed", "success": "completed",
		"error": "failed", "cancelled": "aborted", "canceled": "aborted", "stopped": "paused", "pass": "passed",
		"fail": "failed"}
}

// word fits a value of an enumeration, also with another case or a synonym.
func (x *fitter) word(s *schema, v *jsontree.Value, at string) (out, aside *jsontree.Value, why string) {
	words := s.Enum
	if s.Const != "" {
		words = []*string{&s.Const}
	}
	is := func(w *string) bool {
		return w == nil && v.Kind == jsontree.Null || w != nil && v.Kind == jsontree.String && *w == v.Scalar()
	}
	if slices.ContainsFunc(words, is) {
		return v, nil, ""
	}
	if v.Kind != jsontree.String {
		return nil, nil, "is " + typeOf(v) + ", want one of the values of its schema"
	}
	plain := strings.ToLower(strings.TrimSpace(v.Scalar()))
	for _, try := range []string{plain, synonyms()[plain]} {
		i := slices.IndexFunc(words, func(w *string) bool { return w != nil && strings.ToLower(*w) == try })
		if i >= 0 {
			x.note(Corrected, v, "%s: %s was read as %s", at, shown(v.Scalar()), *words[i])
			return stringAt(v, *words[i]), nil, ""
		}
	}
	return nil, nil, "is " + shown(v.Scalar()) + ", which its schema does not allow"
}

// convert converts a value to a type that the schema allows, nil if that would lose
// something.
func (x *fitter) convert(s *schema, v *jsontree.Value, at string) *jsontree.Value {
	text := strings.TrimSpace(v.Scalar())
	var out *jsontree.Value
	switch {
	case v.Kind == jsontree.String && (s.allows("integer") || s.allows("number")):
		n, err := jsontree.Parse([]byte(text), jsontree.Options{})
		if err != nil || n.Kind != jsontree.Number || !s.allows(typeOf(n)) {
			return nil
		}
		out = n
		x.note(Corrected, v, "%s is a string; it was read as a number", at)
	case v.Kind == jsontree.String && s.allows("boolean") && (text == "true" || text == "false"):
		out = jsontree.NewScalar(jsontree.Bool, text)
		x.note(Corrected, v, "%s is a string; it was read as %s", at, text)
	case v.Kind == jsontree.Number && s.allows("string") && s.Format == "date-time":
		n, err := strconv.ParseFloat(v.Scalar(), 64)
		when, unit := Since1970(n)
		if err != nil || n < 1 || when.Year() > 9999 {
			return nil
		}
		out = jsontree.NewString(when.Format(time.RFC3339Nano))
		x.note(Corrected, v, "%s is a number; it was read as %s since 1970", at, unit)
	case (v.Kind == jsontree.Number || v.Kind == jsontree.Bool) && s.allows("string"):
		out = jsontree.NewString(v.Scalar())
		x.note(Corrected, v, "%s is not a string; it was converted to one", at)
	case v.Kind != jsontree.Null && s.Items != nil && s.allows("array"):
		out = &jsontree.Value{Kind: jsontree.Array, Items: []*jsontree.Value{v}}
		x.note(Corrected, v, "%s is not a list; it was read as a list of one value", at)
	default:
		return nil
	}
	out.Start = v.Start
	return out
}

// stringAt returns a string with the place of another value.
func stringAt(v *jsontree.Value, text string) *jsontree.Value {
	s := jsontree.NewString(text)
	s.Start = v.Start
	return s
}

func (x *fitter) textual(s *schema, v *jsontree.Value, at string) (*jsontree.Value, string) {
	v = x.clean(v, at)
	n := utf8.RuneCountInString(v.Scalar())
	switch {
	case s.MinLength > n:
		return nil, "is empty"
	case s.MaxLength > 0 && s.MaxLength < n:
		return nil, fmt.Sprintf("has %d characters, the limit is %d", n, s.MaxLength)
	case s.pattern != nil && !s.pattern.MatchString(v.Scalar()):
		return nil, "is " + shown(v.Scalar()) + ", which does not match its pattern"
	case s.Format == "date-time":
		return x.instant(v, at)
	}
	return v, ""
}

// strictTime matches RFC 3339; the standard library also reads hours of one digit, and
// commas.
var strictTime = lazyregexp.New(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$`)

func (x *fitter) instant(v *jsontree.Value, at string) (*jsontree.Value, string) {
	if new(time.Time).UnmarshalText([]byte(v.Scalar())) == nil && strictTime().MatchString(v.Scalar()) {
		return v, ""
	}
	for _, layout := range TimeLayouts() {
		when, err := time.Parse(layout, strings.TrimSpace(v.Scalar()))
		if err != nil || when.UTC().Year() < 1 || when.UTC().Year() > 9999 {
			continue
		}
		became := when.UTC().Format(time.RFC3339Nano)
		x.note(Corrected, v, "%s: the time %s was read as %s", at, shown(v.Scalar()), became)
		return stringAt(v, became), ""
	}
	return nil, "is " + shown(v.Scalar()) + ", which is not a time such as 2026-02-09T10:00:00Z"
}

// clean replaces NUL characters, which databases cannot hold, and removes repeated members.
func (x *fitter) clean(v *jsontree.Value, at string) *jsontree.Value {
	switch v.Kind {
	case jsontree.String:
		if !strings.Contains(v.Scalar(), "\x00") {
			return v
		}
		x.note(Corrected, v, "%s: NUL characters were replaced with U+FFFD", at)
		return stringAt(v, strings.ReplaceAll(v.Scalar(), "\x00", "\uFFFD"))
	case jsontree.Array:
		out := &jsontree.Value{Kind: jsontree.Array, Start: v.Start}
		for i, item := range v.Items {
			out.Items = append(out.Items, x.clean(item, at+"["+strconv.Itoa(i)+"]"))
		}
		return out
	case jsontree.Object:
		out := &jsontree.Value{Kind: jsontree.Object, Start: v.Start}
		for i, key := range x.members(v, at) {
			out.Add(key, x.clean(v.Members[i].Value, join(at, key)))
		}
		return out
	}
	return v
}

// members returns the members of an object; of repeated names only the last.
func (x *fitter) members(v *jsontree.Value, at string) iter.Seq2[int, string] {
	keys, where := make([]string, len(v.Members)), make(map[string]int, len(v.Members))
	for i, m := range v.Members {
		keys[i] = strings.ReplaceAll(m.Name, "\x00", "\uFFFD")
		if _, twice := where[keys[i]]; twice {
			x.note(Corrected, m.Value, "%s is repeated; the last one is used", join(at, keys[i]))
		}
		where[keys[i]] = i
	}
	return func(yield func(int, string) bool) {
		for i, key := range keys {
			if where[key] == i && !yield(i, key) {
				return
			}
		}
	}
}

func join(at, key string) string {
	if len(key) > 60 || strings.ContainsAny(key, ".[]\"\x00\n") {
		key = shown(key)
	}
	if at == "" {
		return key
	}
	return at + "." + key
}

// items fits the items of a list. Those that do not fit are in aside.
func (x *fitter) items(s *schema, v *jsontree.Value, at string) (out, aside *jsontree.Value) {
	out = &jsontree.Value{Kind: jsontree.Array, Start: v.Start}
	for i, item := range v.Items {
		here := at + "[" + strconv.Itoa(i) + "]"
		if s.Items == nil {
			out.Items = append(out.Items, x.clean(item, here))
			continue
		}
		fitted, rest, why := x.fit(s.Items, item, here)
		if why == "" && rest == nil {
			out.Items = append(out.Items, fitted)
			continue
		}
		if aside == nil {
			aside = &jsontree.Value{Kind: jsontree.Array}
		}
		aside.Items = append(aside.Items, x.clean(item, here))
		x.note(Corrected, item, "%s %s; it is kept in another list", here, why)
	}
	return out, aside
}

// object fits an object: members that do not fit are kept under another name, unknown
// members unchanged.
func (x *fitter) object(s *schema, v *jsontree.Value, at string) (*jsontree.Value, string) {
	out := &jsontree.Value{Kind: jsontree.Object, Start: v.Start}
	for i, key := range x.members(v, at) {
		member := v.Members[i].Value
		sub := s.Properties[key]
		if sub == nil {
			sub = s.Others
		}
		here := join(at, key)
		if sub == nil {
			out.Add(key, x.clean(member, here))
			continue
		}
		fitted, aside, why := x.fit(sub, member, here)
		if why == "" && s.Names != nil {
			key, why = x.name(s.Names, v, i, here)
		}
		switch {
		case why == "":
			out.Add(key, fitted)
		case member.Kind == jsontree.Null:
			x.note(Corrected, member, "%s is null; it was left out", here)
		case s.Others != nil:
			return nil, "has a member " + key + ", which " + why
		default:
			aside = x.clean(member, here)
			x.note(Corrected, member, "%s %s; it is kept as %s", here, why, free(v, out, key))
		}
		if aside != nil {
			out.Add(free(v, out, key), aside)
		}
	}
	return out, x.complete(s, v, out, at)
}

// name fits the name of a member; it must not become that of another member.
func (x *fitter) name(s *schema, v *jsontree.Value, i int, at string) (string, string) {
	name, _, why := x.fit(s, stringAt(v.Members[i].Value, v.Members[i].Name), at)
	switch {
	case why != "":
		return v.Members[i].Name, why
	case name.Scalar() != v.Members[i].Name && v.Get(name.Scalar()) != nil:
		return v.Members[i].Name, "is repeated"
	}
	return name.Scalar(), ""
}

// free returns an unused name for a member that does not fit.
func free(v, out *jsontree.Value, key string) string {
	for key += asGiven; v.Get(key) != nil || out.Get(key) != nil; {
		key += "_"
	}
	return key
}

// Since1970 returns the time that a number states, and its unit: seconds, as some programs write
// them, or milliseconds. In milliseconds the numbers of recent times are not below the limit.
func Since1970(n float64) (at time.Time, unit string) {
	const leastMilliseconds = 1e11 // in March 1973; as seconds it is in the year 5138
	if n < leastMilliseconds {
		return time.UnixMicro(int64(n * 1e6)).UTC(), "seconds"
	}
	return time.UnixMicro(int64(n * 1e3)).UTC(), "milliseconds"
}

// complete adds the members that out lacks of v as it was, and reports what is still missing.
func (x *fitter) complete(s *schema, v, out *jsontree.Value, at string) string {
	for _, key := range s.Required {
		if out.Get(key) != nil {
			continue
		}
		member := x.fallback[key]
		if at != "" || member == nil {
			return "has no " + key
		}
		why := "there is no " + key
		if v.Get(key) != nil {
			why = "the given " + key + " is not used" // another note says why
		}
		x.note(Default, out, "%s; it was set to %s", why, member.Append(nil))
		out.Add(key, member)
	}
	if len(out.Members) < s.Least {
		return "is empty"
	}
	return ""
}

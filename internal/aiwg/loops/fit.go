package loops

import (
	"fmt"
	"iter"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// asGiven ends the names under which is kept what does not fit.
const asGiven = "_as_given"

// fitter brings a document into the form that its schema wants.
type fitter struct {
	shape *shape
	// note tells of what is otherwise then.
	note func(kind string, at *value, format string, args ...any)
	// given is what the loop is called where the document comes from, and loop
	// what it is called here.
	given, loop string
	// fallback gives members that the document has to have and does not.
	fallback map[string]*value
}

// document fits a whole document; nil when it cannot be one, and then nothing
// else is noted.
func (x *fitter) document(v *value) *value {
	var held []func()
	note := x.note
	x.note = func(kind string, at *value, format string, args ...any) {
		held = append(held, func() { note(kind, at, format, args...) })
	}
	defer func() { x.note = note }()
	out, _, why := x.fit(x.shape.root, v, "")
	if why != "" {
		note(NotRead, v, "it %s; nothing is taken", why)
		return nil
	}
	for _, tell := range held {
		tell()
	}
	return out
}

// fit returns the value in the form of the schema, what of its parts had no
// place in it, and why it does not fit, or "".
func (x *fitter) fit(s *schema, v *value, at string) (out, aside *value, why string) {
	s, name := x.shape.resolve(s)
	switch {
	case name == "loop_id" && v.kind == '"' && v.text == x.given:
		return &value{kind: '"', off: v.off, text: x.loop}, nil, ""
	case name == "loop_id":
		return nil, nil, "is not the loop that this is about"
	case name == "path" && v.kind == '"' && x.given != x.loop:
		v = &value{kind: '"', off: v.off, text: strings.Replace(v.text, Folder+x.given+"/", Folder+x.loop+"/", 1)}
	}
	if s.Enum != nil || s.Const != "" {
		return x.word(s, v, at)
	}
	if is := v.is(); !s.allows(is) {
		if v = x.convert(s, v, at); v == nil {
			return nil, nil, fmt.Sprintf("is %s, and has to be %s", is, strings.Join(s.Type, " or "))
		}
	}
	switch v.kind {
	case '{':
		out, why = x.object(s, v, at)
		return out, nil, why
	case '[':
		out, aside = x.items(s, v, at)
		return out, aside, ""
	case '"':
		out, why = x.textual(s, v, at)
		return out, nil, why
	case '0':
		return v, nil, outside(s, v.text)
	}
	return v, nil, ""
}

// is names the type of a value.
func (v *value) is() string {
	switch v.kind {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't':
		return "boolean"
	case 'n':
		return "null"
	}
	if r, ok := rational(v.text); ok && r.IsInt() {
		return "integer"
	}
	return "number"
}

// rational reads a number exactly; it fails for those beyond all sense.
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
		return "is a number beyond all sense"
	case s.Minimum != nil && r.Cmp(new(big.Rat).SetFloat64(*s.Minimum)) < 0:
		return fmt.Sprintf("is %.60s, less than %v", text, *s.Minimum)
	case s.Maximum != nil && r.Cmp(new(big.Rat).SetFloat64(*s.Maximum)) > 0:
		return fmt.Sprintf("is %.60s, more than %v", text, *s.Maximum)
	}
	return ""
}

// shown is a text short enough for a note.
func shown(text string) string {
	if len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}
	return strconv.Quote(text)
}

// synonyms are other words for statuses.
func synonyms() map[string]string {
	return map[string]string{"active": "running", "in_progress": "running", "started": "running", "done": "completed",
		"complete": "completed", "success": "completed",
		"error": "failed", "cancelled": "aborted", "canceled": "aborted", "stopped": "paused", "pass": "passed",
		"fail": "failed"}
}

// word fits one of the words of a schema; they may be written otherwise.
func (x *fitter) word(s *schema, v *value, at string) (out, aside *value, why string) {
	words := s.Enum
	if s.Const != "" {
		words = []*string{&s.Const}
	}
	is := func(w *string) bool { return w == nil && v.kind == 'n' || w != nil && v.kind == '"' && *w == v.text }
	if slices.ContainsFunc(words, is) {
		return v, nil, ""
	}
	if v.kind == '"' {
		plain := strings.ToLower(strings.TrimSpace(v.text))
		for _, try := range []string{plain, synonyms()[plain]} {
			i := slices.IndexFunc(words, func(w *string) bool { return w != nil && strings.ToLower(*w) == try })
			if i >= 0 {
				x.note(Corrected, v, "%s: %s became %s", at, shown(v.text), *words[i])
				return &value{kind: '"', off: v.off, text: *words[i]}, nil, ""
			}
		}
	}
	if v.kind != '"' {
		return nil, nil, "is " + v.is() + ", and has to be one of its words"
	}
	return nil, nil, "is " + shown(v.text) + ", none of the words that can stand there"
}

// convert makes a value one of a type that the schema allows, where that loses
// nothing; nil when it would.
func (x *fitter) convert(s *schema, v *value, at string) *value {
	out := &value{off: v.off}
	text := strings.TrimSpace(v.text)
	switch {
	case v.kind == '"' && (s.allows("integer") || s.allows("number")):
		n, fault := parse([]byte(text))
		if fault != nil || n.kind != '0' || !s.allows(n.is()) {
			return nil
		}
		out.kind, out.text = '0', text
		x.note(Corrected, v, "%s is text; it was read as a number", at)
	case v.kind == '"' && s.allows("boolean") && (text == "true" || text == "false"):
		out.kind, out.text = 't', text
		x.note(Corrected, v, "%s is text; it was read as %s", at, text)
	case v.kind == '0' && s.allows("string") && s.Format == "date-time":
		ms, err := strconv.ParseFloat(v.text, 64)
		if err != nil || ms < 1 || ms > 253402300799999 {
			return nil
		}
		out.kind, out.text = '"', time.UnixMilli(int64(ms)).UTC().Format(time.RFC3339Nano)
		x.note(Corrected, v, "%s is a number; it was read as milliseconds since 1970", at)
	case (v.kind == '0' || v.kind == 't') && s.allows("string"):
		out.kind, out.text = '"', v.text
		x.note(Corrected, v, "%s is not text; what stands there became text", at)
	case v.kind != 'n' && s.Items != nil && s.allows("array"):
		out.kind, out.vals = '[', []*value{v}
		x.note(Corrected, v, "%s is no list; it was read as one of one value", at)
	default:
		return nil
	}
	return out
}

func (x *fitter) textual(s *schema, v *value, at string) (*value, string) {
	v = x.clean(v, at)
	n := utf8.RuneCountInString(v.text)
	switch {
	case s.MinLength > n:
		return nil, "is empty"
	case s.MaxLength > 0 && s.MaxLength < n:
		return nil, fmt.Sprintf("has %d characters, the limit is %d", n, s.MaxLength)
	case s.pattern != nil && !s.pattern.MatchString(v.text):
		return nil, "is " + shown(v.text) + ", which is not of the form that it has to have"
	case s.Format == "date-time":
		return x.instant(v, at)
	}
	return v, ""
}

// strictTime is the form of times; the standard library takes hours of one digit,
// and commas, too.
var strictTime = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$`)
})

func (x *fitter) instant(v *value, at string) (*value, string) {
	if new(time.Time).UnmarshalText([]byte(v.text)) == nil && strictTime().MatchString(v.text) {
		return v, ""
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateTime, time.DateOnly} {
		when, err := time.Parse(layout, strings.TrimSpace(v.text))
		if err != nil || when.UTC().Year() < 1 || when.UTC().Year() > 9999 {
			continue
		}
		became := when.UTC().Format(time.RFC3339Nano)
		x.note(Corrected, v, "%s: the time %s was read as %s", at, shown(v.text), became)
		return &value{kind: '"', off: v.off, text: became}, ""
	}
	return nil, "is " + shown(v.text) + ", which is no time as 2026-02-09T10:00:00Z"
}

// clean replaces what databases cannot hold, in texts and in what is inside of
// a value; of several members of one name the last stays.
func (x *fitter) clean(v *value, at string) *value {
	switch v.kind {
	case '"':
		if !strings.Contains(v.text, "\x00") {
			return v
		}
		x.note(Corrected, v, "%s: characters 0 became U+FFFD", at)
		return &value{kind: '"', off: v.off, text: strings.ReplaceAll(v.text, "\x00", "\uFFFD")}
	case '[':
		out := &value{kind: '[', off: v.off}
		for i, item := range v.vals {
			out.vals = append(out.vals, x.clean(item, at+"["+strconv.Itoa(i)+"]"))
		}
		return out
	case '{':
		out := &value{kind: '{', off: v.off}
		for i, key := range x.members(v, at) {
			out.add(key, x.clean(v.vals[i], join(at, key)))
		}
		return out
	}
	return v
}

// members goes along an object, of several with one name to the last.
func (x *fitter) members(v *value, at string) iter.Seq2[int, string] {
	keys, where := make([]string, len(v.keys)), make(map[string]int, len(v.keys))
	for i, key := range v.keys {
		keys[i] = strings.ReplaceAll(key, "\x00", "\uFFFD")
		if _, twice := where[keys[i]]; twice {
			x.note(Corrected, v.vals[i], "%s stands twice; the last one counts", join(at, keys[i]))
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

// items fits a list. Those that do not fit are in the second.
func (x *fitter) items(s *schema, v *value, at string) (out, aside *value) {
	out = &value{kind: '[', off: v.off}
	for i, item := range v.vals {
		here := at + "[" + strconv.Itoa(i) + "]"
		if s.Items == nil {
			out.vals = append(out.vals, x.clean(item, here))
			continue
		}
		fitted, rest, why := x.fit(s.Items, item, here)
		if why == "" && rest == nil {
			out.vals = append(out.vals, fitted)
			continue
		}
		if aside == nil {
			aside = &value{kind: '['}
		}
		aside.vals = append(aside.vals, x.clean(item, here))
		x.note(Corrected, item, "%s %s; it is kept beside the list", here, why)
	}
	return out, aside
}

// object fits an object: members that do not fit go beside, those that nobody
// knows are kept.
func (x *fitter) object(s *schema, v *value, at string) (*value, string) {
	out := &value{kind: '{', off: v.off}
	for i, key := range x.members(v, at) {
		member := v.vals[i]
		sub := s.Properties[key]
		if sub == nil {
			sub = s.Others
		}
		here := join(at, key)
		if sub == nil {
			out.add(key, x.clean(member, here))
			continue
		}
		fitted, aside, why := x.fit(sub, member, here)
		if why == "" && s.Names != nil {
			key, why = x.name(s.Names, v, i, here)
		}
		switch {
		case why == "":
			out.add(key, fitted)
		case member.kind == 'n':
			x.note(Corrected, member, "%s is null, which says nothing there; it was left out", here)
		case s.Others != nil:
			return nil, "holds " + key + ", which " + why
		default:
			aside = x.clean(member, here)
			x.note(Corrected, member, "%s %s; it is kept as %s", here, why, free(v, out, key))
		}
		if aside != nil {
			out.add(free(v, out, key), aside)
		}
	}
	return out, x.complete(s, out, at)
}

// name fits the name of a member; it must not become one that is there.
func (x *fitter) name(s *schema, v *value, i int, at string) (string, string) {
	name, _, why := x.fit(s, &value{kind: '"', text: v.keys[i], off: v.vals[i].off}, at)
	switch {
	case why != "":
		return v.keys[i], why
	case name.text != v.keys[i] && v.get(name.text) != nil:
		return v.keys[i], "stands there twice"
	}
	return name.text, ""
}

// free is a name for what does not fit that nothing else has.
func free(v, out *value, key string) string {
	for key += asGiven; v.get(key) != nil || out.get(key) != nil; {
		key += "_"
	}
	return key
}

// complete adds the members that have to be there, and tells what is missing.
func (x *fitter) complete(s *schema, out *value, at string) string {
	for _, key := range s.Required {
		if out.get(key) != nil {
			continue
		}
		member := x.fallback[key]
		if at != "" || member == nil {
			return "has no " + key
		}
		x.note(Corrected, out, "there is no %s; it became %s", key, member.raw())
		out.add(key, member)
	}
	if len(out.keys) < s.Least {
		return "is empty"
	}
	return ""
}

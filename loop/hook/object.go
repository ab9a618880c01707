package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// object reads the members of a JSON object one by one and gathers what is
// wrong. The standard library's reflection is too kind here: it takes "Verdict"
// for "verdict", and of two verdicts the last.
type object struct {
	path    string // of the object, ends in "." unless it is empty
	members map[string]json.RawMessage
	errs    *[]error
}

// parseObject reads text as exactly one JSON object without members of one
// name, in which invalid UTF-8 is replaced.
func parseObject(text []byte) (object, error) {
	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return object{}, fmt.Errorf("no JSON object: byte %d: %w", syntax.Offset, err)
		}
		return object{}, fmt.Errorf("no JSON object: %w", err)
	}
	if err := checkTree(text); err != nil {
		return object{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || members == nil {
		return object{}, errors.New("no JSON object but another value")
	}
	return object{members: members, errs: new([]error)}, nil
}

// level is an object or array that is open while checkTree walks.
type level struct {
	keys map[string]bool // nil in an array
	key  string
	// named: the key was read, its value comes next.
	named bool
}

// checkTree wants no object to hold a name twice, and no depth beyond
// MaxDepth. The text is valid JSON.
func checkTree(text []byte) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var open []level
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("no JSON object: %w", err)
		}
		if open, err = walked(open, token); err != nil {
			return err
		}
	}
}

func walked(open []level, token json.Token) ([]level, error) {
	delim, isDelim := token.(json.Delim)
	if isDelim && (delim == '}' || delim == ']') {
		return open[:len(open)-1], nil
	}
	if top := len(open) - 1; top >= 0 && open[top].keys != nil {
		in := &open[top]
		if !in.named {
			in.key, _ = token.(string)
			if in.keys[in.key] {
				return nil, fmt.Errorf("%s: the name stands twice", pathOf(open))
			}
			in.keys[in.key], in.named = true, true
			return open, nil
		}
		in.named = false
	}
	if !isDelim {
		return open, nil
	}
	if len(open) == MaxDepth {
		return nil, &LimitError{What: "depth", Limit: MaxDepth}
	}
	next := level{}
	if delim == '{' {
		next.keys = make(map[string]bool)
	}
	return append(open, next), nil
}

// pathOf names the member that was read last, shortened where it is absurd.
func pathOf(open []level) string {
	var keys []string
	for _, l := range open {
		if l.keys != nil {
			keys = append(keys, l.key)
		}
	}
	return clip(strings.Join(keys, "."), MaxNameBytes)
}

// take returns a member and removes it; nil when it is missing or null.
func (o object) take(name string) json.RawMessage {
	raw := o.members[name]
	delete(o.members, name)
	if string(raw) == "null" {
		return nil
	}
	return raw
}

func (o object) fault(name, format string, args ...any) {
	*o.errs = append(*o.errs, fmt.Errorf("%s%s: %s", o.path, name, fmt.Sprintf(format, args...)))
}

func (o object) limit(name string, limit, got int) {
	if err := within(o.path+name, limit, got); err != nil {
		*o.errs = append(*o.errs, err)
	}
}

// read decodes a member into to; want names the type for people.
func (o object) read(name, want string, to any) bool {
	raw := o.take(name)
	if raw == nil {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(to); err != nil {
		o.fault(name, "is not %s", want)
		return false
	}
	return true
}

func (o object) text(name string, limit int) string {
	var s string
	if o.read(name, "text", &s) {
		o.limit(name, limit, len(s))
	}
	return s
}

func (o object) texts(name string, count, limit int) []string {
	var list []*string
	if !o.read(name, "a list of texts", &list) {
		return nil
	}
	o.limit(name, count, len(list))
	var texts []string
	for i, s := range list {
		if s == nil {
			o.fault(fmt.Sprintf("%s[%d]", name, i), "is null")
			continue
		}
		o.limit(fmt.Sprintf("%s[%d]", name, i), limit, len(*s))
		texts = append(texts, *s)
	}
	return texts
}

func (o object) time(name string) time.Time {
	var t time.Time
	o.read(name, "a time as in RFC 3339", &t)
	return t
}

// count is a whole number from 0.
func (o object) count(name string) int {
	var n int
	if o.read(name, "a whole number", &n) && n < 0 {
		o.fault(name, "is below 0")
		return 0
	}
	return n
}

// free is an object that may hold anything; nil when it holds nothing.
func (o object) free(name string, limit int) map[string]any {
	raw := o.members[name]
	var free map[string]any
	if o.read(name, "an object", &free) {
		o.limit(name, limit, len(raw))
	}
	if len(free) == 0 {
		return nil
	}
	return free
}

// word is a text out of a list; empty when it is missing or not of the list.
func (o object) word(name string, words []string) string {
	s := o.text(name, MaxReplyBytes)
	if err := oneOf(o.path+name, s, words); err != nil {
		*o.errs = append(*o.errs, err)
		return ""
	}
	return s
}

// oneOf wants a text out of a list, or none.
func oneOf(what, got string, words []string) error {
	if got == "" || slices.Contains(words, got) {
		return nil
	}
	return fmt.Errorf("%s: is %q; there are %s", what, clip(got, MaxNameBytes), strings.Join(words, ", "))
}

// child is the object that a member holds; ok is false when there is none.
func (o object) child(name string) (child object, ok bool) {
	child = object{path: o.path + name + ".", errs: o.errs}
	raw := o.take(name)
	if raw == nil {
		o.fault(name, "is missing")
		return child, false
	}
	if json.Unmarshal(raw, &child.members) != nil {
		o.fault(name, "is not an object")
		return child, false
	}
	return child, true
}

// rest are the members nobody took.
func (o object) rest() map[string]json.RawMessage {
	if len(o.members) == 0 {
		return nil
	}
	rest := maps.Clone(o.members)
	for name, raw := range rest {
		rest[name] = compact(raw)
	}
	return rest
}

func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
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

// clip shortens s to at most n bytes, and never inside a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	if n < len(mark) {
		return ""
	}
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

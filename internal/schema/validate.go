package schema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// Fault is a place where a document does not match its schema.
type Fault struct {
	// Offset is the place of the value in the document in bytes.
	Offset int `json:"-"`
	Line   int `json:"line"`
	Column int `json:"column"`
	// Field is the path of the value, "" for the whole document.
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Checker finds the faults of documents. Unlike a validator it names the place of each.
// It knows the keywords that the published schemas use.
type Checker struct {
	docs     map[string]map[string]any // by name
	patterns map[string]*regexp.Regexp
}

// NewChecker reads the published schemas.
func NewChecker() (*Checker, error) {
	c := &Checker{docs: make(map[string]map[string]any), patterns: make(map[string]*regexp.Regexp)}
	entries, err := FS.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := FS.ReadFile(e.Name())
		if err != nil {
			return nil, err
		}
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			return nil, fmt.Errorf("read schema %q: %w", e.Name(), err)
		}
		c.docs[strings.TrimSuffix(e.Name(), ".json")] = doc
	}
	return c, nil
}

// Faults returns the faults of a document, in order. There must be a schema of the name.
func (c *Checker) Faults(name string, v *jsontree.Value) []Fault {
	x := &check{Checker: c, root: c.docs[name]}
	faults := x.value(x.root, v, "")
	slices.SortStableFunc(faults, func(a, b Fault) int { return a.Offset - b.Offset })
	return slices.CompactFunc(faults, func(a, b Fault) bool { return a == b })
}

// check is one check against a schema.
type check struct {
	*Checker
	root map[string]any
}

func fault(v *jsontree.Value, at, format string, args ...any) []Fault {
	return []Fault{{Offset: v.Start, Field: at, Message: fmt.Sprintf(format, args...)}}
}

// resolve follows a reference, possibly into another schema.
func (x *check) resolve(ref string) (*check, any) {
	if other, ok := strings.CutPrefix(ref, "urn:perdure:schema:"); ok {
		y := &check{Checker: x.Checker, root: x.docs[other]}
		return y, y.root
	}
	defs, _ := x.root["$defs"].(map[string]any)
	return x, defs[strings.TrimPrefix(ref, "#/$defs/")]
}

// value returns the faults of a value.
func (x *check) value(schema any, v *jsontree.Value, at string) []Fault {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return fault(v, at, "is not allowed")
		}
		return nil
	}
	var faults []Fault
	if ref, ok := s["$ref"].(string); ok {
		y, to := x.resolve(ref)
		faults = y.value(to, v, at)
	}
	if wrong := typeFault(s, v, at); len(wrong) > 0 {
		return append(faults, wrong...)
	}
	faults = append(faults, constants(s, v, at)...)
	switch v.Kind {
	case jsontree.Object:
		faults = append(faults, x.object(s, v, at)...)
	case jsontree.Array:
		faults = append(faults, x.array(s, v, at)...)
	case jsontree.String:
		faults = append(faults, x.text(s, v, at)...)
	case jsontree.Number:
		faults = append(faults, bounds(s, v, at)...)
	}
	return append(faults, x.combined(s, v, at)...)
}

// typeFault returns the fault of a value of another type.
func typeFault(s map[string]any, v *jsontree.Value, at string) []Fault {
	kinds := kindsOf(s)
	is := v.Kind.Name()
	integer := v.Kind == jsontree.Number && isInteger(v.Scalar())
	if len(kinds) == 0 || slices.Contains(kinds, is) || integer && slices.Contains(kinds, "integer") {
		return nil
	}
	return fault(v, at, "is %s, want %s", is, strings.Join(kinds, " or "))
}

func kindsOf(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var kinds []string
		for _, one := range t {
			if name, ok := one.(string); ok {
				kinds = append(kinds, name)
			}
		}
		return kinds
	}
	return nil
}

// maxExponent bounds the numbers that are compared exactly.
const maxExponent = 400

// rational reads a number exactly, nil for one that is too long or too large.
func rational(text string) *big.Rat {
	if i := strings.IndexAny(text, "eE"); len(text) > 1000 || i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 3 {
		return nil
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, ok := new(big.Int).SetString(strings.TrimPrefix(text[i+1:], "+"), 10)
		if !ok || !e.IsInt64() || e.Int64() > maxExponent || e.Int64() < -maxExponent {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

func isInteger(text string) bool {
	r := rational(text)
	return r != nil && r.IsInt()
}

// constants checks enum and const.
func constants(s map[string]any, v *jsontree.Value, at string) []Fault {
	want, ok := s["enum"].([]any)
	if one, has := s["const"]; has {
		want, ok = []any{one}, true
	}
	if !ok {
		return nil
	}
	var names []string
	for _, w := range want {
		raw := jsontree.MustMarshal(w)
		if equalJSON(raw, v) {
			return nil
		}
		names = append(names, string(raw))
	}
	return fault(v, at, "is %s, want %s", shown(v), strings.Join(names, ", "))
}

// equalJSON reports whether a value is that of the text.
func equalJSON(raw json.RawMessage, v *jsontree.Value) bool {
	if v.Kind == jsontree.Number {
		a, b := rational(string(raw)), rational(v.Scalar())
		return a != nil && b != nil && a.Cmp(b) == 0
	}
	w, err := jsontree.Parse(raw, jsontree.Options{})
	if err != nil || w.Kind != v.Kind {
		return false
	}
	if v.Kind == jsontree.String {
		return w.Text() == v.Text()
	}
	return string(w.Append(nil)) == string(v.Append(nil))
}

// maxShown bounds the values in messages.
const maxShown = 60

func shown(v *jsontree.Value) string {
	text := string(v.Append(nil))
	if len(text) > maxShown {
		return strings.ToValidUTF8(text[:maxShown], "") + "…"
	}
	return text
}

func bounds(s map[string]any, v *jsontree.Value, at string) []Fault {
	is := rational(v.Scalar())
	if is == nil {
		return fault(v, at, "is a number out of range")
	}
	limit := func(key string) *big.Rat {
		f, ok := s[key].(float64)
		if !ok {
			return nil
		}
		return new(big.Rat).SetFloat64(f)
	}
	switch least, above, most := limit("minimum"), limit("exclusiveMinimum"), limit("maximum"); {
	case least != nil && is.Cmp(least) < 0:
		return fault(v, at, "is %s, less than %v", shown(v), s["minimum"])
	case above != nil && is.Cmp(above) <= 0:
		return fault(v, at, "is %s, want more than %v", shown(v), s["exclusiveMinimum"])
	case most != nil && is.Cmp(most) > 0:
		return fault(v, at, "is %s, more than %v", shown(v), s["maximum"])
	}
	return nil
}

func (x *check) text(s map[string]any, v *jsontree.Value, at string) []Fault {
	text := v.Text()
	n := utf8.RuneCountInString(text)
	if least, ok := s["minLength"].(float64); ok && n < int(least) {
		return fault(v, at, "has %d characters, want at least %.0f", n, least)
	}
	if most, ok := s["maxLength"].(float64); ok && n > int(most) {
		return fault(v, at, "has %d characters, the limit is %.0f", n, most)
	}
	if pattern, ok := s["pattern"].(string); ok && !x.matches(pattern, text) {
		return fault(v, at, "is %s, which does not match %s", shown(v), pattern)
	}
	switch format, _ := s["format"].(string); {
	case format == "date-time" && !x.isTime(text):
		return fault(v, at, "is %s, want a time such as 2026-02-09T10:00:00Z", shown(v))
	case format == "date" && !x.isTime(text+"T00:00:00Z"):
		return fault(v, at, "is %s, want a date such as 2026-02-09", shown(v))
	}
	return nil
}

func (x *check) matches(pattern, text string) bool {
	re := x.patterns[pattern]
	if re == nil {
		re = regexp.MustCompile(pattern) // of a published schema, which tests compile
		x.patterns[pattern] = re
	}
	return re.MatchString(text)
}

const timePattern = `^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$`

func (x *check) isTime(text string) bool {
	if !x.matches(timePattern, text) {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	return err == nil
}

package jsonreply

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/text/clip"
)

// explainer lists what is wrong with a value, each fault with its place. That a
// value is wrong is the validating library's word, which stops at the first
// fault and takes members in any order; here all are found, in a fixed order.
type explainer struct {
	doc *document
	out []string
}

func (x *explainer) add(place, msg string, args ...any) {
	x.out = append(x.out, clip.Bytes(orWhole(place)+": "+fmt.Sprintf(msg, args...), MaxProblemBytes))
}

// holds reports whether no fault is seen.
func (x *explainer) holds(schema, value any) bool { return len(x.faults(schema, value)) == 0 }

func (x *explainer) faults(schema, value any) []string {
	y := &explainer{doc: x.doc}
	y.explain("", schema, value)
	return y.out
}

func (x *explainer) explain(place string, schema, value any) {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			x.add(place, "nothing is allowed here")
		}
		return
	}
	for _, ref := range refs(s) {
		if target, err := x.doc.target(ref); err == nil {
			x.explain(place, x.doc.schemas[target], value)
		}
	}
	if !x.typed(place, s, value) {
		return // everything else would follow from that
	}
	x.values(place, s, value)
	switch v := value.(type) {
	case float64:
		x.number(place, s, v)
	case string:
		x.text(place, s, v)
	case []any:
		x.array(place, s, v)
	case map[string]any:
		x.object(place, s, v)
	}
	x.combined(place, s, value)
}

func (x *explainer) typed(place string, s map[string]any, value any) bool {
	var names []string
	switch want := s["type"].(type) {
	case string:
		names = []string{want}
	case []any:
		for _, name := range want {
			names = append(names, name.(string))
		}
	default:
		return true
	}
	got := typeOf(value)
	number, _ := value.(float64)
	whole := got == "number" && number == float64(int64(number))
	if slices.Contains(names, got) || whole && slices.Contains(names, "integer") {
		return true
	}
	x.add(place, "got %s, want %s", got, strings.Join(names, " or "))
	return false
}

func (x *explainer) values(place string, s map[string]any, value any) {
	allowed, isEnum := s["enum"].([]any)
	if only, ok := s["const"]; ok {
		allowed, isEnum = []any{only}, true
	}
	if !isEnum || slices.ContainsFunc(allowed, func(a any) bool { return written(a) == written(value) }) {
		return
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = quoted(a)
	}
	if len(words) == 1 {
		x.add(place, "value must be %s", words[0])
		return
	}
	x.add(place, "value must be one of %s", strings.Join(words, ", "))
}

func written(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(raw)
}

func quoted(value any) string {
	if text, ok := value.(string); ok {
		return "'" + text + "'"
	}
	return written(value)
}

func (x *explainer) number(place string, s map[string]any, n float64) {
	for _, limit := range []struct {
		key, words string
		broken     func(limit float64) bool
	}{
		{"minimum", "at least", func(l float64) bool { return n < l }},
		{"maximum", "at most", func(l float64) bool { return n > l }},
		{"exclusiveMinimum", "over", func(l float64) bool { return n <= l }},
		{"exclusiveMaximum", "under", func(l float64) bool { return n >= l }},
	} {
		if l, ok := s[limit.key].(float64); ok && limit.broken(l) {
			x.add(place, "%s: got %v, want %s %v", limit.key, n, limit.words, l)
		}
	}
}

func (x *explainer) text(place string, s map[string]any, text string) {
	x.between(place, s, "Length", "characters", utf8.RuneCountInString(text))
	pattern, ok := s["pattern"].(string)
	if !ok {
		return
	}
	if matched, err := regexp.MatchString(pattern, text); err == nil && !matched {
		x.add(place, "%q does not match pattern '%s'", clip.Bytes(text, MaxProblemBytes/4), pattern)
	}
}

// between checks the keywords min… and max….
func (x *explainer) between(place string, s map[string]any, key, unit string, n int) {
	if least, ok := s["min"+key].(float64); ok && n < int(least) {
		x.add(place, "min%s: got %d %s, want at least %v", key, n, unit, least)
	}
	if most, ok := s["max"+key].(float64); ok && n > int(most) {
		x.add(place, "max%s: got %d %s, want at most %v", key, n, unit, most)
	}
}

func (x *explainer) array(place string, s map[string]any, items []any) {
	x.between(place, s, "Items", "items", len(items))
	first, rest := s["prefixItems"], s["items"]
	if tuple, ok := rest.([]any); ok { // as draft 07 has it
		first, rest = tuple, s["additionalItems"]
	}
	tuple, _ := first.([]any)
	seen := make(map[string]int)
	for i, item := range items {
		at := fmt.Sprintf("%s/%d", place, i)
		if i < len(tuple) {
			x.explain(at, tuple[i], item)
		} else if rest != nil {
			x.explain(at, rest, item)
		}
		if s["uniqueItems"] != true {
			continue
		}
		if before, twice := seen[written(item)]; twice {
			x.add(place, "items %d and %d are equal", before, i)
		} else {
			seen[written(item)] = i
		}
	}
	if contains, ok := s["contains"]; ok && s["minContains"] == nil &&
		!slices.ContainsFunc(items, func(item any) bool { return x.holds(contains, item) }) {
		x.add(place, "no item matches the schema of contains")
	}
}

func (x *explainer) object(place string, s map[string]any, members map[string]any) {
	x.between(place, s, "Properties", "properties", len(members))
	x.required(place, s["required"], members)
	for _, key := range []string{"dependentRequired", "dependencies"} {
		needs, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(needs)) {
			if _, has := members[name]; has {
				x.required(place, needs[name], members)
			}
		}
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	var others []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		at, known := place+"/"+escape(name), false
		if schema, ok := properties[name]; ok {
			known = true
			x.explain(at, schema, members[name])
		}
		for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
			if matched, err := regexp.MatchString(pattern, name); err == nil && matched {
				known = true
				x.explain(at, patterns[pattern], members[name])
			}
		}
		switch rest, limited := s["additionalProperties"]; {
		case known || !limited:
		case rest == false:
			others = append(others, "'"+name+"'")
		default:
			x.explain(at, rest, members[name])
		}
		if names, ok := s["propertyNames"]; ok && !x.holds(names, name) {
			x.add(at, "the name does not match the schema of propertyNames")
		}
	}
	if len(others) > 0 {
		x.add(place, "additional properties %s not allowed", strings.Join(others, ", "))
	}
}

func (x *explainer) required(place string, names any, members map[string]any) {
	list, _ := names.([]any)
	var missing []string
	for _, name := range list {
		if _, has := members[name.(string)]; !has {
			missing = append(missing, "'"+name.(string)+"'")
		}
	}
	switch len(missing) {
	case 0:
	case 1:
		x.add(place, "missing property %s", missing[0])
	default:
		x.add(place, "missing properties %s", strings.Join(missing, ", "))
	}
}

// combined explains the keywords that hold further schemas against the value.
func (x *explainer) combined(place string, s map[string]any, value any) {
	all, _ := s["allOf"].([]any)
	for _, schema := range all {
		x.explain(place, schema, value)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if forms, ok := s[key].([]any); ok {
			x.choice(place, key, forms, value)
		}
	}
	if not, ok := s["not"]; ok && x.holds(not, value) {
		x.add(place, "it matches the schema of 'not'")
	}
	if condition, ok := s["if"]; ok {
		key := "else"
		if x.holds(condition, value) {
			key = "then"
		}
		if schema, ok := s[key]; ok {
			x.explain(place, schema, value)
		}
	}
	members, _ := value.(map[string]any)
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		needs, _ := s[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(needs)) {
			if _, has := members[name]; has {
				x.explain(place, needs[name], value)
			}
		}
	}
}

// choice describes, for a value that fits none of several forms, what the nearest of
// them wants, and of one that fits several that it does.
func (x *explainer) choice(place, key string, forms []any, value any) {
	fitting := 0
	var nearest []string
	for i, schema := range forms {
		y := &explainer{doc: x.doc}
		y.explain(place, schema, value)
		if len(y.out) == 0 {
			fitting++
		}
		if i == 0 || len(y.out) < len(nearest) {
			nearest = y.out
		}
	}
	switch {
	case fitting == 0:
		x.add(place, "matches none of the %d schemas of %s; the problem with the nearest one follows", len(forms), key)
		x.out = append(x.out, nearest...)
	case fitting > 1 && key == "oneOf":
		x.add(place, "matches %d of the schemas of oneOf, but only one is allowed", fitting)
	}
}

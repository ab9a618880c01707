package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/loop/record"
)

// fixedFields are what a loop is: with another one it is another loop, because
// what was measured until then says nothing of it. Before the baseline was measured,
// the completion command and the scorer can change.
func fixedFields(measured bool) []string {
	if !measured {
		return []string{"task", "workspace", "worktree", "worktree_of"}
	}
	return []string{"task", "until", "workspace", "worktree", "worktree_of", "scorer"}
}

// fields are all fields by their names in JSON.
func fields(yield func(name string, index []int) bool) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.Anonymous && !yield(name, f.Index) {
			return
		}
	}
}

// FieldNames are the names of all fields, as in JSON.
func FieldNames() []string {
	var names []string
	for name := range fields {
		names = append(names, name)
	}
	return names
}

// Take copies the fields of these names. Names that are none do nothing.
func (c *Config) Take(from *Config, names ...string) {
	to, src := reflect.ValueOf(c).Elem(), reflect.ValueOf(from).Elem()
	for name, at := range fields {
		if slices.Contains(names, name) {
			to.FieldByIndex(at).Set(src.FieldByIndex(at))
		}
	}
}

// Fields returns the values of the fields of these names, for a JSON object that
// includes false and zero values.
func (c *Config) Fields(names ...string) map[string]any {
	values := make(map[string]any)
	v := reflect.ValueOf(c).Elem()
	for name, at := range fields {
		if slices.Contains(names, name) {
			values[name] = v.FieldByIndex(at).Interface()
		}
	}
	return values
}

// Changes lists how two configurations differ, but for Given.
func Changes(from, to *Config) []record.FieldChange {
	all := []record.FieldChange{}
	a, b := reflect.ValueOf(from).Elem(), reflect.ValueOf(to).Elem()
	for name, at := range fields {
		x, y := a.FieldByIndex(at).Interface(), b.FieldByIndex(at).Interface()
		if name != "given" && !reflect.DeepEqual(x, y) && (shown(x) != shown(y) || differ(x, y)) {
			all = append(all, record.FieldChange{Field: name, From: shown(x), To: shown(y)})
		}
	}
	return all
}

// differ compares what is shown in short.
func differ(x, y any) bool {
	a, short := x.(DetectionRules)
	b, _ := y.(DetectionRules)
	return short && !a.equal(&b)
}

// shown is a value as people write it.
func shown(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return limited(v, v > 0)
	case int:
		return limited(v, v > 0)
	case int64:
		return limited(v, v > 0)
	case float64:
		return limited(v, v > 0)
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	case string:
		if v == "" {
			return `""`
		}
		return v
	}
	return fmt.Sprint(value)
}

// limited formats a limit; if it is not positive, there is none.
func limited(v any, some bool) string {
	if !some {
		return "none"
	}
	text := fmt.Sprint(v)
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

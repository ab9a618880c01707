package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

func (x *check) array(s map[string]any, v *jsontree.Value, at string) (faults []Fault) {
	if most, ok := s["maxItems"].(float64); ok && len(v.Items) > int(most) {
		faults = fault(v, at, "has %d items, the limit is %.0f", len(v.Items), most)
	}
	if items, ok := s["items"]; ok {
		for i, item := range v.Items {
			faults = append(faults, x.value(items, item, at+"["+strconv.Itoa(i)+"]")...)
		}
	}
	return faults
}

// join returns the path of a member.
func join(at, key string) string {
	if len(key) > maxShown || key == "" || strings.ContainsAny(key, ".[]\" \n\t") {
		key = strconv.Quote(clip.Prefix(key, maxShown))
	}
	if at == "" {
		return key
	}
	return at + "." + key
}

// Repeated returns a fault for each member of a document whose name a member of the same object
// has already. Readers take the first or the last of them.
func Repeated(v *jsontree.Value) []Fault { return repeated(v, "") }

func repeated(v *jsontree.Value, at string) (faults []Fault) {
	for i, item := range v.Items {
		faults = append(faults, repeated(item, at+"["+strconv.Itoa(i)+"]")...)
	}
	seen := make(map[string]bool, len(v.Members))
	for _, m := range v.Members {
		here := join(at, m.Name)
		if seen[m.Name] {
			faults = append(faults, fault(m.Value, here, "is repeated")...)
		}
		seen[m.Name] = true
		faults = append(faults, repeated(m.Value, here)...)
	}
	return faults
}

func (x *check) object(s map[string]any, v *jsontree.Value, at string) (faults []Fault) {
	members := make(map[string]*jsontree.Value, len(v.Members))
	for _, m := range v.Members {
		members[m.Name] = m.Value // the last one of a name
	}
	faults = append(faults, sizes(s, v, len(members), at)...)
	faults = append(faults, required(s, v, members, at)...)
	known, _ := s["properties"].(map[string]any)
	others, limited := s["additionalProperties"]
	names, named := s["propertyNames"]
	for _, m := range v.Members {
		if members[m.Name] != m.Value {
			continue
		}
		here := join(at, m.Name)
		if named {
			name := jsontree.NewString(m.Name)
			name.Start = m.Value.Start
			faults = append(faults, x.value(names, name, here)...)
		}
		if sub, ok := known[m.Name]; ok {
			faults = append(faults, x.value(sub, m.Value, here)...)
		} else if limited {
			faults = append(faults, x.value(others, m.Value, here)...)
		}
	}
	return faults
}

func sizes(s map[string]any, v *jsontree.Value, n int, at string) []Fault {
	if least, ok := s["minProperties"].(float64); ok && n < int(least) {
		return fault(v, at, "has %d members, want at least %.0f", n, least)
	}
	if most, ok := s["maxProperties"].(float64); ok && n > int(most) {
		return fault(v, at, "has %d members, the limit is %.0f", n, most)
	}
	return nil
}

// required checks required and dependentRequired.
func required(s map[string]any, v *jsontree.Value, members map[string]*jsontree.Value, at string) (faults []Fault) {
	need := func(list any, because string) {
		names, _ := list.([]any)
		for _, name := range names {
			key, _ := name.(string)
			if members[key] == nil {
				faults = append(faults, fault(v, join(at, key), "is missing%s", because)...)
			}
		}
	}
	need(s["required"], "")
	dependent, _ := s["dependentRequired"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(dependent)) {
		if members[key] != nil {
			need(dependent[key], fmt.Sprintf(" and required with %s", key))
		}
	}
	return faults
}

// combined checks allOf, anyOf, oneOf and if.
func (x *check) combined(s map[string]any, v *jsontree.Value, at string) (faults []Fault) {
	all, _ := s["allOf"].([]any)
	for _, sub := range all {
		faults = append(faults, x.value(sub, v, at)...)
	}
	if condition, ok := s["if"]; ok && len(x.value(condition, v, at)) == 0 {
		if then, ok := s["then"]; ok {
			faults = append(faults, x.value(then, v, at)...)
		}
	}
	if some, ok := s["anyOf"].([]any); ok {
		if _, best := x.branches(some, v, at); best != nil {
			faults = append(faults, best...)
		}
	}
	if one, ok := s["oneOf"].([]any); ok {
		switch valid, best := x.branches(one, v, at); {
		case valid > 1:
			faults = append(faults, fault(v, at, "matches %d alternatives of its schema, want one", valid)...)
		case best != nil:
			faults = append(faults, best...)
		}
	}
	return faults
}

// branches returns the number of alternatives that allow the value, and the faults of the
// one that is nearest to it if none does.
func (x *check) branches(list []any, v *jsontree.Value, at string) (valid int, best []Fault) {
	var types []string
	for _, sub := range list {
		faults := x.value(sub, v, at)
		if len(faults) == 0 {
			valid++
			continue
		}
		if s, ok := sub.(map[string]any); ok && len(kindsOf(s)) > 0 && len(typeFault(s, v, at)) > 0 {
			types = append(types, kindsOf(s)...)
			continue // no value of this type is near
		}
		if best == nil || deeper(faults, best) {
			best = faults
		}
	}
	switch {
	case valid > 0:
		return valid, nil
	case best == nil:
		best = fault(v, at, "is %s, want %s", v.Kind.Name(), strings.Join(types, " or "))
	}
	return 0, best
}

// deeper reports whether the first fault is in a part of the value and that of b in the value
// itself, or whether there are fewer faults: its alternative is probably the intended one.
func deeper(a, b []Fault) bool {
	if n, m := strings.Count(a[0].Field, "."), strings.Count(b[0].Field, "."); n != m {
		return n > m
	}
	return len(a) < len(b)
}

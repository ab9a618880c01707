package loops

import (
	"math/big"
	"slices"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// exactEnd is the end of the name of a number whose integer other programs read.
const exactEnd = "_exact"

// forReaders changes a state to one that other programs accept: members that may not be
// null are left out, and numbers that must be integers are rounded and kept under another
// name.
func forReaders(v *jsontree.Value) {
	dropNulls(v, "task", "completion_criteria", "started_at", "last_updated", "completed_at", "owner", "pid",
		"working_directory", "configuration", "progress", "metrics", "last_checkpoint", "error_context")
	for _, part := range []string{"configuration", "progress", "metrics", "error_context"} {
		in := v.Get(part)
		if !in.Is(jsontree.Object) {
			continue
		}
		dropNulls(in)
		for _, key := range []string{"timeout_minutes", "total_duration_seconds"} {
			roundMember(in, key)
		}
	}
	if checks := v.Get("progress"); checks.Is(jsontree.Object) {
		for _, check := range append(slices.Clone(checks.Get("completion_checks").List()),
			checks.Get("last_completion_check")) {
			if check.Is(jsontree.Object) {
				dropNulls(check, "iteration", "timestamp", "passed", "output")
			}
		}
	}
}

// dropNulls removes the members that are null, of the names if there are any.
func dropNulls(v *jsontree.Value, names ...string) {
	v.Members = slices.DeleteFunc(v.Members, func(m jsontree.Member) bool {
		return m.Value.Kind == jsontree.Null && (len(names) == 0 || slices.Contains(names, m.Name))
	})
}

// roundMember rounds a number that is not an integer.
func roundMember(v *jsontree.Value, key string) {
	for i := range v.Members {
		m := &v.Members[i]
		if m.Name != key || m.Value.Kind != jsontree.Number || v.Get(key+exactEnd) != nil {
			continue
		}
		exact, ok := rational(m.Value.Scalar())
		if !ok || exact.IsInt() {
			continue
		}
		given := m.Value
		whole := new(big.Rat).Add(exact, big.NewRat(1, 2))
		m.Value = jsontree.NewScalar(jsontree.Number, new(big.Int).Div(whole.Num(), whole.Denom()).String())
		v.Add(key+exactEnd, given)
		return
	}
}

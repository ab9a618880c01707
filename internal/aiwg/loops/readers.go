package loops

import (
	"math/big"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/jsontree"
)

// exactEnd is the end of the name of a number whose integer other programs read.
const exactEnd = "_exact"

// ownForReaders changes a document of a loop of this store to one that other programs accept:
// members that may not be null are left out, numbers that must be integers are rounded and
// kept under another name, and members that must be there follow from the others. name is the
// ID of the loop.
func ownForReaders(place string, v *jsontree.Value, name string) {
	switch {
	case place == stateFile:
		for _, it := range v.Get("iteration_history").List() {
			iterationForReaders(it)
		}
		triggersForReaders(v)
	case place == analyticsFile:
		analyticsForReaders(v, name)
	case strings.HasPrefix(place, itersFolder):
		iterationForReaders(v)
	case strings.HasPrefix(place, checksFolder):
		checkpointForReaders(v)
	}
}

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

// triggersForReaders adds to recoveries what triggered them.
func triggersForReaders(v *jsontree.Value) {
	types := make(map[string]string)
	for _, event := range v.Get("regression_events").List() {
		types[event.Get("event_id").Text()] = ": " + event.Get("regression_type").Text()
	}
	for _, recovery := range v.Get("recovery_history").List() {
		if recovery.Is(jsontree.Object) {
			ensure(recovery, "trigger", jsontree.NewString("regression_detected"+types[recovery.Get("event_id").Text()]))
		}
	}
}

// iterationForReaders changes a record of an iteration.
func iterationForReaders(v *jsontree.Value) {
	if !v.Is(jsontree.Object) {
		return
	}
	dropNulls(v, "timestamp", "quality_score", "quality_delta", "quality_breakdown", "artifacts", "snapshot_path",
		"metrics_snapshot", "regression_detected")
	ensure(v, "artifacts", &jsontree.Value{Kind: jsontree.Array})
	pathsToObjects(v.Get("artifacts"))
}

// unrated is the member of analytics with the iterations without a quality or a time, which
// other programs require of the others.
const unrated = "unrated_iterations"

// analyticsForReaders changes the analytics of a loop.
func analyticsForReaders(v *jsontree.Value, name string) {
	dropNulls(v)
	roundMember(v, "total_time_ms")
	list := v.Get("iterations")
	if !list.Is(jsontree.Array) {
		return
	}
	var without []*jsontree.Value
	list.Items = slices.DeleteFunc(list.Items, func(it *jsontree.Value) bool {
		if !it.Is(jsontree.Object) {
			return false
		}
		dropNulls(it)
		roundMember(it, "execution_time_ms")
		ensure(it, "loop_id", jsontree.NewString(name))
		if it.Get("quality_score") != nil && it.Get("timestamp") != nil {
			return false
		}
		without = append(without, it)
		return true
	})
	if len(without) > 0 {
		ensure(v, unrated, &jsontree.Value{Kind: jsontree.Array})
		if rest := v.Get(unrated); rest.Is(jsontree.Array) {
			rest.Items = append(rest.Items, without...)
		}
	}
}

// checkpointForReaders changes a checkpoint of a loop.
func checkpointForReaders(v *jsontree.Value) {
	dropNulls(v)
	pathsToObjects(v.Get("state").Get("artifacts"))
}

// ensure adds a member unless it is there.
func ensure(v *jsontree.Value, name string, member *jsontree.Value) {
	if v.Get(name) == nil {
		v.Add(name, member)
	}
}

// pathsToObjects changes the paths in a list to objects with a path.
func pathsToObjects(list *jsontree.Value) {
	for i, item := range list.List() {
		if item.Kind == jsontree.String {
			list.Items[i] = &jsontree.Value{Kind: jsontree.Object}
			list.Items[i].Add("path", item)
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

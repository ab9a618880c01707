package loops

import (
	"cmp"
	"fmt"
	"strings"
)

// verdict says in a line what an iteration came to.
func (l *loop) verdict(it *iteration) string {
	var parts []string
	var record []*value
	for _, v := range []*value{it.record, it.files[iterationDoc].whole()} {
		if v != nil {
			record = append(record, v)
		}
	}
	quality := it.line.get("quality_score").written()
	verified := it.line.get("verification_status").says()
	for i := len(record) - 1; i >= 0; i-- {
		quality = cmp.Or(record[i].get("quality_score").number64(), quality)
		verified = cmp.Or(record[i].get("test_results").get("verification_status").says(), verified)
	}
	if quality != "" && quality != "null" {
		parts = append(parts, "quality "+cut(quality, 20))
	}
	if verified != "" {
		parts = append(parts, "verification "+verified)
	}
	if n, ok := l.docs[stateFile].get("best_iteration").get("iteration").number(); ok && n == it.number {
		parts = append(parts, "the best")
	}
	for _, e := range l.docs[stateFile].get("regression_events").list() {
		if n, ok := e.get("iteration").number(); ok && n == it.number {
			what := fmt.Sprintf("regression %s (%s)", e.get("regression_type").says(), e.get("severity").says())
			if d := e.get("human_decision").says(); d != "" {
				what += ", answered " + d
			}
			parts = append(parts, what)
		}
	}
	return cut(strings.Join(parts, "; "), 4096)
}

func (v *value) number64() string {
	if v == nil || v.kind != '0' {
		return ""
	}
	return v.text
}

func (d *document) whole() *value {
	if d == nil {
		return nil
	}
	return d.value
}

// summary says in a few lines what is known of a loop.
func (l *loop) summary() string {
	state := l.docs[stateFile]
	if state == nil {
		return ""
	}
	var out strings.Builder
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&out, "%s: %s\n", what, cut(text, 1000))
		}
	}
	line("status", state.get("status").says()+", iteration "+state.get("iteration").written())
	line("until", state.get("completion_criteria").says())
	line("baseline", numbersIn(state.get("baseline_metrics")))
	if best := state.get("best_iteration"); best.get("iteration") != nil {
		line("best iteration", best.get("iteration").written()+", quality "+best.get("quality_score").written())
	}
	var events []string
	for _, e := range state.get("regression_events").list() {
		events = append(events, fmt.Sprintf("%s (%s) in iteration %s", e.get("regression_type").says(),
			e.get("severity").says(), e.get("iteration").written()))
	}
	line("regressions", strings.Join(events, ", "))
	line("reinforcement", state.get("reinforcement_level").says())
	line("recovery attempts", state.get("recovery_attempts").number64())
	return out.String()
}

// numbersIn lists the numbers among the members of an object.
func numbersIn(v *value) string {
	var parts []string
	if v != nil && v.kind == '{' {
		for i, key := range v.keys {
			if n := v.vals[i].number64(); n != "" {
				parts = append(parts, key+" "+n)
			}
		}
	}
	return strings.Join(parts, ", ")
}

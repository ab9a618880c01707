package loops

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// verdict returns the result of an iteration in one line.
func (l *loop) verdict(it *iteration) string {
	var parts []string
	var record []*jsontree.Value
	for _, v := range []*jsontree.Value{it.record, it.files[iterationDoc].whole()} {
		if v != nil {
			record = append(record, v)
		}
	}
	quality := it.line.Get("quality_score").Scalar()
	verified := it.line.Get("verification_status").Text()
	for i := len(record) - 1; i >= 0; i-- {
		quality = cmp.Or(numeral(record[i].Get("quality_score")), quality)
		verified = cmp.Or(record[i].Get("test_results").Get("verification_status").Text(), verified)
	}
	if quality != "" && quality != "null" {
		parts = append(parts, "quality "+clip.Prefix(quality, 20))
	}
	if verified != "" {
		parts = append(parts, "verification "+verified)
	}
	is := func(v *jsontree.Value) bool {
		n, ok := iterationNumber(v.Get("iteration"))
		return ok && n == it.number
	}
	if is(l.docs[stateFile].Get("best_iteration")) {
		parts = append(parts, "best iteration")
	}
	for _, e := range l.docs[stateFile].Get("regression_events").List() {
		if !is(e) {
			continue
		}
		what := fmt.Sprintf("regression %s (%s)", e.Get("regression_type").Text(), e.Get("severity").Text())
		if d := e.Get("human_decision").Text(); d != "" {
			what += ", answered " + d
		}
		parts = append(parts, what)
	}
	return clip.Prefix(strings.Join(parts, "; "), 4096)
}

// numeral returns a number as it is written, "" for any other value.
func numeral(v *jsontree.Value) string {
	if !v.Is(jsontree.Number) {
		return ""
	}
	return v.Scalar()
}

func (d *document) whole() *jsontree.Value {
	if d == nil {
		return nil
	}
	return d.value
}

// summary describes a loop in a few lines.
func (l *loop) summary() string {
	state := l.docs[stateFile]
	if state == nil {
		return ""
	}
	var out strings.Builder
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&out, "%s: %s\n", what, clip.Prefix(text, 1000))
		}
	}
	line("status", state.Get("status").Text()+", iteration "+state.Get("iteration").Scalar())
	line("until", state.Get("completion_criteria").Text())
	line("baseline", numbersIn(state.Get("baseline_metrics")))
	if best := state.Get("best_iteration"); best.Get("iteration") != nil {
		line("best iteration", best.Get("iteration").Scalar()+", quality "+best.Get("quality_score").Scalar())
	}
	var events []string
	for _, e := range state.Get("regression_events").List() {
		events = append(events, fmt.Sprintf("%s (%s) in iteration %s", e.Get("regression_type").Text(),
			e.Get("severity").Text(), e.Get("iteration").Scalar()))
	}
	line("regressions", strings.Join(events, ", "))
	line("reinforcement", state.Get("reinforcement_level").Text())
	line("recovery attempts", numeral(state.Get("recovery_attempts")))
	return out.String()
}

// numbersIn returns the members of an object that are numbers.
func numbersIn(v *jsontree.Value) string {
	if v == nil {
		return ""
	}
	var parts []string
	for _, m := range v.Members {
		if n := numeral(m.Value); n != "" {
			parts = append(parts, m.Name+" "+n)
		}
	}
	return strings.Join(parts, ", ")
}

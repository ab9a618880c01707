package loops

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// verdict says in a line what an iteration came to.
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
	if n, ok := iterationNumber(l.docs[stateFile].Get("best_iteration").Get("iteration")); ok && n == it.number {
		parts = append(parts, "the best")
	}
	for _, e := range l.docs[stateFile].Get("regression_events").List() {
		if n, ok := iterationNumber(e.Get("iteration")); ok && n == it.number {
			what := fmt.Sprintf("regression %s (%s)", e.Get("regression_type").Text(), e.Get("severity").Text())
			if d := e.Get("human_decision").Text(); d != "" {
				what += ", answered " + d
			}
			parts = append(parts, what)
		}
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

// summary says in a few lines what is known of a loop.
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

// numbersIn lists the numbers among the members of an object.
func numbersIn(v *jsontree.Value) string {
	var parts []string
	if v != nil {
		for _, m := range v.Members {
			if n := numeral(m.Value); n != "" {
				parts = append(parts, m.Name+" "+n)
			}
		}
	}
	return strings.Join(parts, ", ")
}

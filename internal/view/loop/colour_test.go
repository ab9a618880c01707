package loop_test

import (
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/view/loop"
)

// TestEveryPartHasAColour: each part of the charts, and each phase of an iteration, has a colour in
// the chart and the same in the legend.
func TestEveryPartHasAColour(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.done()
	for i := range in.Iterations {
		o, err := state.ReadOutcome(&in.Iterations[i])
		if err != nil {
			t.Fatal(err)
		}
		o.Times = state.Times{Agent: 7000, Check: 6000, Snapshot: 5000, Hooks: 4000, Metrics: 3000,
			CleanCopy: 2000, Engine: 1000}
		row, err := o.Row(in.Iterations[i].Status, in.Iterations[i].Task)
		if err != nil {
			t.Fatal(err)
		}
		in.Iterations[i].Data = row.Data
	}
	page := written(t, func(w io.Writer) error { return loop.New(in).Report(w, "html") })
	fills := colours(page, `svg rect\.([a-z]+) \{ fill: ([^}]+?) \}`)
	keys := make(map[string]string)
	for list := range strings.SplitSeq(page, "}") { // one rule has several classes
		selectors, rule, _ := strings.Cut(list, " { background: ")
		for _, m := range regexp.MustCompile(`\.key \.([a-z]+)`).FindAllStringSubmatch(selectors, -1) {
			keys[m[1]] = strings.TrimSpace(rule)
		}
	}
	drawn := make(map[string]bool)
	for _, m := range regexp.MustCompile(`<rect class="([a-z]+)"`).FindAllStringSubmatch(page, -1) {
		drawn[m[1]] = true
	}
	for _, class := range slices.Sorted(maps.Keys(drawn)) {
		if fills[class] == "" || fills[class] != keys[class] {
			t.Errorf("%s is %q in the chart, and %q in the legend", class, fills[class], keys[class])
		}
	}
	seen := make(map[string]string)
	for _, phase := range []string{"agent", "check", "metrics", "sealed", "snapshot", "hooks", "engine"} {
		if !drawn[phase] {
			t.Errorf("%s is not drawn", phase)
		}
		if other := seen[fills[phase]]; other != "" {
			t.Errorf("%s and %s have the same colour", phase, other)
		}
		seen[fills[phase]] = phase
	}
}

// colours returns the classes of rules with their colours.
func colours(page, pattern string) map[string]string {
	found := make(map[string]string)
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
		found[m[1]] = m[2]
	}
	return found
}

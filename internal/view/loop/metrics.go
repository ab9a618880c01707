package loop

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/internal/loop/metric"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	loopconfig "github.com/perdure/perdure/loop/config"
)

// kept is what a summary keeps of metrics; nil of none.
func kept(m *metric.Metrics) *metric.Metrics {
	if m == nil {
		return nil
	}
	k := *m.Told()
	k.Missing = nil
	for name, why := range m.Missing {
		if k.Missing == nil {
			k.Missing = make(map[string]string, len(m.Missing))
		}
		k.Missing[clip.Runes(name, maxName)] = clip.Runes(why, maxText)
	}
	if m.Loss != nil {
		loss := *m.Loss
		loss.Files = nil
		k.Loss = &loss
	}
	return &k
}

// number is a metric with its name: 12 TS errors.
type number struct {
	name  string // for a table
	value float64
	// text says it in a sentence.
	text func(value string) string
	// better is 1 when more is better, -1 when less is, 0 when unknown.
	better int
	part   bool // in percent
}

func (n *number) String() string { return n.text(n.shown()) }

// minor tells that a sentence does not name it: how large the workspace is, and
// warnings that there are not.
func (n *number) minor() bool {
	return n.name == nameFiles || n.name == nameLines || n.name == nameWarnings && n.value == 0
}

// The names that are looked for.
const (
	nameFiles    = "Files"
	nameLines    = "Lines"
	nameWarnings = "Lint warnings"
)

// shown is the value alone.
func (n *number) shown() string {
	if n.part {
		return strconv.FormatFloat(rounded(n.value), 'f', -1, 64) + "%"
	}
	if n.value == float64(int64(n.value)) {
		return humanize.Comma(int64(n.value))
	}
	return strconv.FormatFloat(n.value, 'g', 6, 64)
}

// rounded has one decimal.
func rounded(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }

// numbers lists metrics in the order in which people see them.
func (s *Summary) numbers(m *metric.Metrics) []number {
	if m == nil {
		return nil
	}
	var list []number
	if m.Coverage != nil {
		list = append(list, number{"Coverage", *m.Coverage, func(v string) string { return v + " coverage" }, 1, true})
	}
	count := func(n *int, name, noun string, better int) {
		if n != nil {
			list = append(list, number{name, float64(*n), func(v string) string {
				if *n == 1 {
					return v + " " + noun
				}
				return v + " " + noun + "s"
			}, better, false})
		}
	}
	if m.TypeScriptErrors != nil {
		count(m.TypeScriptErrors, "TypeScript errors", "TS error", -1)
	} else {
		count(m.TypeErrors, "Type errors", "type error", -1)
	}
	count(m.LintErrors, "Lint errors", "lint error", -1)
	count(m.LintWarnings, nameWarnings, "lint warning", -1)
	count(m.Files, nameFiles, "file", 0)
	count(m.Lines, nameLines, "line", 0)
	for _, name := range slices.Sorted(maps.Keys(m.Custom)) {
		better := 0
		for _, c := range s.cfg.Metrics {
			if c.Name == name {
				better = map[string]int{loopconfig.BetterUp: 1, loopconfig.BetterDown: -1}[c.Better]
			}
		}
		shown := oneLine(name, maxName)
		list = append(list, number{shown, m.Custom[name], func(v string) string { return shown + " " + v }, better, false})
	}
	return list
}

// numbersText lists metrics in a line, without the size of the workspace.
func (s *Summary) numbersText(m *metric.Metrics) string {
	var parts []string
	for _, n := range s.numbers(m) {
		if !n.minor() {
			parts = append(parts, n.String())
		}
	}
	return strings.Join(parts, ", ")
}

// comparedText is numbersText with the changes since the baseline.
func (s *Summary) comparedText(m *metric.Metrics) string {
	before := make(map[string]number)
	if s.baseline != nil {
		for _, n := range s.numbers(s.baseline.metrics) {
			before[n.name] = n
		}
	}
	var parts []string
	for _, n := range s.numbers(m) {
		b, ok := before[n.name]
		if n.minor() && (!ok || b.minor()) {
			continue
		}
		text := n.String()
		if ok && b.shown() != n.shown() {
			text += fmt.Sprintf(" (%s before)", b.shown())
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// missing lists the metrics that were not taken, and why.
func missing(m *metric.Metrics) (list []fact) {
	if m == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.Missing)) {
		list = append(list, fact{oneLine(name, maxName), oneLine(m.Missing[name], maxText)})
	}
	return list
}

// metricRow is a metric in the table of the report.
type metricRow struct{ Name, Baseline, Last, Change string }

// metricRows compares the baseline with the iteration that was measured last.
func (s *Summary) metricRows() (rows []metricRow, missed []fact) {
	var base, last *metric.Metrics
	if s.baseline != nil {
		base = s.baseline.metrics
	}
	if p := s.judged(); p != nil {
		last = p.metrics
	}
	now := s.numbers(last)
	for _, b := range s.numbers(base) {
		row := metricRow{Name: b.name, Baseline: b.shown()}
		if i := slices.IndexFunc(now, func(n number) bool { return n.name == b.name }); i >= 0 {
			row.Last, row.Change = now[i].shown(), change(&b, &now[i])
			now = slices.Delete(now, i, i+1)
		}
		rows = append(rows, row)
	}
	for i := range now {
		rows = append(rows, metricRow{Name: now[i].name, Last: now[i].shown()})
	}
	if missed = missing(last); last == nil {
		missed = missing(base)
	}
	return rows, missed
}

// change says how a metric changed, and whether that is good.
func change(before, now *number) string {
	d := number{value: now.value - before.value}
	if before.part {
		d.value = rounded(now.value) - rounded(before.value)
	}
	if d.value == 0 || before.shown() == now.shown() {
		return ""
	}
	text := strconv.FormatFloat(d.value, 'g', 6, 64)
	if d.value > 0 {
		text = "+" + text
	}
	switch good := d.value * float64(now.better); {
	case good > 0:
		text += ", better"
	case good < 0:
		text += ", worse"
	}
	return text
}

// coverageChart draws the coverage of the last iteration of each column, next to
// the baseline's; nil without any.
func (s *Summary) coverageChart(list []column) *chart {
	c, a := plot(list, "Coverage", 110, 100, func(v float64) string { return fmt.Sprintf("%.0f %%", v) })
	var path strings.Builder
	pen := "M"
	for i := range list {
		p := list[i].last
		if p == nil || p.metrics == nil || p.metrics.Coverage == nil {
			pen = "M"
			continue
		}
		x, y := a.middle(i), a.y(min(max(*p.metrics.Coverage, 0), 100))
		fmt.Fprintf(&path, "%s%g %g", pen, x, y)
		pen = "L"
		if len(list) <= maxDots {
			class, title := "kept", fmt.Sprintf("%s: %.1f %%", list[i].name(), *p.metrics.Coverage)
			if l := p.metrics.Loss; l != nil && l.Lost > 0 {
				class, title = "regressed", title+fmt.Sprintf(", %s of the baseline lost", human.Count(int64(l.Lost), "line"))
			}
			c.Dots = append(c.Dots, dot{shape(class, x, y), class, title})
		}
	}
	if path.Len() == 0 {
		return nil
	}
	c.Lines = append(c.Lines, curve{path.String(), "quality"})
	if b := s.baseline; b != nil && b.metrics != nil && b.metrics.Coverage != nil {
		c.Grid = append(c.Grid, gridLine{Y: a.y(min(max(*b.metrics.Coverage, 0), 100)), Class: "threshold"})
		c.Legend = append(c.Legend, legend{"threshold", fmt.Sprintf("baseline %.1f %%", *b.metrics.Coverage)})
	}
	if slices.ContainsFunc(c.Dots, func(d dot) bool { return d.Class == "regressed" }) {
		c.Legend = append(c.Legend, legend{"regressed", "lines of the baseline lost their coverage"})
	}
	return c
}

// metricsOf are the measures of an iteration as the document has them.
func metricsOf(o *state.Outcome) metric.Metrics {
	var m metric.Metrics
	if o.Metrics != nil {
		m = *kept(o.Metrics)
	}
	m.Tests = nil
	if !o.Check.Weak && !o.Check.Skipped {
		m.Tests = new(o.Check.Counts.Tests)
	}
	return m
}

package loop

import (
	"fmt"
	"math"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/record"
)

// The drawings' measures in units of their view boxes.
const (
	chartWidth = 960.0
	leftRoom   = 56.0
	rightRoom  = 10.0
	topRoom    = 22.0
	bottomRoom = 22.0
	plotWidth  = chartWidth - leftRoom - rightRoom
	// maxColumns is how many columns are drawn: of more iterations several share
	// one.
	maxColumns = 160
	// maxDots is how many iterations are drawn with a dot each.
	maxDots = 60
)

// column is an iteration in the charts, or several that share a column.
type column struct {
	record.Column
	last   *point // the last one that is over
	cost   float64
	input  int64
	output int64
	times  state.Times
	timed  int // how many were measured
}

// mean is the mean of the qualities.
func (c *column) mean() float64 { return float64(c.Sum) / float64(c.Measured) }

// columns are the iterations that the charts show.
func (s *Summary) columns() []column {
	n := len(s.points)
	if n == 0 {
		return nil
	}
	each := (n + maxColumns - 1) / maxColumns
	list := make([]column, 0, (n+each-1)/each)
	for i := 0; i < n; i += each {
		list = append(list, columnOf(s.points[i:min(i+each, n)]))
	}
	return list
}

func columnOf(points []point) column {
	c := column{Column: sumOf(points)}
	for i := range points {
		p := &points[i]
		if !math.IsNaN(p.cost) {
			c.cost += p.cost
		}
		c.input, c.output = c.input+p.input, c.output+p.output
		if p.judged {
			c.last, c.timed = p, c.timed+1
			c.times = added(c.times, p.times)
		}
	}
	return c
}

func (c *column) name() string {
	if c.From == c.To {
		return fmt.Sprintf("iteration %d", c.From)
	}
	return fmt.Sprintf("iterations %d to %d", c.From, c.To)
}

type chart struct {
	Title, Label  string
	Width, Height float64
	Left, Right   float64
	Base          float64
	Grid          []gridLine
	Ticks         []tick
	Areas, Lines  []curve
	Bars          []rect
	Dots          []dot
	Notes         []note
	Legend        []legend
	Text          string // below
}

type (
	// gridLine is a horizontal line with its value.
	gridLine struct {
		Y            float64
		Label, Class string
	}
	// tick is a place on the axis below.
	tick struct {
		X     float64
		Label string
	}
	// curve is a path.
	curve struct{ Path, Class string }
	// rect is a part of a column.
	rect struct {
		X, Y, W, H   float64
		Class, Title string
	}
	// dot is a sign at a place; its shape is a path.
	dot struct{ Path, Class, Title string }
	// note is a word in a drawing.
	note struct {
		X, Y         float64
		Anchor, Text string
	}
	// legend says what a colour or sign stands for.
	legend struct{ Class, Text string }
)

// axes are where things are in a drawing.
type axes struct {
	n           int
	top, height float64
	most        float64
}

func (a *axes) step() float64           { return plotWidth / float64(a.n) }
func (a *axes) x(i int) float64         { return leftRoom + float64(i)*a.step() }
func (a *axes) middle(i int) float64    { return round(a.x(i) + a.step()/2) }
func (a *axes) y(value float64) float64 { return round(a.top + a.height*(1-value/a.most)) }

// plot begins a drawing with its grid and the numbers below.
func plot(list []column, title string, height, most float64, label func(float64) string) (*chart, *axes) {
	a := &axes{n: len(list), top: topRoom, height: height, most: most}
	c := &chart{Title: title, Width: chartWidth, Height: topRoom + height + bottomRoom, Left: leftRoom,
		Right: chartWidth - rightRoom, Base: topRoom + height}
	for _, part := range []float64{0, 0.5, 1} {
		c.Grid = append(c.Grid, gridLine{Y: a.y(most * part), Label: label(most * part)})
	}
	every := max(1, (len(list)+11)/12)
	for i := 0; i < len(list); i += every {
		c.Ticks = append(c.Ticks, tick{a.middle(i), humanize.Comma(int64(list[i].From))})
	}
	return c, a
}

// qualityChart draws the quality: a line with the best, regressions and what was
// reverted marked; of many iterations the range and the mean of each column.
// It is nil when nothing was measured.
func (s *Summary) qualityChart(list []column) *chart {
	c, a := plot(list, "Quality", 150, 100, func(v float64) string { return fmt.Sprintf("%.0f %%", v) })
	var path, upper strings.Builder
	var lower []string
	pen := "M"
	for i := range list {
		k := &list[i]
		if k.Measured == 0 {
			continue
		}
		fmt.Fprintf(&path, "%s%g %g", pen, a.middle(i), a.y(k.mean()))
		fmt.Fprintf(&upper, "%s%g %g", pen, a.middle(i), a.y(float64(k.Highest)))
		lower = append(lower, fmt.Sprintf("L%g %g", a.middle(i), a.y(float64(k.Lowest))))
		pen = "L"
	}
	if path.Len() == 0 {
		return nil
	}
	if len(list) < len(s.points) {
		for i := len(lower) - 1; i >= 0; i-- {
			upper.WriteString(lower[i])
		}
		c.Areas = append(c.Areas, curve{upper.String() + "Z", "range"})
		c.Text = fmt.Sprintf("A column is %s: the line is the mean, the area reaches from the lowest to the highest.",
			human.Count(int64(list[0].To-list[0].From+1), "iteration"))
	}
	c.Lines = append(c.Lines, curve{path.String(), "quality"})
	if t := s.cfg.QualityThreshold; t > 0 {
		c.Grid = append(c.Grid, gridLine{Y: a.y(float64(t)), Class: "threshold"})
		c.Legend = append(c.Legend, legend{"threshold", fmt.Sprintf("threshold %d %%", t)})
	}
	s.qualityDots(c, a, list)
	c.Label = fmt.Sprintf("The quality of %s, in percent", human.Count(int64(len(s.points)), "iteration"))
	if s.best != nil && s.Whole() {
		c.Label += fmt.Sprintf("; the best is iteration %d with %d %%", s.best.Iteration, *s.best.Quality)
	}
	return c
}

func (s *Summary) qualityDots(c *chart, a *axes, list []column) {
	seen := make(map[string]bool)
	for i := range list {
		k := &list[i]
		if k.Measured == 0 {
			continue
		}
		x, y, class := a.middle(i), a.y(k.mean()), "kept"
		switch {
		case k.Reverted > 0:
			class = "reverted"
		case k.Regressed > 0:
			class = "regressed"
		}
		if class != "kept" || len(list) <= maxDots {
			seen[class] = true
			c.Dots = append(c.Dots, dot{shape(class, x, y), class, k.title()})
		}
		if s.best != nil && s.Whole() && s.best.Iteration >= k.From && s.best.Iteration <= k.To {
			y := a.y(float64(*s.best.Quality))
			c.Dots = append(c.Dots, dot{circle(x, y, 7.5), "best",
				fmt.Sprintf("best: iteration %d, %d %%", s.best.Iteration, *s.best.Quality)})
			c.Notes = append(c.Notes, bestNote(x, y))
			c.Legend = append(c.Legend, legend{"best", "best"})
		}
	}
	for _, l := range []legend{{"regressed", "regression, kept"}, {"reverted", "reverted"}} {
		if seen[l.Class] {
			c.Legend = append(c.Legend, l)
		}
	}
}

// bestNote is the label next to the best iteration in the drawing.
func bestNote(x, y float64) note {
	n := note{X: round(x + 11), Y: round(y - 7), Anchor: "start", Text: "best"}
	if x > chartWidth-70 {
		n.X, n.Anchor = round(x-11), "end"
	}
	if y < topRoom+12 {
		n.Y = round(y - 9)
	}
	return n
}

func (c *column) title() string {
	text := fmt.Sprintf("%s: quality %d", c.name(), c.Lowest)
	if c.Lowest != c.Highest {
		text += fmt.Sprintf(" to %d", c.Highest)
	}
	text += " %"
	if c.Regressed > 0 {
		text += ", regression"
	}
	if c.Reverted > 0 {
		text += ", reverted"
	}
	return text
}

// shape is a sign: a circle for what was kept, a diamond for a regression, a
// cross for what was reverted.
func shape(class string, x, y float64) string {
	const r = 5.0
	switch class {
	case "regressed":
		return fmt.Sprintf("M%g %gL%g %gL%g %gL%g %gZ", x, round(y-r), round(x+r), y, x, round(y+r), round(x-r), y)
	case "reverted":
		return fmt.Sprintf("M%g %gL%g %gM%g %gL%g %g", round(x-r), round(y-r), round(x+r), round(y+r), round(x-r),
			round(y+r), round(x+r), round(y-r))
	}
	return circle(x, y, 3)
}

func circle(x, y, r float64) string {
	return fmt.Sprintf("M%g %ga%g %g 0 1 0 %g 0a%g %g 0 1 0 %g 0Z", round(x-r), y, r, r, 2*r, r, r, -2*r)
}

// part is a part of stacked columns.
type part struct {
	class, text string
	of          func(c *column) float64
}

// stacked draws columns of parts; nil when all are empty.
func stacked(list []column, title string, height float64, label func(float64) string, parts []part) *chart {
	most := 0.0
	for i := range list {
		sum := 0.0
		for _, p := range parts {
			sum += p.of(&list[i])
		}
		most = max(most, sum)
	}
	if most <= 0 {
		return nil
	}
	c, a := plot(list, title, height, niceTop(most), label)
	seen := make(map[string]bool)
	for i := range list {
		base := 0.0
		for _, p := range parts {
			v := p.of(&list[i])
			if v <= 0 {
				continue
			}
			seen[p.class] = true
			top, bottom := a.y(base+v), a.y(base)
			gap := min(a.step()*0.12, 3)
			width := round(max(min(a.step()-2*gap, 60), 0.8))
			if room := a.step() - width; room > 6 {
				gap = room / 2 // a narrow column stays in the middle of its place
			}
			c.Bars = append(c.Bars, rect{X: round(a.x(i) + gap), Y: top, W: width, H: round(max(bottom-top, 0.5)),
				Class: p.class, Title: fmt.Sprintf("%s: %s %s", list[i].name(), p.text, label(v))})
			base += v
		}
	}
	for _, p := range parts {
		if seen[p.class] {
			c.Legend = append(c.Legend, legend{p.class, p.text})
		}
	}
	return c
}

// niceTop is a round number at or above a value.
func niceTop(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if m*unit >= v*0.9999 {
			return m * unit
		}
	}
	return 10 * unit
}

// round keeps drawings small.
func round(v float64) float64 { return math.Round(v*10) / 10 }

func (s *Summary) charts() []*chart {
	list := s.columns()
	if len(list) == 0 {
		return nil
	}
	shared := len(list) < len(s.points)
	var all []*chart
	add := func(c *chart, label, text string) {
		if c == nil {
			return
		}
		if c.Label == "" {
			c.Label = label
		}
		if c.Text == "" && shared {
			c.Text = text
		}
		all = append(all, c)
	}
	tests := func(of func(p *point) int) func(c *column) float64 {
		return func(c *column) float64 {
			if c.last == nil || c.last.check.Weak {
				return 0
			}
			return float64(of(c.last))
		}
	}
	whole := func(v float64) string {
		if v != math.Trunc(v) {
			return ""
		}
		return humanize.Comma(int64(v))
	}
	add(s.qualityChart(list), "", "")
	add(stacked(list, "Tests", 110, whole, []part{
		{"passed", "passed", tests(func(p *point) int { return p.check.Counts.Passed })},
		{"failing", "failed", tests(func(p *point) int { return p.check.Counts.Failed })},
		{"skipped", "skipped", tests(func(p *point) int { return p.check.Counts.Skipped })},
	}), "Tests that passed, failed and were skipped, by iteration", "Each column is the last of its iterations.")
	add(s.coverageChart(list), "The share of lines that tests cover, in percent, by iteration",
		"Each place is the last of its iterations.")
	add(stacked(list, "Tokens", 90, func(v float64) string { return human.Compact(int64(v)) }, []part{
		{"input", "tokens in", func(c *column) float64 { return float64(c.input) }},
		{"output", "tokens out", func(c *column) float64 { return float64(c.output) }},
	}), "Tokens by iteration", "Each column is the sum of its iterations.")
	add(stacked(list, "Cost", 90, dollars, []part{{"cost", "cost", func(c *column) float64 { return c.cost }}}),
		"Cost by iteration", "Each column is the sum of its iterations.")
	mean := func(of func(t *state.Times) int64) func(c *column) float64 {
		return func(c *column) float64 { return float64(of(&c.times)) / 1000 / float64(max(c.timed, 1)) }
	}
	add(stacked(list, "Time", 110, human.Seconds, []part{
		{"agent", "agent", mean(func(t *state.Times) int64 { return t.Agent })},
		{"check", "check", mean(func(t *state.Times) int64 { return t.Check })},
		{"metrics", "metrics", mean(func(t *state.Times) int64 { return t.Metrics })},
		{"sealed", "clean copies", mean(func(t *state.Times) int64 { return t.CleanCopy })},
		{"mutations", "mutations", mean(func(t *state.Times) int64 { return t.Mutations })},
		{"snapshot", "snapshots", mean(func(t *state.Times) int64 { return t.Snapshot })},
		{"hooks", "hooks", mean(func(t *state.Times) int64 { return t.Hooks })},
		{"engine", "engine", mean(func(t *state.Times) int64 { return t.Engine })},
	}), "What each iteration took", "Each column is the mean of its iterations.")
	add(overheadChart(list), "What perdure adds to the time of agent and check, by iteration",
		"Each column is that of all its iterations together.")
	return all
}

// overheadBudget is the share of time that the layer may add, in percent.
const overheadBudget = 10

func overheadChart(list []column) *chart {
	share := func(of func(t *state.Times) int64) func(c *column) float64 {
		return func(c *column) float64 {
			work := c.times.Agent + c.times.Check + c.times.Metrics
			if work <= 0 {
				return 0
			}
			return 100 * float64(of(&c.times)) / float64(work)
		}
	}
	c := stacked(list, "Overhead, in percent of the time of agent and check", 60,
		func(v float64) string { return fmt.Sprintf("%.3g %%", v) }, []part{
			{"snapshot", "snapshots", share(func(t *state.Times) int64 { return t.Snapshot })},
			{"hooks", "hooks", share(func(t *state.Times) int64 { return t.Hooks })},
			{"engine", "engine", share(func(t *state.Times) int64 { return t.Engine })},
		})
	if c == nil {
		return nil
	}
	top := 0.0
	for i := range list {
		v, _ := overhead(list[i].times)
		top = max(top, v)
	}
	if most := niceTop(top); most >= overheadBudget {
		c.Grid = append(c.Grid, gridLine{Y: round(topRoom + 60*(1-overheadBudget/most)), Class: "threshold"})
		c.Legend = append(c.Legend, legend{"threshold", fmt.Sprintf("%d %%", overheadBudget)})
	}
	return c
}

// dollars writes an amount on an axis.
func dollars(v float64) string { return fmt.Sprintf("$%.3g", v) }

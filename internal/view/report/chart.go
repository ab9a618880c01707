package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
)

// The drawings' measures in units of their view boxes.
const (
	chartWidth  = 960.0
	chartHeight = 130.0
	marksHeight = 46.0
	leftRoom    = 44.0
	rightRoom   = 8.0
	// drawingWidth is the part of a chart between its margins.
	drawingWidth = chartWidth - leftRoom - rightRoom

	ganttRow   = 18.0
	ganttLabel = 250.0
	// ganttRows bounds the rows of a Gantt chart.
	ganttRows = 60
)

// chart is the timeline: an area of what was under way, and below it the tasks
// that ended.
type chart struct {
	Of            string
	Width, Height float64
	Base          float64 // of the area
	Area          string  // a path
	Grid          []gridLine
	Ticks         []tick
	Bars          []bar
	Most          string
	MostEnded     int64
	EndedBase     float64
	Failed        bool
}

type gridLine struct {
	Y     float64
	Label string
}

type tick struct {
	X     float64
	Label string
}

type bar struct {
	X, Y, W, H float64
	Class      string
	Title      string
}

// newChart draws a timeline; nil when nothing ran.
func newChart(t *client.ReportTimeline) *chart {
	n := len(t.Steps)
	if n == 0 {
		return nil
	}
	c := &chart{Of: t.Of, Width: chartWidth, Base: chartHeight + 14, EndedBase: chartHeight + 22 + marksHeight}
	c.Height = c.EndedBase + 22
	most, mostEnded := 0.0, int64(0)
	for _, s := range t.Steps {
		most, mostEnded = max(most, s.Running), max(mostEnded, s.Completed+s.Failed)
	}
	top := niceTop(most)
	step := drawingWidth / float64(n)
	y := func(v float64) float64 { return round(c.Base - v/top*chartHeight) }
	var path strings.Builder
	fmt.Fprintf(&path, "M%g %g", leftRoom, c.Base)
	for i, s := range t.Steps {
		x := leftRoom + float64(i)*step
		fmt.Fprintf(&path, "L%g %gL%g %g", round(x), y(s.Running), round(x+step), y(s.Running))
		c.ended(&s, x, step, mostEnded)
	}
	fmt.Fprintf(&path, "L%g %gZ", round(leftRoom+drawingWidth), c.Base)
	c.Area, c.Most, c.MostEnded = path.String(), trim(most), mostEnded
	for _, part := range []float64{0.5, 1} {
		c.Grid = append(c.Grid, gridLine{y(top * part), trim(top * part)})
	}
	c.Ticks = ticks(t.StepSeconds*float64(n), leftRoom, drawingWidth)
	return c
}

// ended adds the columns of a step.
func (c *chart) ended(s *client.ReportStep, x, step float64, most int64) {
	if most == 0 {
		return
	}
	base := c.EndedBase
	for _, part := range []struct {
		n     int64
		class string
	}{{s.Completed, "completed"}, {s.Failed, "failed"}} {
		if part.n == 0 {
			continue
		}
		h := max(float64(part.n)/float64(most)*marksHeight, 1.5)
		base -= h
		c.Bars = append(c.Bars, bar{X: round(x + step*0.08), Y: round(base), W: round(max(step*0.84, 1)), H: round(h),
			Class: part.class,
			Title: fmt.Sprintf("%s %s", human.Count(part.n, "task"), part.class)})
		c.Failed = c.Failed || part.class == "failed"
	}
}

// niceTop is a round number at or above a value.
func niceTop(v float64) float64 {
	if v <= 1 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 4, 5, 8, 10} {
		if m*unit >= v {
			return m * unit
		}
	}
	return 10 * unit
}

// ticks divides a time into a few round parts.
func ticks(seconds, from, width float64) []tick {
	steps := []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
		1800,
		3600, 7200, 14_400, 21_600, 43_200, 86_400, 172_800, 604_800}
	each := seconds
	for _, s := range steps {
		if seconds/s <= 8 {
			each = s
			break
		}
	}
	var all []tick
	for i := 0; float64(i)*each <= seconds*1.0001 && each > 0; i++ {
		at := float64(i) * each
		label := "0"
		if i > 0 {
			label = clock(at)
		}
		all = append(all, tick{round(from + at/seconds*width), label})
	}
	return all
}

// clock writes a place on an axis of time.
func clock(s float64) string {
	switch {
	case s < 1:
		return fmt.Sprintf("%gms", round(s*1000))
	case s < 60:
		return fmt.Sprintf("%gs", round(s))
	case s < 3600:
		return strings.TrimSuffix(fmt.Sprintf("%dm %02ds", int(s)/60, int(s)%60), " 00s")
	}
	return strings.TrimSuffix(fmt.Sprintf("%dh %02dm", int(s)/3600, int(s)/60%60), " 00m")
}

// round keeps drawings small.
func round(v float64) float64 { return math.Round(v*10) / 10 }

func trim(v float64) string { return fmt.Sprintf("%g", round(v)) }

// gantt shows when the rows of the outline ran.
type gantt struct {
	Width, Height, Left float64
	Rows                []ganttLine
	Ticks               []tick
	Bottom              float64
	More                int
}

type ganttLine struct {
	Top        float64
	Y, TextY   float64
	X, W       float64
	Class      string
	Label      string
	Title      string
	Indent     float64
	Background bool
}

// newGantt draws the rows that began; nil when there are fewer than two.
func newGantt(outline []client.ReportRow, now time.Time) *gantt {
	var rows []*client.ReportRow
	var start, end time.Time
	for i := range outline {
		r := &outline[i]
		if r.StartedAt == nil {
			continue
		}
		rows = append(rows, r)
		if start.IsZero() || r.StartedAt.Before(start) {
			start = *r.StartedAt
		}
		if e := endOf(r, now); e.After(end) {
			end = e
		}
	}
	if len(rows) < 2 || !end.After(start) {
		return nil
	}
	g := &gantt{Width: chartWidth, Left: ganttLabel, More: max(0, len(rows)-ganttRows)}
	rows = rows[:min(len(rows), ganttRows)]
	whole := end.Sub(start).Seconds()
	width := chartWidth - ganttLabel - rightRoom
	at := func(t time.Time) float64 { return round(ganttLabel + t.Sub(start).Seconds()/whole*width) }
	for i, r := range rows {
		from, to := at(*r.StartedAt), at(endOf(r, now))
		line := ganttLine{Top: float64(i) * ganttRow, Y: float64(i)*ganttRow + 3, TextY: float64(i)*ganttRow + 13, X: from,
			W:     max(round(to-from), 1.5),
			Class: string(r.State), Indent: 10 * float64(min(r.Level, 8)), Background: i%2 == 1,
			Title: fmt.Sprintf("%s %s, %s", r.Task, r.State, human.Duration(endOf(r, now).Sub(*r.StartedAt)))}
		line.Label = clip.Runes(rowText(r), 44-2*min(r.Level, 8))
		if r.Folded > 0 || r.Below > 0 {
			line.Class = strings.TrimSpace(line.Class + " folded")
		}
		g.Rows = append(g.Rows, line)
	}
	g.Bottom = float64(len(rows)) * ganttRow
	g.Height = g.Bottom + 20
	g.Ticks = ticks(whole, ganttLabel, width)
	return g
}

func endOf(r *client.ReportRow, now time.Time) time.Time {
	if r.CompletedAt == nil || r.Folded > 0 && !r.State.Terminal() {
		return now
	}
	return *r.CompletedAt
}

package loop

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
)

//go:embed page.html
var pageText string

// diffLine is a line of a diff with the class of its style.
type diffLine struct{ Class, Text string }

// diffLines splits a diff into lines.
func diffLines(text string) (list []diffLine) {
	for line := range strings.Lines(text) {
		class := ""
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
			class = "file"
		case strings.HasPrefix(line, "@@"):
			class = "hunk"
		case strings.HasPrefix(line, "+"):
			class = "plus"
		case strings.HasPrefix(line, "-"):
			class = "minus"
		}
		list = append(list, diffLine{class, human.Visible(strings.TrimRight(line, "\r\n"))})
	}
	return list
}

// html writes the report as one page: no scripts, no requests, light and dark,
// and fit for paper. html/template escapes what others wrote.
func (s *Summary) html(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{"mark": mark, "visible": human.Visible, "left": isLeft,
		"diff": diffLines}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := t.Execute(w, s.page()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

type page struct {
	ID, Status     string
	Cards          []fact
	Facts          []fact
	Task           string
	Selected       string
	Versus         []versus
	Metrics        []metricRow
	Missed         []fact
	Charts         []*chart
	Iterations     *iterationTable
	Events         []eventRow
	MoreEvents     int
	Signs          []string
	Gates          []gateRow
	MoreGates      int
	Follows        []followed
	MoreFollows    int
	Diffs          []diffRow
	Failing        []string
	Check, Failure string
	Agent          string
}

func (s *Summary) page() *page {
	p := &page{ID: s.ID(), Status: s.Status(), Facts: s.facts(), Task: clip.Runes(s.cfg.Task, maxReportTask),
		Selected: oneLine(s.standing.SelectedReason, maxText),
		Versus:   s.versus(), Charts: s.charts()}
	p.Metrics, p.Missed = s.metricRows()
	p.Iterations = s.iterationTable()
	p.Events, p.MoreEvents = s.eventRows()
	p.Signs = s.signLines()
	p.Gates, p.MoreGates = s.gateRows()
	p.Follows, p.MoreFollows = s.follows()
	p.Diffs = s.diffRows()
	p.Agent, p.Failure, p.Check, p.Failing = s.words()
	best, last := "-", "-"
	if s.best != nil && s.Whole() {
		best = percent(*s.best.Quality)
	}
	if j := s.judged(); j != nil && j.quality != unmeasured {
		last = quality(j)
	}
	p.Cards = []fact{{"iterations", humanize.Comma(int64(s.in.Loop.Iteration))}, {"last quality", last},
		{"best quality", best},
		{"regressions", humanize.Comma(int64(s.sum.Total()))}, {"took", human.Duration(s.elapsed())}}
	if !s.in.Loop.Status.Ended() {
		p.Cards[4].Name = "so far"
	}
	if u, known := s.usage(); known {
		name, cost := status.CostCard(u)
		p.Cards = append(p.Cards, fact{"tokens", human.Compact(u.InputTokens + u.OutputTokens)}, fact{name, cost})
	}
	return p
}

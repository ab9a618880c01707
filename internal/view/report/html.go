package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/internal/view/turns"
)

//go:embed page.html
var pageText string

// HTML writes the document as one page: no scripts, no requests, light and dark,
// and fit for paper. html/template escapes what others wrote.
func (d *Document) HTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"mark": status.Mark, "ms": milliseconds, "cost": status.Cost, "comma": humanize.Comma,
		"visible": human.Visible, "line": human.OneLine, "number": func(i int) int { return i + 1 },
		"count": human.Count[int64], "highlight": turns.Highlight,
		"place": linesOf, "figures": turns.Figures, "facts": turns.Facts,
		"output": turns.Output,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := t.Execute(w, d.page()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

type page struct {
	Title, State string
	Cards        []fact
	Facts        []fact
	Answer       string
	HasAnswer    bool
	Failure      string
	Missing      int64
	Timeline     *chart
	Gantt        *gantt
	Depths       []depthRow
	Models       []modelRow
	FailuresMore int64
	Rows         []treeRow
	Parts        []answerPart
	Citations    []client.Citation
	MoreCited    int64
	*Document
}

type depthRow struct {
	client.ReportDepth
	Share float64 // of the cost, or of the time when nothing was paid, in percent
}

type modelRow struct {
	client.ReportModel
	MeanMS, Share float64
}

type treeRow struct {
	Row     client.ReportRow
	Text    string
	Below   string
	Figures string
	Class   string
	Indent  float64 // in em
}

func (d *Document) page() *page {
	s := &d.Status
	p := &page{
		Title: "Report of " + human.OneLine(d.name()), State: d.state(), Facts: d.facts(), Failure: d.failure(),
		Timeline: newChart(&d.Data.Timeline), Gantt: newGantt(d.Data.Outline, d.Data.At),
		FailuresMore: d.Data.FailuresTotal - int64(len(d.Data.Failures)), Document: d,
	}
	p.Answer, p.HasAnswer = d.answer()
	p.Parts = d.answerParts(p.Answer)
	if d.Result != nil {
		p.Missing = d.Result.MissingTotal
		p.Citations, p.MoreCited = d.citations()
	}
	took := fact{"took", status.Took(&s.Progress)}
	if !s.State.Terminal() {
		took.Name = "so far"
	}
	var cost fact
	cost.Name, cost.Value = status.CostCard(s.Usage)
	p.Cards = []fact{
		{"tasks", humanize.Comma(s.Total)}, {"failed", humanize.Comma(s.Failed)}, took,
		{"calls", humanize.Comma(s.Usage.Calls)},
		{"tokens", human.Compact(s.Usage.InputTokens + s.Usage.OutputTokens)}, cost,
	}
	d.tables(p)
	for _, r := range d.Data.Outline {
		row := treeRow{Row: r, Text: rowText(&r), Below: belowText(&r), Figures: status.Figures(r.ActiveMS, r.Usage, ", "),
			Class: string(status.OfRow(&r.OutlineRow)), Indent: 1.4 * float64(r.Level)}
		if r.Folded > 0 {
			row.Class = strings.TrimSpace(row.Class + " folded")
		}
		p.Rows = append(p.Rows, row)
	}
	return p
}

func (d *Document) tables(p *page) {
	var paid, ran float64
	for i := range d.Data.Depths {
		paid, ran = paid+d.Data.Depths[i].Usage.CostUSD, ran+d.Data.Depths[i].ActiveMS
	}
	share := func(cost, ms float64) float64 {
		switch {
		case paid > 0:
			return 100 * cost / paid
		case ran > 0:
			return 100 * ms / ran
		}
		return 0
	}
	for _, l := range d.Data.Depths {
		p.Depths = append(p.Depths, depthRow{l, share(l.Usage.CostUSD, l.ActiveMS)})
	}
	ran = 0
	for i := range d.Data.Models {
		ran += d.Data.Models[i].BusyMS
	}
	for _, l := range d.Data.Models {
		p.Models = append(p.Models, modelRow{l, mean(&l), share(l.Usage.CostUSD, l.BusyMS)})
	}
}

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/model"
)

// Markdown writes the document as Markdown with tables (GitHub's). What others
// wrote is either in a code block that it cannot end, or escaped so that it
// stays text.
func (d *Document) Markdown(w io.Writer) error {
	m := &human.MarkdownText{}
	m.Line("# Report of %s", human.Markdown(d.name()))
	m.Line("")
	if d.Tree.Name != "" {
		m.Line("Tree `%s`.", d.Tree.ID)
		m.Line("")
	}
	human.MarkdownTable(m, []string{"", ""}, "l", d.facts(), func(f *fact) []string {
		return []string{f.Name, human.Markdown(f.Value)}
	})
	m.Section("Prompt")
	m.Block("", d.Prompt)
	d.markdownAnswer(m)
	d.markdownFailures(m)
	d.markdownTurns(m)
	timeline(m, &d.Data.Timeline)
	d.markdownCost(m)
	if len(d.Data.Slowest) > 0 {
		m.Section("Slowest tasks")
		human.MarkdownTable(m, []string{"Task", "Ran", "Cost", "Prompt"}, "lrrl", d.Data.Slowest,
			func(r *client.OutlineRow) []string {
				return []string{r.Task.String(), milliseconds(r.ActiveMS), status.Cost(r.Usage), human.Markdown(r.Label)}
			})
	}
	m.Section("Tree")
	var tree strings.Builder
	for i := range d.Data.Outline {
		r := &d.Data.Outline[i]
		mark := status.Mark(status.OfRow(&r.OutlineRow))
		fmt.Fprintf(&tree, "%s%s %s  %s", strings.Repeat("  ", r.Level), mark, r.Task, rowText(r))
		if b := belowText(r); b != "" {
			tree.WriteString(", " + b)
		}
		if f := status.Figures(r.ActiveMS, r.Usage, ", "); f != "" {
			tree.WriteString("  (" + f + ")")
		}
		tree.WriteString("\n")
	}
	m.Block("", tree.String())
	m.Line("")
	m.Line("✓ completed, ◐ partial, ↷ skipped, ● running, ◌ waiting, ○ queued, ✗ failed, ⊘ cancelled. " +
		"Long runs of siblings are folded.")
	d.markdownCitations(m)
	_, err := io.WriteString(w, m.String())
	return err
}

func (d *Document) markdownAnswer(m *human.MarkdownText) {
	if answer, ok := d.answer(); ok {
		m.Section("Answer")
		m.Block("", answer)
		d.markdownSources(m, answer)
		return
	}
	if why := d.failure(); why != "" {
		m.Section("Why it failed")
		m.Block("", why)
	}
}

// markdownTurns writes the code of a REPL, what it printed, and what else it did.
func (d *Document) markdownTurns(m *human.MarkdownText) {
	for i := range d.Turns {
		t := &d.Turns[i]
		m.Section(fmt.Sprintf("Turn %d", t.Turn))
		m.Line("%s", human.Markdown(turns.Figures(t)))
		m.Line("")
		if len(t.Blocks) == 0 {
			m.Block("", t.Reply)
		}
		for k := range t.Blocks {
			b := &t.Blocks[k]
			m.Code("python", b.Code) // Starlark, too, is highlighted as Python
			m.Line("")
			if b.Output != "" {
				m.Block("", turns.Output(b))
				m.Line("")
			}
			m.Line("%s", human.Markdown(turns.Facts(b)))
			m.Line("")
		}
	}
}

func (d *Document) markdownFailures(m *human.MarkdownText) {
	s := &d.Data
	if s.FailuresTotal == 0 && (d.Result == nil || d.Result.MissingTotal == 0) {
		return
	}
	m.Section("Failures")
	if d.Result != nil && d.Result.MissingTotal > 0 {
		m.Line("%s missing in the answer.", human.Count(d.Result.MissingTotal, "part"))
		m.Line("")
	}
	if s.FailuresTotal == 0 {
		return
	}
	var kinds []string
	for _, k := range s.ErrorKinds {
		kinds = append(kinds, fmt.Sprintf("%s %s", humanize.Comma(k.Tasks), human.Markdown(k.Kind)))
	}
	m.Line("%s failed: %s.", human.Count(s.FailuresTotal, "task"), strings.Join(kinds, ", "))
	m.Line("")
	human.MarkdownTable(m, []string{"Task", "Attempts", "Error", "Prompt"}, "lrll", s.Failures,
		func(r *client.OutlineRow) []string {
			return []string{r.Task.String(), fmt.Sprint(r.Attempts), human.Markdown(errorText(r)), human.Markdown(r.Label)}
		})
	more(m, s.FailuresTotal-int64(len(s.Failures)), "task")
}

func errorText(r *client.OutlineRow) string {
	if r.Error == nil {
		return ""
	}
	return human.OneLine(r.Error.Kind + ": " + r.Error.Message)
}

func (d *Document) markdownCost(m *human.MarkdownText) {
	m.Section("Cost by depth")
	human.MarkdownTable(m, []string{"Depth", "Tasks", "Failed", "Ran", "Calls", "Tokens in", "Tokens out", "Cost"},
		"rrrrrrrr", d.Data.Depths, func(l *client.ReportDepth) []string {
			return []string{fmt.Sprint(l.Depth), humanize.Comma(l.Total), humanize.Comma(l.Failed),
				milliseconds(l.ActiveMS), humanize.Comma(l.Usage.Calls), humanize.Comma(l.Usage.InputTokens),
				humanize.Comma(l.Usage.OutputTokens), status.Cost(l.Usage)}
		})
	if len(d.Data.Models) == 0 {
		return
	}
	m.Section("Cost by model")
	human.MarkdownTable(m, []string{"Model", "Calls", "Failed", "Retries", "Tokens in", "Tokens out", "Mean",
		"Longest", "Cost"}, "lrrrrrrrr", d.Data.Models, func(l *client.ReportModel) []string {
		return []string{human.Markdown(l.Model), humanize.Comma(l.Usage.Calls), humanize.Comma(l.Failed),
			humanize.Comma(l.Retries), humanize.Comma(l.Usage.InputTokens), humanize.Comma(l.Usage.OutputTokens),
			milliseconds(mean(l)), milliseconds(l.MaxMS), status.Cost(l.Usage)}
	})
	more(m, int64(d.Data.MoreModels), "model")
}

// mean is the mean time of a call that ended.
func mean(l *client.ReportModel) float64 {
	ended := l.Usage.Calls - l.Open
	if ended <= 0 {
		return 0
	}
	return l.BusyMS / float64(ended)
}

func (d *Document) markdownCitations(m *human.MarkdownText) {
	if d.Result == nil || len(d.Result.Citations) == 0 {
		return
	}
	m.Section("Citations")
	shown, hidden := d.citations()
	for i, c := range shown {
		anchor := ""
		if c.Kind == model.CitedQuote {
			anchor = fmt.Sprintf(`<a id="citation-%d"></a>`, i+1)
		}
		m.Line("%d. %s%s, %s%s", i+1, anchor, human.Markdown(c.File), linesOf(c), readMark(c))
		if c.Kind == model.CitedRead {
			continue
		}
		m.Line("")
		m.Block("   ", c.Text)
		m.Line("")
	}
	more(m, hidden, "citation")
}

// more writes how many entries are not shown.
func more(m *human.MarkdownText, n int64, noun string) {
	if n > 0 {
		m.Line("\n… and %s more.", human.Count(n, noun))
	}
}

// timeline draws what went on as lines of blocks.
func timeline(m *human.MarkdownText, t *client.ReportTimeline) {
	if len(t.Steps) == 0 {
		return
	}
	m.Section("Timeline")
	var running, completed, failed []float64
	for _, s := range t.Steps {
		running, completed = append(running, s.Running), append(completed, float64(s.Completed))
		failed = append(failed, float64(s.Failed))
	}
	m.Line("From %s, one column is %s.", human.Stamp(t.Start), human.Seconds(t.StepSeconds))
	m.Line("")
	lines := fmt.Sprintf("%-16s %s  maximum %.1f", t.Of+" in flight", spark(running), slices.Max(running))
	lines += fmt.Sprintf("\n%-16s %s  at most %d", "tasks completed", spark(completed), int64(slices.Max(completed)))
	if slices.Max(failed) > 0 {
		lines += fmt.Sprintf("\n%-16s %s  at most %d", "tasks failed", spark(failed), int64(slices.Max(failed)))
	}
	m.Block("", lines)
}

// spark draws values as blocks of eight heights.
func spark(values []float64) string {
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	most := slices.Max(values)
	var b strings.Builder
	for _, v := range values {
		if v <= 0 || most <= 0 {
			b.WriteRune(blocks[0])
			continue
		}
		b.WriteRune(blocks[1+min(int(v/most*8), 7)])
	}
	return b.String()
}

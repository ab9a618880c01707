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
)

// Markdown writes the document as Markdown with tables (GitHub's). What others
// wrote is either in a code block that it cannot end, or escaped so that it
// stays text.
func (d *Document) Markdown(w io.Writer) error {
	m := &markdown{}
	m.line("# Report of %s", human.Markdown(d.name()))
	m.line("")
	if d.Tree.Name != "" {
		m.line("Tree `%s`.", d.Tree.ID)
		m.line("")
	}
	human.MarkdownTable(m.line, []string{"", ""}, "l", func(row func(cells ...string)) {
		for _, f := range d.facts() {
			row(f.Name, human.Markdown(f.Value))
		}
	})
	m.section("Prompt")
	m.block(d.Prompt)
	d.markdownAnswer(m)
	d.markdownFailures(m)
	m.timeline(&d.Data.Timeline)
	d.markdownCost(m)
	if len(d.Data.Slowest) > 0 {
		m.section("Slowest tasks")
		human.MarkdownTable(m.line, []string{"Task", "Ran", "Cost", "Prompt"}, "lrrl", func(row func(cells ...string)) {
			for i := range d.Data.Slowest {
				r := &d.Data.Slowest[i]
				row(r.Task.String(), milliseconds(r.ActiveMS), status.Cost(r.Usage), human.Markdown(r.Label))
			}
		})
	}
	m.section("Tree")
	var tree strings.Builder
	for i := range d.Data.Outline {
		r := &d.Data.Outline[i]
		fmt.Fprintf(&tree, "%s%s %s  %s", strings.Repeat("  ", r.Level), status.Mark(r.State), r.Task, rowText(r))
		if b := belowText(r); b != "" {
			tree.WriteString(", " + b)
		}
		if f := figures(r.ActiveMS, r.Usage); f != "" {
			tree.WriteString("  (" + f + ")")
		}
		tree.WriteString("\n")
	}
	m.block(tree.String())
	m.line("")
	m.line("✓ completed, ● running, ◌ waiting, ○ queued, ✗ failed, ⊘ cancelled. Long runs of siblings are folded.")
	d.markdownCitations(m)
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (d *Document) markdownAnswer(m *markdown) {
	if answer, ok := d.answer(); ok {
		m.section("Answer")
		m.block(answer)
		return
	}
	if why := d.failure(); why != "" {
		m.section("Why it failed")
		m.block(why)
	}
}

func (d *Document) markdownFailures(m *markdown) {
	s := &d.Data
	if s.FailuresTotal == 0 && (d.Result == nil || d.Result.MissingTotal == 0) {
		return
	}
	m.section("Failures")
	if d.Result != nil && d.Result.MissingTotal > 0 {
		m.line("%s missing in the answer.", human.Count(d.Result.MissingTotal, "part"))
		m.line("")
	}
	if s.FailuresTotal == 0 {
		return
	}
	var kinds []string
	for _, k := range s.ErrorKinds {
		kinds = append(kinds, fmt.Sprintf("%s %s", humanize.Comma(k.Tasks), human.Markdown(k.Kind)))
	}
	m.line("%s failed: %s.", human.Count(s.FailuresTotal, "task"), strings.Join(kinds, ", "))
	m.line("")
	human.MarkdownTable(m.line, []string{"Task", "Attempts", "Error", "Prompt"}, "lrll", func(row func(cells ...string)) {
		for i := range s.Failures {
			r := &s.Failures[i]
			row(r.Task.String(), fmt.Sprint(r.Attempts), human.Markdown(errorText(r)), human.Markdown(r.Label))
		}
	})
	m.more(s.FailuresTotal-int64(len(s.Failures)), "task")
}

func errorText(r *client.OutlineRow) string {
	if r.Error == nil {
		return ""
	}
	return human.OneLine(r.Error.Kind + ": " + r.Error.Message)
}

func (d *Document) markdownCost(m *markdown) {
	m.section("Cost by depth")
	human.MarkdownTable(m.line, []string{"Depth", "Tasks", "Failed", "Ran", "Calls", "Tokens in", "Tokens out", "Cost"},
		"rrrrrrrr", func(row func(cells ...string)) {
			for i := range d.Data.Depths {
				l := &d.Data.Depths[i]
				row(fmt.Sprint(l.Depth), humanize.Comma(l.Total), humanize.Comma(l.Failed), milliseconds(l.ActiveMS),
					humanize.Comma(l.Usage.Calls), humanize.Comma(l.Usage.InputTokens), humanize.Comma(l.Usage.OutputTokens),
					status.Cost(l.Usage))
			}
		})
	if len(d.Data.Models) == 0 {
		return
	}
	m.section("Cost by model")
	human.MarkdownTable(m.line, []string{"Model", "Calls", "Failed", "Retries", "Tokens in", "Tokens out", "Mean",
		"Longest", "Cost"}, "lrrrrrrrr",
		func(row func(cells ...string)) {
			for i := range d.Data.Models {
				l := &d.Data.Models[i]
				row(human.Markdown(l.Model), humanize.Comma(l.Usage.Calls), humanize.Comma(l.Failed), humanize.Comma(l.Retries),
					humanize.Comma(l.Usage.InputTokens), humanize.Comma(l.Usage.OutputTokens), milliseconds(mean(l)),
					milliseconds(l.MaxMS),
					status.Cost(l.Usage))
			}
		})
	m.more(int64(d.Data.MoreModels), "model")
}

// mean is the mean time of a call that ended.
func mean(l *client.ReportModel) float64 {
	ended := l.Usage.Calls - l.Open
	if ended <= 0 {
		return 0
	}
	return l.BusyMS / float64(ended)
}

func (d *Document) markdownCitations(m *markdown) {
	if d.Result == nil || len(d.Result.Citations) == 0 {
		return
	}
	m.section("Citations")
	for i, c := range d.Result.Citations {
		m.line("%d. %s, lines %d to %d", i+1, human.Markdown(c.File), c.StartLine, c.EndLine)
		m.line("")
		m.indented(c.Text)
	}
}

// markdown is a text on its way.
type markdown struct{ b strings.Builder }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *markdown) section(title string) { m.line("\n## %s\n", title) }

func (m *markdown) more(n int64, noun string) {
	if n > 0 {
		m.line("\n… and %s more.", human.Count(n, noun))
	}
}

// block writes a text in a fence that is longer than any in it.
func (m *markdown) block(s string) { m.fenced("", s) }

// indented is block as a part of a list.
func (m *markdown) indented(s string) {
	m.fenced("   ", s)
	m.line("")
}

func (m *markdown) fenced(indent, s string) {
	s = strings.TrimRight(human.Visible(s), "\n")
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	m.line("%s%s", indent, fence+"text")
	for _, one := range strings.Split(s, "\n") {
		m.line("%s%s", indent, one)
	}
	m.line("%s%s", indent, fence)
}

// timeline draws what went on as lines of blocks.
func (m *markdown) timeline(t *client.ReportTimeline) {
	if len(t.Steps) == 0 {
		return
	}
	m.section("Timeline")
	running, completed, failed := make([]float64, 0, len(t.Steps)), make([]float64, 0, len(t.Steps)), make([]float64, 0,
		len(t.Steps))
	var failures int64
	for _, s := range t.Steps {
		running, completed, failed = append(running, s.Running), append(completed, float64(s.Completed)), append(failed,
			float64(s.Failed))
		failures += s.Failed
	}
	m.line("From %s, one column for %s.", human.Stamp(t.Start), human.Seconds(t.StepSeconds))
	m.line("")
	lines := fmt.Sprintf("%-16s %s  at most %.1f", t.Of+" under way", spark(running), slices.Max(running))
	lines += fmt.Sprintf("\n%-16s %s  at most %d", "tasks completed", spark(completed), int64(slices.Max(completed)))
	if failures > 0 {
		lines += fmt.Sprintf("\n%-16s %s  at most %d", "tasks failed", spark(failed), int64(slices.Max(failed)))
	}
	m.block(lines)
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

package loop

import (
	"fmt"
	"io"
	"strings"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
)

// markdown writes the report as Markdown with tables (GitHub's). What others
// wrote is either in a code block that it cannot end, or escaped so that it
// stays text.
func (s *Summary) markdown(w io.Writer) error {
	m := &human.MarkdownText{}
	m.Line("# Report of %s", human.Markdown(s.ID()))
	m.Line("")
	human.MarkdownTable(m, []string{"", ""}, "l", s.facts(), func(f *fact) []string {
		return []string{f.Name, human.Markdown(f.Value)}
	})
	m.Section("Task")
	m.Block("", clip.Runes(s.cfg.Task, maxReportTask))
	s.markdownBest(m)
	s.markdownQuality(m)
	s.markdownMetrics(m)
	s.markdownIterations(m)
	s.markdownEvents(m)
	s.markdownDiffs(m)
	agent, failure, check, failing := s.words()
	for _, part := range []fact{{"Failing now", strings.Join(failing, "\n")}, {"End of the check output", check},
		{"Error of the agent's last turn", failure}, {"Last message of the agent", agent}} {
		if part.Value != "" {
			m.Section(part.Name)
			m.Block("", part.Value)
		}
	}
	_, err := io.WriteString(w, m.String())
	return err
}

func (s *Summary) markdownBest(m *human.MarkdownText) {
	list := s.versus()
	if list == nil && s.standing.SelectedReason == "" {
		return
	}
	m.Section("Best and final")
	if why := s.standing.SelectedReason; why != "" {
		m.Line("%s.", human.Markdown(oneLine(why, maxText)))
		m.Line("")
	}
	if list == nil {
		return
	}
	human.MarkdownTable(m, []string{"", "Best", "Final"}, "lll", list, func(v *versus) []string {
		return []string{v.Name, human.Markdown(v.Best), human.Markdown(v.Final)}
	})
}

func (s *Summary) markdownQuality(m *human.MarkdownText) {
	if len(s.points) == 0 {
		return
	}
	var b strings.Builder
	from := max(0, len(s.points)-maxReportRows)
	if from > 0 {
		b.WriteString(rangeText(sumOf(s.points[:from])) + "\n")
	}
	for i := range s.points[from:] {
		p := &s.points[from+i]
		line := fmt.Sprintf("%*d %4s %s%s", len(fmt.Sprint(s.number())), p.number, bareQuality(p), bar(p.quality),
			s.marks(p, func(t string) string { return t }))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	m.Section("Quality")
	m.Block("", b.String())
}

func (s *Summary) markdownMetrics(m *human.MarkdownText) {
	rows, missed := s.metricRows()
	if len(rows)+len(missed) == 0 {
		return
	}
	m.Section("Metrics")
	if len(rows) > 0 {
		human.MarkdownTable(m, []string{"", "Baseline", "Last", "Change"}, "lrrl", rows, func(r *metricRow) []string {
			return []string{human.Markdown(r.Name), r.Baseline, r.Last, r.Change}
		})
	}
	if len(missed) > 0 {
		m.Line("\nNot measured:\n")
	}
	for _, f := range missed {
		m.Line("- %s: %s", human.Markdown(f.Name), human.Markdown(f.Value))
	}
}

func (s *Summary) markdownIterations(m *human.MarkdownText) {
	t := s.iterationTable()
	if len(t.Rows) == 0 {
		return
	}
	m.Section("Iterations")
	titles, align := make([]string, len(t.Columns)), ""
	for i, c := range t.Columns {
		titles[i] = c.Title
		if c.Number {
			align += "r"
		} else {
			align += "l"
		}
	}
	human.MarkdownTable(m, titles, align, t.Rows, func(r *iterationRow) []string { return r.Cells })
	leftOut(m, t.Left, "iteration")
}

func (s *Summary) markdownEvents(m *human.MarkdownText) {
	if rows, left := s.eventRows(); len(rows) > 0 {
		m.Section("Regressions")
		human.MarkdownTable(m, []string{"ID", "Iteration", "Type", "Severity", "Description", "Tests", "Recovery", "Decision",
			"Result"}, "lr", rows, func(r *eventRow) []string {
			return []string{r.ID, fmt.Sprint(r.Iteration), human.Markdown(r.Type), r.Severity, human.Markdown(r.Text),
				human.Markdown(r.Tests), human.Markdown(r.Recovery), human.Markdown(r.Decision), r.Result}
		})
		leftOut(m, left, "regression")
	}
	if lines := s.signLines(); len(lines) > 0 {
		m.Section("Warnings not counted as regressions")
		m.Line("Iteration %d:", s.last.Iteration)
		m.Line("")
		for _, text := range lines {
			m.Line("- %s", human.Markdown(text))
		}
	}
	if rows, left := s.gateRows(); len(rows) > 0 {
		m.Section("Gates")
		human.MarkdownTable(m, []string{"Gate", "Iteration", "Kind", "Question", "Answer", "Asked"}, "rr", rows,
			func(r *gateRow) []string {
				return []string{fmt.Sprint(r.Number), fmt.Sprint(r.Iteration), human.Markdown(r.Kind),
					human.Markdown(r.Title), human.Markdown(r.Answer), r.At}
			})
		leftOut(m, left, "gate")
	}
	if rows, left := s.follows(); len(rows) > 0 {
		m.Section("Changes and their effect")
		human.MarkdownTable(m, []string{"After iteration", "Change", "Next result"}, "r", rows,
			func(r *followed) []string {
				return []string{fmt.Sprint(r.Iteration), human.Markdown(r.Change), human.Markdown(r.Next)}
			})
		leftOut(m, left, "change")
	}
}

func (s *Summary) markdownDiffs(m *human.MarkdownText) {
	rows := s.diffRows()
	if len(rows) == 0 {
		return
	}
	m.Section("Changed files")
	for i := range rows {
		m.Line("%s\n", human.Markdown(rows[i].Title))
		m.Code("diff", rows[i].Text)
		m.Line("")
	}
}

// leftOut writes how many rows are not shown.
func leftOut(m *human.MarkdownText, n int, noun string) {
	if n > 0 {
		m.Line("\nThe first %s left out.", isLeft(n, noun))
	}
}

// isLeft counts what is left out, with its verb.
func isLeft(n int, noun string) string {
	if n == 1 {
		return noun + " is"
	}
	return human.Count(int64(n), noun) + " are"
}

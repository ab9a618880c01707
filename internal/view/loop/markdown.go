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
	m := &markdown{}
	m.line("# Report of %s", human.Markdown(s.ID()))
	m.line("")
	human.MarkdownTable(m.line, []string{"", ""}, "l", func(row func(cells ...string)) {
		for _, f := range s.facts() {
			row(f.Name, human.Markdown(f.Value))
		}
	})
	m.section("Task")
	m.block(clip.Runes(s.cfg.Task, maxReportTask))
	s.markdownBest(m)
	s.markdownQuality(m)
	s.markdownMetrics(m)
	s.markdownIterations(m)
	s.markdownEvents(m)
	agent, failure, check, failing := s.words()
	if len(failing) > 0 {
		m.section("Failing now")
		m.block(strings.Join(failing, "\n"))
	}
	if check != "" {
		m.section("The end of what the check printed")
		m.block(check)
	}
	if failure != "" {
		m.section("How the agent's last turn failed")
		m.block(failure)
	}
	if agent != "" {
		m.section("What the agent said last")
		m.block(agent)
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (s *Summary) markdownBest(m *markdown) {
	list := s.versus()
	if list == nil && s.standing.SelectedReason == "" {
		return
	}
	m.section("Best and final")
	if why := s.standing.SelectedReason; why != "" {
		m.line("%s.", human.Markdown(oneLine(why, maxText)))
		m.line("")
	}
	if list == nil {
		return
	}
	human.MarkdownTable(m.line, []string{"", "Best", "Final"}, "lll", func(row func(cells ...string)) {
		for _, v := range list {
			row(v.Name, human.Markdown(v.Best), human.Markdown(v.Final))
		}
	})
}

func (s *Summary) markdownQuality(m *markdown) {
	if len(s.points) == 0 {
		return
	}
	var b strings.Builder
	from := max(0, len(s.points)-maxReportRows)
	if from > 0 {
		b.WriteString(told(columnFor(s.points[:from])) + "\n")
	}
	for i := range s.points[from:] {
		p := &s.points[from+i]
		line := fmt.Sprintf("%*d %4s %s%s", len(fmt.Sprint(s.number())), p.number, bareQuality(p), bar(p.quality),
			s.marks(p, func(t string) string { return t }))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	m.section("Quality")
	m.block(b.String())
}

func (s *Summary) markdownMetrics(m *markdown) {
	rows, missed := s.metricRows()
	if len(rows)+len(missed) == 0 {
		return
	}
	m.section("Metrics")
	if len(rows) > 0 {
		human.MarkdownTable(m.line, []string{"", "Baseline", "Last", "Change"}, "lrrl", func(row func(cells ...string)) {
			for _, r := range rows {
				row(human.Markdown(r.Name), r.Baseline, r.Last, r.Change)
			}
		})
	}
	if len(missed) > 0 {
		m.line("\nNot measured:\n")
	}
	for _, f := range missed {
		m.line("- %s: %s", human.Markdown(f.Name), human.Markdown(f.Value))
	}
}

func (s *Summary) markdownIterations(m *markdown) {
	rows, left := s.iterationRows()
	if len(rows) == 0 {
		return
	}
	m.section("Iterations")
	human.MarkdownTable(m.line, []string{"No.", "Quality", "Change", "Check", "Passed", "Failed", "Skipped",
		"Regressions", "Became", "Agent", "Check took", "Perdure", "Overhead", "Tokens", "Cost"},
		"rrrlrrrllrrrrrr", func(row func(cells ...string)) {
			for i := range rows {
				r := &rows[i]
				row(fmt.Sprint(r.Number), r.Quality, r.Delta, r.Check, r.Passed, r.Failed, r.Skipped, r.Regressions, r.Became,
					r.Agent, r.Checked, r.Added, r.Overhead, r.Tokens, r.Cost)
			}
		})
	m.left(left, "iteration")
}

func (s *Summary) markdownEvents(m *markdown) {
	if rows, left := s.eventRows(); len(rows) > 0 {
		m.section("Regressions")
		human.MarkdownTable(m.line, []string{"ID", "Iteration", "Type", "Severity", "What", "Tests", "Recovery", "Decision",
			"Became"}, "lr", func(row func(cells ...string)) {
			for i := range rows {
				r := &rows[i]
				row(r.ID, fmt.Sprint(r.Iteration), human.Markdown(r.Type), r.Severity, human.Markdown(r.Text),
					human.Markdown(r.Tests), human.Markdown(r.Recovery), human.Markdown(r.Decision), r.Became)
			}
		})
		m.left(left, "regression")
	}
	if lines := s.signLines(); len(lines) > 0 {
		m.section("Warnings that are no regressions")
		m.line("Of iteration %d.", s.last.Iteration)
		m.line("")
		for _, text := range lines {
			m.line("- %s", human.Markdown(text))
		}
	}
	if rows, left := s.gateRows(); len(rows) > 0 {
		m.section("Decisions of people")
		human.MarkdownTable(m.line, []string{"Gate", "Iteration", "Kind", "Question", "Answer", "Asked"}, "rr",
			func(row func(cells ...string)) {
				for i := range rows {
					r := &rows[i]
					row(fmt.Sprint(r.Number), fmt.Sprint(r.Iteration), human.Markdown(r.Kind), human.Markdown(r.Title),
						human.Markdown(r.Answer), r.At)
				}
			})
		m.left(left, "gate")
	}
	if rows, left := s.follows(); len(rows) > 0 {
		m.section("What followed changes")
		human.MarkdownTable(m.line, []string{"After iteration", "Change", "What followed"}, "r",
			func(row func(cells ...string)) {
				for i := range rows {
					row(fmt.Sprint(rows[i].Iteration), human.Markdown(rows[i].Change), human.Markdown(rows[i].Next))
				}
			})
		m.left(left, "change")
	}
}

// markdown is a text on its way.
type markdown struct{ b strings.Builder }

func (m *markdown) line(format string, args ...any) { fmt.Fprintf(&m.b, format+"\n", args...) }

func (m *markdown) section(title string) { m.line("\n## %s\n", title) }

// left tells how many rows are not shown.
func (m *markdown) left(n int, noun string) {
	if n > 0 {
		m.line("\nThe first %s left out.", isLeft(n, noun))
	}
}

// isLeft counts what is left out, with its verb.
func isLeft(n int, noun string) string {
	if n == 1 {
		return noun + " is"
	}
	return human.Count(int64(n), noun) + " are"
}

// block writes a text in a fence that is longer than any in it.
func (m *markdown) block(s string) {
	s = strings.TrimRight(human.Visible(s), "\n")
	fence := "```"
	for strings.Contains(s, fence) {
		fence += "`"
	}
	m.line("%s", fence+"text")
	m.line("%s", s)
	m.line("%s", fence)
}

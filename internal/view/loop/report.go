package loop

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/record"
)

// Bounds of a report. Of more there are the last ones, and a line that says so.
const (
	maxReportRows   = 100  // of each table
	maxReportTask   = 8000 // bytes of the task, of the agent's last words, and of what a check printed
	maxReportFails  = 50
	maxReportCell   = 200 // characters
	maxReportAgents = 10
	maxReportDiffs  = 30       // iterations whose changes are shown
	maxReportDiff   = 16 << 10 // bytes of each
)

// Formats lists the names of the formats that [Summary.Report] knows.
func Formats() []string { return []string{"md", "html"} }

// Report writes the report of the loop in a format of [Formats]. All iterations
// have to be given.
func (s *Summary) Report(w io.Writer, format string) error {
	switch format {
	case "md":
		return s.markdown(w)
	case "html":
		return s.html(w)
	}
	return fmt.Errorf("write report: %q is not a format", format)
}

type fact struct{ Name, Value string }

func (s *Summary) facts() []fact {
	at := fmt.Sprint(s.in.Loop.Iteration)
	if s.cfg.MaxIterations > 0 {
		at += fmt.Sprintf(" of %d", s.cfg.MaxIterations)
	}
	list := []fact{{"Status", s.shown()}}
	add := func(name, value string) {
		if value != "" {
			list = append(list, fact{name, value})
		}
	}
	if !s.in.Loop.Status.Ended() {
		add("Now", s.doing())
	}
	add("Why", oneLine(s.standing.Reason, maxText))
	add("Iterations", at)
	add("Check", oneLine(s.cfg.Until, maxText))
	add("Agents", s.agents())
	add("Tool calls", s.seen())
	add("Baseline", s.measured(s.baseline))
	add("Last measured", s.measured(s.judged()))
	add("Regressions", counted(&s.sum))
	if n := s.sum.Recoveries; n > 0 {
		add("Recoveries", fmt.Sprint(n))
	}
	if m := s.measures(); m.FalseAlarmRate != nil {
		add("False alarms", fmt.Sprintf("%.1f %%", 100**m.FalseAlarmRate))
	}
	add("Usage", s.money())
	add("Took", human.Duration(s.elapsed()))
	if t := s.times(); t.Agent+t.Check > 0 {
		add("Time by part", timesText(t))
		part, _ := overhead(t)
		add("Overhead", fmt.Sprintf("%.1f %% of the time of agent and check", part))
	}
	if s.sealed != "" {
		add("Clean-copy check", s.sealed)
	}
	for _, text := range s.deciders {
		add("Decides the check", text)
	}
	if h := s.in.HeldOut; h != nil {
		add("Held-out check", oneLine(h.Check, maxText))
		add("Held-out result", h.Text())
		add("Held-out gap by iteration", oneLine(h.Gaps(), maxText))
	}
	add("Variables not passed", oneLine(strings.Join(s.standing.Withheld, ", "), maxText))
	add("Warnings", s.lastWarning())
	if s.cfg.Plain {
		add("Supervision", supervisionOff)
	}
	add("Started", human.Stamp(s.in.Tree.CreatedAt))
	if t := s.ended(); t != nil {
		add("Ended", human.Stamp(*t))
	}
	add("Workspace", oneLine(s.cfg.Workspace, maxText))
	add("Branch", s.branch())
	add("Generated", human.Stamp(s.in.Now))
	return list
}

// agents are the names of the agents that worked.
func (s *Summary) agents() string {
	var names []string
	for i := range s.points {
		name := oneLine(s.points[i].agent, maxName)
		if name != "" && !slices.Contains(names, name) && len(names) < maxReportAgents {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return oneLine(s.agent(), maxName)
	}
	return strings.Join(names, ", ")
}

// maxShownCalls is how many of the calls that an agent's permissions denied are shown.
const maxShownCalls = 5

// seen says how the calls of tools of the agents were seen, the worst first.
func (s *Summary) seen() string {
	denied, risky, ways := 0, 0, map[agent.Sight]bool{}
	unpermitted, calls := 0, []string(nil)
	for i := range s.points {
		unpermitted += s.points[i].unpermitted.Count
		for _, call := range s.points[i].unpermitted.Calls {
			if !slices.Contains(calls, call) && len(calls) < maxShownCalls {
				calls = append(calls, clip.Runes(clip.OneLine(call), maxName))
			}
		}
		denied, risky = denied+s.points[i].denied, risky+s.points[i].risky
		ways[s.points[i].sight] = true
	}
	var texts []string
	for _, w := range []struct {
		sight agent.Sight
		text  string
	}{{agent.SightNone, "tool calls are not reported; files are compared after each iteration"},
		{agent.SightObserved, "observed: reported as they happen, cannot be denied"},
		{agent.SightNative, "native: reported before they happen, can be denied"}} {
		if ways[w.sight] {
			texts = append(texts, w.text)
		}
	}
	if risky > 0 {
		texts = append(texts, fmt.Sprintf("%d risky", risky))
	}
	if denied > 0 {
		texts = append(texts, fmt.Sprintf("%d denied", denied))
	}
	if unpermitted > 0 {
		texts = append(texts, fmt.Sprintf("%d denied by the agent's permissions (%s)", unpermitted,
			strings.Join(calls, ", ")))
	}
	return strings.Join(texts, "; ")
}

// versus compares the best iteration with the last one; nil when there is no
// best one.
func (s *Summary) versus() []versus {
	if s.best == nil || !s.Whole() {
		return nil
	}
	best, final := s.at(s.best.Iteration), s.judged()
	if best == nil || final == nil {
		return nil
	}
	list := []versus{{"Iteration", fmt.Sprint(best.number), fmt.Sprint(final.number)},
		{"Quality", quality(best), quality(final)},
		{"Check", outcome(&best.check), outcome(&final.check)}}
	if !best.check.Weak || !final.check.Weak {
		list = append(list, versus{"Tests", tests(&best.check), tests(&final.check)})
	}
	if best.metrics != nil && final.metrics != nil {
		if was, is := s.numbersText(best.metrics), s.numbersText(final.metrics); was+is != "" {
			list = append(list, versus{"Metrics", was, is})
		}
	}
	return append(list, versus{"Regressions", fmt.Sprint(best.facts), fmt.Sprint(final.facts)},
		versus{"Result", s.result(best), s.result(final)})
}

type versus struct{ Name, Best, Final string }

// word is the status of an iteration in words.
func (p *point) word() string {
	switch p.status {
	case record.IterationFailed:
		return "agent failed"
	case record.IterationRunning:
		return "under way"
	case record.IterationKept, record.IterationReverted:
	}
	return string(p.status)
}

// result describes the status of an iteration, and whether its files are in the workspace.
func (s *Summary) result(p *point) string {
	text := p.word()
	if s.accepted[p.number] && (p.status == record.IterationKept || p.reverted()) {
		text = "accepted"
	}
	if s.standing.Selected == p.number && s.in.Loop.Status.Ended() {
		text += ", left in the workspace"
	}
	return text
}

// iterationTable is the table of the iterations. Columns without any value are left out.
type iterationTable struct {
	Columns []tableColumn
	Rows    []iterationRow
	// Left is how many rows are left out.
	Left int
}

// tableColumn is a column of a table; a number is aligned to the right.
type tableColumn struct {
	Title  string
	Number bool
}

type iterationRow struct {
	Class string
	Cells []string
}

func (s *Summary) iterationTable() *iterationTable {
	all := []tableColumn{{"No.", true}, {"Quality", true}, {"Check", false}, {"Tests passed, failed, skipped", true},
		{"Regressions", false}, {"Result", false}, {"Agent", true}, {"Check took", true}, {"Perdure", true},
		{"Tokens", true}, {"Cost", true}, {"Context", false}}
	t := &iterationTable{}
	t.Rows, t.Left = lastRows(s.points, s.iterationRow)
	for at := len(all) - 1; at >= 0; at-- {
		if slices.ContainsFunc(t.Rows, func(r iterationRow) bool { return r.Cells[at] != "" }) {
			continue
		}
		all = slices.Delete(all, at, at+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, at, at+1)
		}
	}
	t.Columns = all
	return t
}

// lastRows makes rows of the last entries of a list, and returns how many it left out.
func lastRows[T, R any](list []T, row func(*T) R) (rows []R, left int) {
	left = max(0, len(list)-maxReportRows)
	for i := range list[left:] {
		rows = append(rows, row(&list[left+i]))
	}
	return rows, left
}

func (s *Summary) iterationRow(p *point) iterationRow {
	r := iterationRow{Class: string(p.status)}
	result := s.result(p)
	if s.best != nil && s.Whole() && s.best.Iteration == p.number {
		result, r.Class = result+", best", "best"
	}
	var check, counts, regressions, agent, took, added, tokens, cost, context string
	if p.facts > 0 {
		regressions = fmt.Sprintf("%d (%s)", p.facts, p.worst)
	}
	if n := p.input + p.output; n > 0 {
		tokens = strings.TrimSuffix(humanize.Comma(n)+", "+sourceText(p.measured.Usage), ", ")
	}
	if m := p.measured; m.Context != "" {
		context = fmt.Sprintf("%d %%, %s", m.ContextPercent, sourceText(m.Context))
	}
	if !math.IsNaN(p.cost) {
		cost = human.Dollars(p.cost)
	}
	if p.judged {
		check = shortOutcome(&p.check)
		if n := &p.check.Counts; !p.check.Weak {
			counts = fmt.Sprintf("%s, %s, %s", humanize.Comma(int64(n.Passed)), humanize.Comma(int64(n.Failed)),
				humanize.Comma(int64(n.Skipped)))
		}
		t := p.times
		agent, took, added = milliseconds(t.Agent), milliseconds(t.Check), milliseconds(t.Snapshot+t.Hooks+t.Engine)
		if part, ok := overhead(t); ok {
			added += fmt.Sprintf(" (%.1f %%)", part)
		}
	}
	changed := cellQuality(p)
	if p.delta != unmeasured {
		changed += " (" + signed(p.delta) + ")"
	}
	r.Cells = []string{fmt.Sprint(p.number), changed, check, counts, regressions, result, agent, took, added, tokens, cost,
		context}
	return r
}

// sourceText returns how a figure was measured: native if the agent reported it, observed by a
// meter, or estimated.
func sourceText(s agent.Source) string {
	if s == agent.SourceReported {
		return "native"
	}
	return string(s)
}

func signed(delta int) string {
	if delta == unmeasured {
		return ""
	}
	return fmt.Sprintf("%+d", delta)
}

// diffRow is what an iteration changed in the files.
type diffRow struct {
	Title, Text string
}

// diffRows returns the changes of the last iterations, of those that changed something.
func (s *Summary) diffRows() (rows []diffRow) {
	for i := max(0, len(s.points)-maxReportDiffs); i < len(s.points); i++ {
		p := &s.points[i]
		if p.diff == "" {
			continue
		}
		rows = append(rows, diffRow{fmt.Sprintf("Iteration %d: %s, %s", p.number,
			human.Count(int64(p.changed), "changed file"), s.result(p)), clip.Bytes(p.diff, maxReportDiff)})
	}
	return rows
}

// eventRow is a regression in the table of all.
type eventRow struct {
	ID, Type, Severity, Text, Tests, Recovery, Decision, Result string
	Iteration                                                   int
}

func (s *Summary) eventRows() (rows []eventRow, left int) {
	return lastRows(s.events, func(e *Event) eventRow {
		tests, more := e.tests(maxReportCell)
		if more != "" {
			tests = append(tests, more)
		}
		row := eventRow{ID: e.ID, Iteration: e.Iteration, Type: oneLine(e.Type, maxName), Severity: e.Severity,
			Text: oneLine(e.Details.Text, maxReportCell), Tests: strings.Join(tests, ", "),
			Recovery: oneLine(e.Outcome, maxName), Result: s.disposition(e.Iteration)}
		if e.gate != nil {
			row.Decision = e.gate.decision()
		}
		return row
	})
}

// gateRow is what a person was asked.
type gateRow struct {
	Number, Iteration       int
	Kind, Title, Answer, At string
}

func (s *Summary) gateRows() (rows []gateRow, left int) {
	return lastRows(s.gates.all, func(g *gate) gateRow {
		return gateRow{g.Number, g.Iteration, oneLine(string(g.Kind), maxName), oneLine(g.asked.Title, maxReportCell),
			g.decision(), human.Stamp(g.OpenedAt)}
	})
}

// followed is a change of the loop and the result of the next iteration.
type followed struct {
	Iteration    int
	Change, Next string
}

// follows lists changes: recoveries, answers of people, levels of reinforcement, fallback
// agents.
func (s *Summary) follows() (rows []followed, left int) {
	add := func(iteration int, text string) { rows = append(rows, followed{Iteration: iteration, Change: text}) }
	for i := range s.recovery {
		v := &s.recovery[i]
		for _, step := range v.Steps {
			if step.Step == "adapt" {
				add(v.Iteration, "recovery: "+oneLine(step.Text, maxReportCell))
			}
		}
	}
	for i := range s.gates.all {
		if g := &s.gates.all[i]; !g.open() {
			add(g.Iteration, fmt.Sprintf("gate %d was answered: %s", g.Number, oneLine(g.Answer, maxName)))
		}
	}
	for _, l := range s.standing.Levels {
		add(l.Iteration-1, fmt.Sprintf("level %s (%s)", oneLine(string(l.To), maxName), oneLine(l.Reason, maxReportCell)))
	}
	for i := 1; i < len(s.points); i++ {
		if before, now := s.points[i-1].agent, s.points[i].agent; before != now && before != "" && now != "" {
			add(s.points[i-1].number, fmt.Sprintf("%s instead of %s", oneLine(now, maxName), oneLine(before, maxName)))
		}
	}
	slices.SortStableFunc(rows, func(a, b followed) int { return cmp.Compare(a.Iteration, b.Iteration) })
	return lastRows(rows, func(f *followed) followed {
		return followed{f.Iteration, f.Change, s.next(f.Iteration)}
	})
}

// next describes the result of the iteration after another.
func (s *Summary) next(number int) string {
	p := s.at(number + 1)
	if p == nil || !p.judged {
		return "no result yet"
	}
	text := fmt.Sprintf("iteration %d: quality %s", p.number, quality(p))
	if p.delta != unmeasured {
		text += fmt.Sprintf(" (%+d)", p.delta)
	}
	text += ", the check " + outcome(&p.check)
	if p.facts > 0 {
		text += ", " + human.Count(int64(p.facts), "regression")
	}
	return text
}

// words are the messages of the last finished iteration.
func (s *Summary) words() (agent, failure, check string, failing []string) {
	if s.last == nil {
		return "", "", "", nil
	}
	for _, name := range s.last.Check.Failing[:min(len(s.last.Check.Failing), maxReportFails)] {
		failing = append(failing, oneLine(name, maxReportCell))
	}
	if !s.last.Check.Passed {
		check = clip.End(s.last.Check.Output, maxReportTask)
	}
	return clip.Runes(s.last.AgentText, maxReportTask), oneLine(s.last.AgentError, maxText), check, failing
}

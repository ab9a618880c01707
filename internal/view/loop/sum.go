package loop

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/loop/record"
)

// maxShares is about how many lines a trajectory has for the iterations that have
// none of their own.
const maxShares = 20

// share is how many of n iterations share such a line: a round number.
func share(n int) int {
	for each := 1; ; each *= 10 {
		for _, round := range []int{1, 2, 5} {
			if n <= each*round*maxShares {
				return each * round
			}
		}
	}
}

// addHistory takes over the sums over all iterations.
func (s *Summary) addHistory() {
	h := s.in.History
	s.sum = *h
	s.sum.Regressions = nil
	for _, t := range h.Regressions {
		t.Severity = severity(t.Severity)
		s.sum.Tally(t)
	}
	for i := range h.Candidates {
		it := &h.Candidates[i]
		if o, known := outcomeOf(it); known && o.Eligible(it) && state.Prefers(&s.cfg, &o, s.best) {
			s.best = &o
		}
	}
	for i := range s.in.Single {
		if o, known := outcomeOf(&s.in.Single[i]); known {
			s.warn(&o)
			s.seal(&o)
		}
	}
}

// count adds an iteration to the sums.
func (s *Summary) count(p *point, o *state.Outcome, events []Event) {
	h := &s.sum
	h.Iterations++
	switch p.status {
	case record.IterationKept:
		h.Kept++
	case record.IterationReverted:
		h.Reverted++
	case record.IterationFailed:
		h.Failed++
	case record.IterationRunning:
		h.Running++
	}
	if p.status != record.IterationRunning {
		h.TookMicros += p.took.Microseconds()
	}
	t := &o.Times
	h.WorkMS, h.AddedMS = h.WorkMS+t.Agent+t.Check+t.Metrics, h.AddedMS+t.Snapshot+t.Hooks+t.Engine
	for i := range events {
		h.Tally(tally(&events[i]))
	}
	h.Recoveries += len(o.Recoveries)
	if n := len(agentErrors(o.Iteration, o)); n > 0 {
		h.AgentErrors, h.LastError = h.AgentErrors+n, o.Iteration
	}
	if n := len(o.Warnings); n > 0 {
		h.Warnings, h.LastWarning = h.Warnings+n, o.Iteration
	}
}

func tally(e *Event) record.Tally {
	return record.Tally{Type: e.Type, Severity: e.Severity, Count: 1, First: e.Iteration, Last: e.Iteration}
}

// without returns the sums without some regressions, which are the last ones.
func (s *Summary) without(events []Event) *record.History {
	var left record.History
	for _, t := range s.sum.Regressions {
		for i := range events {
			if e := &events[i]; e.Type == t.Type && e.Severity == t.Severity {
				t.Count--
			}
		}
		if t.Count > 0 {
			left.Regressions = append(left.Regressions, t)
		}
	}
	return &left
}

// counted lists regressions: 2 (critical: test_deletion, test_failure; high: …).
func counted(h *record.History) string {
	if len(h.Regressions) == 0 {
		return "0"
	}
	var parts []string
	for _, grade := range severities() {
		var kinds []string
		for _, t := range h.Regressions {
			if t.Severity != grade {
				continue
			}
			kind := oneLine(t.Type, maxName)
			if t.Count > 1 {
				kind += fmt.Sprintf(" ×%d", t.Count)
			}
			kinds = append(kinds, kind)
		}
		if len(kinds) > 0 {
			parts = append(parts, grade+": "+strings.Join(kinds, ", "))
		}
	}
	return fmt.Sprintf("%d (%s)", h.Total(), strings.Join(parts, "; "))
}

// columnsBelow sums up the iterations before those that are shown one by one, each of
// them in a column.
func (s *Summary) columnsBelow(points []point, each int) []record.Column {
	if s.in.History != nil {
		return s.sum.Columns
	}
	var list []record.Column
	for i := 0; i < len(points); {
		end := i + 1
		for end < len(points) && (points[end].number-1)/each == (points[i].number-1)/each {
			end++
		}
		list = append(list, sumOf(points[i:end]))
		i = end
	}
	return list
}

// sumOf sums up iterations in one column.
func sumOf(points []point) record.Column {
	list := make([]record.Column, len(points))
	for i := range points {
		p, c := &points[i], &list[i]
		c.From, c.To = p.number, p.number
		if p.facts > 0 {
			c.Regressed = 1
		}
		if p.reverted() {
			c.Reverted = 1
		}
		if p.quality != unmeasured {
			c.Measured, c.Lowest, c.Highest, c.HighestAt, c.Sum = 1, p.quality, p.quality, p.number, int64(p.quality)
		}
	}
	return together(list)
}

// together sums up several columns in one.
func together(list []record.Column) record.Column {
	all := record.Column{From: list[0].From, To: list[len(list)-1].To}
	for _, c := range list {
		all.Regressed, all.Reverted = all.Regressed+c.Regressed, all.Reverted+c.Reverted
		if c.Measured == 0 {
			continue
		}
		if all.Measured == 0 || c.Highest > all.Highest {
			all.Highest, all.HighestAt = c.Highest, c.HighestAt
		}
		if all.Measured == 0 || c.Lowest < all.Lowest {
			all.Lowest = c.Lowest
		}
		all.Measured, all.Sum = all.Measured+c.Measured, all.Sum+c.Sum
	}
	return all
}

// rangeText describes iterations that are not shown one by one.
func rangeText(c record.Column) string {
	text := fmt.Sprintf("Iterations %d to %d: ", c.From, c.To)
	if c.Measured == 0 {
		return text + "not measured"
	}
	text += fmt.Sprintf("lowest %d%%, mean %d%%, highest %d%% at iteration %d", c.Lowest, c.Sum/int64(c.Measured),
		c.Highest, c.HighestAt)
	if c.Regressed > 0 {
		text += fmt.Sprintf(", %d with regressions", c.Regressed)
	}
	return text
}

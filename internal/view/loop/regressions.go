package loop

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/verify/trial"
)

// Bounds of the list of regressions.
const (
	maxEvents     = 50 // the last ones
	maxEventTests = 5
)

// Regressions writes what got worse, in which tests, what was done and what a
// person decided; of many the last ones, and how many there are of each type. It
// needs the history, or all iterations.
func (s *Summary) Regressions(w io.Writer, style Style) error {
	c := &screen{Style: style.withDefaults()}
	c.line("%s", c.Bold("Regression Events of "+s.ID()+":"))
	if len(s.sum.Regressions) == 0 {
		c.line("  none")
	}
	from := max(0, len(s.events)-maxEvents)
	if c.All {
		from = 0
	}
	if left := s.without(s.events[from:]); left.Total() > 0 {
		c.line("  the first %d are left out: %s; --full shows them", left.Total(), counted(left))
		for _, t := range s.sum.Regressions {
			c.line("    %s", c.Dim(fmt.Sprintf("%s (%s): %d in all, in iterations %d to %d", oneLine(t.Type, maxName),
				strings.ToUpper(t.Severity), t.Count, t.First, t.Last)))
		}
	}
	for i := from; i < len(s.events); i++ {
		s.event(c, &s.events[i])
		// The recovery is shown once for all regressions of an iteration.
		if i+1 == len(s.events) || s.events[i+1].Iteration != s.events[i].Iteration {
			s.aftermath(c, &s.events[i])
		}
	}
	s.signs(c)
	s.incomplete(c)
	return c.to(w)
}

// maxNoted is how many findings are shown that only warn.
const maxNoted = 20

// warns are the warning findings of an iteration that are not marked as false alarms.
func (s *Summary) warns(o *state.Outcome) []detect.Finding {
	return slices.DeleteFunc(slices.Clone(o.Findings),
		func(f detect.Finding) bool { return f.Action != detect.Warn || s.marked[f.Fingerprint()] })
}

// signLines are the new tests of the last iteration that survived, and its findings that only warn, a
// line each.
func (s *Summary) signLines() []string {
	if s.last == nil {
		return nil
	}
	var lines []string
	for _, text := range trial.Survivors(s.last.NewTests) {
		lines = append(lines, oneLine(text, maxText))
	}
	shown := min(len(s.noted), maxNoted)
	for i := range s.noted[:shown] {
		f := &s.noted[i]
		lines = append(lines, oneLine(fmt.Sprintf("%s [%s, confidence %.0f %%, %s]", f.Summary(), f.Pattern,
			100*f.Confidence, f.Fingerprint()), maxText))
	}
	if more := len(s.noted) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return lines
}

func (s *Summary) signs(c *screen) {
	lines := s.signLines()
	if len(lines) == 0 {
		return
	}
	c.line("%s", c.Bold(fmt.Sprintf("Warnings of iteration %d, not counted as regressions:", s.last.Iteration)))
	for _, text := range lines {
		c.line("  %s", oneLine(text, 2*c.Width))
	}
}

func (s *Summary) event(c *screen, e *Event) {
	marked := ""
	if e.FalseAlarm {
		marked = ", a false alarm"
	}
	c.line("  %s Iteration %d - %s (%s)%s", c.Bold("["+e.ID+"]"), e.Iteration, oneLine(e.Type, maxName),
		strings.ToUpper(e.Severity), marked)
	if e.Details.Text != "" {
		c.line("    - %s", oneLine(e.Details.Text, 2*c.Width))
	}
	tests, more := e.tests(c.Width - 6)
	for _, name := range append(tests, c.Dim(more)) {
		if name != "" {
			c.line("      %s", name)
		}
	}
}

// aftermath writes what was done about the regressions of an iteration.
func (s *Summary) aftermath(c *screen, e *Event) {
	for i := range s.recovery {
		v := &s.recovery[i]
		if v.Iteration != e.Iteration {
			continue
		}
		c.line("    - Recovery: attempt %d, %s (%d %%), %s", v.Attempt, oneLine(string(v.Diagnosis), maxName), v.Confidence,
			oneLine(v.Outcome, maxName))
		for _, step := range v.Steps {
			text := oneLine(step.Text, c.Width)
			if text != "" {
				text = ": " + text
			}
			c.line("      %s", c.Dim(step.ExecutedAt.UTC().Format(time.TimeOnly)+" "+oneLine(step.Step, maxName)+text))
		}
	}
	if v := s.standing.Recovery; v != nil && v.Iteration == e.Iteration {
		c.line("    - Recovery: attempt %d is under way", v.Attempt)
	}
	if e.gate != nil {
		c.line("    - Decision: %s", e.gate.decision())
	}
	if text := s.disposition(e.Iteration); text != "" {
		c.line("    - %s", text)
	}
}

// decision says what a person answered.
func (g *gate) decision() string {
	if g.open() {
		text := fmt.Sprintf("gate %d waits for an answer", g.Number)
		if g.Approver != "" {
			text += " (approver: " + oneLine(string(g.Approver), maxName) + ")"
		}
		return text
	}
	text := oneLine(g.Answer, maxName)
	if g.AnsweredBy != "" {
		text += " by " + oneLine(g.AnsweredBy, maxName)
	}
	text += " after " + human.Duration(g.AnsweredAt.Sub(g.OpenedAt))
	if g.Reason != "" {
		text += ": " + oneLine(g.Reason, maxText)
	}
	return text
}

// disposition reports whether an iteration with regressions was reverted, accepted or kept.
func (s *Summary) disposition(number int) string {
	p := s.at(number)
	switch {
	case p == nil:
		return ""
	case p.reverted():
		return fmt.Sprintf("Iteration %d was reverted", number)
	case s.accepted[number]:
		return fmt.Sprintf("Iteration %d was accepted into the baseline", number)
	}
	return fmt.Sprintf("Iteration %d was kept", number)
}

// at is an iteration by its number; nil when it was not given.
func (s *Summary) at(number int) *point {
	i, found := slices.BinarySearchFunc(s.points, number, func(p point, n int) int { return cmp.Compare(p.number, n) })
	if !found {
		return nil
	}
	return &s.points[i]
}

package cli

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
)

// plainEvery is the least time between two lines of progress that tell of less
// than a tenth of the work, where no terminal redraws them.
const plainEvery = 5 * time.Second

// stuckEvery is the time between two lines while nothing changes but what is
// slow.
const stuckEvery = time.Minute

// progressView shows how far one or several trees are, on standard error. On a
// terminal it redraws a few lines; elsewhere it prints a line now and then.
// It is used from one goroutine.
type progressView struct {
	s *env.Stream
	// now is the time of the update that is shown.
	drawn int // lines on the terminal that the next update replaces
	quiet bool
	last  map[perdure.TreeID]plainLine
}

type plainLine struct {
	at   time.Time
	step int
	text string
}

func newProgressView(s *env.Stream, quiet bool) *progressView {
	return &progressView{s: s, quiet: quiet, last: make(map[perdure.TreeID]plainLine)}
}

// snapshot is what an update shows of one tree.
type snapshot struct {
	progress perdure.Progress
	active   []perdure.ActiveTask
	// notes are told below: a model that waits for its rate limit.
	notes []string
	// slowest runs longest; nil when nothing runs.
	slowest *client.SlowestTask
	// gate is what the tree waits for a person at; nil when it does not.
	gate *client.OpenGate
}

// slowAfter is how long a task runs before it is named as what is slow.
const slowAfter = 5 * time.Second

// slow names what is slow; empty when nothing is.
func (t *snapshot) slow(now time.Time) string {
	if t.slowest == nil || now.Sub(t.slowest.Since) < slowAfter {
		return ""
	}
	return status.Slowest(t.slowest.Task, t.slowest.Prompt, now.Sub(t.slowest.Since), t.slowest.Model)
}

// update shows the state of the trees at an instant.
func (v *progressView) update(now time.Time, trees ...snapshot) {
	if v.quiet {
		return
	}
	if !v.s.Terminal {
		for _, t := range trees {
			v.plain(now, t)
		}
		return
	}
	var lines []string
	for _, t := range trees {
		lines = append(lines, v.lines(now, t, len(trees) > 1)...)
	}
	v.redraw(lines)
}

// say prints a line that stays, above what is redrawn.
func (v *progressView) say(format string, args ...any) {
	if v.quiet {
		return
	}
	v.redraw(nil)
	fmt.Fprintf(v.s, format+"\n", args...)
}

// finish leaves the terminal without the redrawn lines.
func (v *progressView) finish() { v.redraw(nil) }

func (v *progressView) redraw(lines []string) {
	if v.drawn == 0 && len(lines) == 0 {
		return
	}
	var b strings.Builder
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\r", v.drawn)
	}
	b.WriteString("\x1b[J")
	for _, text := range lines {
		b.WriteString(env.Clip(text, v.s.Width-1) + "\n")
	}
	v.drawn = len(lines)
	fmt.Fprint(v.s, b.String())
}

// maxActiveLines bounds the running tasks shown below a bar.
const maxActiveLines = 4

func (v *progressView) lines(now time.Time, t snapshot, several bool) []string {
	p := t.progress
	head := ""
	if several {
		head = string(p.Tree) + " "
	}
	lines := []string{head + human.Bar(p.Percent, barWidth) + " " + env.PadLeft(human.WholePercent(p.Percent), 4) +
		"  " + v.counts(p)}
	if several {
		return append(lines, t.notes...)
	}
	for i, task := range t.active {
		if i == maxActiveLines && len(t.active) > maxActiveLines+1 {
			lines = append(lines, v.s.Dim(fmt.Sprintf("  … %d more running", len(t.active)-i)))
			break
		}
		lines = append(lines, v.s.Dim("  "+task.Task.String()+" ")+env.OneLine(task.Prompt, v.s.Width-16))
	}
	if slow := t.slow(now); slow != "" {
		lines = append(lines, v.s.In(lipgloss.Yellow, "  "+env.OneLine(slow, v.s.Width-3)))
	}
	for _, note := range t.notes {
		lines = append(lines, "  "+env.OneLine(note, v.s.Width-3))
	}
	return lines
}

func (v *progressView) counts(p perdure.Progress) string {
	parts := []string{fmt.Sprintf("%d of %s", p.Completed+p.Failed+p.Cancelled, human.Count(p.Total, "task"))}
	if p.Running > 0 {
		parts = append(parts, fmt.Sprintf("%d running", p.Running))
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	if !p.State.Terminal() {
		parts = append(parts, "ETA "+human.ETA(p.ETASeconds))
	}
	if p.Usage.Calls > 0 {
		parts = append(parts, status.Cost(p.Usage))
	}
	for _, l := range p.Limits {
		if l.Warned || l.Exceeded {
			parts = append(parts, limitMark(l)+": "+limitText(l))
		}
	}
	return strings.Join(parts, ", ")
}

// plain prints a line when another tenth of the work is done, or when
// something changed and the last line is some seconds old.
func (v *progressView) plain(now time.Time, t snapshot) {
	p := t.progress
	last, seen := v.last[p.Tree]
	if !seen {
		v.last[p.Tree] = plainLine{at: now}
		return // the tree's ID was printed just now
	}
	text := fmt.Sprintf("%d%%, %s", int(p.Percent), v.counts(p))
	for _, note := range t.notes {
		text += "; " + note
	}
	step, since := int(p.Percent)/10, now.Sub(last.at)
	slow := t.slow(now)
	stuck := slow != "" && since >= stuckEvery
	if !stuck && (text == last.text || step <= last.step && since < plainEvery) {
		return
	}
	said := text
	if slow != "" {
		said += "; " + slow
	}
	fmt.Fprintf(v.s, "perdure: %s: %s\n", p.Tree, said)
	v.last[p.Tree] = plainLine{at: now, step: step, text: text}
}

// transient shows one line on a terminal until the next update.
func (v *progressView) transient(text string) {
	if v.s.Terminal && !v.quiet {
		v.redraw([]string{text})
	}
}

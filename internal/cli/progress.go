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

// plainEvery is the minimum time between two lines of progress without a terminal, if
// less than a tenth of the work was done between them.
const plainEvery = 5 * time.Second

// stuckEvery is the time between two lines if only the duration of the slowest task
// changes.
const stuckEvery = time.Minute

// progressView shows the progress of trees on standard error. On a terminal it redraws
// a few lines; elsewhere it prints a line from time to time. It is used from one
// goroutine.
type progressView struct {
	s     *env.Stream
	drawn int // number of lines on the terminal that the next update replaces
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

// snapshot is the progress of a tree in an update.
type snapshot struct {
	progress perdure.Progress
	active   []perdure.ActiveTask
	// notes are shown below: a model that waits for its rate limit.
	notes []string
	// slowest is the task that has run longest; nil if none runs.
	slowest *client.SlowestTask
	// gate is the open gate of the tree; nil if there is none.
	gate *client.OpenGate
}

// slowAfter is the time after which a running task is shown as slow.
const slowAfter = 5 * time.Second

// slow describes the slowest task; it returns "" if no task is slow.
func (t *snapshot) slow(now time.Time) string {
	if t.slowest == nil || now.Sub(t.slowest.Since) < slowAfter {
		return ""
	}
	return status.Slowest(t.slowest.Task, t.slowest.Prompt, now.Sub(t.slowest.Since), t.slowest.Model)
}

// update shows the progress of trees.
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

// say prints a permanent line above the redrawn ones.
func (v *progressView) say(format string, args ...any) {
	if v.quiet {
		return
	}
	v.redraw(nil)
	fmt.Fprintf(v.s, format+"\n", args...)
}

// finish removes the redrawn lines.
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

// maxActiveLines bounds the number of running tasks below a bar.
const maxActiveLines = 4

func (v *progressView) lines(now time.Time, t snapshot, several bool) []string {
	p := t.progress
	head := ""
	if several {
		head = string(p.Tree) + " "
	}
	lines := []string{head + human.Bar(p.Percent, barWidth) + " " + env.PadLeft(status.Percent(&p), 4) +
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
	parts := []string{fmt.Sprintf("%d of %s", p.Completed+p.Failed+p.Cancelled, status.Tasks(&p))}
	if p.Running > 0 {
		parts = append(parts, fmt.Sprintf("%d running", p.Running))
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	if !p.State.Terminal() {
		parts = append(parts, "ETA "+human.ETA(p.ETASeconds))
	}
	if cost := status.Cost(p.Usage); cost != status.NoCost {
		parts = append(parts, cost)
	}
	for _, l := range p.Limits {
		if l.Warned || l.Exceeded {
			parts = append(parts, limitMark(l)+": "+limitText(l))
		}
	}
	return strings.Join(parts, ", ")
}

// plain prints a line if another tenth of the work is done, or if the progress changed
// and the last line is some seconds old.
func (v *progressView) plain(now time.Time, t snapshot) {
	p := t.progress
	last, seen := v.last[p.Tree]
	if !seen {
		v.last[p.Tree] = plainLine{at: now}
		return // the tree's ID was just printed
	}
	text := v.counts(p)
	if p.Planned != nil {
		text = status.Percent(&p) + ", " + text
	}
	for _, note := range t.notes {
		text += "; " + note
	}
	step, since := int(p.Percent)/10, now.Sub(last.at)
	slow := t.slow(now)
	stuck := slow != "" && since >= stuckEvery
	if !stuck && (text == last.text || step <= last.step && since < plainEvery) {
		return
	}
	line := text
	if slow != "" {
		line += "; " + slow
	}
	fmt.Fprintf(v.s, "perdure: %s: %s\n", p.Tree, line)
	v.last[p.Tree] = plainLine{at: now, step: step, text: text}
}

// transient shows a line on a terminal until the next update.
func (v *progressView) transient(text string) {
	if v.s.Terminal && !v.quiet {
		v.redraw([]string{text})
	}
}

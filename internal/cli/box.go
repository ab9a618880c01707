package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
)

const (
	boxWidth = 57 // between the borders
	barWidth = 20
)

// box returns head and body in a frame with a rule between them.
func box(s *env.Stream, head, body []string) string {
	inner := min(boxWidth, s.Width-2)
	var b strings.Builder
	rule := strings.Repeat("─", inner)
	row := func(text string) {
		fmt.Fprintf(&b, "%s %s %s\n", s.Dim("│"), env.Pad(text, inner-2), s.Dim("│"))
	}
	b.WriteString(s.Dim("╭"+rule+"╮") + "\n")
	for _, text := range head {
		row(text)
	}
	b.WriteString(s.Dim("├"+rule+"┤") + "\n")
	for _, text := range body {
		row(text)
	}
	b.WriteString(s.Dim("╰"+rule+"╯") + "\n")
	return b.String()
}

// about is what a summary of a tree says of it; each may be empty.
type about struct{ name, origin, context string }

// statusBox returns the summary of a tree.
func statusBox(s *env.Stream, st *client.Status, is about) string {
	p := &st.Progress
	room := min(boxWidth, s.Width-2) - 2
	state := status.State(st)
	head := []string{
		env.Pad(s.Bold("Tree Progress"), room-env.Width(state)-2) + s.Mark(p.State) + " " + state,
		"Tree: " + string(p.Tree),
	}
	if is.name != "" {
		head = append(head, env.OneLine("Name: "+is.name, room))
	}
	if is.origin != "" {
		head = append(head, env.OneLine("Origin: "+is.origin, room))
	}
	line := func(label, value string) string { return env.Clip(env.Pad(label+":", 15)+" "+value, room) }
	number := func(n int64) string { return env.PadLeft(fmt.Sprint(n), 6) }
	body := []string{
		line("Total Nodes", number(p.Total)+ofPlanned(p)),
		line("Completed", number(p.Completed)+" ("+human.WholePercent(share(p.Completed, p.Total))+")"),
		line("Running", number(p.Running)),
	}
	if p.Waiting > 0 {
		body = append(body, line("Waiting", number(p.Waiting)))
	}
	body = append(body, line("Queued", number(p.Queued)), line("Failed", number(p.Failed)))
	if p.Cancelled > 0 {
		body = append(body, line("Cancelled", number(p.Cancelled)))
	}
	if is.context != "" {
		body = append(body, line("Context", is.context))
	}
	body = append(body, "", line("Progress", status.Bar(p, barWidth)), "")
	if p.Completed > 0 {
		body = append(body, line("Avg Node Time", human.Seconds(p.MeanTaskSeconds)))
	}
	switch {
	case p.State.Terminal():
		body = append(body, line("Took", status.Took(p)))
	case !p.Interrupted:
		body = append(body, line("ETA", human.ETA(p.ETASeconds)))
	}
	body = append(body, line("Usage", usageShort(p.Usage)), line("Total Cost", status.Cost(p.Usage)))
	for _, l := range budgets(p.Limits) {
		body = append(body, line("Limit", strings.TrimSpace(limitText(l)+" "+limitMark(l))))
	}
	return box(s, head, body)
}

// ofPlanned returns how many tasks are planned, if these are more than there are.
func ofPlanned(p *perdure.Progress) string {
	switch {
	case p.State.Terminal():
		return ""
	case p.Planned == nil:
		return " so far"
	case *p.Planned > p.Total:
		return fmt.Sprintf(" of %d planned", *p.Planned)
	}
	return ""
}

func usageShort(u perdure.Usage) string {
	text := fmt.Sprintf("%s, %s tokens", human.Count(u.Calls, "call"), human.Compact(u.InputTokens+u.OutputTokens))
	if u.UncertainCalls > 0 {
		text += ", " + status.Uncertain(u)
	}
	return text
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole) * 100
}

// activeList returns the list of running tasks.
func activeList(s *env.Stream, active []perdure.ActiveTask) string {
	if len(active) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nActive Tasks:\n")
	for _, t := range active {
		fmt.Fprintf(&b, "  - %s: %s\n", t.Task, env.OneLine(t.Prompt, max(20, s.Width-18)))
	}
	return b.String()
}

// slowLines returns the task that has run longest and the models that pause.
func slowLines(s *env.Stream, st *client.Status, now time.Time) string {
	var lines []string
	if slow := st.Slowest; slow != nil {
		lines = append(lines, status.Slowest(slow.Task, slow.Prompt, now.Sub(slow.Since), slow.Model))
	}
	lines = append(lines, st.Pauses...)
	text := ""
	for _, line := range lines {
		text += "\n" + env.OneLine(line, s.Width)
	}
	if text != "" {
		text += "\n"
	}
	return text
}

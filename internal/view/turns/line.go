package turns

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/rlm"
)

// Line is a block of a turn, or a turn without blocks, in one line.
type Line struct {
	// Turn is the number of the turn, 0 for the later blocks of a turn.
	Turn  int
	State perdure.State
	// Code is the first line of the code that is no comment, or of a reply without code; Outcome is what came of it.
	Code, Outcome string
	// Cost is that of the turn with its sub-calls, "" for its later blocks.
	Cost string
}

// NoRecord is shown of a turn that was imported from an export.
const NoRecord = "the export has no code and output"

// Lines returns a turn in lines, one for each of its blocks.
func Lines(t *rlm.Turn) []Line {
	list := make([]Line, 0, max(1, len(t.Blocks)))
	for i := range t.Blocks {
		b := &t.Blocks[i]
		list = append(list, Line{State: b.State, Code: human.OneLine(b.FirstLine()), Outcome: outcome(b)})
	}
	if len(list) == 0 {
		l := Line{Code: human.OneLine(clip.FirstLine(t.Reply)), Outcome: "no code"}
		switch {
		case t.Unrecorded:
			l.Outcome = NoRecord
		case l.Code == "":
			l.Outcome = "the model is asked"
		}
		list = append(list, l)
	}
	list[0].Turn, list[0].State = t.Turn, t.State
	list[0].Cost = cost(&t.Usage)
	return list
}

// cost is status.Cost in a few cells.
func cost(u *perdure.Usage) string {
	text := status.Cost(*u)
	switch {
	case text == status.NoCost:
		return ""
	case u.UnpricedCalls > 0 && u.CostUSD > 0:
		return human.Dollars(u.CostUSD) + " + unknown"
	}
	return text
}

// outcome is what came of a block.
func outcome(b *rlm.TurnBlock) string {
	var parts []string
	switch {
	case b.Failure != "":
		parts = append(parts, human.OneLine(clip.FirstLine(b.Failure)))
	case b.Final != "":
		parts = append(parts, "final answer")
	case b.EndedAt == nil:
		parts = append(parts, string(b.State))
	}
	if b.SubCalls > 0 {
		parts = append(parts, human.Count(b.SubCalls, "sub-call"))
	}
	if b.Failure == "" && b.OutputBytes > 0 {
		parts = append(parts, "printed "+human.Size(b.OutputBytes))
	}
	return strings.Join(parts, ", ")
}

// Name is the number of the turn, padded to the same width for all lines.
func (l *Line) Name() string {
	if l.Turn == 0 {
		return strings.Repeat(" ", len("turn 00"))
	}
	return fmt.Sprintf("turn %-2d", l.Turn)
}

// Text returns the code and the outcome in at most width cells. The outcome is cut before the
// code is shorter than a third of them.
func (l *Line) Text(width int) string {
	const arrow = " → "
	if l.Outcome == "" || l.Code == "" {
		return ansi.Truncate(l.Code+l.Outcome, width, clip.Mark)
	}
	room := max(width-ansi.StringWidth(arrow+l.Outcome), width/3)
	return ansi.Truncate(ansi.Truncate(l.Code, room, clip.Mark)+arrow+l.Outcome, width, clip.Mark)
}

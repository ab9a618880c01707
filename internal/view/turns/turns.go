// Package turns writes what the turns of a REPL did, for the views of tasks and trees.
package turns

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/internal/view/status"
	"github.com/perdure/perdure/rlm"
)

// ShownLines is how many lines of the output of a block are shown.
const ShownLines = 40

// Parse returns the turns of a task, nil if it has none.
func Parse(raw json.RawMessage) []rlm.Turn {
	var list []rlm.Turn
	if len(raw) == 0 || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

// Figures are the state of a turn, the call of its reply with tokens and cost, and what the turn
// took with its sub-calls.
func Figures(t *rlm.Turn) string {
	var parts []string
	if t.State != "" { // a daemon of an earlier version does not say
		parts = append(parts, status.Mark(t.State)+" "+string(t.State))
	}
	if t.Call != 0 { // else it was imported from a log
		parts = append(parts, t.Call.String(), human.Compact(t.InputTokens)+" in", human.Compact(t.OutputTokens)+" out")
	}
	if t.CostUSD != nil {
		parts = append(parts, human.Dollars(*t.CostUSD))
	}
	text := strings.Join(parts, ", ")
	if t.SubCalls > 0 {
		text += "; with " + human.Count(t.SubCalls, "sub-call") + ": " + status.Usage(t.Usage)
	}
	return text
}

// Facts are what a block did besides printing.
func Facts(b *rlm.TurnBlock) string {
	var parts []string
	if b.Failure != "" {
		parts = append(parts, "ended with "+human.OneLine(b.Failure))
	}
	if b.SubCalls > 0 {
		parts = append(parts, human.Count(b.SubCalls, "sub-call"))
	}
	if len(b.Variables) > 0 {
		parts = append(parts, "set "+strings.Join(b.Variables, ", "))
	}
	if b.Final != "" {
		parts = append(parts, "final answer")
	}
	if b.EndedAt == nil {
		parts = append(parts, string(cmp.Or(b.State, perdure.Running)))
	} else {
		parts = append(parts, human.Duration(b.EndedAt.Sub(b.StartedAt).Round(time.Millisecond)))
	}
	return strings.Join(parts, "; ")
}

// Output is what a block printed: its first lines, and how many follow.
func Output(b *rlm.TurnBlock) string {
	text := strings.Trim(b.Output, "\n")
	lines := strings.Split(text, "\n")
	if len(lines) <= ShownLines {
		return text
	}
	return strings.Join(lines[:ShownLines], "\n") + fmt.Sprintf("\n… %s more", human.Count(len(lines)-ShownLines, "line"))
}

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/rlm"
)

// shownOutput is how many lines of the output of a block are printed.
const shownOutput = 40

// showTurns prints the turns of a REPL.
func (a *app) showTurns(raw json.RawMessage) {
	var turns []rlm.Turn
	if len(raw) == 0 || json.Unmarshal(raw, &turns) != nil {
		return
	}
	for i := range turns {
		t := &turns[i]
		figures := fmt.Sprintf("%s, %s in, %s out", t.Call, human.Compact(t.InputTokens), human.Compact(t.OutputTokens))
		if t.CostUSD != nil {
			figures += ", " + human.Dollars(*t.CostUSD)
		}
		a.Printf("\n%s  %s\n", a.Out.Bold(fmt.Sprintf("Turn %d", t.Turn)), a.Out.Dim(figures))
		if len(t.Blocks) == 0 {
			a.indented("", t.Reply)
		}
		for k := range t.Blocks {
			a.showBlock(&t.Blocks[k])
		}
	}
}

// showBlock prints a block of code with what it did.
func (a *app) showBlock(b *rlm.TurnBlock) {
	a.indented("> ", b.Code)
	a.indented("", firstLines(b.Output, shownOutput))
	var parts []string
	if b.Failure != "" {
		parts = append(parts, "ended with "+env.OneLine(b.Failure, a.Out.Width))
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
		parts = append(parts, "running")
	} else {
		parts = append(parts, human.Duration(b.EndedAt.Sub(b.StartedAt).Round(time.Millisecond)))
	}
	a.Printf("    %s\n", a.Out.Dim(env.OneLine(strings.Join(parts, "; "), a.Out.Width-5)))
}

// indented prints text of several lines with a mark before each.
func (a *app) indented(mark, text string) {
	text = strings.Trim(text, "\n")
	if strings.TrimSpace(text) == "" {
		return
	}
	for line := range strings.SplitSeq(a.Out.Safe(text), "\n") {
		a.Printf("  %s%s\n", a.Out.Dim(mark), line)
	}
}

// firstLines returns the first lines of a text, and says how many follow.
func firstLines(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= most {
		return text
	}
	return strings.Join(lines[:most], "\n") + fmt.Sprintf("\n… %s more (see --json)", human.Count(len(lines)-most, "line"))
}

package cli

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/view/turns"
	"github.com/perdure/perdure/rlm"
)

// showTurns prints the turns of a REPL.
func (a *app) showTurns(raw json.RawMessage) {
	list := turns.Parse(raw)
	for i := range list {
		t := &list[i]
		a.Printf("\n%s  %s\n", a.Out.Bold(fmt.Sprintf("Turn %d", t.Turn)), a.Out.Dim(turns.Figures(t)))
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
	a.indented("", turns.Output(b))
	a.Printf("    %s\n", a.Out.Dim(env.OneLine(turns.Facts(b), a.Out.Width-5)))
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

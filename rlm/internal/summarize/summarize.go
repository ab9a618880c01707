// Package summarize prepares the requests that summarize results: it groups the
// results so that each group fits a request, and renders each under a title.
package summarize

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
)

// Input is text to be summarized: the result of one part, or a summary of several.
type Input struct {
	First, Last int // numbers of the parts, from 1
	Of          int
	File        string // in a batch
	Task        string // whose result it is; empty for a summary
	Text        string
	// Where names the text that the result is about; empty where the title has no place for it.
	Where string
}

// Frame is the approximate size in bytes of the frame around an input, without the
// name of its file.
const Frame = 60

// Tokens estimates the size of the input in a request.
func (p *Input) Tokens() int64 {
	return model.EstimateTokens(len(p.Text) + len(p.File) + len(p.Where) + Frame)
}

// Title describes the input.
func (p *Input) Title() string {
	switch {
	case p.First != p.Last:
		return fmt.Sprintf("results %d to %d of %d, put together", p.First, p.Last, p.Of)
	case p.Where != "":
		return fmt.Sprintf("result %d of %d: %s", p.First, p.Of, p.Where)
	case p.File != "":
		return fmt.Sprintf("result %d of %d: %q", p.First, p.Of, p.File)
	}
	return fmt.Sprintf("result %d of %d", p.First, p.Of)
}

// Cut removes the middle of an input that is larger than limit tokens, which is what
// the model by reads at once. It returns a note about the cut, or "" if none was
// needed.
func (p *Input) Cut(limit int64, by string) (note string) {
	had := p.Tokens()
	if had <= limit {
		return ""
	}
	p.Text = dedupe.WithoutMiddle(p.Text, max(0, int(limit)*4-len(p.File)-len(p.Where)-Frame))
	where := p.Title()
	if p.Task != "" {
		where += fmt.Sprintf(" (task %q)", p.Task)
	}
	return fmt.Sprintf("%s has about %d tokens and model %q reads %d of one result at once: its middle was left out of "+
		"the summary",
		where, had, by, limit)
}

// Group distributes the inputs, in order, over calls of at most room tokens; each
// call takes as many as fit.
func Group(inputs []Input, room int64) [][]Input {
	var groups [][]Input
	var used int64
	for i := range inputs {
		n := inputs[i].Tokens()
		if len(groups) == 0 || used+n > room {
			groups = append(groups, nil)
			used = 0
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], inputs[i])
		used += n
	}
	return groups
}

// Shortens reports whether a group takes a call that shortens it. Other groups are passed
// on unchanged.
func Shortens(group []Input, room int64) bool { return len(group) > 1 || group[0].Tokens() > room/2 }

// Render writes the inputs in the form that follows the prompt.
func Render(inputs []Input) string {
	var b strings.Builder
	b.WriteString("\n\n=== results ===\n")
	for i := range inputs {
		fmt.Fprintf(&b, "\n--- %s ---\n%s\n", inputs[i].Title(), strings.TrimRight(inputs[i].Text, "\n"))
	}
	b.WriteString("\n=== end of results ===\n")
	return b.String()
}

// Total returns the sum of the tokens of all inputs.
func Total(inputs []Input) int64 {
	var n int64
	for i := range inputs {
		n += inputs[i].Tokens()
	}
	return n
}

// Text returns the text of each input.
func Text(inputs []Input) []string {
	all := make([]string, len(inputs))
	for i := range inputs {
		all[i] = inputs[i].Text
	}
	return all
}

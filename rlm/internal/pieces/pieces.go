// Package pieces puts results together that are to become one: in groups that fit
// a request, each under a title.
package pieces

import (
	"fmt"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
)

// Piece is a text to be summarized: the result of one part, or the summary of
// several.
type Piece struct {
	First, Last int // numbers of the parts, from 1
	Of          int
	File        string // in a batch
	Task        string // whose result it is; empty for a summary
	Text        string
}

// Frame is about how many bytes stand around a piece, without the name of its
// file.
const Frame = 60

// Tokens estimates how long a piece is in a request.
func (p *Piece) Tokens() int64 {
	return model.EstimateTokens(len(p.Text) + len(p.File) + Frame)
}

// Title says what a piece is.
func (p *Piece) Title() string {
	switch {
	case p.First != p.Last:
		return fmt.Sprintf("results %d to %d of %d, put together", p.First, p.Last, p.Of)
	case p.File != "":
		return fmt.Sprintf("result %d of %d: %q", p.First, p.Of, p.File)
	}
	return fmt.Sprintf("result %d of %d", p.First, p.Of)
}

// Cut takes out the middle of a piece that is larger than so many tokens, which is
// what a model reads at once. It says so; nothing when the piece stays whole.
func (p *Piece) Cut(limit int64, by string) (told string) {
	had := p.Tokens()
	if had <= limit {
		return ""
	}
	p.Text = dedupe.WithoutMiddle(p.Text, max(0, int(limit)*4-len(p.File)-Frame))
	where := p.Title()
	if p.Task != "" {
		where += fmt.Sprintf(" (task %q)", p.Task)
	}
	return fmt.Sprintf("%s has about %d tokens and model %q reads %d of one result at once: its middle was left out of "+
		"the summary",
		where, had, by, limit)
}

// Group deals pieces, in their order, to as few calls as their sizes allow when
// each call takes as many as fit.
func Group(pieces []Piece, room int64) [][]Piece {
	var groups [][]Piece
	var used int64
	for i := range pieces {
		n := pieces[i].Tokens()
		if len(groups) == 0 || used+n > room {
			groups = append(groups, nil)
			used = 0
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], pieces[i])
		used += n
	}
	return groups
}

// Render writes the results as they stand behind a prompt.
func Render(pieces []Piece) string {
	var b strings.Builder
	b.WriteString("\n\n=== results ===\n")
	for i := range pieces {
		fmt.Fprintf(&b, "\n--- %s ---\n%s\n", pieces[i].Title(), strings.TrimRight(pieces[i].Text, "\n"))
	}
	b.WriteString("\n=== end of results ===\n")
	return b.String()
}

// Total is the sum of their tokens.
func Total(pieces []Piece) int64 {
	var n int64
	for i := range pieces {
		n += pieces[i].Tokens()
	}
	return n
}

// Texts are their texts.
func Texts(pieces []Piece) []string {
	all := make([]string, len(pieces))
	for i := range pieces {
		all[i] = pieces[i].Text
	}
	return all
}

package rlm

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
)

// Scored is one of the candidates of a merge by best-of-n.
type Scored struct {
	Task perdure.TaskID `json:"task_id"`
	// Score is nil when the judge returned none; Note has the reason.
	Score    *float64 `json:"score"`
	Critique string   `json:"critique,omitempty"`
	Note     string   `json:"note,omitempty"`
	Chosen   bool     `json:"chosen,omitempty"`
}

const (
	// maxScored bounds the list of candidates, keptCritique a critique in it.
	maxScored    = 1000
	keptCritique = 400
)

// best chooses the candidate with the highest score, of several the earliest.
// What was scored below, by a quality gate or a merge, is not scored again.
func (a *attempt) best(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	data := m.gather(parts)
	pieces := inputsOf(parts)
	if len(pieces) == 0 {
		return dedupe.Union(textsOf(parts)), data, nil
	}
	candidates := make([]*part, len(pieces))
	for i, p := range pieces {
		candidates[i] = &parts[p.First-1]
	}
	data.Incomplete = false
	scores, err := a.scoreAll(ctx, m, candidates, &data)
	if err != nil {
		return "", data, err
	}
	spent := data.Incomplete
	chosen := 0
	for i, s := range scores {
		if s.Score != nil && (scores[chosen].Score == nil || *s.Score > *scores[chosen].Score) {
			chosen = i
		}
	}
	won := candidates[chosen]
	data.Incomplete, data.Cut = spent || won.data.Incomplete, won.data.Cut // what the others lack does not matter
	if scores[chosen].Score == nil && len(scores) > 1 {
		data.Incomplete, a.short = true, !spent
		data.addNotes([]string{"no candidate has a score; the first one is the result"})
	}
	for i, c := range candidates {
		data.addScores(c, scores[i], i == chosen)
	}
	data.Citations = unionCitations([][]model.Citation{won.data.Citations, data.Citations}) // those of the chosen first
	data.Structured, data.Gate = won.data.Structured, won.data.Gate
	return won.text, data, nil
}

// addScores lists a candidate, or what was scored below it.
func (d *Data) addScores(c *part, s Scored, chosen bool) {
	below := c.data.Scores
	if len(below) == 0 {
		below = []Scored{s}
	}
	for _, b := range below {
		if len(below) == 1 || b.Chosen {
			b.Score, b.Critique, b.Note, b.Chosen = s.Score, s.Critique, s.Note, chosen
		}
		if len(d.Scores) < maxScored || b.Chosen {
			d.Scores = append(d.Scores, b)
		}
	}
}

// scoreAll scores the candidates, a few at once. When the budget ends, the rest
// stays without a score.
func (a *attempt) scoreAll(ctx context.Context, m *merger, candidates []*part, data *Data) ([]Scored, error) {
	scores := make([]Scored, len(candidates))
	positions := make([]int, len(candidates)) // 0: there is a score, or none is needed
	for i, c := range candidates {
		scores[i] = scoreBelow(c)
		if scores[i].Score == nil && len(candidates) > 1 {
			positions[i] = a.positions(exchangeCalls)
		}
	}
	spent := make([]bool, len(candidates)) // each is one goroutine's
	err := a.sideBySide(len(candidates), func(i int) error {
		if positions[i] == 0 {
			return nil
		}
		c := candidates[i]
		v, err := a.judged(ctx, positions[i],
			&candidate{part: c, prompt: m.prompt, title: fmt.Sprintf("candidate %d (task %q)", i+1, c.task),
				documents: func() ([]model.Document, error) { return a.documentsOf(c) }})
		if outOfBudget(err) {
			spent[i] = true
			scores[i].Note = whatEnded(err) + " before it was scored"
			return nil
		}
		if v.Scored {
			scores[i].Score = &v.Score
		}
		scores[i].Critique, scores[i].Note = clip.Bytes(v.Critique, keptCritique), v.Note
		return err
	})
	for i := range scores {
		if spent[i] {
			data.Incomplete = true
		}
		if scores[i].Note != "" {
			data.addNotes([]string{scores[i].Note})
		}
	}
	return scores, err
}

// documentsOf returns the context of a child.
func (a *attempt) documentsOf(c *part) ([]model.Document, error) {
	if a.run.reader == nil || c.context.Length == 0 {
		return nil, nil
	}
	docs, err := a.run.reader.Documents(c.context.Offset, c.context.Length)
	if err != nil {
		return nil, damaged(err)
	}
	return docs, nil
}

// scoreBelow is the score that a candidate has already.
func scoreBelow(c *part) Scored {
	if i := slices.IndexFunc(c.data.Scores, func(s Scored) bool { return s.Chosen }); i >= 0 {
		return c.data.Scores[i]
	}
	s := Scored{Task: c.task}
	if g := c.data.Gate; g != nil {
		s.Score = g.Score
	}
	return s
}

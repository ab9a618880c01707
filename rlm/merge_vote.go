package rlm

import (
	"context"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
	"github.com/perdure/perdure/rlm/internal/quote"
)

// Vote is one of the answers that a merge by vote counted.
type Vote struct {
	// Answer is the first of the equal answers, shortened to about 200 bytes;
	// Task has the whole answer.
	Answer string         `json:"answer"`
	Task   perdure.TaskID `json:"task_id"`
	// Count is how many answers were equal to it.
	Count int `json:"count"`
	// Key identifies what the answers have in common, Citations are theirs;
	// both only in tasks whose votes are counted further up.
	Key       string           `json:"key,omitempty"`
	Citations []model.Citation `json:"citations,omitempty"`
}

const (
	// shownVote bounds an answer in the list of votes, maxVotes the list; what
	// is counted further up is not bounded.
	shownVote = 200
	maxVotes  = 100
)

// vote counts equal answers and chooses the most frequent one, of several the
// earliest. Below the top only the counts matter: a majority of majorities is
// none.
func (a *attempt) vote(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	data := m.gather(parts)
	votes, abstained := count(parts)
	data.Votes, data.Abstained = votes, abstained
	if len(votes) == 0 {
		return dedupe.Union(textsOf(parts)), data, nil
	}
	best := 0
	for i := range votes {
		if votes[i].Count > votes[best].Count {
			best = i
		}
	}
	winner := votes[best]
	task, err := a.e.cfg.Store.Task(ctx, winner.Task)
	if err != nil {
		return "", data, err
	}
	won, err := dataOf(&task)
	if err != nil {
		return "", data, err
	}
	data.Citations = unionCitations([][]model.Citation{winner.Citations, data.Citations}) // those of the chosen first
	data.Structured = won.Structured
	if m.level {
		return task.Result, data, nil
	}
	data.Votes = shownVotes(votes, best)
	return task.Result, data, nil
}

// count collects the votes of parts, and those that were counted below them, in
// the order in which they came. Parts that had nothing to say abstain.
func count(parts []part) (votes []Vote, abstained int) {
	at := make(map[string]int)
	add := func(v Vote) {
		i, there := at[v.Key]
		if !there {
			at[v.Key] = len(votes)
			votes = append(votes, v)
			return
		}
		votes[i].Count += v.Count
		votes[i].Citations = unionCitations([][]model.Citation{votes[i].Citations, v.Citations})
	}
	for _, p := range parts {
		abstained += p.data.Abstained
		if below := p.data.Votes; len(below) > 0 && below[0].Key != "" {
			for _, v := range below {
				add(v)
			}
			continue
		}
		key := dedupe.Key(quote.Strip(p.text, p.data.Citations))
		if key == "" {
			if p.data.Abstained == 0 {
				abstained++
			}
			continue
		}
		add(Vote{Answer: clip.Bytes(strings.TrimSpace(p.text), shownVote), Task: p.task, Count: 1, Key: key,
			Citations: p.data.Citations})
	}
	return votes, abstained
}

// shownVotes is the list for people: the chosen answer first.
func shownVotes(votes []Vote, best int) []Vote {
	out := []Vote{votes[best]}
	for i := range votes {
		if i != best && len(out) < maxVotes {
			out = append(out, votes[i])
		}
	}
	for i := range out {
		out[i].Key, out[i].Citations = "", nil
	}
	return out
}

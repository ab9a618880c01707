package extract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// statsVersion is the version of the format that [Engine.Prepare] returns.
const statsVersion = 1

// stats are the figures of the whole context that scores rest on.
type stats struct {
	Version int `json:"version"`
	// Passages and Words count what was read.
	Passages int64 `json:"passages"`
	Words    int64 `json:"words"`
	// Holding counts for each term the passages that hold it.
	Holding map[string]int64 `json:"holding"`
	// Common is the greatest number of terms that at least commonPassages
	// passages hold together.
	Common int `json:"common"`
}

// commonPassages is how many passages must hold as many terms together before
// those that hold much less are left out.
const commonPassages = 500

// counts are stats while they are computed, by the index of the term.
type counts struct {
	passages, words int64
	holding         [maxTerms]int64
	// together counts passages by how many terms they hold.
	together [maxTerms + 1]int64
}

func (c *counts) visit(f found) {
	c.passages++
	c.words += int64(f.body.words)
	c.together[bits.OnesCount64(f.terms())]++
	for set := f.terms(); set != 0; set &= set - 1 {
		c.holding[bits.TrailingZeros64(set)]++
	}
}

func (c *counts) add(o *counts) {
	c.passages += o.passages
	c.words += o.words
	for i, n := range o.holding {
		c.holding[i] += n
	}
	for i, n := range o.together {
		c.together[i] += n
	}
}

func (c *counts) stats(q *query) *stats {
	s := &stats{Version: statsVersion, Passages: c.passages, Words: c.words, Holding: map[string]int64{}}
	for i, t := range q.terms {
		s.Holding[t.text] = c.holding[i]
	}
	n := int64(0)
	for k := len(c.together) - 1; k > 0 && s.Common == 0; k-- {
		if n += c.together[k]; n >= commonPassages {
			s.Common = k
		}
	}
	return s
}

// parseStats reads what Prepare returned.
func parseStats(raw json.RawMessage) (*stats, error) {
	s := &stats{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("read statistics: %w", err)
	}
	if s.Version != statsVersion {
		return nil, fmt.Errorf("read statistics: version %d is not %d", s.Version, statsVersion)
	}
	if s.Passages < 0 || s.Words < 0 {
		return nil, fmt.Errorf("read statistics: negative counts")
	}
	return s, nil
}

// judge makes the statistics ready for scoring.
func (s *stats) judge(q *query) *judge {
	j := &judge{t: tuned(), q: q, average: 1}
	if s.Passages > 0 && s.Words > 0 {
		j.average = float64(s.Words) / float64(s.Passages)
	}
	n := float64(max(s.Passages, 1))
	for i, t := range q.terms {
		holding := min(max(float64(s.Holding[t.text]), 0), n)
		if holding == 0 {
			// Nowhere in the context: it cannot be covered.
			continue
		}
		j.idf[i] = t.weight * math.Pow(math.Log(1+(n-holding+0.5)/(holding+0.5)), j.t.idfPower)
		j.all += j.idf[i]
	}
	j.all = cmp.Or(j.all, 1)
	j.floor = j.all * float64(min(max(s.Common, 0), maxTerms)) / float64(max(len(q.terms), 1)) / 2
	return j
}

// knows reports whether the statistics hold all terms of a query.
func (s *stats) knows(q *query) bool {
	return !slices.ContainsFunc(q.terms, func(t term) bool {
		_, ok := s.Holding[t.text]
		return !ok
	})
}

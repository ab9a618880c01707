package textindex

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"
)

// What words of a passage count by their lines, and what counts besides.
const (
	codeWeight  = 0.5
	pathWeight  = 4.0
	titleWeight = 0.7
	nearWeight  = 1.0
	nearWords   = 6
	plainFactor = 0.9
)

// Best returns the passages that begin in the ranges, which are in order, or all without any: the n
// with the highest scores by the index, ranked by their text, best first. read returns the file and
// the text of one.
func (s *Scores) Best(within []Range, n int, read func(Hit) (name, text string, err error)) ([]Hit, error) {
	hits := slices.Clone(s.hits)
	if within != nil {
		hits = hits[:0]
		for _, r := range within {
			at, _ := slices.BinarySearchFunc(s.hits, r.From, func(h Hit, from int64) int { return cmp.Compare(h.Offset, from) })
			for ; at < len(s.hits) && s.hits[at].Offset < r.To; at++ {
				hits = append(hits, s.hits[at])
			}
		}
	}
	hits = best(hits)
	hits = hits[:min(n, len(hits))]
	for i := range hits {
		name, text, err := read(hits[i])
		if err != nil {
			return nil, err
		}
		// Digits in which processors differ are dropped, so that ties are ties everywhere.
		hits[i].Score = math.Round(s.score(name, text)*1e4) / 1e4
	}
	return best(slices.DeleteFunc(hits, func(h Hit) bool { return h.Score <= 0 })), nil
}

// best sorts hits, the best first.
func best(hits []Hit) []Hit {
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Offset, b.Offset))
	})
	return hits
}

// scorer compares passages with a query, with the figures of an index.
type scorer struct {
	*Query
	terms   []term
	average float64 // words of a passage
}

// tally is what a text has of a query.
type tally struct {
	tf    []float64
	last  []int // position of the last occurrence
	near  []float64
	words int
}

// count adds the words of a text.
func (s *scorer) count(t *tally, text string, weight float64) {
	words(text, func(w word) {
		t.words++
		at, strength := s.match(w.lower)
		if strength == 0 {
			return
		}
		t.tf[at] += strength * weight
		t.last[at] = t.words
		for other := range s.terms { // the neighbours in the query
			if s.terms[at].before != other && s.terms[other].before != at || t.last[other] == 0 {
				continue
			}
			pair := at
			if s.terms[other].before == at {
				pair = other
			}
			if apart := t.words - t.last[other]; apart > 0 && apart <= nearWords {
				t.near[pair] = max(t.near[pair], strength/float64(apart))
			}
		}
	})
}

func (s *scorer) newTally() *tally {
	n := len(s.terms)
	return &tally{tf: make([]float64, n), last: make([]int, n), near: make([]float64, n)}
}

// score returns how well a passage fits the query: BM25 with its lines weighted by what they
// are and with the words of the path, more for words that are as close as in the query.
func (s *scorer) score(name, text string) float64 {
	body, names := s.newTally(), s.newTally()
	code, commented := 0, false
	for l := range strings.Lines(text) {
		weight := lineWeight(l)
		if weight != 1 {
			code++
		} else if code == 0 && isComment(l) {
			commented = true
		}
		s.count(body, l, weight)
	}
	s.count(names, name, 1)
	title := s.newTally()
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	s.count(title, strings.TrimSuffix(base, path.Ext(base)), 1)
	norm := 1 - lengthWeight + lengthWeight*float64(body.words)/max(s.average, 1)
	sum := 0.0
	for i, t := range s.terms {
		tf := body.tf[i] / norm
		if tf == 0 && names.tf[i] == 0 {
			continue
		}
		if names.tf[i] > 0 {
			tf += pathWeight * min(names.tf[i], 1)
		}
		sum += t.idf * tf * (saturation + 1) / (tf + saturation)
		if title.tf[i] > 0 {
			sum += titleWeight * t.idf / float64(max(title.words, 1))
		}
		if t.before >= 0 && body.near[i] > 0 {
			sum += nearWeight * body.near[i] * min(t.idf, s.terms[t.before].idf)
		}
	}
	if code > 0 && !commented {
		sum *= plainFactor
	}
	return sum * fileFactor(name, s.tests)
}

// isComment reports whether a line is a comment.
func isComment(line string) bool {
	line = strings.TrimSpace(line)
	return slices.ContainsFunc([]string{"//", "#", "/*", "*", "--", ";", `"""`, "'''"},
		func(mark string) bool { return strings.HasPrefix(line, mark) })
}

// lineWeight returns what the words of a line count: those of code less than those of prose and
// of comments.
func lineWeight(line string) float64 {
	if isComment(line) {
		return 1
	}
	marks := 0
	for _, c := range []byte(line) {
		if strings.IndexByte("(){}[];=<>", c) >= 0 {
			marks++
		}
	}
	if marks > 1+len(line)/100 {
		return codeWeight
	}
	return 1
}

// fileFactor returns how likely a file is to explain something: tests and generated or foreign
// code are seldom what is asked for.
func fileFactor(name string, tests bool) float64 {
	name = "/" + strings.ToLower(strings.ReplaceAll(name, `\`, "/"))
	f := 1.0
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(name, p) })
	}
	if !tests && has("_test.", ".test.", ".spec.", "/test_", "/test/", "/tests/", "/testdata/", "/__tests__/",
		"/fixtures/", "/snapshots/") {
		f *= 0.5
	}
	if has(".pb.", ".min.", "generated", ".lock", "zerrors_", "zsyscall_", "/vendor/", "/node_modules/", "/third_party/",
		"/site-packages/") {
		f *= 0.6
	}
	return f
}

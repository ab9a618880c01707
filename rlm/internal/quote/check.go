package quote

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/model"
)

// Apply separates the quotes of a reply from its answer and checks them against the
// documents. Citations are the quotes found, each once, with the text and the lines as
// they are in a document. In the answer, the marks of these name their places, see
// [Reference]; those of quotes that are not found are removed, and those without a
// definition, unless they are in code or in prompt, which can have references of other
// answers. Dropped counts these quotes and marks.
func Apply(reply, prompt string, docs []model.Document) (answer string, citations []model.Citation, dropped int) {
	answer, quotes := Parse(reply)
	index := NewIndex(docs)
	at := make(map[string]string, len(quotes)) // by label; "" for a dropped quote
	seen := make(map[model.Citation]bool)
	for i, q := range quotes {
		c, ok := model.Citation{}, false
		if i < MaxQuotes {
			c, ok = index.Find(q)
		}
		if !ok {
			dropped++
			if _, known := at[q.Label]; !known {
				at[q.Label] = ""
			}
			continue
		}
		if at[q.Label] == "" {
			at[q.Label] = Reference(c)
		}
		if !seen[c] {
			seen[c] = true
			citations = append(citations, c)
		}
	}
	answer, undefined := replaceMarks(answer, at, func(mark string) bool {
		_, start, _ := ParsePlace(mark[len("[^") : len(mark)-1])
		return start > 0 && strings.Contains(prompt, mark)
	})
	return answer, citations, dropped + undefined
}

// Reference is the mark of a citation in the answers of parts, which can be merged with
// others: it names the place, and [Number] makes a number of it.
func Reference(c model.Citation) string {
	return fmt.Sprintf("[^%s:%d-%d]", c.File, c.StartLine, c.EndLine)
}

// Number replaces the references in an answer by numbers, [^1] for the first citation,
// and sorts the citations: quotes in the order in which the answer refers to them, then
// other quotes, then other citations.
func Number(answer string, citations []model.Citation) (string, []model.Citation) {
	type referred struct {
		c   model.Citation
		ref string
		at  int // in the answer; -1 if it does not refer to it
	}
	var quotes []referred
	var rest []model.Citation
	for _, c := range citations {
		if c.Kind != model.CitedQuote {
			rest = append(rest, c)
			continue
		}
		r := referred{c: c, ref: Reference(c)}
		r.at = strings.Index(answer, r.ref)
		quotes = append(quotes, r)
	}
	if len(quotes) == 0 {
		return answer, citations
	}
	slices.SortStableFunc(quotes, func(x, y referred) int { // those at -1 come last
		return cmp.Compare(uint(x.at), uint(y.at)) //nolint:gosec // -1 becomes the largest
	})
	out := make([]model.Citation, 0, len(citations))
	var pairs []string
	for i, r := range quotes {
		out = append(out, r.c)
		if r.at >= 0 {
			pairs = append(pairs, r.ref, fmt.Sprintf("[^%d]", i+1))
		}
	}
	return strings.NewReplacer(pairs...).Replace(answer), append(out, rest...)
}

// Strip removes the references to citations from an answer.
func Strip(answer string, citations []model.Citation) string {
	for _, c := range citations {
		if c.Kind == model.CitedQuote {
			answer = strings.ReplaceAll(answer, " "+Reference(c), "")
			answer = strings.ReplaceAll(answer, Reference(c), "")
		}
	}
	return answer
}

package quote

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	at := make(map[string]string, len(quotes)) // by label; "" for a dropped quote
	seen := make(map[model.Citation]bool)
	for i, q := range quotes {
		c, ok := model.Citation{}, false
		if i < MaxQuotes {
			c, ok = Find(q, docs)
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

// Find looks for a quote in the documents: first in those of the file it names, then in
// those of files whose names end with that name, then in all. The text must be there as it
// is, or with other white space. Of several places the one nearest to the lines that
// the quote names counts. The citation has the text of the document.
func Find(q Quote, docs []model.Document) (model.Citation, bool) {
	text := strings.Trim(strings.ToValidUTF8(q.Text, "\uFFFD"), "\r\n")
	if len(text) > MaxBytes || strings.IndexFunc(text, sayable) < 0 {
		return model.Citation{}, false
	}
	for _, among := range candidates(q.File, docs) {
		for _, search := range []func(text, in string) []span{exact, spaced} {
			if c, ok := nearest(q.Start, text, among, search); ok {
				return c, true
			}
		}
	}
	return model.Citation{}, false
}

// sayable reports whether a quote that has only such runes says anything.
func sayable(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsSymbol(r) }

// candidates returns the documents to search, in groups of decreasing agreement.
func candidates(file string, docs []model.Document) [][]model.Document {
	var named, similar, others []model.Document
	for _, d := range docs {
		switch {
		case d.File == file:
			named = append(named, d)
		case file != "" && (strings.HasSuffix(d.File, "/"+file) || strings.HasSuffix(file, "/"+d.File)):
			similar = append(similar, d)
		default:
			others = append(others, d)
		}
	}
	return [][]model.Document{named, similar, others}
}

// span is a range of bytes of a document's text.
type span struct{ from, to int }

// maxPlaces bounds the places that are compared of a quote that is there often.
const maxPlaces = 1000

// nearest returns the place of a text that is nearest to a line; 0 stands for the first.
func nearest(line int, text string, docs []model.Document, search func(text, in string) []span) (model.Citation, bool) {
	var best model.Citation
	distance := -1
	for _, d := range docs {
		counted, at := 0, d.StartLine
		for _, s := range search(text, d.Text) {
			at += strings.Count(d.Text[counted:s.from], "\n")
			counted = s.from
			away := max(at-line, line-at)
			if distance >= 0 && away >= distance {
				continue
			}
			distance = away
			best = cite(d.File, at, d.Text[s.from:s.to])
		}
	}
	return best, distance >= 0
}

func cite(file string, line int, text string) model.Citation {
	sum := sha256.Sum256([]byte(text))
	return model.Citation{Kind: model.CitedQuote, File: file, StartLine: line, EndLine: line + strings.Count(text, "\n"),
		Text: text, SHA256: hex.EncodeToString(sum[:])}
}

// exact finds a text as it is.
func exact(text, in string) []span {
	var out []span
	for at := 0; len(out) < maxPlaces; {
		i := strings.Index(in[at:], text)
		if i < 0 {
			return out
		}
		out = append(out, span{at + i, at + i + len(text)})
		at += i + 1
	}
	return out
}

// spaced finds a text whose white space differs: any run of it stands for any other.
func spaced(text, in string) []span {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	var out []span
	for at := 0; len(out) < maxPlaces; {
		i := strings.Index(in[at:], words[0])
		if i < 0 {
			return out
		}
		from := at + i
		if to, ok := follow(words, in, from); ok {
			out = append(out, span{from, to})
		}
		at = from + 1
	}
	return out
}

// follow reports whether the words stand one after another from a place on, with white
// space between them, and where they end.
func follow(words []string, in string, at int) (end int, ok bool) {
	for i, w := range words {
		if i > 0 {
			blank := len(in[at:]) - len(strings.TrimLeftFunc(in[at:], unicode.IsSpace))
			if blank == 0 {
				return 0, false
			}
			at += blank
		}
		if !strings.HasPrefix(in[at:], w) {
			return 0, false
		}
		at += len(w)
	}
	return at, at == len(in) || utf8.RuneStart(in[at])
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

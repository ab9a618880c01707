package quote

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/model"
)

// Index finds quotes in documents. It is for one goroutine.
type Index struct{ docs []document }

// document is a text in which quotes are searched.
type document struct {
	model.Document
	// words is the text with normalized white space, nil until it is needed.
	words *normalized
}

// NewIndex returns an index of the documents.
func NewIndex(docs []model.Document) *Index {
	x := &Index{docs: make([]document, len(docs))}
	for i, d := range docs {
		x.docs[i].Document = d
	}
	return x
}

// Find looks for a quote in the documents: first in those of the file it names, then in
// those of files whose names end with that name, then in all. The text must be there as it
// is, or with other white space. Of several places the one nearest to the lines that
// the quote names counts. The citation has the text of the document.
func (x *Index) Find(q Quote) (model.Citation, bool) {
	text := strings.Trim(strings.ToValidUTF8(q.Text, "\uFFFD"), "\r\n")
	if len(text) > MaxBytes || strings.IndexFunc(text, sayable) < 0 {
		return model.Citation{}, false
	}
	for _, among := range x.candidates(q.File) {
		for _, search := range []func(*document, string) []span{(*document).exact, (*document).spaced} {
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
func (x *Index) candidates(file string) [][]*document {
	var named, similar, others []*document
	for i := range x.docs {
		d := &x.docs[i]
		switch {
		case d.File == file:
			named = append(named, d)
		case file != "" && (strings.HasSuffix(d.File, "/"+file) || strings.HasSuffix(file, "/"+d.File)):
			similar = append(similar, d)
		default:
			others = append(others, d)
		}
	}
	return [][]*document{named, similar, others}
}

// span is a range of bytes of a document's text.
type span struct{ from, to int }

// maxPlaces bounds the places that are compared of a quote that is there often.
const maxPlaces = 1000

// nearest returns the place of a text that is nearest to a line; 0 stands for the first.
func nearest(line int, text string, docs []*document, search func(*document, string) []span) (model.Citation, bool) {
	var best model.Citation
	distance := -1
	for _, d := range docs {
		counted, at := 0, d.StartLine
		for _, s := range search(d, text) {
			at += strings.Count(d.Text[counted:s.from], "\n")
			counted = s.from
			away := max(at-line, line-at)
			if distance >= 0 && away >= distance {
				continue
			}
			distance = away
			best = cite(d.File, at, d.Text[s.from:s.to])
			if begin := strings.LastIndexByte(d.Text[:s.from], '\n') + 1; s.from-begin >= longLine {
				best.StartColumn = s.from - begin + 1
			}
			if at == d.StartLine && d.StartColumn > 0 {
				best.StartColumn = d.StartColumn + s.from
			}
		}
	}
	return best, distance >= 0
}

// longLine is how far behind the beginning of its line a quote is cited with its column.
const longLine = 1 << 10

func cite(file string, line int, text string) model.Citation {
	sum := sha256.Sum256([]byte(text))
	return model.Citation{Kind: model.CitedQuote, File: file, StartLine: line, EndLine: line + strings.Count(text, "\n"),
		Text: text, SHA256: hex.EncodeToString(sum[:])}
}

// exact finds a text as it is.
func (d *document) exact(text string) []span { return places(text, d.Text) }

// spaced finds a text whose white space differs: any run of it stands for any other.
func (d *document) spaced(text string) []span {
	if d.words == nil {
		d.words = normalize(d.Text)
	}
	out := places(strings.Join(strings.Fields(text), " "), d.words.text)
	kept := out[:0]
	for _, s := range out {
		s = span{d.words.original(s.from), d.words.original(s.to-1) + 1}
		if s.to == len(d.Text) || utf8.RuneStart(d.Text[s.to]) {
			kept = append(kept, s)
		}
	}
	return kept
}

// places returns the first places of a text in another.
func places(text, in string) []span {
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

// normalized is a text each of whose runs of white space is one blank.
type normalized struct {
	text string
	// moves are the places behind runs that were longer than the blank, in order.
	moves []move
}

// move says that the text from a place on is at another place of the original.
type move struct{ at, original int }

func normalize(text string) *normalized {
	n := &normalized{}
	var b strings.Builder
	b.Grow(len(text))
	for at := 0; at < len(text); {
		from := strings.IndexFunc(text[at:], unicode.IsSpace)
		if from < 0 {
			b.WriteString(text[at:])
			break
		}
		b.WriteString(text[at : at+from])
		b.WriteByte(' ')
		rest := strings.TrimLeftFunc(text[at+from:], unicode.IsSpace)
		blank := len(text) - at - from - len(rest)
		if at += from + blank; blank > 1 {
			n.moves = append(n.moves, move{b.Len(), at})
		}
	}
	n.text = b.String()
	return n
}

// original returns the place in the original of a byte of the text that is not a blank.
func (n *normalized) original(at int) int {
	i, found := slices.BinarySearchFunc(n.moves, at, func(m move, at int) int { return cmp.Compare(m.at, at) })
	if !found {
		if i == 0 {
			return at
		}
		i--
	}
	return n.moves[i].original + at - n.moves[i].at
}

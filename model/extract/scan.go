package extract

import (
	"math/bits"
	"strings"

	"github.com/perdure/perdure/model"
)

// found is the passage that the scanner is currently visiting.
type found struct {
	span
	// inPath and inHead are the terms that the path of the file and the
	// declarations or headings around the passage contain.
	inPath, inHead uint64
	// inName are the terms in the name of the file, named the share of that
	// name they are.
	inName uint64
	named  float64
	// plain is set for program text that no comment introduces, inside for
	// passages from the middle of something.
	plain, inside bool
	// body counts the terms of the passage itself; valid during the visit only.
	body *tally
}

// terms returns the terms of the passage, its path and the headings around it.
func (f *found) terms() uint64 { return f.body.terms | f.inPath | f.inHead }

// scanner goes through documents passage by passage. It serves one goroutine.
type scanner struct {
	t      tuning
	reader reader
	spans  []span
	body   *tally
	around *tally
	// heads are the open declarations or headings, outermost first.
	heads []head
}

// head is a declaration or heading that the lines below it belong to.
type head struct {
	indent uint8
	terms  uint64
}

func newScanner(q *query) *scanner {
	return &scanner{t: tuned(), body: newTally(q.m), around: newTally(q.m)}
}

// each calls visit for every passage of a document.
func (s *scanner) each(d model.Document, visit func(found)) {
	lang := languageOf(d.File)
	s.reader.read(d.Text, lang)
	s.spans = s.reader.spans(max(d.StartLine, 1), s.spans[:0])
	s.heads = s.heads[:0]
	of := found{body: s.body, inPath: s.termsOf(d.File)}
	of.inName, of.named = s.name(d.File)
	for _, sp := range s.spans {
		first := s.reader.lines[sp.first]
		s.closeHeads(first)
		f := of
		f.span = sp
		f.plain = lang.source && first.kind != commentLine
		f.inside = lang.source && first.begins != begin && sp.first > 0
		for _, h := range s.heads {
			f.inHead |= h.terms
		}
		s.body.reset()
		for i := sp.first; i < sp.last; i++ {
			s.line(s.reader.lines[i], lang)
		}
		visit(f)
	}
}

// termsOf returns the terms that a short text holds.
func (s *scanner) termsOf(text string) uint64 {
	s.around.reset()
	s.around.scan(text, 1)
	return s.around.terms
}

// name returns the terms in the name of a file and the share of it they are.
func (s *scanner) name(file string) (terms uint64, share float64) {
	base := baseName(file)
	if dot := strings.LastIndexByte(base, '.'); dot > 0 {
		base = base[:dot]
	}
	terms = s.termsOf(base)
	return terms, min(float64(bits.OnesCount64(terms))/float64(max(s.around.words, 1)), 1)
}

// line counts the words of a line by what kind of line it is.
func (s *scanner) line(l line, lang language) {
	text := s.reader.text[l.start:l.end]
	switch l.kind {
	case commentLine:
		s.comment(text)
	case importLine:
		s.body.scan(text, s.t.imported)
	case declLine:
		name := text[l.name[0]:l.name[1]]
		s.body.scan(text[:l.name[0]], s.t.code)
		s.body.scan(name, s.t.name)
		s.body.scan(text[l.name[1]:], s.t.code)
		s.openHead(l, s.termsOf(name))
	case headingLine:
		s.body.scan(text, s.t.name)
		s.openHead(l, s.termsOf(text))
	case plainLine:
		if lang.source {
			s.body.scan(text, s.t.code)
			return
		}
		s.body.scan(text, s.t.text)
	}
}

// comment counts the words of a comment line. What tags such as @param give in braces are
// types, and a line with @typedef or @template only names one.
func (s *scanner) comment(text string) {
	tag := strings.IndexByte(text, '@')
	if tag < 0 {
		s.body.scan(text, s.t.text)
		return
	}
	rest := text[tag:]
	if strings.HasPrefix(rest, "@typedef") || strings.HasPrefix(rest, "@template") {
		s.body.scan(text, s.t.alias)
		return
	}
	from, to := strings.IndexByte(rest, '{'), strings.LastIndexByte(rest, '}')
	if from < 0 || to < from {
		s.body.scan(text, s.t.text)
		return
	}
	s.body.scan(text[:tag+from], s.t.text)
	s.body.scan(rest[from:to], s.t.types)
	s.body.scan(rest[to:], s.t.text)
}

func (s *scanner) openHead(l line, terms uint64) {
	s.closeHeads(l)
	s.heads = append(s.heads, head{l.indent, terms})
}

// closeHeads drops the declarations that a passage beginning with l is no
// longer inside of.
func (s *scanner) closeHeads(l line) {
	if l.kind == plainLine && !s.reader.lang.source {
		return
	}
	for len(s.heads) > 0 && s.heads[len(s.heads)-1].indent >= l.indent {
		s.heads = s.heads[:len(s.heads)-1]
	}
}

// judge scores passages with the statistics of the whole context.
type judge struct {
	t   tuning
	q   *query
	idf [maxTerms]float64
	// average is the mean number of words of a passage.
	average float64
	// all is the sum of the idf of all terms that occur anywhere.
	all float64
	// floor is how much of all a passage has to hold to be worth anything,
	// when many passages hold more.
	floor float64
}

// score returns how well a passage answers the query: BM25 over the passage,
// its path and the declarations around it, with a bonus for terms that are
// close together, and less for a passage that covers only a part of the query. It is
// 0 for passages that hold so little that others are sure to be better.
func (j *judge) score(f *found) float64 {
	norm := 1 - j.t.b + j.t.b*float64(f.body.words)/j.average
	sum, covered := 0.0, 0.0
	for set := f.terms(); set != 0; set &= set - 1 {
		i := bits.TrailingZeros64(set)
		bit := uint64(1) << i
		tf := 0.0
		if f.body.terms&bit != 0 {
			tf = f.body.tf[i] / norm
		}
		if f.inPath&bit != 0 {
			tf += j.t.path
		}
		if f.inHead&bit != 0 {
			tf += j.t.head
		}
		sum += j.idf[i] * tf * (j.t.k1 + 1) / (tf + j.t.k1)
		covered += j.idf[i]
		if f.inName&bit != 0 {
			sum += j.t.title * f.named * j.idf[i]
		}
	}
	if covered < j.floor {
		return 0
	}
	for p, pair := range j.q.near {
		if near := f.body.near[p]; near > 0 {
			sum += j.t.near * near * min(j.idf[pair[0]], j.idf[pair[1]])
		}
	}
	sum *= 1 - j.t.cover + j.t.cover*covered/j.all
	if f.plain {
		sum *= j.t.uncommented
	}
	if f.inside {
		sum *= j.t.inside
	}
	return sum
}

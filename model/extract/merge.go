package extract

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/perdure/perdure/model"
)

// sameShare is the share of lines two passages must have in common to count
// as one passage found twice.
const sameShare = 0.7

// Merge ranks the citations of several answers to one prompt together and
// returns the best topK (0 or less: all): by score, then by file and line.
// Left out are passages found before, passages that overlap a better one of
// the same file, and those that are nearly the same text as a better one.
//
// Citations without any score, of models that do not rank, are ranked by what
// they themselves hold of the prompt. The result depends on the set of
// citations only, not on their order; the input is not changed.
func Merge(prompt string, found [][]model.Citation, topK int) []model.Citation {
	all := slices.Concat(found...)
	if !slices.ContainsFunc(all, func(c model.Citation) bool { return c.Score != 0 }) {
		all = scored(prompt, all)
	}
	slices.SortFunc(all, func(a, b model.Citation) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.File, b.File),
			cmp.Compare(a.StartLine, b.StartLine), cmp.Compare(a.EndLine, b.EndLine), cmp.Compare(a.Text, b.Text))
	})
	p := picker{limit: topK}
	for _, c := range all {
		if p.full() {
			break
		}
		p.pick(c)
	}
	return p.picked
}

// scored gives citations without a score one.
func scored(prompt string, all []model.Citation) []model.Citation {
	q := newQuery(prompt, newLexicon(), newAlphabet())
	document := func(c model.Citation) model.Document {
		return model.Document{File: c.File, StartLine: c.StartLine, Text: c.Text}
	}
	total := &counts{}
	scan := newScanner(q)
	for _, c := range all {
		scan.each(document(c), total.visit)
	}
	j := total.stats(q).judge(q)
	out := slices.Clone(all)
	for i, c := range all {
		scan.each(document(c), func(f found) { out[i].Score = max(out[i].Score, rounded(j.score(&f))) })
	}
	return out
}

// picker takes citations, best first, and keeps those that add something.
type picker struct {
	// limit is how many are kept; 0 or less: all.
	limit  int
	picked []model.Citation
	hashes map[string]bool
	lines  [][]uint64
	seed   maphash.Seed
}

func (p *picker) full() bool { return p.limit > 0 && len(p.picked) >= p.limit }

func (p *picker) pick(c model.Citation) {
	if p.hashes == nil {
		p.hashes, p.seed = map[string]bool{}, maphash.MakeSeed()
	}
	if c.SHA256 != "" && p.hashes[c.SHA256] {
		return
	}
	lines := p.fingerprint(c.Text)
	for i, other := range p.picked {
		overlaps := c.File == other.File && c.StartLine <= other.EndLine && other.StartLine <= c.EndLine
		if overlaps || alike(lines, p.lines[i]) {
			return
		}
	}
	p.hashes[c.SHA256] = true
	p.picked, p.lines = append(p.picked, c), append(p.lines, lines)
}

// fingerprint returns the sorted hashes of the words of a text, each with the
// word before it.
func (p *picker) fingerprint(text string) []uint64 {
	var out []uint64
	var before uint64
	for w := range strings.FieldsSeq(text) {
		h := maphash.String(p.seed, w)
		out = append(out, h^(before*0x9e3779b97f4a7c15))
		before = h
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// alike reports whether two fingerprints are nearly the same.
func alike(a, b []uint64) bool {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	if long == 0 || float64(short) < sameShare*float64(long) {
		return false
	}
	common := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			common, i, j = common+1, i+1, j+1
		}
	}
	return float64(common) >= sameShare*float64(len(a)+len(b)-common)
}

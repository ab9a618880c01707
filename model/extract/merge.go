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

// Merge ranks the citations of several answers to one prompt together and returns the best topK (0
// or less: all): by score, then by file and place. Left out are passages found before, passages
// that overlap a better one of the same file, and those that are nearly the same text as a better
// one. The result depends on the set of citations only, not on their order; the input is not
// changed.
func Merge(found [][]model.Citation, topK int) []model.Citation {
	all := slices.Concat(found...)
	slices.SortFunc(all, func(a, b model.Citation) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.File, b.File), cmp.Compare(a.StartLine, b.StartLine),
			cmp.Compare(a.StartColumn, b.StartColumn), cmp.Compare(a.EndLine, b.EndLine), cmp.Compare(a.Text, b.Text))
	})
	p := picker{limit: topK, hashes: map[string]bool{}, seed: maphash.MakeSeed()}
	for _, c := range all {
		if p.limit > 0 && len(p.picked) >= p.limit {
			break
		}
		p.pick(c)
	}
	return p.picked
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

func (p *picker) pick(c model.Citation) {
	if c.SHA256 != "" && p.hashes[c.SHA256] {
		return
	}
	lines := p.fingerprint(c.Text)
	for i, other := range p.picked {
		if overlap(c, other) || alike(lines, p.lines[i]) {
			return
		}
	}
	p.hashes[c.SHA256] = true
	p.picked, p.lines = append(p.picked, c), append(p.lines, lines)
}

// overlap reports whether two passages have text in common. Those of one line have columns.
func overlap(a, b model.Citation) bool {
	if a.File != b.File || a.StartLine > b.EndLine || b.StartLine > a.EndLine {
		return false
	}
	if a.StartLine != b.EndLine || b.StartLine != a.EndLine {
		return true
	}
	return max(a.StartColumn, 1) < max(b.StartColumn, 1)+len(b.Text) &&
		max(b.StartColumn, 1) < max(a.StartColumn, 1)+len(a.Text)
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

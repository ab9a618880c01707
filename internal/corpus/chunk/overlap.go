package chunk

import (
	"bytes"

	"github.com/perdure/perdure/internal/corpus/boundary"
)

// overlap limits how much a part repeats of the one before it.
type overlap struct {
	most  int64 // bytes
	lines int   // 0 for any number
	// records is set if parts of tables and logs overlap too.
	records bool
}

func newOverlap(cfg Config) overlap {
	if cfg.OverlapTokens == 0 {
		most := int64(cfg.ChunkTokens/20) * bytesPerToken
		return overlap{most: min(most, defaultOverlapBytes), lines: defaultOverlapLines}
	}
	return overlap{most: int64(max(cfg.OverlapTokens, 0)) * bytesPerToken, records: true}
}

// repeat returns the number of bytes that the part that begins at begin repeats of the one
// that began at before: whole units of the highest rank that fit, else whole lines; 0 if
// the part begins within a line. It leaves room for the largest unit that begins the part.
func (c *cutter) repeat(before, begin int64) (int64, error) {
	most := min(c.s.overlap.most, begin-before)
	if most <= 0 {
		return 0, nil
	}
	unit, err := c.fitting(begin)
	if err != nil {
		return 0, err
	}
	most = min(most, c.most-unit)
	if most <= 0 {
		return 0, nil
	}
	marks, err := c.outline.Marks(begin)
	if err != nil {
		return 0, err
	}
	from := begin - most
	at, rank := begin, boundary.Line
	for _, m := range marks[firstMark(marks, from):firstMark(marks, begin)] {
		if m.Rank > rank {
			at, rank = m.Offset, m.Rank
		}
	}
	return c.lines(before, from, at, begin)
}

// fitting returns the length of the largest unit that begins a part and fits in it; 0 if
// none begins.
func (c *cutter) fitting(begin int64) (int64, error) {
	marks, err := c.outline.Marks(min(begin+c.most+blankBytes+1, c.end))
	if err != nil {
		return 0, err
	}
	i := firstMark(marks, begin)
	if i == len(marks) {
		return 0, nil
	}
	if _, ok := c.gap(begin, marks[i].Offset); !ok && marks[i].Offset > begin {
		return 0, c.err
	}
	// The units of a mark end at the first marks of rising ranks.
	rank, size := boundary.Line, int64(0)
	first := marks[i].Rank
	for i++; i <= len(marks) && rank < first; i++ {
		m := boundary.Mark{Offset: c.end, Rank: boundary.Ranks}
		if i < len(marks) {
			m = marks[i]
		}
		if m.Rank <= rank {
			continue
		}
		if !c.fits(begin, m.Offset) {
			break
		}
		rank, size = m.Rank, min(m.Offset-begin, c.most)
	}
	return size, c.err
}

// lines returns the number of bytes that are repeated: from unit on if that is before
// begin, and at most the allowed number of lines.
func (c *cutter) lines(before, from, unit, begin int64) (int64, error) {
	low := max(from-1, before) // the byte before the range shows whether a line starts there
	text, err := c.s.read(low, begin)
	if err != nil || !bytes.HasSuffix(text, []byte{'\n'}) {
		return 0, err
	}
	limit := 0
	if unit < begin {
		limit = int(unit - low)
	}
	start := len(text)
	for n := 0; c.s.overlap.lines == 0 || n < c.s.overlap.lines; n++ {
		i := bytes.LastIndexByte(text[:max(start-1, 0)], '\n')
		if i < 0 || i+1 < limit {
			break
		}
		start = i + 1
	}
	return int64(len(text) - start), nil
}

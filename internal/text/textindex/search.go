package textindex

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
)

// The parameters of BM25, and the power that keeps a single rare word from deciding everything.
const (
	saturation   = 1.0  // k1
	lengthWeight = 0.35 // b
	idfPower     = 0.85
)

// ErrDamaged is returned for an index that is not as it was written, or of another version.
var ErrDamaged = errors.New("index is damaged or of another version")

// Index finds passages. It is safe for concurrent use.
type Index struct {
	r   io.ReaderAt
	dir directory
}

// Open reads an index and compares it with its checksum.
func Open(r io.ReaderAt, size int64) (*Index, error) {
	tail := make([]byte, 8+len(version))
	if size < int64(len(tail)) {
		return nil, ErrDamaged
	}
	end := size - int64(len(tail))
	if _, err := r.ReadAt(tail, end); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[8:]) != version || n > end {
		return nil, ErrDamaged
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.CopyBuffer(sum, io.NewSectionReader(r, 0, end), make([]byte, 256<<10)); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	x := &Index{r: r}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, end-n); err != nil {
		return nil, fmt.Errorf("open index: %w", err)
	}
	if sum.Sum32() != binary.LittleEndian.Uint32(tail[4:]) || json.Unmarshal(raw, &x.dir) != nil {
		return nil, ErrDamaged
	}
	return x, nil
}

// Hit is a passage that has words of a query.
type Hit struct {
	Offset int64
	Length int
	Score  float64
}

// Range is a range of offsets.
type Range struct{ From, To int64 }

// Scores are the passages of an index that have words of a query, in order, with their scores by
// the index alone.
type Scores struct {
	*scorer
	hits []Hit
}

// Score returns the scores for a query.
func (x *Index) Score(q *Query) (*Scores, error) {
	s := &scorer{Query: q, terms: slices.Clone(q.terms), average: float64(x.dir.Words) / max(float64(x.dir.Passages), 1)}
	holding := make([]float64, len(q.terms))
	lists := make(map[uint32][]list, len(q.forms))
	for h, forms := range q.forms {
		for i := range x.dir.Segments {
			l, err := x.list(&x.dir.Segments[i], h)
			if err != nil {
				return nil, err
			}
			lists[h] = append(lists[h], l)
			for _, f := range forms {
				holding[f.term] += float64(l.n)
			}
		}
	}
	for i := range s.terms {
		if h, all := holding[i], float64(x.dir.Passages); h > 0 {
			h = min(h, all)
			s.terms[i].idf = math.Pow(math.Log(1+(all-h+0.5)/(h+0.5)), idfPower)
		}
	}
	all := &Scores{scorer: s}
	for i := range x.dir.Segments {
		found, err := x.score(s, &x.dir.Segments[i], func(h uint32) list { return lists[h][i] })
		if err != nil {
			return nil, err
		}
		all.hits = append(all.hits, found...)
	}
	slices.SortFunc(all.hits, func(a, b Hit) int { return cmp.Compare(a.Offset, b.Offset) })
	return all, nil
}

// list is a list of postings in a segment.
type list struct {
	n   int
	raw []byte
}

// list returns the postings of a hash, none for one that is not in the segment.
func (x *Index) list(s *segment, h uint32) (l list, err error) {
	terms := s.At + passageSize*int64(s.Passages)
	entry := make([]byte, termSize+4)
	read := func(i, n int) {
		if _, failed := x.r.ReadAt(entry[:n], terms+termSize*int64(i)); failed != nil {
			err = cmp.Or(err, failed)
		}
	}
	at := sort.Search(s.Terms, func(i int) bool {
		read(i, 4)
		return binary.LittleEndian.Uint32(entry) >= h
	})
	if at == s.Terms || err != nil {
		return l, err
	}
	read(at, termSize)
	if err != nil || binary.LittleEndian.Uint32(entry) != h {
		return l, err
	}
	value := binary.LittleEndian.Uint32(entry[4:])
	if value&single != 0 {
		return list{n: 1, raw: binary.AppendUvarint(nil, uint64(value&^single))}, nil
	}
	from := terms + termSize*int64(s.Terms) + int64(value)
	most := min(16, int64(s.Lists)-int64(value))
	head := make([]byte, max(most, 0))
	if _, err := x.r.ReadAt(head, from); err != nil {
		return l, err
	}
	n, size := binary.Uvarint(head)
	if size <= 0 || n > uint64(s.Passages) { //nolint:gosec // not negative
		return l, ErrDamaged
	}
	l.n = int(n) //nolint:gosec // at most Passages
	l.raw = make([]byte, min(int64(l.n)*5, int64(s.Lists)-int64(value)-int64(size)))
	_, err = x.r.ReadAt(l.raw, from+int64(size))
	return l, err
}

// score returns the passages of a segment with their scores by the index alone.
func (x *Index) score(s *scorer, seg *segment, lists func(uint32) list) ([]Hit, error) {
	passages := make([]byte, passageSize*seg.Passages)
	if _, err := x.r.ReadAt(passages, seg.At); err != nil {
		return nil, err
	}
	scores := make([]float32, seg.Passages)
	for _, h := range slices.Sorted(maps.Keys(s.forms)) { // sums of numbers depend on their order
		forms, l := s.forms[h], lists(h)
		id := 0
		for ; l.n > 0; l.n-- {
			v, size := binary.Uvarint(l.raw)
			if size <= 0 || v>>2 >= uint64(seg.Passages-id) { //nolint:gosec // not negative
				return nil, ErrDamaged
			}
			l.raw = l.raw[size:]
			id += int(v >> 2) //nolint:gosec // less than Passages
			n := float64(binary.LittleEndian.Uint16(passages[passageSize*id+6:]))
			tf := float64(v&3+1) / (1 - lengthWeight + lengthWeight*n/max(s.average, 1))
			for _, f := range forms {
				scores[id] += float32(s.terms[f.term].idf * f.weight * tf * (saturation + 1) / (tf + saturation))
			}
		}
	}
	var hits []Hit
	for id, score := range scores {
		at := seg.Base + int64(binary.LittleEndian.Uint32(passages[passageSize*id:]))
		if score > 0 {
			hits = append(hits, Hit{Offset: at, Score: float64(score),
				Length: int(binary.LittleEndian.Uint16(passages[passageSize*id+4:]))})
		}
	}
	return hits, nil
}

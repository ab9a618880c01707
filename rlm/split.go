package rlm

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/internal/pack"
	"github.com/perdure/perdure/model"
)

const (
	// bytesPerToken is the estimate of [model.EstimateTokens].
	bytesPerToken = 4
	// headingBytes is what a further file in a chunk takes beside its text and
	// its name when it is shown to a model; see [model.Render].
	headingBytes = 100
	// maxOverlapLines and maxOverlapBytes bound what two pieces of a file share.
	maxOverlapLines = 10
	maxOverlapBytes = 64 << 10
	// searchBytes bounds how far before the largest possible end of a piece a
	// better place to cut is looked for.
	searchBytes = 256 << 10
	// contextBytes are read around a place to cut to tell what it is.
	contextBytes = 256
)

// SplitConfig says how large the parts of a context are.
type SplitConfig struct {
	// ChunkTokens is the size of the largest chunk. Required.
	ChunkTokens int
	// OverlapTokens bounds the lines that a piece of a file repeats from the end
	// of the piece before it: whole lines, at most 10. Defaults to a twentieth of
	// ChunkTokens; negative for none. At most half of ChunkTokens.
	OverlapTokens int
	// PerFile keeps every file in chunks of its own.
	PerFile bool
}

func (c SplitConfig) withDefaults() SplitConfig {
	if c.OverlapTokens == 0 {
		c.OverlapTokens = c.ChunkTokens / 20
	}
	c.OverlapTokens = max(c.OverlapTokens, 0)
	return c
}

func (c SplitConfig) validate() error {
	var errs []error
	if c.ChunkTokens < 1 {
		errs = append(errs, fmt.Errorf("split config: ChunkTokens is %d, want 1 or more", c.ChunkTokens))
	}
	if c.OverlapTokens > c.ChunkTokens/2 {
		errs = append(errs, fmt.Errorf("split config: OverlapTokens is %d, want at most half of ChunkTokens, %d", c.OverlapTokens, c.ChunkTokens))
	}
	return errors.Join(errs...)
}

// Chunk is a part of a pack: whole files, or a piece of one file.
type Chunk struct {
	// Offset and Length are its range in the pack, in bytes.
	Offset, Length int64
	// Overlap is how many of its first bytes the chunk before it has too.
	Overlap int64
	// Tokens estimates its texts and the headings of all files but the first.
	Tokens int64
	// File is the number of its first file in the manifest, counted from 0.
	File int
}

// End is the offset after its last byte.
func (c Chunk) End() int64 { return c.Offset + c.Length }

// Split divides a pack into chunks of at most ChunkTokens, in order, that
// together hold every byte of every file. Files that fit together share a chunk;
// a file that fits in one is never cut. A larger one is cut where a heading, a
// declaration or a paragraph begins, else at the end of a line; only a line
// longer than a chunk is cut, between two characters.
//
// It reads little more than the surroundings of the cuts, and its memory use
// does not grow with the pack but for the list of chunks. The result depends on
// nothing but the pack and cfg.
func Split(r *pack.Reader, cfg SplitConfig) ([]Chunk, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &splitter{
		r:       r,
		perFile: cfg.PerFile,
		most:    int64(cfg.ChunkTokens) * bytesPerToken,
		overlap: min(int64(cfg.OverlapTokens)*bytesPerToken, maxOverlapBytes),
	}
	for i, f := range r.Manifest().Files {
		if f.Length == 0 {
			continue
		}
		if f.Length > s.most {
			if err := s.cutFile(i, f); err != nil {
				return nil, fmt.Errorf("split %q: %w", f.Name, err)
			}
			continue
		}
		s.whole(i, f)
	}
	for i := range s.chunks {
		c := &s.chunks[i]
		c.Tokens = model.EstimateTokens(int(c.Tokens))
	}
	return s.chunks, nil
}

// splitter is the state of one Split. Until its end, Tokens of the chunks are
// counted in bytes.
type splitter struct {
	r       *pack.Reader
	perFile bool
	most    int64 // bytes of a chunk
	overlap int64 // bytes
	chunks  []Chunk
	open    bool // the last chunk holds whole files and may take another
	buf     []byte
}

// whole adds a file that fits in a chunk: to the last one if it fits there too.
func (s *splitter) whole(i int, f pack.File) {
	if s.open && !s.perFile {
		last := &s.chunks[len(s.chunks)-1]
		cost := last.Tokens + f.Length + int64(len(f.Name)) + headingBytes
		if last.End() == f.Offset && cost <= s.most {
			last.Length += f.Length
			last.Tokens = cost
			return
		}
	}
	s.chunks = append(s.chunks, Chunk{Offset: f.Offset, Length: f.Length, Tokens: f.Length, File: i})
	s.open = true
}

// cutFile adds a file that does not fit in a chunk as several pieces.
func (s *splitter) cutFile(i int, f pack.File) error {
	s.open = false
	l := languageOf(f.Name)
	var overlap int64
	for begin := f.Offset; begin < f.End(); {
		end, err := s.cut(f, begin, s.most-overlap, l)
		if err != nil {
			return err
		}
		c := Chunk{Offset: begin - overlap, Length: end - begin + overlap, Overlap: overlap, File: i}
		c.Tokens = c.Length
		s.chunks = append(s.chunks, c)
		if end < f.End() {
			if overlap, err = s.linesBefore(begin, end); err != nil {
				return err
			}
		}
		begin = end
	}
	return nil
}

// cut returns where the piece of f that begins at begin and has room for so many
// bytes ends.
func (s *splitter) cut(f pack.File, begin, room int64, l language) (int64, error) {
	left := f.End() - begin
	if left <= room {
		return f.End(), nil
	}
	latest := begin + room
	span := min(room/4, searchBytes)
	if left <= room+room/2 { // two halves rather than a large and a tiny piece
		latest = begin + left/2 + span/2
	}
	earliest := max(latest-span, begin+1)
	from := max(earliest-contextBytes, begin)
	text, err := s.read(from, min(latest+contextBytes, f.End()))
	if err != nil {
		return 0, err
	}
	if at := l.bestCut(text, int(earliest-from), int(latest-from)); at >= 0 {
		return from + int64(at), nil
	}
	return s.lineEnd(begin, earliest, latest)
}

// lineEnd is the last end of a line between two places; when there is none, the
// line is cut at the latest place possible.
func (s *splitter) lineEnd(begin, before, latest int64) (int64, error) {
	for before > begin {
		from := max(before-searchBytes, begin)
		text, err := s.read(from, before)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		before = from
	}
	from := max(latest-contextBytes, begin)
	text, err := s.read(from, latest)
	if err != nil {
		return 0, err
	}
	return from + int64(pack.CutPoint(text)), nil
}

// linesBefore is the length of the whole lines at the end of the piece from
// begin to end that the next piece repeats; 0 when it ends within a line.
func (s *splitter) linesBefore(begin, end int64) (int64, error) {
	from := max(begin, end-s.overlap-1) // one byte more shows where a line starts
	text, err := s.read(from, end)
	if err != nil || !bytes.HasSuffix(text, []byte{'\n'}) {
		return 0, err
	}
	start := len(text)
	for range maxOverlapLines {
		i := bytes.LastIndexByte(text[:max(start-1, 0)], '\n')
		if i < 0 {
			break
		}
		start = i + 1
	}
	return int64(len(text) - start), nil
}

// read returns the bytes between two offsets, valid until the next call.
func (s *splitter) read(from, to int64) ([]byte, error) {
	n := int(to - from)
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	buf := s.buf[:n]
	if got, err := s.r.ReadAt(buf, from); got < n {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return buf, nil
}

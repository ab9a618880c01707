// Package chunk divides the context of a run into chunks that fit a model, along
// the structure of its texts.
package chunk

import (
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure/internal/corpus/boundary"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
)

const (
	// bytesPerToken is the estimate of [model.EstimateTokens].
	bytesPerToken = 4
	// headingBytes is what a further file in a chunk takes beside its text and
	// its name when it is shown to a model; see [model.Render].
	headingBytes = 100
	// defaultOverlapLines and defaultOverlapBytes bound what two pieces of a file
	// share when nobody said how much they should.
	defaultOverlapLines = 10
	defaultOverlapBytes = 64 << 10
	// headerShare of a chunk is the most that the header of a table may take in
	// each piece of it.
	headerShare = 4
)

// Config says how large the parts of a context are.
type Config struct {
	// ChunkTokens is the size of the largest chunk. Required.
	ChunkTokens int
	// OverlapTokens bounds what a piece of a file repeats from the end of the
	// piece before it: whole records, paragraphs or lines. At most half of
	// ChunkTokens. Defaults to a twentieth of it and at most 10 lines; negative
	// for none.
	OverlapTokens int
	// PerFile keeps every file in chunks of its own.
	PerFile bool
	// From and To, when To is not 0, are the bytes of the pack that are divided;
	// all others have no part in it.
	From, To int64
}

func (c Config) validate() error {
	var errs []error
	if c.ChunkTokens < 1 {
		errs = append(errs, fmt.Errorf("split config: ChunkTokens is %d, want 1 or more", c.ChunkTokens))
	}
	if c.OverlapTokens > c.ChunkTokens/2 {
		errs = append(errs, fmt.Errorf("split config: OverlapTokens is %d, want at most half of ChunkTokens, %d",
			c.OverlapTokens, c.ChunkTokens))
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
	// Header is how many bytes of the beginning of its file, a table, name the
	// columns and are to be shown before it; 0 for none.
	Header int64
}

// End is the offset after its last byte.
func (c Chunk) End() int64 { return c.Offset + c.Length }

// Pack divides a pack into chunks of at most ChunkTokens, in order, that
// together hold every byte of every file. Files that fit together share a chunk;
// a file that fits in one is never cut. A larger one is cut where its structure
// allows: before headings, declarations and records, between paragraphs, at the
// ends of lines. What fits in a chunk at any of these levels is not cut; only a
// line longer than a chunk is, between two characters.
//
// Each file that does not fit is read once, forward. Memory use does not grow
// with the pack but for the list of chunks, and grows with ChunkTokens. The
// result depends on nothing but the pack and cfg.
func Pack(r *pack.Reader, cfg Config) ([]Chunk, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &splitter{r: r, perFile: cfg.PerFile, most: int64(cfg.ChunkTokens) * bytesPerToken, overlap: newOverlap(cfg)}
	for i, f := range r.Manifest().Files {
		if cfg.To > 0 {
			end := min(f.End(), cfg.To)
			f.Offset = max(f.Offset, cfg.From)
			f.Length = end - f.Offset
		}
		if f.Length <= 0 {
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

// splitter is the state of one Pack. Until its end, Tokens of the chunks are
// counted in bytes.
type splitter struct {
	r       *pack.Reader
	perFile bool
	most    int64 // bytes of a chunk
	overlap overlap
	chunks  []Chunk
	open    bool // the last chunk holds whole files and may take another
	buf     []byte
	window  []byte // of the outlines
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
	form, header, err := formOf(s.r, s.r.Manifest().Files[i])
	if err != nil {
		return err
	}
	c := &cutter{s: s, start: f.Offset, end: f.End(), most: s.most}
	shown := header + int64(len(f.Name)) + headingBytes
	if header == 0 || shown > s.most/headerShare {
		header, shown = 0, 0
	}
	c.outline = boundary.NewOutline(s.r, f.Offset, f.End(), form, s.window)
	s.window = c.outline.Buffer()
	for begin := f.Offset; begin < c.end; {
		piece := Chunk{Offset: begin, File: i}
		if begin > f.Offset {
			c.most = s.most - shown
			piece.Header = header
			if piece.Overlap, err = c.repeat(s.chunks[len(s.chunks)-1].Offset, begin); err != nil {
				return err
			}
			piece.Offset -= piece.Overlap
		}
		end, err := c.next(begin, c.most-piece.Overlap)
		if err != nil {
			return err
		}
		piece.Length = end - piece.Offset
		piece.Tokens = piece.Length
		if piece.Header > 0 {
			piece.Tokens += shown
		}
		s.chunks = append(s.chunks, piece)
		begin = end
	}
	return nil
}

// formOf tells the structure of a file and the length of its header, if it is a
// table that has one.
func formOf(r *pack.Reader, f pack.File) (boundary.Form, int64, error) {
	head := make([]byte, min(f.Length, boundary.HeadBytes))
	if err := readAt(r, head, f.Offset); err != nil {
		return boundary.Form{}, 0, err
	}
	form := boundary.Find(f.Name, head)
	return form, int64(form.Header(head)), nil
}

// read returns the bytes between two offsets, valid until the next call.
func (s *splitter) read(from, to int64) ([]byte, error) {
	n := int(to - from)
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	return s.buf[:n], readAt(s.r, s.buf[:n], from)
}

func readAt(r io.ReaderAt, buf []byte, off int64) error {
	got, err := r.ReadAt(buf, off)
	if got == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

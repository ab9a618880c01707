// Package chunk divides the context of a run into chunks that fit a model, along the
// structure of its files.
package chunk

import (
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/corpus/boundary"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/model"
)

const (
	// bytesPerToken is the estimate of [model.EstimateTokens].
	bytesPerToken = 4
	// headingBytes is the size of the heading of a further file in a chunk, without its
	// name; see [model.Render].
	headingBytes = 100
	// defaultOverlapLines and defaultOverlapBytes limit the default overlap.
	defaultOverlapLines = 10
	defaultOverlapBytes = 64 << 10
	// headerShare limits the header of a table to this fraction of a chunk: a quarter.
	headerShare = 4
)

// Config configures the chunks of a context.
type Config struct {
	// ChunkTokens is the size of the largest chunk. Required.
	ChunkTokens int
	// OverlapTokens limits what a part of a file repeats from the end of the part before it:
	// whole records, paragraphs or lines. At most half of ChunkTokens. Zero: a twentieth of
	// it and at most 10 lines, and nothing of tables, lines of JSON and logs, whose records
	// can be read by themselves; negative: nothing.
	OverlapTokens int
	// Unframed keeps a file whose last line has no end in another chunk than the file behind it: the
	// text of chunks is read as it is, without a frame round each file.
	Unframed bool
	// PerFile keeps every file in chunks of its own.
	PerFile bool
	// From and To, if To is not 0, limit the chunks to a range of bytes of the pack.
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

// Chunk is a part of a pack: whole files, or a part of one file.
type Chunk struct {
	// Offset and Length are its range in the pack, in bytes.
	Offset, Length int64
	// Overlap is the number of its first bytes that are also in the chunk before it.
	Overlap int64
	// Tokens estimates its text and the headings of all files but the first.
	Tokens int64
	// File is the number of its first file in the manifest, counted from 0.
	File int
	// Header is the number of bytes at the beginning of its file, a table, that name the
	// columns and are shown before it; 0 for none.
	Header int64
}

// End returns the offset after its last byte.
func (c Chunk) End() int64 { return c.Offset + c.Length }

// Pack divides a pack into chunks of at most ChunkTokens, in order, that together have every
// byte of every file. Files that fit together share a chunk; a file that fits in one is
// never cut. A larger one is cut where its structure allows: before headings, declarations
// and records, between paragraphs, at the ends of lines. A unit that fits in a chunk is not
// cut at any of these levels; only a line longer than a chunk is, between two words, and a word
// only if it is longer than a chunk.
//
// Each file that does not fit is read once, forward. Memory use grows with the number of
// chunks and with ChunkTokens. The result depends only on the pack and cfg.
func Pack(r *pack.Reader, cfg Config) ([]Chunk, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &splitter{r: r, perFile: cfg.PerFile, unframed: cfg.Unframed,
		most: int64(cfg.ChunkTokens) * bytesPerToken, overlap: newOverlap(cfg)}
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
		if err := s.whole(i, f); err != nil {
			return nil, fmt.Errorf("split %q: %w", f.Name, err)
		}
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
	// unframed is set if files share a chunk only where a line ends.
	unframed bool
	most     int64 // bytes of a chunk
	overlap  overlap
	chunks   []Chunk
	open     bool // the last chunk has whole files, and another one may be added
	buf      []byte
	window   []byte // of the outlines
}

// whole adds a file that fits in a chunk: to the last one if it fits there, too.
func (s *splitter) whole(i int, f pack.File) error {
	joins := s.open && !s.perFile
	if joins && s.unframed {
		last, err := s.read(s.chunks[len(s.chunks)-1].End()-1, s.chunks[len(s.chunks)-1].End())
		if err != nil {
			return err
		}
		joins = last[0] == '\n'
	}
	if joins {
		last := &s.chunks[len(s.chunks)-1]
		cost := last.Tokens + f.Length + int64(len(f.Name)) + headingBytes
		if last.End() == f.Offset && cost <= s.most {
			last.Length += f.Length
			last.Tokens = cost
			return nil
		}
	}
	s.chunks = append(s.chunks, Chunk{Offset: f.Offset, Length: f.Length, Tokens: f.Length, File: i})
	s.open = true
	return nil
}

// cutFile adds a file that does not fit in a chunk as several parts.
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
		part := Chunk{Offset: begin, File: i}
		if begin > f.Offset {
			c.most = s.most - shown
			part.Header = header
			if s.overlap.records || !form.HasRecords() {
				part.Overlap, err = c.repeat(s.chunks[len(s.chunks)-1].Offset, begin)
			}
			if err != nil {
				return err
			}
			part.Offset -= part.Overlap
		}
		end, err := c.next(begin, c.most-part.Overlap)
		if err != nil {
			return err
		}
		part.Length = end - part.Offset
		part.Tokens = part.Length
		if part.Header > 0 {
			part.Tokens += shown
		}
		s.chunks = append(s.chunks, part)
		begin = end
	}
	return nil
}

// formOf returns the form of a file and the length of its header, if it is a table that has
// one.
func formOf(r *pack.Reader, f pack.File) (boundary.Form, int64, error) {
	head := make([]byte, min(f.Length, boundary.HeadBytes))
	if err := r.ReadFull(head, f.Offset); err != nil {
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
	return s.buf[:n], s.r.ReadFull(s.buf[:n], from)
}

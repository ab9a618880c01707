// Package textindex cuts text into passages, indexes their words, and ranks them by a query.
//
// [Build] writes an index in one pass, [Open] reads it. [Index.Score] finds the passages that have
// words of a query; [Scores.Best] ranks the best of them by their text.
package textindex

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync"
)

// segmentBytes is about how much text a segment of an index is about: a worker holds that much
// in memory.
const segmentBytes = 32 << 20

// Text is a text or a part of one.
type Text struct {
	// Name is the name of the file; its words count for all of its passages.
	Name string
	// Offset is the place of the text in the text of the whole index.
	Offset int64
	Text   string
}

// The sizes of entries of an index, and the greatest number that a posting counts.
const (
	passageSize = 8 // offset from the segment's base, length and words
	termSize    = 8 // hash of the root, single posting or place of the list
	maxCount    = 4
	// single marks a term of one passage, whose posting stands in the place of its list's place.
	single = 1 << 31
)

// segment is a part of an index: passages, terms in the order of their hashes, and lists of
// postings.
type segment struct {
	Base, At        int64
	Passages, Terms int
	Lists           int // bytes
}

// directory is at the end of an index.
type directory struct {
	Segments        []segment
	Passages, Words int64
}

// version of the form of an index; another one is built again.
const version = "perdure index 2\n"

// Build writes the index of text to w, in one pass, with at most one goroutine for each
// processor. Each holds about 32 MiB of text. The error is one of list, of w, or wraps
// ctx.Err().
func Build(ctx context.Context, w io.Writer, list iter.Seq2[Text, error]) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &builder{out: w, cancel: cancel}
	batches := make(chan []Text)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for batch := range batches {
				b.add(ctx, batch)
			}
		})
	}
	var batch []Text
	send := func() {
		select {
		case batches <- batch:
		case <-ctx.Done():
		}
		batch = nil
	}
	for t, err := range list {
		if err != nil {
			cancel(err)
		}
		if ctx.Err() != nil {
			break
		}
		batch = append(batch, t)
		if t.Offset+int64(len(t.Text))-batch[0].Offset >= segmentBytes { // offsets in a segment have 32 bits
			send()
		}
	}
	send()
	close(batches)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	return b.end()
}

// builder writes segments in the order in which they become ready.
type builder struct {
	cancel context.CancelCauseFunc

	mu  sync.Mutex // guards the fields below
	out io.Writer
	at  int64
	sum uint32
	dir directory
}

// write writes bytes that the checksum is about.
func (b *builder) write(p []byte) error {
	b.sum, b.at = crc32.Update(b.sum, crc32.MakeTable(crc32.Castagnoli), p), b.at+int64(len(p))
	_, err := b.out.Write(p)
	return err
}

func (b *builder) add(ctx context.Context, batch []Text) {
	if len(batch) == 0 {
		return
	}
	s, raw, words := encodeSegment(ctx, batch)
	b.mu.Lock()
	defer b.mu.Unlock()
	s.At = b.at
	b.dir.Segments = append(b.dir.Segments, s)
	b.dir.Passages, b.dir.Words = b.dir.Passages+int64(s.Passages), b.dir.Words+words
	if err := b.write(raw); err != nil {
		b.cancel(err)
	}
}

// end writes the directory, its length and the checksum.
func (b *builder) end() error {
	raw, err := json.Marshal(b.dir)
	if err == nil {
		err = b.write(raw)
	}
	if err == nil {
		tail := binary.LittleEndian.AppendUint32(nil, uint32(len(raw))) //nolint:gosec // far less than 4 GiB
		tail = binary.LittleEndian.AppendUint32(tail, b.sum)
		_, err = b.out.Write(append(tail, version...))
	}
	if err != nil {
		return fmt.Errorf("build index: %w", err)
	}
	return nil
}

// encodeSegment returns the segment of a batch, which begins at the first one's offset.
func encodeSegment(ctx context.Context, batch []Text) (s segment, raw []byte, total int64) {
	s.Base = batch[0].Offset
	var postings []uint64 // hash, passage and count
	var path, roots []uint32
	name := ""
	for _, t := range batch {
		if ctx.Err() != nil {
			return s, nil, 0
		}
		if t.Name != name || path == nil {
			name, path = t.Name, appendRoots(path[:0], t.Name)
		}
		Cut(t.Text, func(from, to int) {
			roots = appendRoots(roots[:0], t.Text[from:to])
			n := len(roots)
			total += int64(n)
			raw = binary.LittleEndian.AppendUint32(raw, uint32(t.Offset-s.Base+int64(from))) //nolint:gosec // within a segment
			raw = binary.LittleEndian.AppendUint16(raw, uint16(to-from))                     //nolint:gosec // at most maxBytes
			raw = binary.LittleEndian.AppendUint16(raw, uint16(n))                           //nolint:gosec // fewer than bytes
			roots = append(roots, path...)
			slices.Sort(roots)
			for i := 0; i < len(roots); {
				k := i + 1
				for k < len(roots) && roots[k] == roots[i] {
					k++
				}
				place := uint64(s.Passages)<<2 | uint64(min(k-i, maxCount)-1) //nolint:gosec // not negative
				postings = append(postings, uint64(roots[i])<<32|place)
				i = k
			}
			s.Passages++
		})
	}
	slices.Sort(postings)
	raw, s.Terms, s.Lists = appendTerms(raw, postings)
	return s, raw, total
}

// appendRoots appends the hashes of the roots of the words of a text.
func appendRoots(roots []uint32, text string) []uint32 {
	words(text, func(w word) { roots = append(roots, hash(root(w.lower))) })
	return roots
}

// appendTerms appends the terms of sorted postings, then their lists.
func appendTerms(raw []byte, postings []uint64) (out []byte, terms, size int) {
	var lists []byte
	for i := 0; i < len(postings); terms++ {
		h := postings[i] >> 32
		k := i + 1
		for k < len(postings) && postings[k]>>32 == h {
			k++
		}
		raw = binary.LittleEndian.AppendUint32(raw, uint32(h)) //nolint:gosec // 32 bits
		if k == i+1 {
			raw = binary.LittleEndian.AppendUint32(raw, uint32(postings[i])|single) //nolint:gosec // the lower half
			i = k
			continue
		}
		raw = binary.LittleEndian.AppendUint32(raw, uint32(len(lists))) //nolint:gosec // smaller than a segment's text
		lists = binary.AppendUvarint(lists, uint64(k-i))                //nolint:gosec // positive
		before := uint64(0)
		for ; i < k; i++ {
			p := postings[i] & (single - 1)
			lists = binary.AppendUvarint(lists, (p>>2-before)<<2|p&3)
			before = p >> 2
		}
	}
	return append(raw, lists...), terms, len(lists)
}

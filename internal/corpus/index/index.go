// Package index finds passages of a pack by an index of its words. The index can be kept in a file
// next to the pack; it is a cache, and built again when it is damaged.
package index

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/corpus/notebook"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/textindex"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
)

const (
	// readBytes is how much text is read at once.
	readBytes = 1 << 20
	// spare is how many passages more than wanted are ranked: some are nearly the same text as
	// others.
	spare = 30
	// compared is how many passages are read to rank those of the whole pack.
	compared = 240
)

// Index finds passages of a pack. It is safe for concurrent use.
type Index struct {
	r        *pack.Reader
	passages *textindex.Index
	io.Closer

	mu     sync.Mutex // guards the fields below
	query  string     // the last one
	scores *textindex.Scores
}

// Write writes the index of a pack. It adds the bytes of the pack that it has read to done, unless that
// is nil.
func Write(ctx context.Context, r *pack.Reader, w io.Writer, done *atomic.Int64) error {
	return textindex.Build(ctx, w, func(yield func(textindex.Text, error) bool) {
		buf := make([]byte, readBytes)
		for _, f := range r.Manifest().Files {
			for at := f.Offset; at < f.End(); {
				part := buf[:min(int64(len(buf)), f.End()-at)]
				err := r.ReadFull(part, at)
				if at+int64(len(part)) < f.End() {
					part = part[:pack.CutPoint(part)]
				}
				if !yieldPart(yield, textindex.Text{Name: f.Name, Offset: at, Text: string(part)}, err) {
					return
				}
				if done != nil {
					done.Add(int64(len(part)))
				}
				at += int64(len(part) - sharedBytes(part, at+int64(len(part)) < f.End()))
			}
		}
	})
}

// yieldPart yields a part of a file, or, of a notebook, its cells: a passage is in one of them. It reports
// whether to go on.
func yieldPart(yield func(textindex.Text, error) bool, t textindex.Text, err error) bool {
	texts := []string{t.Text}
	if notebook.IsName(t.Name) {
		texts = notebook.Split(t.Text)
	}
	for _, text := range texts {
		t.Text = text
		if !yield(t, err) || err != nil {
			return false
		}
		t.Offset += int64(len(text))
	}
	return true
}

// sharedBytes returns how many bytes of a part the next one has too: of a line that goes on, so that a phrase
// at the cut is whole in one of them.
func sharedBytes(part []byte, goesOn bool) int {
	const most = 256
	if !goesOn || len(part) <= 2*most || part[len(part)-1] == '\n' {
		return 0
	}
	n := most
	for !utf8.RuneStart(part[len(part)-n]) && n < most+utf8.UTFMax {
		n++
	}
	return n
}

// Open opens the index of a pack in from, which Close closes. After an error it is closed.
func Open(r *pack.Reader, from io.ReaderAt, size int64) (*Index, error) {
	closer, ok := from.(io.Closer)
	if !ok {
		closer = io.NopCloser(nil)
	}
	x, err := textindex.Open(from, size)
	if err != nil {
		return nil, errors.Join(err, closer.Close())
	}
	return &Index{r: r, passages: x, Closer: closer}, nil
}

// BuildInMemory builds the index of a pack in memory.
func BuildInMemory(ctx context.Context, r *pack.Reader) (*Index, error) {
	var buf bytes.Buffer
	if err := Write(ctx, r, &buf, nil); err != nil {
		return nil, err
	}
	return Open(r, bytes.NewReader(buf.Bytes()), int64(buf.Len()))
}

// Find returns the best passages for a query that begin in the ranges, which are in order, at most
// n, best first; without ranges, those of the whole pack. Passages are whole lines, or parts of a
// long one.
func (x *Index) Find(query string, n int, within []textindex.Range) ([]model.Citation, error) {
	scores, err := x.scoresOf(query)
	if err != nil {
		return nil, err
	}
	read := n + spare
	if within == nil {
		read = max(read, compared)
	}
	hits, err := scores.Best(within, read, func(h textindex.Hit) (name, text string, err error) {
		return x.r.Passage(h.Offset, int64(h.Length))
	})
	if err != nil {
		return nil, err
	}
	var found []model.Citation
	for _, h := range hits[:min(len(hits), n+spare)] {
		docs, err := x.r.Documents(h.Offset, int64(h.Length))
		if err != nil {
			return nil, err
		}
		if len(docs) > 0 {
			found = append(found, extract.Cite(docs[0], h.Score))
		}
	}
	return extract.Merge([][]model.Citation{found}, n), nil
}

// scoresOf returns the scores for a query, those of the last call if it was the same.
func (x *Index) scoresOf(query string) (*textindex.Scores, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.scores != nil && x.query == query {
		return x.scores, nil
	}
	s, err := x.passages.Score(textindex.NewQuery(query))
	if err == nil {
		x.query, x.scores = query, s
	}
	return s, err
}

package export

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
)

// contextLine describes the context of the tree.
type contextLine struct {
	Type    string          `json:"type"`
	Context perdure.Context `json:"context"`
	Skipped []pack.Skipped  `json:"skipped,omitempty"`
	// MoreSkipped counts the skipped files that are not listed.
	MoreSkipped  int64            `json:"more_skipped,omitempty"`
	SkippedKinds map[string]int64 `json:"skipped_kinds,omitempty"`
	// Notes are notes on files, such as the encoding that one was converted from.
	Notes     []pack.Note `json:"notes,omitempty"`
	MoreNotes int64       `json:"more_notes,omitempty"`
}

// fileLine describes one file of it. Offset is its place in the context, to
// which the context_reference of tasks refers.
type fileLine struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Lines  int64  `json:"lines"`
}

// contentLine is a part of the file or blob named last. Exactly one of Text and Base64
// is there: the latter when the bytes are not UTF-8.
type contentLine struct {
	Type   string  `json:"type"`
	Text   *string `json:"text,omitempty"`
	Base64 *string `json:"base64,omitempty"`
}

// pieceBytes bounds a content line.
const pieceBytes = 1 << 20

// context writes the context that the root refers to, if it does.
func (x *exporter) context(ctx context.Context, tree *perdure.Tree) error {
	root, err := x.store.Task(ctx, tree.Root)
	if err != nil {
		return err
	}
	found, err := x.store.Context(ctx, root.Context.Source)
	if errors.Is(err, perdure.ErrNotFound) {
		return nil // the text is from a foreign file
	}
	if err != nil {
		return err
	}
	m, err := x.manifest(ctx, found.Manifest)
	if err != nil {
		return err
	}
	x.line("context", contextLine{"context", found, m.Skipped, m.MoreSkipped, m.SkippedKinds, m.Notes,
		m.MoreNotes})
	blob, err := x.store.OpenBlob(ctx, found.Pack)
	if err != nil {
		return err
	}
	defer blob.Close()
	for _, f := range m.Files {
		x.line("file", fileLine{"file", f.Name, f.Offset, f.Length, f.Lines})
		if x.cfg.WithoutContext {
			continue
		}
		if err := x.content(ctx, blob, f.Offset, f.Length); err != nil {
			return err
		}
	}
	return nil
}

func (x *exporter) manifest(ctx context.Context, hash string) (*pack.Manifest, error) {
	blob, err := x.store.OpenBlob(ctx, hash)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	raw, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil {
		return nil, err
	}
	return pack.Decode(raw)
}

// content writes a part of r in blocks.
func (x *exporter) content(ctx context.Context, r io.ReaderAt, at, length int64) error {
	end := at + length
	buf := make([]byte, min(pieceBytes, length))
	for at < end && x.err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := buf[:min(int64(len(buf)), end-at)]
		if n, err := r.ReadAt(piece, at); n < len(piece) {
			return err
		}
		if at+int64(len(piece)) < end {
			piece = piece[:pack.CutPoint(piece)]
		}
		x.piece(piece)
		at += int64(len(piece))
	}
	return nil
}

func (x *exporter) piece(piece []byte) {
	if utf8.Valid(piece) {
		text := string(piece)
		x.line("content", contentLine{Type: "content", Text: &text})
		return
	}
	text := base64.StdEncoding.EncodeToString(piece)
	x.line("content", contentLine{Type: "content", Base64: &text})
}

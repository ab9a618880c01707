package perdure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Where a text is kept depends on its length: in the row, in the table of
// payloads, or in a blob.
const (
	// MaxInlineBytes is the longest text that stands in its row.
	MaxInlineBytes = 10_240
	// MaxPayloadBytes is the longest text of the payload table.
	MaxPayloadBytes = 1 << 20
)

// A column holds the text itself, or a reference that begins with refMark. A
// text that happens to begin so is kept with escapeMark before it.
const (
	refMark    = "\x01"
	payloadRef = refMark + "payload:"
	blobRef    = refMark + "blob:"
	escapeMark = refMark + "="
)

// stored is a text on its way into a column.
type stored struct {
	column  string
	payload string // the text, when it goes to the payload table
	blob    BlobRef
}

// store decides where a text goes and makes a blob durable if it needs one.
func (s *Store) store(ctx context.Context, text string) (stored, error) {
	switch {
	case len(text) <= MaxInlineBytes:
		if strings.HasPrefix(text, refMark) {
			return stored{column: escapeMark + text}, nil
		}
		return stored{column: text}, nil
	case len(text) <= MaxPayloadBytes:
		return stored{column: payloadRef + hashOf(text), payload: text}, nil
	}
	ref, err := s.PutBlob(ctx, strings.NewReader(text))
	return stored{column: blobRef + ref.Hash, blob: ref}, err
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

const sqlInsertPayload = `INSERT INTO payload (tree, hash, text) VALUES ($1, $2, $3) ON CONFLICT (tree, hash) DO ` +
	`NOTHING`

// keepValue writes what a column is going to refer to. A refusal undoes the
// transaction, because the column may be written already.
func (b *batch) keepValue(ctx context.Context, tree int64, v stored) error {
	if v.payload != "" {
		_, err := b.tx.Exec(ctx, sqlInsertPayload, tree, strings.TrimPrefix(v.column, payloadRef), v.payload)
		return err
	}
	if v.blob.Hash != "" {
		if err := b.refBlob(ctx, tree, v.blob); err != nil {
			return &undo{err}
		}
	}
	return nil
}

const sqlPayload = `SELECT text FROM payload WHERE tree = $1 AND hash = $2`

// load returns the text of a column.
func (s *Store) load(ctx context.Context, tree int64, column string) (string, error) {
	if !strings.HasPrefix(column, refMark) {
		return column, nil
	}
	if text, ok := strings.CutPrefix(column, escapeMark); ok {
		return text, nil
	}
	if hash, ok := strings.CutPrefix(column, payloadRef); ok {
		var text string
		err := s.db.QueryRow(ctx, sqlPayload, []any{tree, hash}, &text)
		return text, wrap("read value", err)
	}
	hash, _ := strings.CutPrefix(column, blobRef)
	return s.blobText(ctx, hash)
}

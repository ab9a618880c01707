package perdure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/perdure/perdure/internal/storage/compress"
)

// The length of a value decides where it is stored: in its row, in the table of payloads,
// or in a blob.
const (
	// MaxInlineBytes is the length of the longest value stored in its row.
	MaxInlineBytes = 10_240
	// MaxPayloadBytes is the length of the longest value stored in the table of payloads.
	MaxPayloadBytes = compress.MaxBytes
)

// A column has the value itself, or a reference that begins with refMark. A value that
// begins with refMark is stored with escapeMark before it.
const (
	refMark    = "\x01"
	payloadRef = refMark + "payload:"
	blobRef    = refMark + "blob:"
	escapeMark = refMark + "="
)

// stored is a value about to be written to a column.
type stored struct {
	column  string
	payload string // the value, if it is stored in the table of payloads
	packed  []byte // the same, compressed; nil if it is stored as it is
	blob    BlobRef
}

// storeBoth stores a text and the JSON that belongs to it, see store.
func (s *Store) storeBoth(ctx context.Context, text string, data json.RawMessage) (a, b stored, err error) {
	if a, err = s.store(ctx, text); err == nil {
		b, err = s.store(ctx, string(data))
	}
	return a, b, err
}

// store decides where a value is stored and makes a blob durable if it needs one.
func (s *Store) store(ctx context.Context, text string) (stored, error) {
	switch {
	case len(text) <= MaxInlineBytes:
		if strings.HasPrefix(text, refMark) {
			return stored{column: escapeMark + text}, nil
		}
		return stored{column: text}, nil
	case len(text) <= MaxPayloadBytes:
		return s.storedLong(text)
	}
	ref, err := s.PutBlob(ctx, strings.NewReader(text))
	return stored{column: blobRef + ref.Hash, blob: ref}, err
}

// storedRow returns JSON of at most MaxPayloadBytes, which needs no blob.
func (s *Store) storedRow(text string) (stored, error) {
	if len(text) <= MaxInlineBytes {
		return stored{column: text}, nil // JSON never begins with refMark
	}
	return s.storedLong(text)
}

// storedLong returns a value for the table of payloads.
func (s *Store) storedLong(text string) (v stored, err error) {
	v = stored{column: payloadRef + hashOf(text), payload: text}
	if s.blobs != nil { // PostgreSQL compresses long values by itself
		v.packed, err = s.codec.Pack(text)
	}
	return v, wrap("write value", err)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

const sqlInsertPayload = `INSERT INTO payload (tree, hash, text, packed) VALUES ($1, $2, $3, $4)
	ON CONFLICT (tree, hash) DO NOTHING`

// keepValues is keepValue for several values.
func (b *batch) keepValues(ctx context.Context, tree int64, values ...stored) error {
	for _, v := range values {
		if err := b.keepValue(ctx, tree, v); err != nil {
			return err
		}
	}
	return nil
}

// keepValue writes the payload or the blob reference of a column. A refusal rolls back the
// transaction, because the column may be written already.
func (b *batch) keepValue(ctx context.Context, tree int64, v stored) error {
	if v.payload != "" {
		var text any = v.payload
		if v.packed != nil {
			text = v.packed
		}
		_, err := b.tx.Exec(ctx, sqlInsertPayload, tree, strings.TrimPrefix(v.column, payloadRef), text,
			boolInt(v.packed != nil))
		return err
	}
	if v.blob.Hash != "" {
		if err := b.refBlob(ctx, tree, v.blob); err != nil {
			return &undo{err}
		}
	}
	return nil
}

const sqlPayload = `SELECT text, packed FROM payload WHERE tree = $1 AND hash = $2`

// payload reads a value from the table of payloads.
func (s *Store) payload(ctx context.Context, query queryRow, tree int64, hash string) (string, error) {
	var text []byte
	var packed bool
	if err := query(ctx, sqlPayload, []any{tree, hash}, &text, &packed); err != nil || !packed {
		return string(text), err
	}
	value, err := s.codec.Unpack(text)
	if err != nil {
		return "", &Error{Code: CodeDamaged, Op: "read value", Msg: "the long value " + hash + " is damaged", Err: err,
			Hint: "`perdure verify-log` lists what was changed outside of perdure; restore the store from a backup"}
	}
	return value, nil
}

// load returns the value of a column.
func (s *Store) load(ctx context.Context, tree int64, column string) (string, error) {
	if !strings.HasPrefix(column, refMark) {
		return column, nil
	}
	if text, ok := strings.CutPrefix(column, escapeMark); ok {
		return text, nil
	}
	if hash, ok := strings.CutPrefix(column, payloadRef); ok {
		text, err := s.payload(ctx, s.db.QueryRow, tree, hash)
		return text, wrap("read value", err)
	}
	hash, _ := strings.CutPrefix(column, blobRef)
	return s.blobText(ctx, hash)
}

// Package dbblob keeps large values in the database, in chunks, for stores that have no
// folder of their own.
package dbblob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/storage/blob"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// chunkBytes is the size of a chunk; the last one of a value may be shorter.
const chunkBytes = 1 << 20

// Write runs a function in a writing transaction.
type Write func(ctx context.Context, fn func(ctx context.Context, tx *sqldb.Tx) error) error

const (
	sqlPutChunk   = `INSERT INTO blob_chunk (hash, part, bytes) VALUES ($1, $2, $3) ON CONFLICT (hash, part) DO NOTHING`
	sqlMoveChunks = `UPDATE blob_chunk SET hash = $2 WHERE hash = $1`
	sqlDrop       = `DELETE FROM blob_chunk WHERE hash = $1`
	sqlChunk      = `SELECT bytes FROM blob_chunk WHERE hash = $1 AND part = $2`
	sqlLastChunk  = `SELECT part, length(bytes) FROM blob_chunk WHERE hash = $1 ORDER BY part DESC LIMIT 1`
	sqlHas        = `SELECT COUNT(*) FROM blob_chunk WHERE hash = $1`
	sqlUnused     = `SELECT hash, SUM(length(bytes)) FROM blob_chunk WHERE NOT EXISTS
		(SELECT 1 FROM blob_ref r WHERE r.hash = blob_chunk.hash) GROUP BY hash`
)

// Put writes content into the database, each chunk in a transaction of its own, under the
// temporary name temp, because the hash is known only at the end. No other caller may use
// temp. Content that is stored already is not stored again.
func Put(ctx context.Context, write Write, temp string, r io.Reader) (blob.Ref, error) {
	u := &upload{write: write, temp: temp, sum: sha256.New()}
	if err := u.copy(ctx, r); err != nil {
		drop := write(context.WithoutCancel(ctx),
			func(ctx context.Context, tx *sqldb.Tx) error { return Drop(ctx, tx, temp) })
		return blob.Ref{}, errors.Join(err, drop)
	}
	ref := blob.Ref{Hash: hex.EncodeToString(u.sum.Sum(nil)), Size: u.size}
	return ref, write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		there, err := Has(ctx, tx, ref.Hash)
		if err != nil {
			return err
		}
		if there {
			return Drop(ctx, tx, temp)
		}
		_, err = tx.Exec(ctx, sqlMoveChunks, temp, ref.Hash)
		return err
	})
}

// Has reports whether content is stored.
func Has(ctx context.Context, tx *sqldb.Tx, hash string) (bool, error) {
	var n int64
	err := tx.QueryRow(ctx, sqlHas, []any{hash}, &n)
	return n > 0, err
}

// Drop removes content.
func Drop(ctx context.Context, tx *sqldb.Tx, hash string) error {
	_, err := tx.Exec(ctx, sqlDrop, hash)
	return err
}

// Unused lists content that no row refers to, without unfinished uploads.
func Unused(ctx context.Context, tx *sqldb.Tx) ([]blob.Ref, error) {
	refs, err := sqldb.Collect(ctx, tx.Query, func(scan sqldb.Scan) (ref blob.Ref, err error) {
		err = scan(&ref.Hash, &ref.Size)
		return ref, err
	}, sqlUnused)
	return slices.DeleteFunc(refs, func(r blob.Ref) bool { return len(r.Hash) != hex.EncodedLen(sha256.Size) }), err
}

type upload struct {
	write Write
	temp  string
	sum   hash.Hash
	size  int64
	part  int64
}

func (u *upload) copy(ctx context.Context, r io.Reader) error {
	buf := make([]byte, chunkBytes)
	for {
		n, err := fill(r, buf)
		if err != nil && err != io.EOF { //nolint:errorlint // a wrapped io.EOF is an error
			return err
		}
		if n > 0 || u.part == 0 {
			if putErr := u.put(ctx, buf[:n]); putErr != nil {
				return putErr
			}
		}
		if err != nil {
			return nil //nolint:nilerr // the end of the content
		}
	}
}

// fill reads until p is full or the content ends. Unlike io.ReadFull it returns
// io.ErrUnexpectedEOF only if r does.
func fill(r io.Reader, p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		var got int
		got, err = r.Read(p[n:])
		n += got
	}
	return n, err
}

func (u *upload) put(ctx context.Context, p []byte) error {
	_, _ = u.sum.Write(p) // a hash never fails
	part := u.part
	u.part++
	u.size += int64(len(p))
	return u.write(ctx, func(ctx context.Context, tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, sqlPutChunk, u.temp, part, p)
		return err
	})
}

// Reader reads content and caches the last chunk. It is safe for concurrent use.
type Reader struct {
	db   *sqldb.DB
	ctx  context.Context // given to Open, without its end
	hash string
	size int64

	mu   sync.Mutex // guards at and data
	at   int64
	data []byte
}

// Open opens content, or returns sql.ErrNoRows.
func Open(ctx context.Context, db *sqldb.DB, hash string) (*Reader, error) {
	var last, length int64
	if err := db.QueryRow(ctx, sqlLastChunk, []any{hash}, &last, &length); err != nil {
		return nil, err
	}
	return &Reader{db: db, ctx: context.WithoutCancel(ctx), hash: hash, size: last*chunkBytes + length, at: -1}, nil
}

// Size returns the number of bytes.
func (r *Reader) Size() int64 { return r.size }

// ReadAt implements [io.ReaderAt].
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read blob: offset %d is negative", off)
	}
	n := 0
	for n < len(p) {
		if off+int64(n) >= r.size {
			return n, io.EOF
		}
		data, err := r.chunk((off + int64(n)) / chunkBytes)
		if err != nil {
			return n, fmt.Errorf("read blob: %w", err)
		}
		n += copy(p[n:], data[(off+int64(n))%chunkBytes:])
	}
	return n, nil
}

func (r *Reader) chunk(i int64) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == i {
		return r.data, nil
	}
	var data []byte
	if err := r.db.QueryRow(r.ctx, sqlChunk, []any{r.hash, i}, &data); err != nil {
		return nil, err
	}
	r.at, r.data = i, bytes.Clone(data)
	return r.data, nil
}

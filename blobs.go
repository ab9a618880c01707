package perdure

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/blob"
)

// BlobRef names content by its SHA-256.
type BlobRef struct {
	Hash string `json:"hash"`
	Size int64  `json:"size"`
}

// Blob is open content; ReadAt may be called from several goroutines. Close it
// after use.
type Blob struct {
	io.ReaderAt
	io.Closer
	size int64
}

// Size returns the number of bytes.
func (b *Blob) Size() int64 { return b.size }

// chunkBytes is the size of a blob's pieces where the database holds them.
const chunkBytes = 1 << 20

// PutBlob makes content durable under its hash: in the blobs folder, or in the
// database where the store is PostgreSQL. The same content is kept once. It is
// kept for retention's grace period (an hour) until a tree or context refers to
// it.
func (s *Store) PutBlob(ctx context.Context, r io.Reader) (BlobRef, error) {
	if s.blobs == nil {
		return s.putChunks(ctx, r)
	}
	ref, err := s.blobs.Put(ctx, r)
	if err != nil {
		return BlobRef{}, blobError("write blob", err)
	}
	return BlobRef(ref), nil
}

func blobError(op string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return notFoundf(op, "the blob is gone")
	}
	e := &Error{Code: CodeInternal, Op: op, Err: err}
	if isDiskFull(err) {
		e.Code, e.Hint = CodeUnavailable, "nothing was lost; free some space and run `perdure resume`"
	}
	return e
}

// OpenBlob opens content for reading.
func (s *Store) OpenBlob(ctx context.Context, hash string) (*Blob, error) {
	if s.blobs == nil {
		return s.openChunks(ctx, hash)
	}
	f, err := s.blobs.Open(hash)
	if errors.Is(err, blob.ErrBadHash) {
		return nil, invalidf("open blob", "%q is not a SHA-256 in hexadecimal", hash)
	}
	if err != nil {
		return nil, blobError("open blob", err)
	}
	return &Blob{ReaderAt: f, Closer: f, size: f.Size()}, nil
}

func (s *Store) blobText(ctx context.Context, hash string) (string, error) {
	b, err := s.OpenBlob(ctx, hash)
	if err != nil {
		return "", err
	}
	defer b.Close() //nolint:errcheck // only read
	var sb strings.Builder
	sb.Grow(int(b.Size()))
	_, err = io.Copy(&sb, io.NewSectionReader(b, 0, b.Size()))
	return sb.String(), wrap("read blob", err)
}

const (
	sqlRefBlob = `INSERT INTO blob_ref (hash, tree, bytes, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (hash, tree) DO UPDATE SET created_at = excluded.created_at`
	sqlHasChunk = `SELECT COUNT(*) FROM blob_chunk WHERE hash = $1`
)

// refBlob records that a tree needs a blob. Retention removes a blob only in a
// transaction that saw no reference, so a blob that is there now stays.
func (b *batch) refBlob(ctx context.Context, tree int64, ref BlobRef) error {
	if b.s.blobs != nil {
		if _, err := b.s.blobs.Stat(ref.Hash); err != nil {
			return blobError("refer to blob", err)
		}
	} else {
		var n int64
		if err := b.tx.QueryRow(ctx, sqlHasChunk, []any{ref.Hash}, &n); err != nil {
			return err
		}
		if n == 0 {
			return notFoundf("refer to blob", "the blob is gone")
		}
	}
	_, err := b.tx.Exec(ctx, sqlRefBlob, ref.Hash, tree, ref.Size, b.now)
	return err
}

const (
	sqlPutChunk  = `INSERT INTO blob_chunk (hash, part, bytes) VALUES ($1, $2, $3) ON CONFLICT (hash, part) DO NOTHING`
	sqlMoveChunk = `UPDATE blob_chunk SET hash = $2 WHERE hash = $1`
	sqlDropChunk = `DELETE FROM blob_chunk WHERE hash = $1`
	sqlGetChunk  = `SELECT bytes FROM blob_chunk WHERE hash = $1 AND part = $2`
	sqlChunkEnd  = `SELECT part, length(bytes) FROM blob_chunk WHERE hash = $1 ORDER BY part DESC LIMIT 1`
)

// putChunks streams content into the database under a temporary name, because
// its hash is known only at the end.
func (s *Store) putChunks(ctx context.Context, r io.Reader) (BlobRef, error) {
	up := &chunkUpload{s: s, temp: "tmp-" + string(newTreeID()) + itoa(time.Now().UnixNano()), sum: sha256.New()}
	if err := up.copy(ctx, r); err != nil {
		dropErr := s.w.do(context.WithoutCancel(ctx), opFunc(func(ctx context.Context, b *batch) error {
			_, err := b.tx.Exec(ctx, sqlDropChunk, up.temp)
			return err
		}))
		return BlobRef{}, errors.Join(wrap("write blob", err), dropErr)
	}
	ref := BlobRef{Hash: hex.EncodeToString(up.sum.Sum(nil)), Size: up.size}
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		var n int64
		if err := b.tx.QueryRow(ctx, sqlHasChunk, []any{ref.Hash}, &n); err != nil {
			return err
		}
		q, args := sqlMoveChunk, []any{up.temp, ref.Hash}
		if n > 0 {
			q, args = sqlDropChunk, args[:1]
		}
		if _, err := b.tx.Exec(ctx, q, args...); err != nil {
			return err
		}
		_, err := b.tx.Exec(ctx, sqlRefBlob, ref.Hash, 0, ref.Size, b.now)
		return err
	}))
	return ref, err
}

type chunkUpload struct {
	s    *Store
	temp string
	sum  hash.Hash
	size int64
	part int64
}

func (u *chunkUpload) copy(ctx context.Context, r io.Reader) error {
	buf := make([]byte, chunkBytes)
	for {
		n, err := io.ReadFull(r, buf)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
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

func (u *chunkUpload) put(ctx context.Context, p []byte) error {
	_, _ = u.sum.Write(p) // a hash never fails
	part := u.part
	u.part++
	u.size += int64(len(p))
	return u.s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		_, err := b.tx.Exec(ctx, sqlPutChunk, u.temp, part, p)
		return err
	}))
}

func (s *Store) openChunks(ctx context.Context, hash string) (*Blob, error) {
	var last, length int64
	err := s.db.QueryRow(ctx, sqlChunkEnd, []any{hash}, &last, &length)
	if err != nil {
		if ignoreNoRows(err) == nil {
			return nil, notFoundf("open blob", "the blob is gone")
		}
		return nil, wrap("open blob", err)
	}
	c := &chunks{s: s, ctx: context.WithoutCancel(ctx), hash: hash, size: last*chunkBytes + length, at: -1}
	return &Blob{ReaderAt: c, Closer: io.NopCloser(nil), size: c.size}, nil
}

// chunks reads a blob of the database, keeping the piece it read last.
type chunks struct {
	s    *Store
	ctx  context.Context // of the one who opened it, without its end
	hash string
	size int64

	mu   sync.Mutex // guards at and data
	at   int64
	data []byte
}

// ReadAt reads as io.ReaderAt says.
func (c *chunks) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read blob: offset %d is negative", off)
	}
	n := 0
	for n < len(p) {
		if off+int64(n) >= c.size {
			return n, io.EOF
		}
		data, err := c.part((off + int64(n)) / chunkBytes)
		if err != nil {
			return n, err
		}
		n += copy(p[n:], data[(off+int64(n))%chunkBytes:])
	}
	return n, nil
}

func (c *chunks) part(i int64) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == i {
		return c.data, nil
	}
	var data []byte
	if err := c.s.db.QueryRow(c.ctx, sqlGetChunk, []any{c.hash, i}, &data); err != nil {
		return nil, wrap("read blob", err)
	}
	c.at, c.data = i, bytes.Clone(data)
	return c.data, nil
}

// ContextSpec describes the text of a run: one pack of files and its manifest,
// both blobs.
type ContextSpec struct {
	Pack, Manifest       BlobRef
	Files, Bytes, Tokens int64
}

// Context is the text of a run. Its ID is made from its content.
type Context struct {
	ID        string    `json:"context_id"`
	Pack      string    `json:"pack"`
	Manifest  string    `json:"manifest"`
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Tokens    int64     `json:"tokens"`
	CreatedAt time.Time `json:"created_at"`
}

const (
	contextColumns = `id, pack, manifest, files, bytes, tokens, created_at`
	sqlPutContext  = `INSERT INTO context (` + contextColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at`
	sqlContext = `SELECT ` + contextColumns + ` FROM context WHERE id = $1`
)

// PutContext records a context whose blobs were put before. It lives for
// retention's grace period until a tree names it.
func (s *Store) PutContext(ctx context.Context, spec ContextSpec) (Context, error) {
	id := "ctx-" + hashOf(spec.Pack.Hash + " " + spec.Manifest.Hash)[:16]
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		for _, ref := range []BlobRef{spec.Pack, spec.Manifest} {
			if err := b.refBlob(ctx, 0, ref); err != nil {
				return err
			}
		}
		_, err := b.tx.Exec(ctx, sqlPutContext, id, spec.Pack.Hash, spec.Manifest.Hash, spec.Files, spec.Bytes, spec.Tokens, b.now)
		return err
	}))
	if err != nil {
		return Context{}, err
	}
	return s.Context(ctx, id)
}

// Context returns a context by its ID.
func (s *Store) Context(ctx context.Context, id string) (Context, error) {
	return scanContext(ctx, s.db.QueryRow, id)
}

func scanContext(ctx context.Context, query queryRow, id string) (Context, error) {
	var c Context
	var at int64
	err := query(ctx, sqlContext, []any{id}, &c.ID, &c.Pack, &c.Manifest, &c.Files, &c.Bytes, &c.Tokens, &at)
	if err != nil && ignoreNoRows(err) == nil {
		return c, notFoundf("read context", "there is no context %q", id)
	}
	c.CreatedAt = micros(at)
	return c, wrap("read context", err)
}

const sqlBlobBytes = `SELECT bytes FROM blob_ref WHERE hash = $1 LIMIT 1`

// refContext records that a tree needs the blobs of a context.
func (b *batch) refContext(ctx context.Context, tree int64, id string) error {
	c, err := scanContext(ctx, b.tx.QueryRow, id)
	if err != nil {
		return err
	}
	for _, hash := range []string{c.Pack, c.Manifest} {
		ref := BlobRef{Hash: hash}
		if err := b.tx.QueryRow(ctx, sqlBlobBytes, []any{hash}, &ref.Size); err != nil && ignoreNoRows(err) != nil {
			return err
		}
		if err := b.refBlob(ctx, tree, ref); err != nil {
			return err
		}
	}
	return nil
}

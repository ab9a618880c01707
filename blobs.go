package perdure

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/blob"
	"github.com/perdure/perdure/internal/storage/dbblob"
	"github.com/perdure/perdure/internal/storage/sqldb"
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

// PutBlob makes content durable under its hash: in the blobs folder, or in the database
// if it is PostgreSQL. The same content is stored once. It is removed after retention's
// grace period (an hour) unless a tree or context refers to it.
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
		return noBlob(op)
	}
	return wrap(op, err)
}

func noBlob(op string) *Error { return notFoundf(op, "the blob was removed") }

// OpenBlob opens content for reading.
func (s *Store) OpenBlob(ctx context.Context, hash string) (*Blob, error) {
	if s.blobs == nil {
		return s.openChunks(ctx, hash)
	}
	f, err := s.blobs.Open(hash)
	if errors.Is(err, os.ErrNotExist) && s.keeper.putBackBlob(hash) {
		f, err = s.blobs.Open(hash)
	}
	if errors.Is(err, blob.ErrBadHash) {
		return nil, invalidf("open blob", "%q is not a SHA-256 in hexadecimal", hash)
	}
	if err != nil {
		return nil, blobError("open blob", err)
	}
	return &Blob{ReaderAt: f, Closer: f, size: f.Size()}, nil
}

// OpenIndex opens the search index of a context, see [Store.PutIndex].
func (s *Store) OpenIndex(_ context.Context, hash string) (*Blob, error) {
	files, err := s.indexes()
	if err != nil {
		return nil, err
	}
	f, err := files.OpenIndex(hash)
	if err != nil {
		return nil, blobError("open index", err)
	}
	return &Blob{ReaderAt: f, Closer: f, size: f.Size()}, nil
}

// PutIndex stores what write writes as the search index of a context, and opens it. The index is a
// cache: a file next to the context, removed with it, or, if the database is PostgreSQL, one in the
// user's cache folder, which keeps the latest. It can be lost at any time, and its content is not
// checked.
func (s *Store) PutIndex(ctx context.Context, hash string, write func(io.Writer) error) (*Blob, error) {
	files, err := s.indexes()
	if err != nil {
		return nil, err
	}
	if err := files.PutIndex(hash, write); err != nil {
		return nil, wrap("write index", err)
	}
	if s.blobs == nil {
		if err := files.LimitIndexes(maxCachedIndexes); err != nil {
			return nil, wrap("limit indexes", err)
		}
	}
	return s.OpenIndex(ctx, hash)
}

// maxCachedIndexes is how many bytes of indexes a user's cache folder keeps besides the last one.
const maxCachedIndexes = 4 << 30

// indexes returns where search indexes are kept.
func (s *Store) indexes() (*blob.Store, error) {
	if s.blobs != nil {
		return s.blobs, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, wrap("find cache folder", err)
	}
	return blob.New(filepath.Join(dir, "perdure", "indexes"), s.log)
}

func (s *Store) blobText(ctx context.Context, hash string) (string, error) {
	b, err := s.OpenBlob(ctx, hash)
	if err != nil {
		return "", err
	}
	defer b.Close()
	var sb strings.Builder
	sb.Grow(int(b.Size()))
	_, err = io.Copy(&sb, io.NewSectionReader(b, 0, b.Size()))
	return sb.String(), wrap("read blob", err)
}

const sqlRefBlob = `INSERT INTO blob_ref (hash, tree, bytes, created_at) VALUES ($1, $2, $3, $4)
	ON CONFLICT (hash, tree) DO UPDATE SET created_at = excluded.created_at`

// refBlob records that a tree needs a blob. Retention removes a blob only in a transaction
// that found no reference, so an existing blob stays from now on.
func (b *batch) refBlob(ctx context.Context, tree int64, ref BlobRef) error {
	if b.s.blobs != nil {
		if _, err := b.s.blobs.Stat(ref.Hash); err != nil {
			return blobError("refer to blob", err)
		}
	} else {
		exists, err := dbblob.Has(ctx, b.tx, ref.Hash)
		if err != nil {
			return err
		}
		if !exists {
			return noBlob("refer to blob")
		}
	}
	_, err := b.tx.Exec(ctx, sqlRefBlob, ref.Hash, tree, ref.Size, b.now)
	return err
}

// putChunks stores content in the database.
func (s *Store) putChunks(ctx context.Context, r io.Reader) (BlobRef, error) {
	write := func(ctx context.Context, fn func(context.Context, *sqldb.Tx) error) error {
		return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return fn(ctx, b.tx) }))
	}
	ref, err := dbblob.Put(ctx, write, "tmp-"+string(newTreeID())+itoa(time.Now().UnixNano()), r)
	if err != nil {
		return BlobRef{}, wrap("write blob", err)
	}
	// From now on retention's grace period protects it.
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return b.refBlob(ctx, 0, BlobRef(ref)) }))
	return BlobRef(ref), err
}

func (s *Store) openChunks(ctx context.Context, hash string) (*Blob, error) {
	r, err := dbblob.Open(ctx, s.db, hash)
	if err != nil {
		return nil, wrap("open blob", orNotFound(err, noBlob("open blob")))
	}
	return &Blob{ReaderAt: r, Closer: io.NopCloser(nil), size: r.Size()}, nil
}

// ContextSpec describes the text of a run: one pack of files and its manifest,
// both blobs.
type ContextSpec struct {
	Pack, Manifest       BlobRef
	Files, Bytes, Tokens int64
}

// Context is the text of a run. Its ID is a hash of its content.
type Context struct {
	ID        string    `json:"context_id"`
	Pack      string    `json:"pack"`
	Manifest  string    `json:"manifest"`
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	Tokens    int64     `json:"tokens"`
	CreatedAt time.Time `json:"created_at"`
	// New is set by [Store.PutContext] if the store did not have the context.
	New bool `json:"new,omitempty"`
}

const (
	contextColumns = `id, pack, manifest, files, bytes, tokens, created_at`
	sqlPutContext  = `INSERT INTO context (` + contextColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at`
	sqlHasContext = `SELECT COUNT(*) FROM context WHERE id = $1`
	sqlContext    = `SELECT ` + contextColumns + ` FROM context WHERE id = $1`
)

// PutContext records a context whose blobs were put before. It is removed after
// retention's grace period unless a tree names it.
func (s *Store) PutContext(ctx context.Context, spec ContextSpec) (Context, error) {
	id := "ctx-" + hashOf(spec.Pack.Hash + " " + spec.Manifest.Hash)[:16]
	var known int64
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		if err := b.tx.QueryRow(ctx, sqlHasContext, []any{id}, &known); err != nil {
			return err
		}
		for _, ref := range []BlobRef{spec.Pack, spec.Manifest} {
			if err := b.refBlob(ctx, 0, ref); err != nil {
				return err
			}
		}
		_, err := b.tx.Exec(ctx, sqlPutContext, id, spec.Pack.Hash, spec.Manifest.Hash, spec.Files, spec.Bytes, spec.Tokens,
			b.now)
		return err
	}))
	if err != nil {
		return Context{}, err
	}
	c, err := s.Context(ctx, id)
	c.New = known == 0
	return c, err
}

// Context returns a context by its ID.
func (s *Store) Context(ctx context.Context, id string) (Context, error) {
	return scanContext(ctx, s.db.QueryRow, id)
}

func scanContext(ctx context.Context, query queryRow, id string) (Context, error) {
	var c Context
	var at int64
	err := query(ctx, sqlContext, []any{id}, &c.ID, &c.Pack, &c.Manifest, &c.Files, &c.Bytes, &c.Tokens, &at)
	c.CreatedAt = micros(at)
	return c, wrap("read context", orNotFound(err, notFoundf("read context", "there is no context %q", id)))
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
		if err := b.tx.QueryRow(ctx, sqlBlobBytes, []any{hash}, &ref.Size); ignoreNoRows(err) != nil {
			return err
		}
		if err := b.refBlob(ctx, tree, ref); err != nil {
			return err
		}
	}
	return nil
}

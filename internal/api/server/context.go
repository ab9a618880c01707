package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/corpus/pack"
)

const opContext = "create context"

// createContext reads a stream of files and keeps them as one context. Nothing
// is kept of a stream that is cut or malformed.
func (s *server) createContext(r *request) (any, error) {
	if err := r.done(); err != nil {
		return nil, err
	}
	ctx := r.Context()
	r.streams(s.limits.Pause)
	body := http.MaxBytesReader(r.w, r.Body, s.limits.ContextBytes)
	// The pack is built while the stream is read, and stored while it is built.
	manifest, ref, err := pack.Store(pack.Limits{Bytes: s.limits.ContextBytes},
		func(r io.Reader) (perdure.BlobRef, error) { return s.store.PutBlob(ctx, r) },
		func(b *pack.Builder) error { return pack.ReadStream(body, b) })
	if err != nil {
		return nil, streamError(err)
	}
	encoded, err := manifest.Encode()
	if err != nil {
		return nil, invalid(opContext, err.Error(), "send fewer files in one request")
	}
	manifestRef, err := s.store.PutBlob(ctx, bytes.NewReader(encoded))
	if err != nil {
		return nil, err
	}
	made, err := s.store.PutContext(ctx, perdure.ContextSpec{
		Pack: ref, Manifest: manifestRef,
		Files: int64(len(manifest.Files)), Bytes: manifest.Bytes, Tokens: manifest.Tokens(),
	})
	skipped := make([]client.SkippedFile, 0, len(manifest.Skipped))
	for _, file := range manifest.Skipped {
		skipped = append(skipped, client.SkippedFile(file))
	}
	notes := make([]client.ContextNote, 0, len(manifest.Notes))
	for _, n := range manifest.Notes {
		notes = append(notes, client.ContextNote(n))
	}
	return created{"/v1/contexts/" + made.ID, client.ContextReport{
		ID: made.ID, Files: made.Files, Bytes: made.Bytes, Tokens: made.Tokens, New: made.New,
		CreatedAt: made.CreatedAt,
		Skipped:   skipped, MoreSkipped: manifest.MoreSkipped, SkippedKinds: manifest.SkippedKinds,
		Notes: notes, MoreNotes: manifest.MoreNotes,
	}}, err
}

// streamError returns why a stream was not stored: the store failed, it is too large, or
// it is malformed.
func streamError(err error) error {
	var store *pack.StoreError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &store):
		return store.Err
	case errors.As(err, &large):
		return bodyError(err, "context")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return lateBody(err, "context")
	case errors.Is(err, pack.ErrLimit):
		return &statusError{status: http.StatusRequestEntityTooLarge, err: invalid(opContext, err.Error(), "")}
	case errors.Is(err, context.Canceled):
		return err
	}
	return invalid(opContext, err.Error(), "")
}

// contextNames bounds the names of files in a response.
const contextNames = 5

func (s *server) context(r *request) (any, error) {
	named := r.text("names") != ""
	if err := r.done(); err != nil {
		return nil, err
	}
	c, err := s.store.Context(r.Context(), r.PathValue("id"))
	if err != nil || !named {
		return c, err
	}
	info := client.ContextInfo{Context: c, Names: []string{}}
	blob, err := s.store.OpenBlob(r.Context(), c.Manifest)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	raw, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil {
		return nil, err
	}
	m, err := pack.Decode(raw)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files[:min(len(m.Files), contextNames)] {
		info.Names = append(info.Names, f.Name)
	}
	return info, nil
}

// dropContext removes a context that was just created and for which there is no tree.
func (s *server) dropContext(r *request) (any, error) {
	at, err := time.Parse(time.RFC3339Nano, r.text("created_at"))
	if err := r.done(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, invalid("remove context", "parameter \"created_at\" is not a time as the upload returned it", "")
	}
	dropped, err := s.store.DropContext(r.Context(), perdure.Context{ID: r.PathValue("id"), CreatedAt: at, New: true})
	return object{"removed": dropped}, err
}

package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
)

const opContext = "create context"

// createContext reads a stream of files and keeps them as one context. Nothing
// is kept of a stream that is cut or malformed.
func (s *server) createContext(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	ctx := r.Context()
	body := http.MaxBytesReader(w, r.Body, s.limits.ContextBytes)
	manifest, ref, err := s.receivePack(ctx, body)
	if err != nil {
		return err
	}
	encoded, err := manifest.Encode()
	if err != nil {
		return invalid(opContext, err.Error(), "give fewer files at once")
	}
	manifestRef, err := s.store.PutBlob(ctx, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	made, err := s.store.PutContext(ctx, perdure.ContextSpec{
		Pack: ref, Manifest: manifestRef,
		Files: int64(len(manifest.Files)), Bytes: manifest.Bytes, Tokens: manifest.Tokens(),
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/contexts/"+made.ID)
	return s.reply(w, http.StatusCreated, contextReport{
		ID: made.ID, Files: made.Files, Bytes: made.Bytes, Tokens: made.Tokens,
		Skipped: skipped(manifest.Skipped), MoreSkipped: manifest.MoreSkipped, SkippedKinds: manifest.SkippedKinds,
	})
}

// contextReport answers POST /v1/contexts.
type contextReport struct {
	ID      string         `json:"context_id"`
	Files   int64          `json:"files"`
	Bytes   int64          `json:"bytes"`
	Tokens  int64          `json:"tokens"`
	Skipped []pack.Skipped `json:"skipped"`
	// MoreSkipped counts those that the list has no room for.
	MoreSkipped int64 `json:"more_skipped,omitempty"`
	// SkippedKinds counts all of them.
	SkippedKinds map[string]int64 `json:"skipped_kinds,omitempty"`
}

func skipped(list []pack.Skipped) []pack.Skipped {
	if list == nil {
		return []pack.Skipped{}
	}
	return list
}

// receivePack builds the pack while the stream is read, and writes it into a
// blob while it is built.
func (s *server) receivePack(ctx context.Context, body io.Reader) (*pack.Manifest, perdure.BlobRef, error) {
	manifest, ref, err := pack.Store(pack.Limits{Bytes: s.limits.ContextBytes},
		func(r io.Reader) (perdure.BlobRef, error) { return s.store.PutBlob(ctx, r) },
		func(b *pack.Builder) error { return pack.ReadStream(body, b) })
	if err != nil {
		return nil, ref, streamError(err)
	}
	return manifest, ref, nil
}

// streamError tells who was at fault: the store, the size, or the stream.
func streamError(err error) error {
	var store *pack.StoreError
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &store):
		return store.Err
	case errors.As(err, &large):
		return bodyError(err, "context")
	case errors.Is(err, pack.ErrLimit):
		return &statusError{status: http.StatusRequestEntityTooLarge, err: invalid(opContext, err.Error(), "")}
	case errors.Is(err, context.Canceled):
		return err
	}
	return invalid(opContext, err.Error(), "")
}

func (s *server) context(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	found, err := s.store.Context(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, found)
}

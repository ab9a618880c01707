package rlm

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/corpus/walk"
)

// PutContext reads files, folders and globs, as `perdure run --context` does,
// and keeps them in the store as one context for [LaunchRequest.ContextID].
// Paths are relative to root. Files that are not text, that .gitignore names or
// that cannot be read are left out of folders, and are an error when they are
// named themselves. Nothing refers to what was kept until a tree is launched
// with it; retention removes it a day later.
//
// Errors are *perdure.Error values of [perdure.CodeInvalid] about what was
// named, and those of the store. It may be called from many goroutines.
func PutContext(ctx context.Context, s *perdure.Store, root string, names ...string) (perdure.Context, error) {
	manifest, ref, err := pack.Store(pack.Limits{},
		func(r io.Reader) (perdure.BlobRef, error) { return s.PutBlob(ctx, r) },
		func(b *pack.Builder) error { return walk.Into(ctx, walk.Config{Root: root, Args: names}, b) })
	if err != nil {
		return perdure.Context{}, contextError(err)
	}
	encoded, err := manifest.Encode()
	if err != nil {
		return perdure.Context{}, contextError(err)
	}
	manifestRef, err := s.PutBlob(ctx, bytes.NewReader(encoded))
	if err != nil {
		return perdure.Context{}, err
	}
	return s.PutContext(ctx, perdure.ContextSpec{Pack: ref, Manifest: manifestRef,
		Files: int64(len(manifest.Files)), Bytes: manifest.Bytes, Tokens: manifest.Tokens()})
}

func contextError(err error) error {
	if store, ok := errors.AsType[*pack.StoreError](err); ok {
		return store.Err
	}
	if ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded); ended {
		return &perdure.Error{Code: perdure.CodeCanceled, Op: "read context", Err: err}
	}
	out := &perdure.Error{Code: perdure.CodeInvalid, Op: "read context", Msg: err.Error()}
	if named, ok := errors.AsType[*walk.Error](err); ok {
		out.Hint = named.Hint
	}
	return out
}

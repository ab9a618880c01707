package perdure_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/testing/testdb"
)

// A context for which no tree is created is removed with its text, by the process that stored it.
func TestDropContext(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, s *perdure.Store) {
		put := func(text string) perdure.Context {
			t.Helper()
			spec := perdure.ContextSpec{Files: 1, Bytes: int64(len(text))}
			var err error
			if spec.Pack, err = s.PutBlob(t.Context(), strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			if spec.Manifest, err = s.PutBlob(t.Context(), strings.NewReader("manifest")); err != nil {
				t.Fatal(err)
			}
			c, err := s.PutContext(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		drop := func(what string, c perdure.Context, want bool) {
			t.Helper()
			if dropped, err := s.DropContext(t.Context(), c); err != nil || dropped != want {
				t.Errorf("%s: dropped %v, %v", what, dropped, err)
			}
			blob, err := s.OpenBlob(t.Context(), c.Pack)
			if want != errors.Is(err, perdure.ErrNotFound) {
				t.Errorf("%s: open its text: %v", what, err)
			}
			if err == nil {
				_ = blob.Close()
			}
		}
		needed := put("needed")
		if _, err := s.CreateTree(t.Context(), perdure.TreeSpec{Kind: "run", Contexts: []string{needed.ID},
			Root: perdure.TaskSpec{Prompt: "p"}}); err != nil {
			t.Fatal(err)
		}
		drop("needed by a tree", needed, false)
		first := put("twice")
		drop("put again", func() perdure.Context { put("twice"); return first }(), false)
		drop("not new", put("twice"), false)
		fresh := put("fresh")
		drop("new", fresh, true)
		drop("dropped before", func() perdure.Context { fresh.New = false; fresh.Pack = first.Pack; return fresh }(), false)
		if _, err := s.Context(t.Context(), needed.ID); err != nil {
			t.Error(err) // the manifest is shared
		}
		blob, err := s.OpenBlob(t.Context(), needed.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		_ = blob.Close()
	})
}

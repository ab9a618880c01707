package loop_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/view/loop"
)

// What is written here is read by the import as it is.
func TestImportReads(t *testing.T) {
	t.Parallel()
	in := scene{t, "Fix the tests"}.done()
	d := loop.NewDraft(in)
	dir := filepath.Join(t.TempDir(), ".aiwg")
	for name, doc := range map[string]any{"state.json": d.State(), "analytics/analytics.json": d.Summary().Analytics()} {
		path := filepath.Join(dir, "ralph", "loops", d.Summary().ID(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw(t, doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := testdb.Open(t, perdure.Config{Dir: t.TempDir()})
	r, err := tree.Import(t.Context(), store, tree.ImportConfig{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Notes {
		t.Errorf("%+v", n)
	}
	list, err := store.Trees(t.Context(), perdure.TreeFilter{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d trees: %v", len(list), err)
	}
}

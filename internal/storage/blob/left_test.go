package blob_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/storage/filelock"
)

// The first write of a process removes the files that killed writers left, and not those of writers
// that live.
func TestPutRemovesLeftFiles(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	for _, name := range []string{"blob-left", "blob-written"} {
		path := filepath.Join(tmp, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	living, err := os.Open(filepath.Join(tmp, "blob-written"))
	if err == nil {
		defer living.Close()
		err = filelock.Lock(living)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(tmp)
	if err != nil || len(entries) != 1 || entries[0].Name() != "blob-written" {
		t.Errorf("left: %v, %v", entries, err)
	}
}

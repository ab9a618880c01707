package diff_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/workspace"
	"github.com/perdure/perdure/internal/workspace/diff"
)

// The requested paths come first, and parts that are not shown are named.
func TestSnapshots(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := workspace.Open(workspace.Config{Root: root, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	take := func() workspace.ID {
		t.Helper()
		id, _, err := w.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	put("a", "one\n")
	put("moved", "the same content\n")
	put("z", "test\n")
	before := take()
	put("a", "two\n")
	put("large", strings.Repeat("x", 5<<20))
	if err := os.Rename(filepath.Join(root, "moved"), filepath.Join(root, "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "z")); err != nil {
		t.Fatal(err)
	}
	got := diff.Snapshots(t.Context(), w, before, take(), []string{"z"})
	for _, want := range []string{"--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n", "rename from moved\nrename to new\n",
		"the content is not shown: larger than 4.0 MiB (nothing, then 5242880 bytes)"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if !strings.HasPrefix(got, "--- a/z\n+++ /dev/null\n@@ -1 +0,0 @@\n-test\n") {
		t.Errorf("the file in question is not first:\n%s", got)
	}
	for i := range 100 {
		put(fmt.Sprintf("many-%03d", i), strings.Repeat("a line of some length\n", 60))
	}
	if got = diff.Snapshots(t.Context(), w, before, take(), nil); len(got) > 64<<10 ||
		!strings.Contains(got, " more files\n") {
		t.Errorf("%d bytes: %.200s", len(got), got[max(0, len(got)-200):])
	}
	if got = diff.Snapshots(t.Context(), w, "none", before, nil); !strings.HasPrefix(got, "the changes cannot be read: ") {
		t.Errorf("a snapshot that is not there: %q", got)
	}
}

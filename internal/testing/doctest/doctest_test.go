package doctest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/testing/doctest"
)

// An update replaces the part alone, and the check passes after it.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		head = "# Title\n\n<!-- rows: go test ./a/b -run TestRows -update -->\n"
		tail = "<!-- end of rows -->\n\nMore.\n"
	)
	p := doctest.Part{File: filepath.Join(t.TempDir(), "page.md"), Name: "rows", Package: "a/b", Test: "TestRows"}
	if err := os.WriteFile(p.File, []byte(head+"old\n"+tail), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &failures{TB: t}
	if p.Check(f, "new\n", false); f.n != 1 {
		t.Errorf("%d failures for a part that differs, want 1", f.n)
	}
	p.Check(t, "new\n", true)
	raw, err := os.ReadFile(p.File)
	if want := head + "new\n\n" + tail; err != nil || string(raw) != want {
		t.Errorf("the page is %q, %v, want %q", raw, err, want)
	}
	p.Check(t, "new\n", false)
}

// failures counts errors instead of reporting them.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Errorf(string, ...any) { f.n++ }

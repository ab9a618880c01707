package machine_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/verify/machine"
)

// write creates files below a folder.
func write(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCompare: changed and removed files are named, new ones and those that tools change in
// their ordinary work are not.
func TestCompare(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "go/pkg/mod/a@v1/a.go", "go/pkg/mod/a@v1/b.go", "go/pkg/mod/cache/lock",
		"go/pkg/mod/cache/download/a/@v/list", ".cargo/registry/src/c/lib.rs", ".cargo/registry/index/c")
	env := []string{"HOME=" + home, "USERPROFILE=" + home}
	caches := machine.Caches(env)
	record, err := machine.Record(t.Context(), caches)
	if err != nil || len(caches) != 2 {
		t.Fatalf("%+v, %v", caches, err)
	}
	compare := func() (changed []string) {
		t.Helper()
		results, err := machine.Compare(t.Context(), record, machine.Caches(env))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Unchecked {
				t.Error("a cache was not compared")
			}
			changed = append(changed, r.Changed...)
		}
		return changed
	}
	if got := compare(); len(got) > 0 {
		t.Errorf("nothing was changed: %v", got)
	}
	write(t, home, "go/pkg/mod/new@v1/a.go", ".cargo/registry/src/d/lib.rs")
	for _, name := range []string{"go/pkg/mod/cache/lock", "go/pkg/mod/cache/download/a/@v/list",
		".cargo/registry/index/c"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte("longer"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := compare(); len(got) > 0 {
		t.Errorf("new and volatile files count: %v", got)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(home, "go/pkg/mod/a@v1/a.go"), []byte("y"), 0o600),
		os.Remove(filepath.Join(home, ".cargo/registry/src/c/lib.rs"))); err != nil {
		t.Fatal(err)
	}
	named := func(s string) bool { return strings.HasSuffix(s, "a.go") }
	if got := compare(); len(got) != 2 || !slices.ContainsFunc(got, named) {
		t.Errorf("changed: %v", got)
	}
	if results, err := machine.Compare(t.Context(), nil, caches); err != nil || !results[0].Unchecked {
		t.Errorf("without a record: %+v, %v", results, err)
	}
}

// TestInstalled: managers of tool chains are found by their folders.
func TestInstalled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, ".pyenv/version", "other/version")
	got := machine.Installed([]string{"HOME=" + home, "USERPROFILE=" + home,
		"RUSTUP_HOME=" + filepath.Join(home, "other")})
	want := []string{"PYENV_ROOT=" + filepath.Join(home, ".pyenv"), "RUSTUP_HOME=" + filepath.Join(home, "other")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

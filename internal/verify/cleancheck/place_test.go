package cleancheck_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/storage/filelock"
	"github.com/perdure/perdure/internal/verify/cleancheck"
)

// TestSweep: copies of processes that died are removed with the next one; those in use,
// and other folders with such a name, stay.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := newBench(t, "true", map[string]string{"a": "a"})
	b.begin()
	at := func(name string) string { return filepath.Join(b.temp, "perdure-sealed-"+name) }
	for _, name := range []string{"dead", "alive", "other"} {
		b.ok(os.MkdirAll(filepath.Join(at(name), "copy", "read-only"), 0o700))
		b.ok(os.WriteFile(filepath.Join(at(name), "copy", "read-only", "f"), nil, 0o600))
		b.ok(os.Chmod(filepath.Join(at(name), "copy", "read-only"), 0o500)) //nolint:gosec // a folder
	}
	t.Cleanup(func() {
		for _, name := range []string{"alive", "other"} {
			_ = os.Chmod(filepath.Join(at(name), "copy", "read-only"), 0o700) //nolint:gosec // a folder
		}
	})
	b.ok(os.WriteFile(filepath.Join(at("dead"), "lock"), nil, 0o600))
	held, err := os.Create(filepath.Join(at("alive"), "lock"))
	b.ok(err)
	defer held.Close()
	b.ok(filelock.TryLock(held))
	b.ok(os.Symlink(b.dir, at("link")))

	place, err := cleancheck.NewPlace(b.temp, b.dir)
	b.ok(err)
	names := func() []string {
		list, err := os.ReadDir(b.temp)
		b.ok(err)
		var all []string
		for _, e := range list {
			all = append(all, e.Name())
		}
		return all
	}
	if got := names(); slices.Contains(got, "perdure-sealed-dead") || len(got) != 4 {
		t.Errorf("there are %v", got)
	}
	second, err := cleancheck.NewPlace(b.temp, b.dir) // while the first is in use
	b.ok(err)
	if len(names()) != 5 || filepath.Base(second.Root) != filepath.Base(b.dir) {
		t.Errorf("there are %v, %s", names(), second.Root)
	}
	b.ok(place.Close())
	b.ok(second.Close())
	if got := names(); len(got) != 3 {
		t.Errorf("there are %v", got)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "a")); err != nil {
		t.Error("something was removed through a link:", err)
	}
}

// TestPaths: a folder's path is replaced only where it ends.
func TestPaths(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"A=/w":               "A=/copy",
		"PATH=/bin:/w/b:/wx": "PATH=/bin:/copy/b:/wx",
		"A=/w-old":           "A=/w-old",
		"/w=/x":              "/w=/x",
		"A=":                 "A=",
		"odd":                "odd",
	} {
		if got := cleancheck.Elsewhere([]string{in}, "/w", "/copy"); got[0] != want {
			t.Errorf("%q is %q, not %q", in, got[0], want)
		}
	}
}

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

// TestCompare: changed and removed files are named, new packages and files that tools change
// in their ordinary work are not.
func TestCompare(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "go/pkg/mod/a@v1/a.go", "go/pkg/mod/a@v1/b.go", "go/pkg/mod/cache/lock",
		"go/pkg/mod/cache/download/a/@v/list", ".cargo/registry/src/c/lib.rs", ".cargo/registry/index/c")
	env := []string{"HOME=" + home, "USERPROFILE=" + home}
	caches := machine.Caches(env)
	record, err := machine.Record(t.Context(), caches)
	if found := machine.Existing(caches); err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	compare := func() (changed []string) {
		t.Helper()
		results, err := machine.Compare(t.Context(), record, machine.Caches(env))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Unchecked != "" {
				t.Error("a cache was not compared")
			}
			changed = append(changed, r.Changed...)
		}
		return changed
	}
	if got := compare(); len(got) > 0 {
		t.Errorf("nothing was changed: %v", got)
	}
	write(t, home, "go/pkg/mod/new@v1/a.go", ".cargo/registry/src/d/lib.rs", ".cargo/git/checkouts/e/lib.rs")
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
	if results, err := machine.Compare(t.Context(), nil, caches); err != nil || results[0].Unchecked == "" {
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

// TestCompareAdded: a new file is a change if the package or program that was there can
// execute it.
func TestCompareAdded(t *testing.T) {
	t.Parallel()
	const site = ".local/lib/python3.9/site-packages/"
	for name, counts := range map[string]bool{
		"go/pkg/mod/a@v1/zz.go":                        true,
		"go/pkg/mod/a@v1/new/zz.go":                    true,
		"go/pkg/mod/a@v2/a.go":                         false,
		"go/pkg/mod/cache/download/a/@v/v2.mod":        false,
		".cargo/registry/src/index/c-1.0/build.rs":     true,
		".cargo/registry/src/index/d-1.0/lib.rs":       false,
		".cargo/registry/cache/index/d-1.0.crate":      false,
		".m2/repository/org/a/1.0/a-1.0-tests.jar":     true,
		".m2/repository/org/a/1.1/a-1.1.jar":           false,
		".gem/ruby/3.0.0/specifications/a-2.0.gemspec": true,
		".hex/packages/hexpm/b-1.0.tar":                false,
		site + "pytest/__init__.py":                    true,
		site + "a-1.0.dist-info/entry_points.txt":      true,
		site + "b.py": true,
		".local/lib/python3.12/site-packages/b.py":           true,
		site + "__pycache__/a.pyc":                           false,
		".nuget/packages/a/1.0/build/a.targets":              true,
		".gradle/caches/modules-2/files-2.1/g/a/1/sha/a.jar": false,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			write(t, home, "go/pkg/mod/a@v1/go.mod", "go/pkg/mod/cache/download/a/@v/v1.mod",
				".cargo/registry/src/index/c-1.0/lib.rs", ".cargo/registry/cache/index/c-1.0.crate",
				".m2/repository/org/a/1.0/a-1.0.jar", ".gem/ruby/3.0.0/specifications/a-1.0.gemspec",
				".hex/packages/hexpm/a-1.0.tar", site+"a.py", ".nuget/packages/a/1.0/a.nuspec")
			env := []string{"HOME=" + home, "USERPROFILE=" + home}
			record, err := machine.Record(t.Context(), machine.Caches(env))
			if err != nil {
				t.Fatal(err)
			}
			write(t, home, name)
			results, err := machine.Compare(t.Context(), record, machine.Existing(machine.Caches(env)))
			if err != nil {
				t.Fatal(err)
			}
			var changed []string
			for _, r := range results {
				changed = append(changed, r.Changed...)
			}
			want := []string{filepath.Join(home, filepath.FromSlash(name))}
			if !counts {
				want = nil
			}
			if !slices.Equal(changed, want) {
				t.Errorf("changed: %v", changed)
			}
		})
	}
}

// TestCompareUnknown: caches with too many files, and those without a record, are unchecked
// and not changed. A cache that did not exist has a record.
func TestCompareUnknown(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write(t, home, "go/pkg/mod/a@v1/a.go", "go/pkg/mod/a@v1/b.go")
	env := []string{"HOME=" + home, "USERPROFILE=" + home}
	record, err := machine.Record(t.Context(), machine.Caches(env))
	if err != nil {
		t.Fatal(err)
	}
	write(t, home, "go/pkg/mod/a@v2/a.go", ".local/lib/python3.9/site-packages/a.py", "modules/a@v1/a.go")
	caches := machine.Existing(machine.Caches(append(env, "GOMODCACHE="+filepath.Join(home, "modules"))))
	caches = append(caches, machine.Existing(machine.Caches(env))...)
	results, err := machine.CompareUpTo(t.Context(), record, caches, 2)
	if err != nil || len(caches) != 4 {
		t.Fatalf("%+v, %v", caches, err)
	}
	for i, c := range caches {
		says := map[string]string{"modules": "no record of ", "mod": "more than 2 files in "}[filepath.Base(c.Dir)]
		r := results[i]
		if says != "" && len(r.Changed) > 0 || (r.Unchecked == "") != (says == "") || !strings.Contains(r.Unchecked, says) ||
			says == "" && len(r.Changed) != 1 {
			t.Errorf("%s: %+v", c.Dir, r)
		}
	}
}

// TestPathOfWindows: names of variables match in any case there, and only there.
func TestPathOfWindows(t *testing.T) {
	t.Parallel()
	env := []string{"Path=old", "PATHEXT=.exe"}
	if got := machine.GetFold(env, "PATH", true); got != "old" {
		t.Errorf("got %q", got)
	}
	if got := machine.SetFold(env, "PATH", "new", true); !slices.Equal(got, []string{"PATHEXT=.exe", "PATH=new"}) {
		t.Errorf("got %v", got)
	}
	if got := machine.SetFold(env, "PATH", "new", false); len(got) != 3 || machine.GetFold(env, "PATH", false) != "" {
		t.Errorf("got %v", got)
	}
}

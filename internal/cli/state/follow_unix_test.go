//go:build unix

package state

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/perdure/perdure"
)

// Only files in the folder are read, whatever the path.
func TestFollow(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "store")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.MkdirAll(filepath.Join(dir, "inner"), 0o700))
	for name, text := range map[string]string{"secret.txt": "secret", "store/a.txt": "inside",
		"store/inner/b.json": " [1]\n", "store/cut.json": "[1"} {
		do(os.WriteFile(filepath.Join(base, name), []byte(text), 0o600))
	}
	for link, to := range map[string]string{"store/out": "../secret.txt", "store/far": filepath.Join(base, "secret.txt"),
		"store/up":         "..",
		"store/inner/near": "../a.txt", "store/circle": "circle", "store-link": "store"} {
		do(os.Symlink(to, filepath.Join(base, link)))
	}
	do(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	do(os.Truncate(filepath.Join(dir, "a.txt"), 6))
	do(os.WriteFile(filepath.Join(dir, "large"), nil, 0o600))
	do(os.Truncate(filepath.Join(dir, "large"), perdure.MaxVariableBytes+1))
	for path, want := range map[string]string{
		"a.txt": "inside", "./a.txt": "inside", "inner/../a.txt": "inside", "file:a.txt": "inside", "inner/near": "inside",
		filepath.Join(dir, "a.txt"): "inside", "file://" + filepath.Join(dir, "a.txt"): "inside", "inner/b.json": " [1]\n",
	} {
		for _, from := range []string{dir, filepath.Join(base, "store-link")} {
			got, err := follow(from, path)
			if err != nil || string(got) != want {
				t.Errorf("%s in %s: %q, %v", path, from, got, err)
			}
		}
	}
	for path, want := range map[string]perdure.Code{
		"../secret.txt": perdure.CodeInvalid, "inner/../../secret.txt": perdure.CodeInvalid, "out": perdure.CodeInvalid,
		"far":           perdure.CodeInvalid,
		"up/secret.txt": perdure.CodeInvalid, filepath.Join(base, "secret.txt"): perdure.CodeInvalid,
		"/etc/passwd":        perdure.CodeInvalid,
		"file:///etc/passwd": perdure.CodeInvalid, "file:../secret.txt": perdure.CodeInvalid, "": perdure.CodeInvalid,
		"inner": perdure.CodeInvalid,
		"pipe":  perdure.CodeInvalid, "circle": perdure.CodeUnavailable, "none": perdure.CodeNotFound,
		"cut.json": perdure.CodeInvalid,
		"large":    perdure.CodeInvalid, "a\x00b": perdure.CodeInvalid,
		filepath.Join(dir, "..", "store-other", "x"): perdure.CodeInvalid,
	} {
		got, err := follow(dir, path)
		if perdure.CodeOf(err) != want || got != nil {
			t.Errorf("%q: %.10q, %v", path, got, err)
		}
	}
}

// The paths that inside returns are in the folder.
func FuzzInside(f *testing.F) {
	for _, seed := range []string{"a", "../a", "/store/a", "/store/../a", "a/../../b", "", ".", "//store//a", "/store"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		name, err := inside("/store", path)
		if err != nil {
			return
		}
		if full := filepath.Join("/store", name); full != "/store" && !strings.HasPrefix(full, "/store/") {
			t.Errorf("%q is %q", path, full)
		}
	})
}

package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/storage/atomicfile"
)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// entries are the names in dir, which shows temporary files left behind.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "doc.json")
	for _, content := range []string{"first, and longer", "second", ""} {
		if err := atomicfile.WriteFile(path, []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
		if got := read(t, path); got != content {
			t.Errorf("content %q, want %q", got, content)
		}
	}
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("folder holds %q, want only the file", got)
	}
}

func TestWritePermissions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions are not those of Unix")
	}
	dir := t.TempDir()
	fresh, existing := filepath.Join(dir, "fresh"), filepath.Join(dir, "existing")
	if err := os.WriteFile(existing, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(existing, 0o604); err != nil { // past any umask
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{fresh: 0o600, existing: 0o604} {
		if err := atomicfile.WriteFile(path, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: permissions %v, want %v", filepath.Base(path), info.Mode().Perm(), want)
		}
	}
}

func TestWriteFailureKeepsTheOldFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "doc.json")
	if err := atomicfile.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("source broke")
	err := atomicfile.Write(path, 0o600, func(w io.Writer) error {
		if _, err := io.WriteString(w, "half of the n"); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "doc.json") {
		t.Errorf("error %v, want the cause and the file's name", err)
	}
	if got := read(t, path); got != "old" {
		t.Errorf("content %q, want the old one", got)
	}
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("folder holds %q, want only the file", got)
	}
}

func TestWriteToMissingFolder(t *testing.T) {
	t.Parallel()
	err := atomicfile.WriteFile(filepath.Join(t.TempDir(), "no", "doc.json"), nil, 0o600)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want not exist", err)
	}
}

func TestWriteFollowsLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "real"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join("real", "doc"), link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	for _, content := range []string{"made through a dangling link", "replaced"} {
		if err := atomicfile.WriteFile(link, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, filepath.Join(dir, "real", "doc")); got != content {
			t.Errorf("target holds %q, want %q", got, content)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("link was replaced: %v, %v", info, err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteFile(loop, nil, 0o600); err == nil {
		t.Error("writing through a loop of links succeeded")
	}
}

// What is not a file is not replaced, also if a link points to it.
func TestWriteReplacesOnlyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	socket, link := filepath.Join(dir, "s"), filepath.Join(dir, "link")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip("no Unix sockets:", err)
	}
	defer listener.Close()
	if err := os.Symlink("s", link); err != nil {
		t.Skip("no links:", err)
	}
	for _, path := range []string{socket, link} {
		err := atomicfile.WriteFile(path, []byte("content"), 0o600)
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := strings.Join(entries(t, dir), " "); got != "link s" {
		t.Errorf("the folder has %s", got)
	}
}

func TestConcurrentWritersLeaveOneWholeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "doc")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			content := strings.Repeat(fmt.Sprint(i), 10_000)
			if err := atomicfile.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := read(t, path)
	if len(got) != 10_000 || strings.Trim(got, got[:1]) != "" {
		t.Errorf("content is mixed or cut: %d bytes", len(got))
	}
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("folder holds %q, want only the file", got)
	}
}

func TestMkdirAll(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := atomicfile.MkdirAll(deep, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(deep); err != nil || !info.IsDir() {
		t.Fatalf("folder missing: %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := atomicfile.MkdirAll(path, 0o700); err == nil {
			t.Errorf("made %q where a file is in the way", path)
		}
	}
}

//go:build unix

package walk_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSpecialFiles(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"d/a": "a"})
	if err := syscall.Mkfifo(filepath.Join(root, "d", "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(root, "d", "sock"))
	if err != nil {
		t.Skipf("no sockets here: %v", err)
	}
	defer l.Close()
	got, err := into(t, root, "d")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"d/pipe": "it is a named pipe", "d/sock": "it is a socket"}
	if diff := cmp.Diff(want, got.skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	for _, arg := range []string{"d/pipe", "d/sock"} {
		if _, err := into(t, root, arg); err == nil || !strings.Contains(err.Error(), want[arg]) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

func TestHardLinksAreOneFile(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"d/a": "a"})
	if err := os.Link(filepath.Join(root, "d", "a"), filepath.Join(root, "d", "b")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	if got, err := into(t, root, "d"); err != nil || len(got.names) != 1 {
		t.Errorf("names %q, %v", got.names, err)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	root := files(t, map[string]string{"d/a": "a", "d/b": "b", "d/closed/c": "c"})
	for _, path := range []string{"d/b", "d/closed"} {
		if err := os.Chmod(filepath.Join(root, path), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, path), 0o700) })
	}
	got, err := into(t, root, "d")
	if err != nil || len(got.names) != 1 || len(got.skipped) != 2 {
		t.Errorf("names %q, skipped %q, %v", got.names, got.skipped, err)
	}
	for _, arg := range []string{"d/b", "d/closed", "d/closed/*"} {
		if _, err := into(t, root, arg); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// TestUnreadableName: names that are not UTF-8 exist on Unix.
func TestUnreadableName(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{"d/a": "a"})
	if err := os.WriteFile(filepath.Join(root, "d", "b\xff"), []byte("b"), 0o600); err != nil {
		t.Skipf("no such names here: %v", err)
	}
	got, err := into(t, root, "d")
	if err != nil || len(got.names) != 1 || !strings.Contains(got.skipped["d/b\xff"], "not valid UTF-8") {
		t.Errorf("names %q, skipped %q, %v", got.names, got.skipped, err)
	}
}

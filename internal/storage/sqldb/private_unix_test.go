//go:build unix

package sqldb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// modes returns the modes of the files of a database.
func modes(t *testing.T, path string) string {
	t.Helper()
	text := ""
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Lstat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		text += fmt.Sprintf("%o ", info.Mode().Perm())
	}
	return text
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "perdure.db")
	for _, name := range []string{"new", "existing"} {
		db, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if got := modes(t, path); got != "600 600 600 " {
			t.Errorf("%s: modes %s", name, got)
		}
		for _, suffix := range []string{"", "-wal", "-shm"} { // as an older version left them
			if err := os.Chmod(path+suffix, 0o664); err != nil {
				t.Fatal(err)
			}
		}
		second, err := Open(t.Context(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if got := modes(t, path); got != "600 600 600 " {
			t.Errorf("%s, opened again: modes %s", name, got)
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Only files of the database are changed, not what a link of their name points to.
func TestPrivateFollowsNoLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(other, 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "perdure.db")
	if err := os.Symlink(other, path+"-wal"); err != nil {
		t.Fatal(err)
	}
	if err := makePrivate(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(other); err != nil || info.Mode().Perm() != fs.FileMode(0o644) {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A pipe or a folder at the place of the database, or of its log, is named as such.
func TestOpenRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for want, create := range map[string]func(path string) error{
		"is a named pipe, not a file": func(path string) error { return unix.Mkfifo(path, 0o600) },
		"is a folder, not a file":     func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		for _, end := range []string{"", "-wal", "-shm"} {
			path := filepath.Join(t.TempDir(), "perdure.db")
			if err := create(path + end); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), Config{Path: path})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
				t.Errorf("Open returned %v, want that %q %s", err, end, want)
			}
		}
	}
}

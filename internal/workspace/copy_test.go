package workspace_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/workspace"
)

// contentsOf returns the files, folders and links below a folder, by path.
func contentsOf(t *testing.T, root string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			all[rel] = "link " + target
			return err
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			all[rel] = text + " " + string(data)
			return err
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestCopyTo: a copy equals the snapshot, also if the workspace changed, with modes, links and
// empty folders; with paths it replaces only these.
func TestCopyTo(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1", "run": "#!/bin/sh\n", "deep/er/b": "2", "empty/": "",
		"l@": "deep/er/b", ".gitignore": "out\n", "out": "no part of it"})
	for name, mode := range map[string]fs.FileMode{"run": 0o755, "deep/er": 0o555} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "deep/er"), 0o755) }) //nolint:gosec // a folder
	w, err := workspace.Open(config(root))
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := w.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := contentsOf(t, root)
	delete(want, "out")
	for name := range want {
		if name == ".perdure" || filepath.Dir(name) == ".perdure" || len(name) > 8 && name[:8] == ".perdure" {
			delete(want, name)
		}
	}
	write(t, root, map[string]string{"a": "changed", "more": "x"})
	to := t.TempDir()
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(to, "deep/er"), 0o755) }) //nolint:gosec // a folder
	done, err := w.CopyTo(t.Context(), id, to, nil)
	if err != nil || done.Files != 5 || done.Bytes == 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if diff := cmp.Diff(want, contentsOf(t, to)); diff != "" {
		t.Error(diff)
	}

	some := t.TempDir()
	write(t, some, map[string]string{"a": "another", "b": "stays"})
	if done, err = w.CopyTo(t.Context(), id, some, []string{"a", "deep/er/b", "not there"}); err != nil ||
		done.Files != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	got := contentsOf(t, some)
	if got["a"] != want["a"] || got["deep/er/b"] != want["deep/er/b"] || got["b"] == "" || len(got) != 5 {
		t.Errorf("%v", got)
	}
	if _, err := w.CopyTo(t.Context(), workspace.ID("none"), some, nil); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("a snapshot that is not there: %v", err)
	}
	if _, err := w.CopyTo(t.Context(), id, filepath.Join(some, "gone"), nil); err == nil {
		t.Error("a folder that is not there")
	}
}

// TestExcluded: ignored and large files are listed, with a stamp that changes with them.
func TestExcluded(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{".gitignore": "out/\n*.log\n", "a": "1", "out/x/y": "1", "out/z": "22",
		"b.log": "333", "out/l@": "z", "large": "0123456789abcdef", "sub/.git/x": "no", "out/.git/x": "no"})
	cfg := config(root)
	cfg.MaxFileSize = 15
	w, err := workspace.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	beside := func() map[string]string {
		t.Helper()
		list, err := w.Excluded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for i, b := range list {
			all[b.Path] = b.Stamp
			if b.Stamp == "" || i > 0 && b.Path <= list[i-1].Path || (b.Target != "") != (b.Path == "out/l") {
				t.Errorf("%+v", b)
			}
		}
		return all
	}
	first := beside()
	for _, name := range []string{"out/x/y", "out/z", "b.log", "out/l", "large"} {
		if first[name] == "" {
			t.Errorf("%s is missing: %v", name, first)
		}
	}
	if len(first) != 5 {
		t.Errorf("%v", first)
	}
	info, err := os.Stat(filepath.Join(root, "out/z"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"out/z": "23", "c.log": ""}) // the same size and the same times
	if err := os.Chtimes(filepath.Join(root, "out/z"), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	remove(t, root, "b.log")
	second := beside()
	if second["out/z"] == first["out/z"] || second["out/x/y"] != first["out/x/y"] || second["b.log"] != "" ||
		second["c.log"] == "" {
		t.Errorf("%v, then %v", first, second)
	}
	cfg.MaxFiles = 3
	if w, err = workspace.Open(cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Excluded(t.Context()); !errors.Is(err, workspace.ErrLimit) {
		t.Errorf("too many: %v", err)
	}
}

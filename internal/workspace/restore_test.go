package workspace_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/workspace"
)

func TestRestore(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{
		"same": "s", "edited": "before", "script": "#!/bin/sh\n", "gone": "g", "dir/gone": "h", "empty/": "", "link@": "same",
		"was-file": "f", "was-dir/a/b": "d", "was-link@": "x", "zero": "", "tight/in": "t", "café \n\x01": "odd",
	})
	for name, mode := range map[string]os.FileMode{"script": 0o755, "edited": 0o640, "empty": 0o700, "tight/in": 0o400,
		"zero": 0o604, "tight": 0o555} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(root, "tight"), 0o755) })
	if err := os.Chmod(filepath.Join(root, "was-dir"), 0o750|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	w := open(t, config(root))
	id, want := take(t, w), tree(t, root)

	if err := os.Chmod(filepath.Join(root, "tight"), 0o755); err != nil {
		t.Fatal(err)
	}
	remove(t, root, "gone", "dir", "empty", "link", "was-file", "was-dir", "was-link", "tight/in")
	write(t, root, map[string]string{
		"edited": "after", "new": "n", "new-dir/x/y": "z", "was-file/now/in": "it", "was-dir": "file", "was-link": "file",
		"link/x": "dir",
	})
	for name, mode := range map[string]os.FileMode{"script": 0o644, "new-dir": 0o500, "tight": 0o555} {
		if err := os.Chmod(filepath.Join(root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	after, messed := take(t, w), tree(t, root)

	changes, err := w.DiffNow(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "tree after the comparison", tree(t, root), messed)
	done := restore(t, w, id)
	same(t, "changed paths", changedPaths(done.Changes), changedPaths(changes))
	same(t, "tree", tree(t, root), want)
	same(t, "before", done.Before, []workspace.ID{after})
	if again := restore(t, w, id); len(again.Changes) != 0 || again.Before[0] != id {
		t.Errorf("second restore changed %v", brief(again.Changes))
	}
	restore(t, w, after)
	same(t, "way back", tree(t, root), messed)
	if err := os.Chmod(filepath.Join(root, "new-dir"), 0o755); err != nil { // for the clean-up
		t.Fatal(err)
	}
}

func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1", "b": "2"})
	cfg := config(root)
	cfg.MaxFileSize = 100
	w := open(t, cfg)
	id := take(t, w)
	check := func(name string, id workspace.ID, want error, hint bool) {
		t.Helper()
		before := tree(t, root)
		_, err := w.Restore(t.Context(), id)
		var known *workspace.Error
		if !errors.Is(err, want) || !errors.As(err, &known) || hint && known.Hint == "" {
			t.Errorf("%s: error %v, want %v", name, err, want)
		}
		same(t, name+": tree", tree(t, root), before)
	}
	check("no ID", "../../a", workspace.ErrNotFound, false)
	check("unknown ID", workspace.ID(strings.Repeat("0", 64)), workspace.ErrNotFound, true)
	write(t, root, map[string]string{"a": strings.Repeat("x", 101)})
	check("too large to keep", id, workspace.ErrInTheWay, true)
	remove(t, root, "a")
	write(t, root, map[string]string{"a/.git/config": "c"})
	check("repository in the way", id, workspace.ErrInTheWay, true)
	remove(t, root, "a")

	manifest := filepath.Join(cfg.Dir, "manifests", string(id))
	whole, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(manifest, whole[:len(whole)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	check("damaged manifest", id, workspace.ErrDamaged, false)
	if err := os.WriteFile(manifest, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	packs, err := filepath.Glob(filepath.Join(cfg.Dir, "packs", "*.pack"))
	if err != nil || len(packs) == 0 {
		t.Fatal(packs, err)
	}
	for _, name := range packs {
		if err := os.Rename(name, name+".away"); err != nil {
			t.Fatal(err)
		}
	}
	check("contents gone", id, workspace.ErrDamaged, false)
}

// Damaged contents are not restored, and the existing files stay.
func TestRestoreOfDamagedContent(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "precious"})
	cfg := config(root)
	w := open(t, cfg)
	id := take(t, w)
	packs, err := filepath.Glob(filepath.Join(cfg.Dir, "packs", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	f, err := os.OpenFile(packs[0], os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("X"), 3); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, root, map[string]string{"a": "now"})
	before := tree(t, root)
	if _, err := w.Restore(t.Context(), id); !errors.Is(err, workspace.ErrDamaged) {
		t.Errorf("error %v, want ErrDamaged", err)
	}
	same(t, "tree", tree(t, root), before)
}

// Paths that the snapshot left out or ignored are not removed.
func TestRestoreLeavesAlone(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"d/big": strings.Repeat("x", 200), "d/a": "1", ".gitignore": "*.o\n",
		"x.o": "o", "k/y.o": "o"})
	cfg := config(root)
	cfg.MaxFileSize = 100
	w := open(t, cfg)
	id := take(t, w)
	write(t, root, map[string]string{"d/big": "small now", "d/a": "2", "z.o": "new", "n/q.o": "o", "n/m": "2"})
	restore(t, w, id)
	got := tree(t, root)
	for _, name := range []string{"d/big", "x.o", "k/y.o", "z.o", "n/q.o"} {
		if got[name] == "" {
			t.Errorf("%s was removed", name)
		}
	}
	if got["n/m"] != "" {
		t.Error("n/m was not removed")
	}
	if data, err := os.ReadFile(filepath.Join(root, "d/a")); err != nil || string(data) != "1" {
		t.Errorf("d/a: %q, %v", data, err)
	}
}

// Ignored files stay in folders whose other files are removed, and a snapshot after the
// restore is the restored one.
func TestRestoredTreeHasTheSameID(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"git": "git", "without git": noGit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := project(t, map[string]string{"a": "1", ".gitignore": "*.o\n", "logs/": "", "gone/b": "2"})
			git(t, root, "init", "-q")
			cfg := config(root)
			cfg.Git = program
			w := open(t, cfg)
			id := take(t, w)
			remove(t, root, "gone")
			write(t, root, map[string]string{"new/sub/c": "3", "new/sub/c.o": "o", "clone/.git/HEAD": "ref: x", "clone/d": "4"})
			restore(t, w, id)
			if got := take(t, w); got != id {
				changes, err := w.Diff(t.Context(), id, got)
				t.Errorf("another ID: %v, %v", brief(changes), err)
			}
			// A folder that was empty and has ignored files now stays.
			write(t, root, map[string]string{"logs/x.o": "o"})
			if changes, err := w.DiffNow(t.Context(), id); err != nil || len(changes) != 0 {
				t.Errorf("changes %v, %v", brief(changes), err)
			}
			if done := restore(t, w, id); len(done.Changes) != 0 {
				t.Errorf("changes %v", brief(done.Changes))
			}
		})
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "content", "b": "x", "c": "y", "e1": "", "d/f": "deep", "l@": "a"})
	w := open(t, config(root))
	first := take(t, w)
	remove(t, root, "a", "c", "e1", "d", "l")
	write(t, root, map[string]string{"moved": "content", "b": "xx", "e2": "", "n": "new", "l@": "b"})
	want := []string{"changed b", "deleted c", "deleted d", "deleted d/f", "deleted e1", "added e2", "changed l",
		"renamed moved from a", "added n"}
	now, err := w.DiffNow(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "now", brief(now), want)
	second := take(t, w)
	changes, err := w.Diff(t.Context(), first, second)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "between", brief(changes), want)
	if c := changes[0]; c.Old.Size != 1 || c.New.Size != 2 {
		t.Errorf("changed b: %+v, %+v", c.Old, c.New)
	}
	if changes, err := w.Diff(t.Context(), second, second); err != nil || len(changes) != 0 {
		t.Errorf("with itself: %v, %v", brief(changes), err)
	}
	if _, err := w.Diff(t.Context(), first, "x"); !errors.Is(err, workspace.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}

// Any edits, a snapshot, any edits, a restore: the same tree.
func TestRestoreAfterAnyEdits(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"git": "git", "without git": noGit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			n := 0
			rapid.Check(t, func(rt *rapid.T) {
				n++
				root := filepath.Join(parent, fmt.Sprint(n))
				if err := os.Mkdir(root, 0o755); err != nil {
					rt.Fatal(err)
				}
				if program == "git" {
					git(t, root, "init", "-q")
				}
				cfg := workspace.WithClock(config(root), time.Now)
				cfg.Git, cfg.Grace = program, -1
				w := open(rt, cfg)
				type state struct {
					id   workspace.ID
					tree map[string]string
				}
				var states []state
				for range rapid.IntRange(2, 4).Draw(rt, "snapshots") {
					edit(rt, root)
					id, _, err := w.Snapshot(t.Context())
					if err != nil {
						rt.Fatal(err)
					}
					states = append(states, state{id, tree(rt, root)})
				}
				edit(rt, root)
				for range 3 {
					s := states[rapid.IntRange(0, len(states)-1).Draw(rt, "restore")]
					if _, err := w.Restore(t.Context(), s.id); err != nil {
						rt.Fatal(err)
					}
					if got := tree(rt, root); fmt.Sprint(got) != fmt.Sprint(s.tree) {
						rt.Fatalf("got  %v\nwant %v", got, s.tree)
					}
					if id, _, err := w.Snapshot(t.Context()); err != nil || id != s.id {
						rt.Fatalf("snapshot after the restore: %s, want %s; %v", id, s.id, err)
					}
					if rapid.Bool().Draw(rt, "sweep") {
						sweepTo(rt, t, w, s.id, states[0].id, states[len(states)-1].id)
						states = []state{s, states[0], states[len(states)-1]}
					}
				}
			})
		})
	}
}

func sweepTo(rt *rapid.T, t *testing.T, w *workspace.Workspace, keep ...workspace.ID) {
	rt.Helper()
	if _, err := w.Sweep(t.Context(), workspace.Retain{Keep: keep}); err != nil {
		rt.Fatal(err)
	}
}

// edit makes changes that people and agents make, only inside of the folder, also if links
// lead outside.
func edit(rt *rapid.T, root string) {
	rt.Helper()
	dir, err := os.OpenRoot(root)
	if err != nil {
		rt.Fatal(err)
	}
	defer dir.Close()
	name := rapid.SampledFrom([]string{"a", "b", "a.go", "c-d", "E"})
	mode := rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o600, 0o444, 0o711, 0o777})
	for range rapid.IntRange(1, 8).Draw(rt, "edits") {
		path := filepath.FromSlash(strings.Join(rapid.SliceOfN(name, 1, 3).Draw(rt, "path"), "/"))
		full := filepath.Join(root, path)
		switch rapid.IntRange(0, 6).Draw(rt, "what") {
		case 0, 1, 2:
			if dir.MkdirAll(filepath.Dir(path), 0o755) == nil {
				_ = dir.WriteFile(path, rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 3).Draw(rt, "content"), mode.Draw(rt, "mode"))
			}
		case 3:
			_ = os.RemoveAll(full)
		case 4:
			if info, err := os.Lstat(full); err == nil && info.Mode().IsRegular() {
				_ = os.Chmod(full, mode.Draw(rt, "mode"))
			}
			if info, err := os.Lstat(full); err == nil && info.IsDir() {
				_ = os.Chmod(full, mode.Draw(rt, "mode")|0o700)
			}
		case 5:
			_ = os.Symlink(rapid.SampledFrom([]string{"a", "../b", "/nonexistent", "."}).Draw(rt, "target"), full)
		case 6:
			_ = os.Rename(full, filepath.Join(root, name.Draw(rt, "to")))
		}
	}
}

// While another program replaces a folder by a link out of the workspace again and again,
// nothing outside is read or written.
func TestNothingOutsideIsTouched(t *testing.T) {
	t.Parallel()
	const secret = "secret of the neighbour"
	outside := project(t, map[string]string{"f": secret, "g": secret})
	root := project(t, map[string]string{"dir/f": "1", "dir/g": "2", "dir/sub/h": "3"})
	cfg := config(root)
	cfg.Grace = -1
	w := open(t, cfg)
	id, want := take(t, w), tree(t, outside)
	link := filepath.Join(filepath.Dir(root), "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		dir, aside := filepath.Join(root, "dir"), filepath.Join(filepath.Dir(root), "aside")
		for {
			select {
			case <-stop:
				return
			default:
				_ = os.Rename(dir, aside)
				_ = os.Rename(link, dir)
				_ = os.Rename(dir, link)
				_ = os.Rename(aside, dir)
			}
		}
	}()
	for n := range 60 {
		_ = os.WriteFile(filepath.Join(root, "k"), fmt.Append(nil, n), 0o600)
		_, _, _ = w.Snapshot(t.Context()) // may fail: what matters is below
		_, _ = w.Restore(t.Context(), id) // the same
	}
	close(stop)
	<-done
	same(t, "outside", tree(t, outside), want)
	list, err := w.Snapshots()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		files, _, err := w.Files(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if f.Size == int64(len(secret)) {
				t.Errorf("snapshot has %+v", f)
			}
		}
	}
}

func changedPaths(changes []workspace.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, c.Path)
	}
	return all
}

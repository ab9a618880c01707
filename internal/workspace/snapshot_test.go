package workspace_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/workspace"
)

func TestSnapshotOfUnchangedTreeReadsNothing(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1", "b/c": "2", "b/d": "1", "empty/": "", "link@": "nowhere"})
	w := open(t, config(root))
	first, stats := takeStats(t, w)
	if stats.Files != 3 || stats.Folders != 2 || stats.Links != 1 || stats.Read != 3 || stats.Stored != 2 ||
		stats.Bytes != 3 {
		t.Errorf("first snapshot: %+v", stats)
	}
	for name, w := range map[string]*workspace.Workspace{"same": w, "opened again": open(t, config(root))} {
		id, stats := takeStats(t, w)
		if id != first || stats.Read != 0 || stats.Stored != 0 {
			t.Errorf("%s: ID %v, want %v; %+v", name, id == first, true, stats)
		}
	}
	write(t, root, map[string]string{"b/c": "3"})
	id, stats := takeStats(t, w)
	if id == first || stats.Read != 1 || stats.Stored != 1 {
		t.Errorf("after one change: %+v", stats)
	}
}

// A file that changed just before it was read could change again within the
// same tick of the file system's clock: it is read again. So is one whose time
// has no fraction, which a file system that counts seconds would show.
func TestSnapshotReadsAgainWhatIsNotSettled(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		whole bool
		reads int
	}{
		"just written":  {time.Second, false, 1},
		"settled":       {3 * time.Second, false, 0},
		"clock behind":  {-time.Hour, false, 1},
		"whole seconds": {time.Hour, true, 1},
	} {
		root := project(t, map[string]string{"a": "1"})
		file := filepath.Join(root, "a")
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if tt.whole {
			if err := os.Chtimes(file, time.Unix(1e9, 0), time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
		}
		read := info.ModTime().Add(tt.after)
		w := open(t, workspace.WithClock(config(root), func() time.Time { return read }))
		first := take(t, w)
		id, stats := takeStats(t, w)
		if stats.Read != tt.reads || id != first {
			t.Errorf("%s: read %d files again, want %d", name, stats.Read, tt.reads)
		}
	}
}

// Another content of the same size and modification time is found.
func TestSnapshotSeesHiddenChange(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1"})
	file := filepath.Join(root, "a")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	w := open(t, workspace.WithClock(config(root), time.Now))
	seen := map[workspace.ID]bool{}
	for i := range 20 {
		write(t, root, map[string]string{"a": string(rune('a' + i))})
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		seen[take(t, w)] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d snapshots of 20 contents", len(seen))
	}
}

func TestSnapshotLeavesOut(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{
		"small": "x", "large": strings.Repeat("x", 2000), ".perdure/db": "store", "sub/.perdure/db": "store",
		"sub/.git/config":    "",
		"dir/.perdure-tmp-1": "half",
	})
	listener, err := net.Listen("unix", filepath.Join(root, "sock"))
	if err != nil {
		t.Skipf("no sockets here: %v", err)
	}
	defer listener.Close()
	cfg := config(root)
	cfg.MaxFileSize = 1000
	w := open(t, cfg)
	id, stats := takeStats(t, w)
	same(t, "paths", paths(t, w, id), []string{"dir", "small"})
	same(t, "left out", stats.LeftOut, []workspace.LeftOut{{Path: "large", Why: workspace.TooLarge},
		{Path: "sock", Why: workspace.Special}})

	remove(t, root, "small")
	restore(t, w, id)
	now := tree(t, root)
	for _, name := range []string{"small", "large", "sock"} {
		if now[name] == "" {
			t.Errorf("%s is not there after the restore", name)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "dir", ".perdure-tmp-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half a file of an interrupted restore is left: %v", err)
	}
}

// Special characters in the path of a workspace are not a pattern.
func TestOddFolder(t *testing.T) {
	t.Parallel()
	root := filepath.Join(project(t, nil), "[a*] \n b")
	write(t, root, map[string]string{"a": "1", ".perdure/snapshots/packs/pending-1": "half"})
	cfg := config(root)
	w := open(t, cfg)
	id := take(t, w)
	write(t, root, map[string]string{"a": "2"})
	restore(t, w, id)
	list, err := os.ReadDir(filepath.Join(cfg.Dir, "packs"))
	if err != nil || len(list) != 2 || strings.HasPrefix(list[0].Name()+list[1].Name(), "pending") {
		t.Errorf("packs: %v, %v", list, err)
	}
}

func TestSnapshotLimits(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a/b": "12345", "c": "67890"})
	files := config(root)
	files.MaxFiles = 2
	bytes := config(root)
	bytes.MaxBytes = 7
	for name, cfg := range map[string]workspace.Config{"files": files, "bytes": bytes} {
		w := open(t, cfg)
		_, _, err := w.Snapshot(t.Context())
		var known *workspace.Error
		if !errors.Is(err, workspace.ErrLimit) || !errors.As(err, &known) || known.Hint == "" {
			t.Errorf("%s: error %v, want ErrLimit with a hint", name, err)
		}
		nothingHalf(t, cfg)
		if list, err := w.Snapshots(); err != nil || len(list) != 0 {
			t.Errorf("%s: snapshots %v, %v", name, list, err)
		}
	}
}

// nothingHalf checks that nothing pending is left in the folder of snapshots.
func nothingHalf(t testing.TB, cfg workspace.Config) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(cfg.Dir, "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if strings.Contains(name, "pending") || strings.HasPrefix(filepath.Base(name), ".") {
			t.Errorf("%s is left", name)
		}
	}
}

func TestSnapshotNeverFollowsLinks(t *testing.T) {
	t.Parallel()
	outside := project(t, map[string]string{"secret": "s"})
	root := project(t, map[string]string{"out@": outside, "file@": filepath.Join(outside, "secret"), "loop@": "loop"})
	w := open(t, config(root))
	id, stats := takeStats(t, w)
	same(t, "paths", paths(t, w, id), []string{"file", "loop", "out"})
	if stats.Read != 0 {
		t.Errorf("read through a link: %+v", stats)
	}
	want := tree(t, root)
	// A folder was replaced by a link out of the workspace: nothing is written through it.
	write(t, root, map[string]string{"dir/secret": "mine"})
	withDir := take(t, w)
	remove(t, root, "dir")
	write(t, root, map[string]string{"dir@": outside})
	restore(t, w, withDir)
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "s" {
		t.Errorf("outside: %q, %v", data, err)
	}
	if info, err := os.Lstat(filepath.Join(root, "dir")); err != nil || !info.IsDir() {
		t.Errorf("folder is not restored: %v, %v", info, err)
	}
	restore(t, w, id)
	same(t, "tree", tree(t, root), want)
}

func TestSnapshotWhileFilesChange(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"still": "x", "moving": strings.Repeat("x", 64<<10)})
	w := open(t, config(root))
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(filepath.Join(root, "moving"), os.O_WRONLY|os.O_APPEND, 0)
		for err == nil {
			select {
			case <-stop:
				done <- f.Close()
				return
			default:
				_, err = f.WriteString("y")
			}
		}
		done <- err
	}()
	var marked bool
	for range 200 {
		id, stats := takeStats(t, w)
		if data, err := w.ReadFile(t.Context(), id, "still"); err != nil || string(data) != "x" {
			t.Fatalf("still: %q, %v", data, err)
		}
		data, err := w.ReadFile(t.Context(), id, "moving")
		if err != nil || strings.Trim(string(data), "xy") != "" {
			t.Fatalf("moving: %d bytes, %v", len(data), err)
		}
		if len(stats.Changing) > 0 {
			same(t, "changing", stats.Changing, []string{"moving"})
			marked = true
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if !marked {
		t.Log("the writer never met a read; nothing was marked")
	}
}

func TestSnapshotWithoutPermission(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 {
		t.Skip("root may read everything")
	}
	root := project(t, map[string]string{"locked": "x", "dir/a": "y", "ok": "z"})
	for _, name := range []string{"locked", "dir"} {
		full := filepath.Join(root, name)
		if err := os.Chmod(full, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(full, 0o700) })
	}
	w := open(t, config(root))
	_, stats := takeStats(t, w)
	same(t, "left out", stats.LeftOut, []workspace.LeftOut{{Path: "dir", Why: workspace.Unreadable},
		{Path: "locked", Why: workspace.Unreadable}})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	home := project(t, map[string]string{"work/a": "", "x/.git/hooks/": "", "x/.perdure/blobs/": "", "file": ""})
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, ".", "init", "-q", "--bare", bare)
	for name, root := range map[string]string{
		"root": "/", "home": home, "above home": filepath.Dir(home), "git": filepath.Join(home, "x", ".git", "hooks"),
		"store": filepath.Join(home, "x", ".perdure", "blobs"), "file": filepath.Join(home, "file"), "bare": bare,
	} {
		cfg := workspace.Config{Root: root, Dir: filepath.Join(t.TempDir(), "s"), Home: home}
		_, err := workspace.Open(cfg)
		var known *workspace.Error
		if !errors.Is(err, workspace.ErrRefused) || !errors.As(err, &known) || known.Hint == "" || known.Msg == "" {
			t.Errorf("%s: error %v, want ErrRefused with a hint", name, err)
		}
	}
	config := workspace.Config{Root: filepath.Join(home, "work"), Dir: t.TempDir(), Home: home}
	if _, err := workspace.Open(config); err != nil {
		t.Errorf("folder in the home folder: %v", err)
	}
	config.Root = filepath.Join(home, "none")
	if _, err := workspace.Open(config); !errors.Is(err, workspace.ErrGone) {
		t.Errorf("missing folder: %v, want ErrGone", err)
	}
	if _, err := workspace.Open(workspace.Config{MaxFiles: -1}); err == nil ||
		!strings.Contains(err.Error(), "root is empty") || !strings.Contains(err.Error(), "max files") {
		t.Errorf("bad settings: %v, want all of them named", err)
	}
}

// A link that replaces the workspace is not followed.
func TestWorkspaceReplacedByLink(t *testing.T) {
	t.Parallel()
	outside := project(t, map[string]string{"precious": "p"})
	root := project(t, map[string]string{"a": "1"})
	cfg := config(root)
	cfg.Dir = filepath.Join(t.TempDir(), "elsewhere")
	w := open(t, cfg)
	id, want := take(t, w), tree(t, outside)
	if err := os.Rename(root, root+"-aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, root); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	if _, _, err := w.Snapshot(t.Context()); !errors.Is(err, workspace.ErrRefused) {
		t.Errorf("snapshot: error %v, want ErrRefused", err)
	}
	if _, err := w.Restore(t.Context(), id); !errors.Is(err, workspace.ErrRefused) {
		t.Errorf("restore: error %v, want ErrRefused", err)
	}
	same(t, "outside", tree(t, outside), want)
}

func TestWorkspaceGone(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a/b": "1", "c@": "a"})
	cfg := config(root)
	cfg.Dir = filepath.Join(t.TempDir(), "elsewhere")
	w := open(t, cfg)
	id, want := take(t, w), tree(t, root)
	remove(t, filepath.Dir(root), "work")
	if _, _, err := w.Snapshot(t.Context()); !errors.Is(err, workspace.ErrGone) {
		t.Errorf("error %v, want ErrGone", err)
	}
	restore(t, w, id)
	same(t, "tree", tree(t, root), want)

	inside := open(t, config(root))
	take(t, inside)
	remove(t, root, ".perdure/snapshots/packs")
	if _, _, err := inside.Snapshot(t.Context()); !errors.Is(err, workspace.ErrGone) {
		t.Errorf("contents removed: error %v, want ErrGone", err)
	}
	remove(t, root, ".perdure")
	var known *workspace.Error
	if _, _, err := inside.Snapshot(t.Context()); !errors.Is(err, workspace.ErrGone) || !errors.As(err, &known) ||
		known.Hint == "" {
		t.Errorf("store removed: error %v, want ErrGone with a hint", err)
	}
}

// ReadFiles returns the stored contents, also if several files have the same, are empty, or
// are read twice; a pack with other data, or less, is an error.
func TestReadFiles(t *testing.T) {
	t.Parallel()
	root := project(t, map[string]string{"a": "1\n", "b": "", "c/d": strings.Repeat("x", 100_000), "e": "1\n"})
	cfg := config(root)
	w := open(t, cfg)
	id := take(t, w)
	paths := []string{"e", "c/d", "b", "a", "c/d"}
	read := func() (map[string]string, error) {
		got := make(map[string]string)
		return got, w.ReadFiles(t.Context(), id, paths, func(f workspace.File, text []byte) error {
			got[f.Path] = string(text)
			return nil
		})
	}
	got, err := read()
	if want := map[string]string{"a": "1\n", "b": "", "c/d": strings.Repeat("x", 100_000), "e": "1\n"}; err != nil ||
		!maps.Equal(got, want) {
		t.Fatalf("read %d files, error %v", len(got), err)
	}
	stop := errors.New("enough")
	err = w.ReadFiles(t.Context(), id, paths, func(workspace.File, []byte) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v, want that of the caller", err)
	}
	packs, err := filepath.Glob(filepath.Join(cfg.Dir, "packs", "*.pack"))
	if err != nil || len(packs) != 1 {
		t.Fatal(packs, err)
	}
	whole, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(whole, []byte("xxx"), []byte("xyx"), 1)
	for name, text := range map[string][]byte{"something else": other, "less": whole[:1000]} {
		if err := errors.Join(os.Chmod(packs[0], 0o600), os.WriteFile(packs[0], text, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := read(); !errors.Is(err, workspace.ErrDamaged) {
			t.Errorf("%s: error %v, want ErrDamaged", name, err)
		}
	}
}

package heads

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestAppendAndRead(t *testing.T) {
	t.Parallel()
	path := Path(filepath.Join(t.TempDir(), "new", "folder"), "/a/store")
	if lines, err := Read(path); err != nil || len(lines) != 0 {
		t.Errorf("a file that is missing: %v, %v", lines, err)
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			line := Line{Store: "s", Tree: "tree-00000001", Key: 1, Events: int64(i), Head: "h", At: time.Now()}
			if err := Append(path, []Line{line, line}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if lines, err := Read(path); err != nil || len(lines) != 20 {
		t.Errorf("%d lines, want 20, %v", len(lines), err)
	}
	// The end of the last line is missing after a crash.
	info, err := os.Stat(path)
	if err == nil {
		err = os.Truncate(path, info.Size()-10)
	}
	if err == nil {
		err = Append(path, []Line{{Store: "s", Key: 2}})
	}
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := Read(path); err != nil || len(lines) != 20 || lines[19].Key != 2 {
		t.Errorf("after a crash: %d lines, %v", len(lines), err)
	}
	if other := Path(filepath.Dir(path), "/another/store"); other == path {
		t.Error("two stores have one file")
	}
}

// A file that is compacted keeps the first and the last line of each tree, and some between.
func TestCompact(t *testing.T) {
	t.Parallel()
	var lines []Line
	for i := range int64(1000) {
		lines = append(lines, Line{Store: "s", Key: i % 2, Events: i})
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := Append(path, lines); err != nil {
		t.Fatal(err)
	}
	if err := compact(path); err != nil {
		t.Fatal(err)
	}
	kept, err := Read(path)
	if err != nil || len(kept) > 30 || kept[0].Events != 0 || kept[1].Events != 1 || kept[len(kept)-1].Events != 999 ||
		kept[len(kept)-2].Events != 998 {
		t.Errorf("%d lines are kept, %v", len(kept), err)
	}
}

// An accepted line replaces the lines of its tree before it, also in a compacted file; that of
// a tree that is gone leaves no line.
func TestAccepted(t *testing.T) {
	t.Parallel()
	lines := []Line{{Store: "s", Key: 1, Events: 9}, {Store: "s", Key: 2, Events: 9}, {Store: "s", Key: 3, Events: 9},
		{Store: "s", Key: 1, Events: 5, Head: "h", Accepted: true}, {Store: "s", Key: 2, Accepted: true},
		{Store: "other", Key: 1, Events: 8}}
	for i := range int64(40) {
		lines = append(lines, Line{Store: "s", Key: 1, Events: 6 + i})
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := Append(path, lines); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		got, err := Read(path)
		if err != nil || len(got) < 10 || got[0].Key != 3 || !got[1].Accepted || got[1].Events != 5 ||
			got[2].Store != "other" {
			t.Errorf("%s: %+v, %v", when, got, err)
		}
		for _, l := range got {
			if l.Key == 2 || l.Store == "s" && l.Key == 1 && l.Events == 9 && l.Head == "h" {
				t.Errorf("%s: kept %+v", when, l)
			}
		}
	}
	check("written")
	if err := compact(path); err != nil {
		t.Fatal(err)
	}
	check("compacted")
}

// After a store was accepted in the place of another one, the lines of that one are gone; those
// of a store that comes later count.
func TestReplaces(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	lines := []Line{{Store: "old", Key: 1, Events: 9}, {Store: "new", Key: 1, Events: 3},
		{Store: "new", Key: 0, Events: 2, Accepted: true, Replaces: true}, {Store: "later", Key: 1, Events: 4}}
	if err := Append(path, lines); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(path); err != nil || len(got) != 3 || got[0].Store != "new" || got[2].Store != "later" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFolder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ state, home, want string }{
		{"/state", "/home/user", "/state/perdure/heads"},
		{"", "/home/user", "/home/user/.local/state/perdure/heads"},
		{"relative", "/home/user", "/home/user/.local/state/perdure/heads"},
		{"", "", ""},
	} {
		got := Folder(func(name string) string {
			return map[string]string{"XDG_STATE_HOME": c.state, "HOME": c.home}[name]
		})
		if filepath.ToSlash(got) != c.want && os.PathSeparator == '/' {
			t.Errorf("%s: %q, want %q", fmt.Sprint(c), got, c.want)
		}
	}
}

// A file of many trees, which stays longer than the limit, is rewritten once for each time
// that so much was appended.
func TestCompactSeldom(t *testing.T) {
	t.Parallel()
	var lines []Line
	for i := range int64(compactBytes / 50) {
		lines = append(lines, Line{Store: "s", Key: i})
	}
	path := filepath.Join(t.TempDir(), "file")
	inode := func() os.FileInfo {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if err := Append(path, lines); err != nil || inode().Size() < compactBytes {
		t.Fatalf("%d bytes, %v", inode().Size(), err)
	}
	first := inode()
	if err := Append(path, lines[:1]); err != nil || !os.SameFile(first, inode()) {
		t.Errorf("one more line rewrote the file, %v", err)
	}
	if err := Append(path, lines); err != nil || os.SameFile(first, inode()) {
		t.Errorf("the file was not compacted, %v", err)
	}
}

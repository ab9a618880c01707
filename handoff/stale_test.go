package handoff_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
)

// bench is a git repository with files that were touched and recorded.
type bench struct {
	*testing.T
	dir     string
	entries []handoff.FileEntry
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, filepath.FromSlash(name)) }

func (b *bench) write(name, text string) {
	b.Helper()
	if err := os.MkdirAll(filepath.Dir(b.path(name)), 0o700); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(b.path(name), []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) run(name string, args ...string) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), name, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}

func (b *bench) touch(name string, when time.Time) {
	b.Helper()
	if err := os.Chtimes(b.path(name), when, when); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) info(name string) os.FileInfo {
	b.Helper()
	info, err := os.Stat(b.path(name))
	if err != nil {
		b.Fatal(err)
	}
	return info
}

func (b *bench) record(names ...string) {
	b.Helper()
	for _, name := range names {
		entry, err := handoff.Record(b.Context(), b.dir, name)
		if err != nil {
			b.Fatal(err)
		}
		b.entries = append(b.entries, entry)
	}
}

// newBench has a.go and b.go, committed and recorded.
func newBench(t *testing.T) *bench {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	b := &bench{T: t, dir: t.TempDir()}
	b.run("git", "init", "-q", "-b", "main")
	b.write("src/a.go", "package a\n")
	b.write("src/b.go", "package b\n")
	b.run("git", "add", ".")
	b.run("git", "commit", "-q", "-m", "begin")
	b.record("src/a.go", "src/b.go")
	return b
}

func states(v handoff.Verdict) string {
	var all []string
	for _, f := range v.Files {
		all = append(all, f.Path+" "+string(f.State))
	}
	return strings.Join(all, ", ") + ": " + string(v.Summary)
}

// Twelve ordinary situations, each really done. By modification time alone nine
// of them are judged wrongly.
func TestStaleness(t *testing.T) {
	t.Parallel()
	for _, tt := range append(byPrograms(), byHands()...) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			tt.do(b)
			v, err := handoff.Judge(t.Context(), b.dir, b.entries)
			if err != nil {
				t.Fatal(err)
			}
			if got := states(v); got != tt.want {
				t.Errorf("judged %q, want %q", got, tt.want)
			}
			b.wantSameWithoutLedger(tt.want)
		})
	}
}

const bothFresh = "src/a.go fresh, src/b.go fresh: fresh"

type situation struct {
	name string
	do   func(b *bench)
	want string
}

// byPrograms are what git and other programs do to files.
func byPrograms() []situation {
	return []situation{
		{"nothing happened", func(*bench) {}, bothFresh},
		{"formatter that rewrites equal bytes", func(b *bench) {
			b.write("src/a.go", "package a\n")
			b.touch("src/a.go", time.Now().Add(time.Minute))
		}, bothFresh},
		{"stash and pop", func(b *bench) {
			b.write("src/a.go", "package a // changed\n")
			b.entries = nil
			b.record("src/a.go", "src/b.go")
			b.run("git", "stash", "-q")
			b.run("git", "stash", "pop", "-q")
		}, bothFresh},
		{"stash without pop", func(b *bench) {
			b.write("src/a.go", "package a // changed\n")
			b.entries = nil
			b.record("src/a.go", "src/b.go")
			b.run("git", "stash", "-q")
		}, "src/a.go changed, src/b.go fresh: stale"},
		{"branch switch and back", func(b *bench) {
			b.run("git", "switch", "-q", "-c", "other")
			b.write("src/a.go", "package other\n")
			b.run("git", "rm", "-q", "src/b.go")
			b.run("git", "commit", "-q", "-a", "-m", "other")
			b.run("git", "switch", "-q", "main")
		}, bothFresh},
		{"branch switch without the way back", func(b *bench) {
			b.run("git", "switch", "-q", "-c", "other")
			b.write("src/a.go", "package c\n")
			b.run("git", "rm", "-q", "src/b.go")
			b.run("git", "commit", "-q", "-a", "-m", "other")
		}, "src/a.go changed, src/b.go deleted: stale"},
		{"fresh clone", func(b *bench) {
			clone := filepath.Join(b.TempDir(), "clone")
			b.run("git", "clone", "-q", b.dir, clone)
			b.dir = clone
		}, bothFresh},
		{"deletion", func(b *bench) {
			if err := os.Remove(b.path("src/a.go")); err != nil {
				b.Fatal(err)
			}
		}, "src/a.go deleted, src/b.go fresh: stale"},
		{"deletion of the folder", func(b *bench) {
			if err := os.RemoveAll(b.path("src")); err != nil {
				b.Fatal(err)
			}
			b.write("src", "a file in its place")
		}, "src/a.go deleted, src/b.go deleted: stale"},
		{"copy that keeps the time (cp -p), equal bytes", func(b *bench) {
			b.run("cp", "-p", "src/a.go", "kept")
			b.write("src/a.go", "package x\n")
			b.run("cp", "-p", "kept", "src/a.go")
		}, bothFresh},
		{"copy that keeps the time (cp -p), other bytes of the same size", func(b *bench) {
			b.write("kept", "package x\n")
			b.touch("kept", b.info("src/a.go").ModTime())
			b.run("cp", "-p", "kept", "src/a.go")
			if !b.info("src/a.go").ModTime().Equal(b.entries[0].ModTime) {
				b.Fatal("the times differ; the test proves nothing")
			}
		}, "src/a.go changed, src/b.go fresh: stale"},
		{"tar and back", func(b *bench) {
			b.run("tar", "cf", "t.tar", "src")
			b.write("src/a.go", "package zz\n")
			b.run("tar", "xf", "t.tar")
		}, bothFresh},
		{"tar of older bytes of the same size", func(b *bench) {
			b.run("tar", "cf", "t.tar", "src")
			b.write("src/a.go", "package z\n")
			b.entries = nil
			b.record("src/a.go", "src/b.go")
			b.run("tar", "xf", "t.tar")
		}, "src/a.go changed, src/b.go fresh: stale"},
	}
}

// byHands are edits, and clocks that are wrong.
func byHands() []situation {
	return []situation{
		{"clock that is behind", func(b *bench) {
			b.write("src/a.go", "package y\n")
			b.touch("src/a.go", time.Now().Add(-24*time.Hour))
		}, "src/a.go changed, src/b.go fresh: stale"},
		{"clock that is ahead", func(b *bench) {
			b.touch("src/a.go", time.Now().Add(24*time.Hour))
		}, bothFresh},
		{"edit in the same second, same size, same time", func(b *bench) {
			b.write("src/a.go", "package q\n")
			b.touch("src/a.go", b.entries[0].ModTime)
		}, "src/a.go changed, src/b.go fresh: stale"},
		{"real edit", func(b *bench) { b.write("src/a.go", "package a\n\nfunc A() {}\n") },
			"src/a.go changed, src/b.go fresh: stale"},
		{"new file of another process", func(b *bench) { b.write("src/c.go", "package c\n") }, bothFresh},
		{"new file where none was", func(b *bench) {
			b.record("src/c.go")
			b.write("src/c.go", "package c\n")
		}, "src/a.go fresh, src/b.go fresh, src/c.go new: stale"},
		{"absent as it was", func(b *bench) { b.record("src/c.go") },
			"src/a.go fresh, src/b.go fresh, src/c.go fresh: fresh"},
		{"rename", func(b *bench) { b.run("git", "mv", "src/a.go", "src/renamed.go") },
			"src/a.go deleted, src/b.go fresh: stale"},
		{"two files that change places", func(b *bench) {
			b.run("mv", "src/a.go", "t")
			b.run("mv", "src/b.go", "src/a.go")
			b.run("mv", "t", "src/b.go")
		}, "src/a.go changed, src/b.go changed: stale"},
		{"a folder in its place", func(b *bench) {
			b.run("rm", "src/a.go")
			put(b.T, b.dir, "src/a.go/")
		}, "src/a.go changed, src/b.go fresh: stale"},
	}
}

// wantSameWithoutLedger judges by the checkpoint in the file alone.
func (b *bench) wantSameWithoutLedger(want string) {
	b.Helper()
	l := handoff.Ledger{Files: b.entries}
	for _, e := range b.entries {
		l.CompletedSteps = append(l.CompletedSteps, handoff.Step{Step: "x", FilesModified: []string{e.Path}})
	}
	c := handoff.Project(l, 0)
	v, err := c.Staleness(b.Context(), b.dir)
	if err != nil {
		b.Fatal(err)
	}
	if got := states(v); got != want {
		b.Errorf("judged by the checkpoint %q, want %q", got, want)
	}
}

// The file system's word spares reading, but only where it can be relied on.
func TestStampsSpareReading(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v, err := handoff.Judge(t.Context(), b.dir, b.entries)
	if err != nil {
		t.Fatal(err)
	}
	if v.Read != 2 || b.entries[0].Stamp != "" {
		t.Errorf("%d files read; those that were just written cannot be trusted: %+v", v.Read, b.entries)
	}
	old, entry := oldFile(t)
	v, err = handoff.Judge(t.Context(), filepath.Dir(old), []handoff.FileEntry{entry})
	if err != nil {
		t.Fatal(err)
	}
	if v.Read != 0 || v.Summary != handoff.AllFresh {
		t.Errorf("%+v, want fresh without reading", v)
	}
	entry.Stamp += "0"
	entry.Hash = strings.Repeat("0", 64)
	if v, err = handoff.Judge(t.Context(), filepath.Dir(old), []handoff.FileEntry{entry}); err != nil || v.Read != 1 ||
		v.Summary != handoff.Stale {
		t.Errorf("%+v, %v, want another stamp read and judged by content", v, err)
	}
}

// oldFile returns a file that changed long ago, at a time with a fraction of a second.
func oldFile(t *testing.T) (path string, entry handoff.FileEntry) {
	t.Helper()
	for _, path := range []string{"/usr/bin/env", "/etc/ld.so.cache", "/etc/group", "/etc/passwd", "/etc/hosts",
		"/var/lib/dpkg/status"} {
		entry, err := handoff.Record(t.Context(), filepath.Dir(path), filepath.Base(path))
		if err == nil && entry.Stamp != "" {
			return path, entry
		}
	}
	t.Skip("no old file to look at here")
	return "", handoff.FileEntry{}
}

// What cannot be judged is unknown, never fresh.
func TestUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	steps := func(paths ...string) handoff.Work {
		return handoff.Work{CompletedSteps: []handoff.Step{{Step: "x", FilesCreated: paths}}}
	}
	listed := func(pairs ...string) *handoff.Hashes {
		h := &handoff.Hashes{Listed: make(map[string]string)}
		for i := 0; i < len(pairs); i += 2 {
			h.Listed[pairs[i]] = pairs[i+1]
		}
		return h
	}
	full := b.entries[0].Hash
	put(t, b.dir, "outside.json")
	if err := os.Symlink(filepath.Join(b.TempDir()), b.path("leads-out")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		c    handoff.Checkpoint
		want string
	}{
		{"no hash", handoff.Checkpoint{Work: steps("src/a.go", "src/none.go")},
			"src/a.go unknown, src/none.go missing: stale"},
		{"no hash, there", handoff.Checkpoint{Work: steps("src/a.go")}, "src/a.go unknown: unknown"},
		{"hash too short", handoff.Checkpoint{Work: steps("src/a.go"), Files: listed("src/a.go", full[:11])},
			"src/a.go unknown: unknown"},
		{"hash that is none", handoff.Checkpoint{Work: steps("src/a.go"), Files: listed("src/a.go", "")},
			"src/a.go unknown: unknown"},
		{"hash in capitals", handoff.Checkpoint{Files: listed("src/a.go", strings.ToUpper(full[:12]))},
			"src/a.go fresh: fresh"},
		{"rest", handoff.Checkpoint{Files: &handoff.Hashes{Listed: map[string]string{"src/a.go": full[:12]}, Rest: 3}},
			"src/a.go fresh: unknown"},
		{"cut files", handoff.Checkpoint{Cut: &handoff.Cut{Files: 1}}, ": unknown"},
		{"outside", handoff.Checkpoint{Files: listed("../outside.json", full[:12], "leads-out/x", full[:12])},
			"../outside.json unknown, leads-out/x unknown: unknown"},
		{"nothing touched", handoff.Checkpoint{}, ": fresh"},
	}
	for _, tt := range tests {
		v, err := tt.c.Staleness(t.Context(), b.dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := states(v); got != tt.want {
			t.Errorf("%s: judged %q, want %q", tt.name, got, tt.want)
		}
	}
	l := handoff.Ledger{Work: steps("src/a.go", "src/b.go"), Files: b.entries[:1]}
	if v, err := l.Staleness(t.Context(), b.dir); err != nil || states(v) != "src/a.go fresh, src/b.go unknown: unknown" {
		t.Errorf("ledger without one of its files: %+v, %v", v, err)
	}
}

func TestJudgeFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if _, err := handoff.Judge(t.Context(), filepath.Join(b.dir, "none"), b.entries); !errors.Is(err,
		handoff.ErrNotFound) {
		t.Errorf("no such folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := handoff.Judge(ctx, b.dir, b.entries); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, path := range []string{"src", "../x", ""} {
		if e, err := handoff.Record(t.Context(), b.dir, path); err == nil {
			t.Errorf("recorded %q: %+v", path, e)
		}
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	a := handoff.FileEntry{Path: "a", Exists: true, Hash: "1"}
	b := handoff.FileEntry{Path: "b", Exists: true, Hash: "2"}
	one := handoff.Digest([]handoff.FileEntry{a, b})
	if len(one) != 64 || one != handoff.Digest([]handoff.FileEntry{b, a}) {
		t.Errorf("digest %q depends on the order", one)
	}
	gone := b
	gone.Exists = false
	for _, other := range [][]handoff.FileEntry{{a}, {a, gone}, {a, {Path: "b", Exists: true, Hash: "3"}},
		{a, {Path: "c", Exists: true, Hash: "2"}}, nil} {
		if handoff.Digest(other) == one {
			t.Errorf("%v has the same digest", other)
		}
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	paths := []string{"src/a.go", "dist/app.js", "node_modules/x/index.js", "build", "a/target/x", ".git/config",
		"sub/.perdure/x", "../x", "/etc/x", "kept/dist/y.js", "kept/dist/new.js", "é\n.log"}
	plain := t.TempDir()
	sources, others, err := handoff.Sources(t.Context(), plain, paths)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"src/a.go", "build", "é\n.log"}, sources); diff != "" {
		t.Errorf("without git (-want +got):\n%s", diff)
	}
	if len(sources)+len(others) != len(paths) {
		t.Errorf("%d sources and %d others of %d", len(sources), len(others), len(paths))
	}
	b := newBench(t)
	b.write(".gitignore", "/dist/\n*.log\nnode_modules/\n")
	b.write("kept/dist/y.js", "x")
	b.run("git", "add", "-f", "kept/dist/y.js")
	sources, others, err = handoff.Sources(t.Context(), b.dir, paths)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"src/a.go", "build", "kept/dist/y.js", "kept/dist/new.js"}, sources); diff != "" {
		t.Errorf("with git (-want +got):\n%s", diff)
	}
	if len(sources)+len(others) != len(paths) {
		t.Errorf("%d sources and %d others of %d", len(sources), len(others), len(paths))
	}
	if !slices.Contains(handoff.OutputFolders(), "node_modules") {
		t.Error("node_modules is not an output folder")
	}
	b.write("linked/x.go", "x")
	if err := os.Symlink("linked", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	b.write("module/.gitignore", "*.tmp\n")
	b.run("git", "init", "-q", "module")
	b.write("node_modules/kept.js", "x")
	b.run("git", "add", "-f", "node_modules/kept.js")
	apart := []string{"a.log", "link/x.go", "link/node_modules/x.js", "module/a.go", "module/a.log", "module/b.tmp",
		"node_modules/kept.js", "src/b.go"}
	sources, _, err = handoff.Sources(t.Context(), b.dir, apart)
	want := []string{"link/x.go", "module/a.go", "module/a.log", "src/b.go"}
	if diff := cmp.Diff(want, sources); diff != "" || err != nil {
		t.Errorf("with a link and a module, %v (-want +got):\n%s", err, diff)
	}
	many := make([]string, 5000)
	for i := range many {
		many[i] = fmt.Sprintf("src/%d.log", i)
	}
	if sources, _, err = handoff.Sources(t.Context(), b.dir, many); err != nil || len(sources) > 0 {
		t.Errorf("%d sources of ignored files, %v", len(sources), err)
	}
	if sources, others, err = handoff.Sources(t.Context(), b.dir, nil); err != nil || sources != nil || others != nil {
		t.Errorf("nothing: %v, %v, %v", sources, others, err)
	}
}

// A file has a stamp only if each later change is sure to give another one.
func TestStampsAreSettled(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC)
	stamp := func(modified time.Time, readAfter time.Duration) string {
		t.Helper()
		if err := os.Chtimes(path, modified, modified); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		changed, ok := handoff.ChangeTime(info)
		if !ok || changed.Nanosecond() == 0 {
			t.Skip("the file system has no change times with fractions")
		}
		return handoff.SettledStamp(info, changed.Add(readAfter))
	}
	if stamp(old, time.Minute) == "" {
		t.Error("an old file has no stamp")
	}
	if got := stamp(old, time.Second); got != "" {
		t.Errorf("a file that changed a second before has the stamp %s", got)
	}
	if got := stamp(old.Truncate(time.Second), time.Minute); got != "" {
		t.Errorf("a time in whole seconds gives the stamp %s", got)
	}
	if got := stamp(time.Now().Add(time.Hour+time.Nanosecond), time.Minute); got != "" {
		t.Errorf("a time that is ahead gives the stamp %s", got)
	}
}

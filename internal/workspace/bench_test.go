package workspace_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/workspace"
)

// The size of the workspace of the published figures: a repository of 50,000 files of 4 KiB
// in 2,500 folders.
const (
	benchFiles = 50_000
	benchSize  = 4 << 10
)

func benchWorkspace(b *testing.B) (string, workspace.Config) {
	b.Helper()
	root := project(b, nil)
	content := make([]byte, benchSize)
	random := rand.NewChaCha8([32]byte{1})
	for i := range benchFiles {
		full := benchPath(root, i)
		if i%20 == 0 {
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		_, _ = random.Read(content)
		if err := os.WriteFile(full, content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	git(b, root, "init", "-q")
	git(b, root, "add", ".")
	cfg := config(root)
	return root, cfg
}

func benchPath(root string, i int) string {
	return filepath.Join(root, fmt.Sprintf("part%02d/package%03d/file%05d.go", i/1000, i/20, i))
}

// BenchmarkIteration measures the time of snapshots in an iteration of a loop.
func BenchmarkIteration(b *testing.B) {
	root, cfg := benchWorkspace(b)
	ctx := b.Context()
	w := open(b, cfg)
	id := take(b, w)
	edit := func(n int, what string) {
		for i := range n {
			if err := os.WriteFile(benchPath(root, i*37), []byte(what), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			if _, stats, err := w.Snapshot(ctx); err != nil || stats.Read != 0 {
				b.Fatal(stats.Read, err)
			}
		}
	})
	b.Run("unchanged, opened again", func(b *testing.B) {
		for b.Loop() {
			if _, stats, err := open(b, cfg).Snapshot(ctx); err != nil || stats.Read != 0 {
				b.Fatal(stats.Read, err)
			}
		}
	})
	b.Run("unchanged, without git", func(b *testing.B) {
		plain := cfg
		plain.Git = noGit
		w := open(b, plain)
		for b.Loop() {
			if _, stats, err := w.Snapshot(ctx); err != nil || stats.Read != 0 {
				b.Fatal(stats.Read, err)
			}
		}
	})
	b.Run("20 files changed", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			edit(20, fmt.Sprint("changed ", n))
			b.StartTimer()
			if _, _, err := w.Snapshot(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("restore 20 files", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			edit(20, fmt.Sprint("changed again ", n))
			take(b, w) // the engine has recorded what is there
			b.StartTimer()
			if done, err := w.Restore(ctx, id); err != nil || len(done.Changes) != 20 {
				b.Fatal(len(done.Changes), err)
			}
		}
	})
	b.Run("restore all files", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			for i := range 50 {
				remove(b, root, fmt.Sprintf("part%02d", i))
			}
			b.StartTimer()
			if _, err := w.Restore(ctx, id); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFirstSnapshot measures a snapshot that reads and stores all files.
func BenchmarkFirstSnapshot(b *testing.B) {
	_, cfg := benchWorkspace(b)
	for b.Loop() {
		b.StopTimer()
		remove(b, "", cfg.Dir)
		w := open(b, cfg)
		b.StartTimer()
		if _, _, err := w.Snapshot(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

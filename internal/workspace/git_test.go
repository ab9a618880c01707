package workspace_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/workspace"
)

// repository makes a repository with a tracked file that a pattern ignores.
func repository(t testing.TB) string {
	t.Helper()
	root := project(t, map[string]string{
		".gitignore": "*.log\n/build/\nnode_modules/\n!keep.log\n", "main.go": "m", "tracked.log": "t", "src/a.go": "a",
		"build/out": "o", "src/node_modules/x/y": "n", "src/x.log": "x", "src/keep.log": "k", "only/z.log": "z",
	})
	git(t, root, "init", "-q")
	git(t, root, "add", "-f", ".gitignore", "main.go", "tracked.log", "src/a.go")
	git(t, root, "commit", "-q", "-m", "first")
	return root
}

func TestSnapshotTakesWhatGitDoesNotIgnore(t *testing.T) {
	t.Parallel()
	root := repository(t)
	w := open(t, config(root))
	id, stats := takeStats(t, w)
	same(t, "paths", paths(t, w, id), []string{".gitignore", "main.go", "src", "src/a.go", "src/keep.log", "tracked.log"})
	if stats.Ignored != 4 {
		t.Errorf("ignored %d, want build, node_modules and two logs", stats.Ignored)
	}
	// Without git the tracked files are not known; the rest is the same.
	cfg := config(root)
	cfg.Git = noGit
	plain := open(t, cfg)
	id, stats = takeStats(t, plain)
	same(t, "paths without git", paths(t, plain, id),
		[]string{".gitignore", "main.go", "src", "src/a.go", "src/keep.log"})
	same(t, "repositories without git", stats.WithoutGit, []string{"."})
}

// The content and the times of the user's repository do not change.
func TestSnapshotNeverTouchesTheRepository(t *testing.T) {
	t.Parallel()
	root := repository(t)
	write(t, root, map[string]string{"main.go": "staged"})
	git(t, root, "add", "main.go")
	write(t, root, map[string]string{"main.go": "stashed"})
	git(t, root, "stash", "-q")
	write(t, root, map[string]string{"src/a.go": "touched", "new.go": "n"})
	for _, hook := range []string{"post-index-change", "pre-commit", "post-checkout", "reference-transaction"} {
		write(t, root, map[string]string{".git/hooks/" + hook: "#!/bin/sh\ntouch hooked\n"})
		if err := os.Chmod(filepath.Join(root, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "config", "core.fsmonitor", "touch "+filepath.Join(root, "hooked")+"; false")
	before := repositoryState(t, root)
	w := open(t, config(root))
	id := take(t, w)
	write(t, root, map[string]string{"src/a.go": "more"})
	remove(t, root, "main.go")
	restore(t, w, id)
	if _, err := w.DiffNow(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	same(t, "repository", repositoryState(t, root), before)
	if _, err := os.Stat(filepath.Join(root, "hooked")); err == nil {
		t.Error("a hook ran")
	}
}

func repositoryState(t testing.TB, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, text := range tree(t, filepath.Join(root, ".git")) {
		info, err := os.Lstat(filepath.Join(root, ".git", name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = fmt.Sprint(text, info.ModTime())
	}
	return all
}

func TestNestedRepositoriesAreDescendedInto(t *testing.T) {
	t.Parallel()
	root := repository(t)
	write(t, root, map[string]string{"nested/a": "1", "nested/b.log": "2", "nested/c.tmp": "3",
		"nested/.gitignore": "*.tmp\n"})
	git(t, filepath.Join(root, "nested"), "init", "-q")
	sub := repository(t)
	git(t, root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", sub, "module")
	w := open(t, config(root))
	id := take(t, w)
	got := strings.Join(paths(t, w, id), " ")
	for _, want := range []string{"nested/.gitignore nested/a nested/b.log",
		"module/.gitignore module/main.go module/src"} {
		if !strings.Contains(got, want) {
			t.Errorf("paths %s\nlack %s", got, want)
		}
	}
	want, inner := tree(t, root), repositoryState(t, filepath.Join(root, "nested"))
	remove(t, root, "nested/a", "module/main.go")
	write(t, root, map[string]string{"nested/new": "x", "module/src/a.go": "y"})
	restore(t, w, id)
	same(t, "tree", tree(t, root), want)
	same(t, "nested repository", repositoryState(t, filepath.Join(root, "nested")), inner)
}

// After .git was deleted, ignored files are still left alone, those of
// .git/info/exclude too.
func TestDeletedRepository(t *testing.T) {
	t.Parallel()
	root := repository(t)
	write(t, root, map[string]string{".git/info/exclude": "private/\n", "private/notes": "p"})
	w := open(t, config(root))
	id, want := take(t, w), tree(t, root)
	remove(t, root, ".git", "tracked.log", "src/a.go")
	write(t, root, map[string]string{"junk": "j"})
	restore(t, w, id)
	same(t, "tree", tree(t, root), want)
}

// The rules of the snapshot, and not those that an agent changed, decide what a restore
// removes; files that they do not ignore are in a snapshot before they are removed.
func TestRestoreGoesByTheRulesOfTheSnapshot(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]string{"git": "git", "without git": noGit} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := repository(t)
			git(t, root, "rm", "-q", "-f", "tracked.log")
			cfg := config(root)
			cfg.Git = program
			w := open(t, cfg)
			id, want := take(t, w), tree(t, root)
			write(t, root, map[string]string{".gitignore": "hide/\n", "hide/junk": "j", "src/.gitignore": "*\n!.gitignore\n",
				"src/junk": "k"})
			done := restore(t, w, id)
			same(t, "tree", tree(t, root), want)
			if len(done.Before) != 2 {
				t.Fatalf("snapshots before: %d, want one more for what came to light", len(done.Before))
			}
			if data, err := w.ReadFile(t.Context(), done.Before[1], "hide/junk"); err != nil || string(data) != "j" {
				t.Errorf("what was removed is not kept: %q, %v", data, err)
			}
		})
	}
}

func TestWorkspaceInsideOfRepository(t *testing.T) {
	t.Parallel()
	root := repository(t)
	w := open(t, config(filepath.Join(root, "src")))
	same(t, "paths", paths(t, w, take(t, w)), []string{"a.go", "keep.log"})
	inner := open(t, config(filepath.Join(root, "build"))) // which the repository ignores
	same(t, "paths", paths(t, inner, take(t, inner)), []string{"out"})
}

// Patterns match the same paths as in git.
func TestPatternsAsGitReadsThem(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	git(t, home, "init", "-q", "template")
	name := rapid.SampledFrom([]string{"a", "b", "ab", "a.o", "b.o", "A", "a b", "[a]", "a ", "é", "-", "!a", "#a", "\\a"})
	part := rapid.SampledFrom([]string{"a", "b", "ab", "*", "**", "*.o", "a*", "?", "[ab]", "[!a]", "[a-c]*", "a?",
		"\\!a", "\\#a", "[[:upper:]]",
		"a\\ ", "[]a]", "[^b]", "\\[a\\]", "*b*", "é", "***", "\\\\a", "[\\a]", "[a-]"})
	rapid.Check(t, func(rt *rapid.T) {
		root := filepath.Join(home, "template")
		for name := range tree(rt, root) {
			remove(rt, root, name)
		}
		files := map[string]string{}
		for range rapid.IntRange(1, 8).Draw(rt, "files") {
			files[strings.Join(rapid.SliceOfN(name, 1, 4).Draw(rt, "path"), "/")] = "x"
		}
		for range rapid.IntRange(1, 3).Draw(rt, "rules") {
			var lines []string
			for range rapid.IntRange(1, 4).Draw(rt, "lines") {
				line := strings.Join(rapid.SliceOfN(part, 1, 3).Draw(rt, "parts"), "/")
				lines = append(lines, rapid.SampledFrom([]string{"", "", "!", "/"}).Draw(rt, "before")+line+
					rapid.SampledFrom([]string{"", "", "/", "/**", " ", "\r"}).Draw(rt, "after"))
			}
			files[rapid.SampledFrom([]string{"", "a/", "a/b/", "d/"}).Draw(rt, "where")+".gitignore"] = strings.Join(lines, "\n")
		}
		for _, path := range slices.Sorted(maps.Keys(files)) {
			content := files[path]
			full := filepath.Join(root, path)
			if os.MkdirAll(filepath.Dir(full), 0o755) == nil {
				_ = os.WriteFile(full, []byte(content), 0o644) // some names collide
			}
		}
		var got [2][]string
		for i, program := range []string{"git", noGit} {
			cfg := config(root)
			cfg.Git = program
			w := open(rt, cfg)
			id, _, err := w.Snapshot(t.Context())
			if err != nil {
				rt.Fatal(err)
			}
			got[i] = fileNames(rt, w, id)
		}
		if fmt.Sprintf("%q", got[0]) != fmt.Sprintf("%q", got[1]) {
			rt.Fatalf("git takes %q\nhere    %q\nof %q", got[0], got[1], files)
		}
	})
}

// fileNames returns the files of a snapshot; whether an empty folder is ignored does
// not matter.
func fileNames(t fatal, w *workspace.Workspace, id workspace.ID) []string {
	t.Helper()
	files, _, err := w.Files(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range files {
		if f.Kind == workspace.KindFile {
			list = append(list, f.Path)
		}
	}
	return list
}

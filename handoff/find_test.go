package handoff_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/handoff"
)

// put makes files and folders (names that end in /) below dir.
func put(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(emptyPRD), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, from string
		files      []string
		file, root string
	}{
		{"here", ".", []string{"builder-state.json"}, "builder-state.json", "."},
		{"above", "a/b", []string{".git/", "builder-state.json", "a/b/"}, "builder-state.json", "."},
		{"under docs", "a", []string{".git", "docs/builder-state.json", "a/"}, "docs/builder-state.json", "."},
		{"under .opencode", "a", []string{".perdure/", ".opencode/builder-state.json", "a/"},
			".opencode/builder-state.json", "."},
		{"the folder itself first", ".", []string{".git/", "builder-state.json", "docs/builder-state.json"},
			"builder-state.json", "."},
		{"the nearest", "a/b", []string{".git/", "builder-state.json", "a/docs/builder-state.json", "a/b/"},
			"a/docs/builder-state.json", "."},
		{"from docs", "docs", []string{".git/", "docs/builder-state.json"}, "docs/builder-state.json", "."},
		{"not above the root", "r/a", []string{".git/", "builder-state.json", "r/.git", "r/a/"}, "", ""},
		{"not above without a repository", "a", []string{"builder-state.json", "a/"}, "", ""},
		{"nothing", ".", []string{".git/"}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, tt.files...)
			loc, err := handoff.Find(filepath.Join(dir, filepath.FromSlash(tt.from)))
			if tt.file == "" {
				var e *handoff.Error
				if !errors.As(err, &e) || !errors.Is(err, handoff.ErrNotFound) || !strings.Contains(e.Hint, "handoff start") {
					t.Errorf("%+v, error %v, want none found with a hint", loc, err)
				}
				return
			}
			want := handoff.Location{File: filepath.Join(dir, filepath.FromSlash(tt.file)), Root: filepath.Join(dir, tt.root)}
			if err != nil || loc != want {
				t.Errorf("%+v, %v, want %+v", loc, err, want)
			}
			if root := handoff.RootOf(want.File); root != want.Root {
				t.Errorf("root of the file %q, want %q", root, want.Root)
			}
		})
	}
}

// A null activePrd is filled in the format of the file; nothing else changes.
func TestFillPRD(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		`{"a":1,"activePrd":null}`: `{"a":1,"activePrd":{"id":"p","file":"","branch":"","currentStory":null}}`,
		"{\n\t\"activePrd\": null,\n\t\"z\": 1.0\n}\n": "{\n\t\"activePrd\": {\n\t\t\"id\": \"p\",\n\t\t\"file\": \"\",\n" +
			"\t\t\"branch\": \"\",\n\t\t\"currentStory\": null\n\t},\n\t\"z\": 1.0\n}\n",
		`{}`:                         `{}`,
		`{"activePrd": {"id": "x"}}`: `{"activePrd": {"id": "x"}}`,
	} {
		path := filepath.Join(t.TempDir(), "builder-state.json")
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		filled, err := handoff.FillPRD(t.Context(), path, handoff.Skeleton{PRD: "p"})
		if got := content(t, path); err != nil || got != want || filled != (got != before) {
			t.Errorf("%s became %s, want %s; filled %v, %v", before, got, want, filled, err)
		}
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := at("2026-02-28T10:00:00Z")
	tests := []struct {
		skeleton handoff.Skeleton
		task     handoff.Task
		text     string
	}{
		{handoff.Skeleton{Now: now}, handoff.Task{Place: "prd", ID: "prd", PRD: "prd"},
			"{\n  \"sessionId\": \"perdure\",\n  \"lastHeartbeat\": \"2026-02-28T10:00:00Z\",\n  \"activePrd\": {\n" +
				"    \"id\": \"prd\",\n    \"file\": \"\",\n    \"branch\": \"\",\n    \"currentStory\": null\n  },\n" +
				"  \"adhocQueue\": []\n}\n"},
		{handoff.Skeleton{Now: now, SessionID: "s", PRD: "p", Story: "US-1", File: "p.md", Branch: "main"},
			handoff.Task{Place: "prd", ID: "p/US-1", PRD: "p", Story: "US-1", File: "p.md", Branch: "main"}, ""},
		{handoff.Skeleton{Now: now, Place: handoff.Adhoc("a \"1\""), Description: "Fix\nit"},
			handoff.Task{Place: `adhoc:a "1"`, ID: `adhoc:a "1"`, Description: "Fix\nit"}, ""},
	}
	for i, tt := range tests {
		path := filepath.Join(dir, string(rune('a'+i))+".json")
		if err := handoff.Create(t.Context(), path, tt.skeleton); err != nil {
			t.Fatal(err)
		}
		task, err := load(t, path).Task(tt.task.Place)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.task, task); diff != "" {
			t.Errorf("task (-want +got):\n%s", diff)
		}
		if got := content(t, path); tt.text != "" && got != tt.text {
			t.Errorf("file:\n%s\nwant:\n%s", got, tt.text)
		}
		if err := handoff.Create(t.Context(), path, tt.skeleton); !errors.Is(err, handoff.ErrConflict) {
			t.Errorf("made a second time: %v", err)
		}
	}
	if err := handoff.Create(t.Context(), filepath.Join(dir, "x.json"),
		handoff.Skeleton{Now: now, Place: "adhoc:"}); !errors.Is(err, handoff.ErrNoTask) {
		t.Errorf("without an id: %v", err)
	}
	if err := handoff.Create(t.Context(), filepath.Join(dir, "none", "x.json"), handoff.Skeleton{Now: now}); !errors.Is(
		err, handoff.ErrNotFound) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if got := names(t, dir); len(got) != len(tests) {
		t.Errorf("folder holds %q", got)
	}
}

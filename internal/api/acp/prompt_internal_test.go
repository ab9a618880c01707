package acp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestReadPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := func(s string) *string { return &s }
	uri := func(name string) string { return "file://" + filepath.ToSlash(filepath.Join(dir, name)) }
	got, err := readPrompt(dir, []block{
		{Type: "text", Text: "/loop Compare "},
		{Type: "resource_link", Name: "a", URI: uri("a%20b.txt")},
		{Type: "text", Text: " with "},
		{Type: "resource", Resource: resource{URI: uri("c.go") + "#L1:9", Text: text("package c")}},
		{Type: "resource", Resource: resource{URI: uri("c.go") + "#L1:9", Text: text("again")}},
		{Type: "resource", Resource: resource{URI: "zed:///thread/1", Text: text("a thread")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.command != "loop" || got.Text != "Compare `a b.txt` with `c.go#L1:9``c.go#L1:9 (2)``zed:///thread/1`" {
		t.Errorf("command %q, text %q", got.command, got.Text)
	}
	if diff := cmp.Diff([]Part{{"c.go#L1:9", "package c", true}, {"c.go#L1:9 (2)", "again", true},
		{"zed:///thread/1", "a thread", false}}, got.Parts); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	if len(got.Files) != 1 || got.Files[0] != "a b.txt" {
		t.Errorf("files %q", got.Files)
	}
	if task := got.Task(); !strings.HasSuffix(task, "zed:///thread/1:\n\na thread") || strings.Contains(task, "package") {
		t.Errorf("the task is %q", task)
	}
}

func TestReadPromptRefuses(t *testing.T) {
	t.Parallel()
	for want, blocks := range map[string][]block{
		"0 content blocks":             nil,
		"1001 content blocks":          make([]block, MaxBlocks+1),
		`type "image" is not`:          {{Type: "image"}},
		"is not a file: URI":           {{Type: "resource_link", URI: "https://example.com/a"}},
		"with an absolute path":        {{Type: "resource_link", URI: "file:a.txt"}},
		"binary content":               {{Type: "resource", Resource: resource{URI: "file:///a.png"}}},
		`"file://other/a" is not a fi`: {{Type: "resource_link", URI: "file://other/a"}},
	} {
		if _, err := readPrompt("/", blocks); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestSplitCommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"/run why":              {"run", "why"},
		"/resume":               {"resume", ""},
		"/until\tgo test ./...": {"until", "go test ./..."},
		"/etc/hosts: what?":     {"", "/etc/hosts: what?"},
		"/ run":                 {"", "/ run"},
		"what about /run":       {"", "what about /run"},
		"/running late":         {"", "/running late"},
	} {
		if name, rest := splitCommand(text); name != want[0] || rest != want[1] {
			t.Errorf("%q: command %q, rest %q", text, name, rest)
		}
	}
}

// Whatever a prompt contains, names of parts are unique and clean, and a prompt survives storage.
func FuzzReadPrompt(f *testing.F) {
	f.Add(`[{"type":"text","text":"/run a"},{"type":"resource","resource":{"uri":"file:///a%00b#\n","text":"x"}}]`)
	f.Add(`[{"type":"resource_link","uri":"file:///../../etc/passwd"},{"type":"text"}]`)
	f.Fuzz(func(t *testing.T, raw string) {
		var blocks []block
		if json.Unmarshal([]byte(raw), &blocks) != nil {
			return
		}
		in, err := readPrompt(t.TempDir(), blocks)
		if err != nil {
			return
		}
		seen := make(map[string]bool)
		for _, p := range in.Parts {
			if seen[p.Name] || strings.ContainsAny(p.Name, "\x00\n\r") || !utf8.ValidString(p.Name) {
				t.Errorf("part %q", p.Name)
			}
			seen[p.Name] = true
		}
		stored, err := json.Marshal(in.Prompt)
		var again Prompt
		if err != nil || json.Unmarshal(stored, &again) != nil || fmt.Sprint(again) != fmt.Sprint(in.Prompt) {
			t.Errorf("stored as %s: %v", stored, err)
		}
	})
}

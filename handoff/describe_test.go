package handoff_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/handoff"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := []string{
		file("builder-state.json", `{"activePrd": {"id": "p", "currentStory": "US-1"}}`),
		filepath.Join(dir, "gone.json"), file("broken.json", "{"),
		file("prd.json", `{"id": "p", "name": "Dark mode", "description": "All of it", "userStories": [{"id": "US-1", `+
			`"title": "Toggle", "description": "As a user"}, {"id": "US-2", "title": 2}]}`),
	}
	for _, tt := range []struct {
		task               handoff.Task
		title, description string
	}{
		{handoff.Task{Place: handoff.PRD, PRD: "p", Story: "US-1"}, "Toggle", "As a user"},
		{handoff.Task{Place: handoff.PRD, PRD: "p", Story: "US-2"}, "2", ""},
		{handoff.Task{Place: handoff.PRD, PRD: "p"}, "Dark mode", "All of it"},
		{handoff.Task{Place: handoff.PRD, PRD: "p", Story: "US-9"}, "", ""},
		{handoff.Task{Place: handoff.PRD}, "", ""},
		{handoff.Task{Place: handoff.Adhoc("US-1"), Description: "Fix it"}, "", "Fix it"},
	} {
		if title, description := handoff.Describe(tt.task, files...); title != tt.title || description != tt.description {
			t.Errorf("%+v: %q, %q, want %q, %q", tt.task, title, description, tt.title, tt.description)
		}
	}
}

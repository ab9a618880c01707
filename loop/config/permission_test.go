package config_test

import (
	"encoding/json"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// A setting, which an agent can write, does not permit agents more when the loop is resumed.
func TestResumeKeepsPermission(t *testing.T) {
	t.Parallel()
	order := []agent.Permission{agent.PermissionAll, agent.PermissionOwn, agent.PermissionEdits, agent.PermissionRead}
	for i, from := range order {
		for j, to := range order {
			old := config.Config{Task: "t", Until: "true", Workspace: "/w", Agent: "a", Permission: from,
				Given: []string{}}.WithDefaults()
			set, err := json.Marshal(map[string]any{"permission": to})
			if err != nil {
				t.Fatal(err)
			}
			want := from
			if j > i {
				want = to
			}
			next, kept, err := config.Resumed(&old, &record.ResumeRequest{Settings: set}, true)
			if err != nil || next.Permission != want || (len(kept) > 0) != (want != to) {
				t.Errorf("from %s to %s: %s, kept %v, %v; want %s", from, to, next.Permission, kept, err, want)
			}
			next, _, err = config.Resumed(&old, &record.ResumeRequest{Config: set}, true)
			if err != nil || next.Permission != to {
				t.Errorf("from %s to %s by a flag: %s, %v", from, to, next.Permission, err)
			}
		}
	}
	for field, value := range map[string]string{"permission": "some", "model": "-x"} {
		raw, err := json.Marshal(map[string]any{"task": "t", "until": "true", "workspace": "/w", "agent": "a", field: value})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := config.Parse(raw); err == nil {
			t.Errorf("%s %q is taken", field, value)
		}
	}
}

// A model is one of its agent: another agent does not get it.
func TestResumeModel(t *testing.T) {
	t.Parallel()
	old := config.Config{Task: "t", Workspace: t.TempDir(), Agent: "claude", Model: "opus", Until: "true"}
	for given, want := range map[string]string{`{}`: "opus", `{"agent":"codex"}`: "", `{"model":"haiku"}`: "haiku",
		`{"agent":"codex","model":"gpt-5"}`: "gpt-5"} {
		next, _, err := config.Resumed(&old, &record.ResumeRequest{Config: json.RawMessage(given)}, true)
		if err != nil || next.Model != want {
			t.Errorf("%s: %q, %v, want %q", given, next.Model, err, want)
		}
	}
}

package config_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/record"
)

// A setting, which an agent can write, does not make gates take more answers when the loop is
// resumed. Neither of the token and another user replaces the other.
func TestResumeKeepsApprover(t *testing.T) {
	t.Parallel()
	all := []perdure.Approver{perdure.ApproverAny, perdure.ApproverTerminal, perdure.ApproverToken, perdure.ApproverUser}
	for i, from := range all {
		for j, to := range all {
			old := config.Config{Task: "t", Until: "true", Workspace: "/w", Agent: "a", Approver: from,
				Given: []string{}}.WithDefaults()
			set, err := json.Marshal(map[string]any{"approver": to})
			if err != nil {
				t.Fatal(err)
			}
			want := from
			if j > i && from != perdure.ApproverToken {
				want = to
			}
			next, kept, err := config.Resumed(&old, &record.ResumeRequest{Settings: set}, true)
			if err != nil || next.Approver != want || (len(kept) > 0) != (want != to) {
				t.Errorf("from %s to %s: %s, kept %v, %v; want %s", from, to, next.Approver, kept, err, want)
			}
		}
	}
	if c := (config.Config{}).WithDefaults(); c.Approver != perdure.ApproverTerminal {
		t.Errorf("the default is %q", c.Approver)
	}
	if _, err := config.Parse([]byte(`{"task":"t","until":"true","workspace":"/w","agent":"a","approver":"me"}`)); err == nil {
		t.Error("an unknown approver is taken")
	}
}

// Variables that a resume names are added to those of the loop; an empty list removes all.
func TestResumeAddsVariables(t *testing.T) {
	t.Parallel()
	old := config.Config{Task: "t", Workspace: t.TempDir(), Agent: "exec:true", Until: "true", Env: []string{"A", "B"}}
	for given, want := range map[string][]string{`{"env":["C","A"]}`: {"A", "B", "C"}, `{"env":[]}`: nil, `{}`: {"A", "B"}} {
		next, _, err := config.Resumed(&old, &record.ResumeRequest{Config: json.RawMessage(given)}, true)
		if err != nil || !slices.Equal(next.Env, want) {
			t.Errorf("%s: %v, %v, want %v", given, next.Env, err, want)
		}
	}
}

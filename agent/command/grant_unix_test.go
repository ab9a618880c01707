//go:build unix

package command_test

import (
	"os"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
)

// TestGrants: the rules of a turn become those of the agent under PermissionEdits only; rules
// that the agent would read otherwise are left out.
func TestGrants(t *testing.T) {
	t.Parallel()
	rules := []agent.CommandRule{{Line: "go test", More: true}, {Line: "bash -c 'x'"}, {Line: "ls *"},
		{Line: "tail", More: true, Reads: true}, {Line: "a b; rm", More: true}, {Line: "x\ny"}, {Line: " z"}}
	tests := []struct{ preset, show, want string }{
		{"claude", "line", "--allowedTools Bash(go test:*) --allowedTools Bash(bash -c 'x') --allowedTools Bash(tail:*) -p"},
		{"opencode", "env:OPENCODE_PERMISSION", `{"edit":"allow","bash":{"*":"deny","go test":"allow","go test *":"allow",` +
			`"bash -c 'x'":"allow"},"external_directory":"deny"}`},
		{"codex", "line", "exec --json"},
	}
	for _, tt := range tests {
		for _, permission := range []agent.Permission{"", agent.PermissionRead, agent.PermissionAll, agent.PermissionOwn} {
			cfg := actor(t, tt.preset, tt.show)
			cfg.Permission = permission
			turn := newTurn(t)
			turn.Commands = rules
			got := ""
			turn.Observe = func(ev agent.Event) { got += ev.Text + string(ev.Raw) }
			_, err := newAgent(t, cfg).Run(t.Context(), turn)
			wantKind(t, err, agent.KindFailed)
			if permission == "" != strings.HasPrefix(got, tt.want) && tt.preset != "codex" {
				t.Errorf("%s %s: %s", tt.preset, permission, got)
			}
		}
	}
}

// TestGrantPolicy: Gemini's policy is a file of the turn.
func TestGrantPolicy(t *testing.T) {
	t.Parallel()
	cfg := actor(t, "gemini", "line")
	cfg.TempDir = t.TempDir()
	turn := newTurn(t)
	turn.Commands = []agent.CommandRule{{Line: `go test`, More: true}, {Line: `say "hi"`}}
	line, policy := "", ""
	turn.Observe = func(ev agent.Event) {
		line = ev.Text
		_, rest, _ := strings.Cut(ev.Text, "--policy ")
		name, _, _ := strings.Cut(rest, " ")
		if data, err := os.ReadFile(name); err == nil {
			policy = string(data)
		}
	}
	_, err := newAgent(t, cfg).Run(t.Context(), turn)
	wantKind(t, err, agent.KindFailed)
	for _, want := range []string{`argsPattern = "\"command\":\"go test[ \"]"`,
		`argsPattern = "\"command\":\"say \\\\\"hi\\\\\"\""`} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: no %s in\n%s", line, want, policy)
		}
	}
	if left, err := os.ReadDir(cfg.TempDir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

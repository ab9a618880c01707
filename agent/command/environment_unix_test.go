//go:build unix

package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

// secrets are usual names of secrets, and of variables that load code.
func secrets() []string {
	return []string{"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN",
		"PYPI_TOKEN", "CARGO_REGISTRY_TOKEN", "DATABASE_URL", "PGPASSWORD", "MYSQL_PWD", "REDIS_URL", "STRIPE_SECRET_KEY",
		"SLACK_BOT_TOKEN", "AZURE_CLIENT_SECRET", "DIGITALOCEAN_ACCESS_TOKEN", "HF_TOKEN", "VAULT_TOKEN", "KUBECONFIG",
		"SSH_AUTH_SOCK", "DOCKER_AUTH_CONFIG", "SENTRY_AUTH_TOKEN", "SECRET_KEY_BASE", "MISTRAL_API_KEY", "PERDURE_STORE",
		"PERDURE_GATE_TOKEN", "NODE_OPTIONS", "PYTHONPATH", "BASH_ENV"}
}

// vendors are the variables of each preset.
func vendors() map[string][]string {
	return map[string][]string{
		"":         nil,
		"claude":   {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN"},
		"codex":    {"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"},
		"gemini":   {"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS"},
		"opencode": {"OPENCODE_CONFIG_CONTENT"},
	}
}

// environmentOf returns the values of variables as an agent gets them.
func environmentOf(t *testing.T, cfg command.Config, names []string, change func(*agent.Turn)) map[string]string {
	t.Helper()
	var todo []string
	for _, name := range names {
		todo = append(todo, "env:"+name)
	}
	preset, model := cfg.Preset, cfg.Model
	cfg = actor(t, preset, todo...)
	cfg.Model = model
	if preset == "" {
		cfg.Args = todo
	}
	turn := newTurn(t)
	var lines []string
	turn.Observe = func(ev agent.Event) { lines = append(lines, ev.Text+string(ev.Raw)) }
	change(turn)
	result, err := newAgent(t, cfg).Run(t.Context(), turn)
	if preset == "" {
		if err != nil {
			t.Fatal(err)
		}
		lines = strings.Split(result.Text, "\n")
	} else {
		wantKind(t, err, agent.KindFailed) // no stream at all
	}
	got := make(map[string]string)
	for _, line := range lines {
		for one := range strings.SplitSeq(line, "\n") {
			if name, value, ok := strings.Cut(one, "="); ok {
				got[name] = value
			}
		}
	}
	return got
}

// TestAgentEnvironment: an agent gets the variables of the allow-list and of its own vendor,
// no secret and none of another vendor.
func TestAgentEnvironment(t *testing.T) {
	var names []string
	for _, own := range vendors() {
		names = append(names, own...)
	}
	names = append(names, secrets()...)
	for _, name := range names {
		t.Setenv(name, name+"=planted")
	}
	t.Setenv("GOPRIVATE", "GOPRIVATE=example.com")
	for preset, own := range vendors() {
		got := environmentOf(t, command.Config{Preset: preset}, append(names, "GOPRIVATE"), func(*agent.Turn) {})
		for _, name := range names {
			if passed := got[name] != ""; passed != slices.Contains(own, name) {
				t.Errorf("%q gets %s: %v", preset, name, passed)
			}
		}
		if got["GOPRIVATE"] != "example.com" {
			t.Errorf("%q does not get GOPRIVATE", preset)
		}
	}
}

// TestAgentInherits: the names in a turn, and the provider of an OpenCode model, add variables.
func TestAgentInherits(t *testing.T) {
	names := []string{"AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"}
	for _, name := range names {
		t.Setenv(name, name+"=planted")
	}
	for _, c := range []struct {
		preset, model string
		inherit, want []string
	}{
		{preset: ""},
		{"", "", []string{"GITHUB_TOKEN"}, []string{"GITHUB_TOKEN"}},
		{"claude", "", []string{"AWS_*"}, []string{"AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY"}},
		{preset: "opencode"},
		{preset: "opencode", model: "anthropic/claude-x", want: []string{"ANTHROPIC_API_KEY"}},
		{preset: "opencode", model: "openrouter/a/b", want: []string{"OPENROUTER_API_KEY"}},
		{preset: "opencode", model: "*/x"},
	} {
		got := environmentOf(t, command.Config{Preset: c.preset, Model: c.model}, names,
			func(turn *agent.Turn) { turn.Inherit = c.inherit })
		for _, name := range names {
			if passed := got[name] != ""; passed != slices.Contains(c.want, name) {
				t.Errorf("%+v: gets %s: %v", c, name, passed)
			}
		}
	}
}

package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/config"
)

func TestAgents(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Sources{Dir: project(t, `agents:
  security-auditor:
    model: openai:big
    base_url: http://localhost:1/v1
    system: |
      You look for holes.
      Name each.
    temperature: 0.2
    max_output_tokens: 500
  editor: {system: "Be brief."}
agents.third.temperature: 0
`)})
	if err != nil {
		t.Fatal(err)
	}
	cool, cold := 0.2, 0.0
	want := map[string]*config.Agent{
		"security-auditor": {Model: "openai:big", BaseURL: "http://localhost:1/v1",
			System:      "You look for holes.\nName each.\n",
			Temperature: &cool, MaxOutputTokens: 500},
		"editor": {System: "Be brief."},
		"third":  {Temperature: &cold},
	}
	if diff := cmp.Diff(want, l.Agents); diff != "" {
		t.Error(diff)
	}
	// The printed settings can be loaded again, and only the given ones are printed.
	again, err := config.Load(config.Sources{Dir: project(t, l.YAML())})
	if err != nil {
		t.Fatalf("%v in\n%s", err, l.YAML())
	}
	if diff := cmp.Diff(want, again.Agents); diff != "" {
		t.Error(diff)
	}
	shown := 0
	for _, s := range l.Effective() {
		if strings.HasPrefix(s.Key, "agents.") {
			shown++
			if s.Origin != config.OriginFile || !strings.Contains(s.Where, "config.yaml:") {
				t.Errorf("%s comes from %s %s", s.Key, s.Origin, s.Where)
			}
		}
	}
	if shown != 7 {
		t.Errorf("%d values of agents are shown, want 7", shown)
	}
}

func TestAgentProblems(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, file, want string }{
		{"unknown field", "agents:\n  a:\n    modle: x",
			`config.yaml:3: unknown key "agents.a.modle"; did you mean "agents.a.model"?`},
		{"key", "agents:\n  a:\n    api_key: x", "config.yaml:3: agents.a.api_key: secrets are not allowed"},
		{"not a section", "agents: x", "config.yaml:1: agents has no keys"},
		{"not a profile", "agents:\n  a: x", "config.yaml:2: agents.a has no keys"},
		{"a list", "agents: [a]", "config.yaml:1: agents has no keys"},
		{"temperature", "agents: {a: {temperature: 2.5}}", "agents.a.temperature: 2.5 is not between 0 and 2"},
		{"tokens", "agents: {a: {max_output_tokens: many}}", `agents.a.max_output_tokens: "many" is not a whole number`},
		{"URL", "agents: {a: {base_url: nowhere}}", "agents.a.base_url: the value is not a URL"},
		{"password", "agents: {a: {base_url: 'https://me:geheim@host'}}", "agents.a.base_url: contains a password"},
		{"twice", "agents:\n  a: {model: x}\nagents.a.model: y", "agents.a.model: already set in line 2"},
		{"misspelt section", "agent: {a: {model: x}}", `did you mean "agents"?`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Load(config.Sources{Dir: project(t, tt.file)})
			if !errors.Is(err, perdure.ErrInvalid) || !strings.Contains(err.Error(), tt.want) ||
				strings.Contains(err.Error(), "geheim") {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

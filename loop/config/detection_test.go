package config_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/rules"
	"github.com/perdure/perdure/loop/config"
)

// The public types of the rules have the fields of those that the detection takes.
func TestDetectionRulesAreTheDetections(t *testing.T) {
	t.Parallel()
	want := config.DetectionRules{
		Types: []string{"test_deletion"}, Off: []string{"open-ends"}, Actions: map[string]string{"stub-body": "warn"},
		ActConfidence: 0.5, Protected: []string{"deploy/**"},
		Patterns: []config.DetectionPattern{{ID: "no-sleep", Type: "test_skipping", Message: "a test waits", Tier: 3,
			Severity: "low", Languages: []string{"go"}, Paths: []string{"**"}, Match: "x", Tokens: "y", In: "text",
			When: "removed", Confidence: 0.25}},
	}
	s, err := rules.From(&want)
	if err != nil {
		t.Fatal(err)
	}
	custom := detect.Custom{ID: "no-sleep", Type: detect.TestSkipping, Message: "a test waits", Tier: detect.Hint,
		Severity: detect.Low, Languages: []string{"go"}, Paths: []string{"**"}, Match: "x", In: "text", When: "removed",
		Confidence: 0.25}
	if diff := cmp.Diff(rules.Settings{
		Types: []detect.Type{detect.TestDeletion}, Off: []string{"open-ends"},
		Actions: map[string]detect.Action{"stub-body": detect.Warn}, ActConfidence: 0.5, Protected: []string{"deploy/**"},
		Patterns: []rules.Pattern{{Custom: custom, Tokens: "y"}},
	}, s); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
	var got config.DetectionRules
	if err := s.To(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules differ (-want +got):\n%s", diff)
	}
}

func TestParseChecksDetection(t *testing.T) {
	t.Parallel()
	base := func() config.Config {
		return config.Config{Task: "t", Until: "true", Workspace: "/w", Agent: "a"}
	}
	risks := func(pattern string, answer config.RiskAnswer) func(c *config.Config) {
		return func(c *config.Config) { c.RiskAnswers = map[string]config.RiskAnswer{pattern: answer} }
	}
	for want, change := range map[string]func(c *config.Config){
		"": func(c *config.Config) {
			c.Detection, c.Rules.ActConfidence = config.DetectionAggressive, 0.5
			c.Waivers = []config.Waiver{{Pattern: "*", Path: "**", Reason: "known", Expires: time.Now(), By: "me"}}
			c.RiskAnswers = map[string]config.RiskAnswer{"git_remove": config.RiskBlock}
		},
		`detection is "all", must be`:    func(c *config.Config) { c.Detection = "all" },
		"detection_rules: ":              func(c *config.Config) { c.Rules.Off = []string{"no such pattern"} },
		"protected_paths[0]":             func(c *config.Config) { c.Rules.Protected = []string{"["} },
		"waivers[0]: ":                   func(c *config.Config) { c.Waivers = []config.Waiver{{Pattern: "*", Path: "**"}} },
		`there is no pattern "rm"`:       risks("rm", "warn"),
		`risk_answers.git_remove: "ask"`: risks("git_remove", "ask"),
	} {
		c := base()
		change(&c)
		raw, err := json.Marshal(&c)
		if err != nil {
			t.Fatal(err)
		}
		_, err = config.Parse(raw)
		switch {
		case want == "" && err != nil:
			t.Errorf("refused: %v", err)
		case want == "":
		case perdure.CodeOf(err) != perdure.CodeInvalid, !strings.Contains(err.Error(), want):
			t.Errorf("got %v, want an error with code invalid and %q", err, want)
		}
	}
}

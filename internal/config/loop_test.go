package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/loop/hook"
)

func TestHooksInTheFile(t *testing.T) {
	t.Parallel()
	p := parseFile("config.yaml", []byte(`loop:
  max_iterations: 20
  hooks:
    - hook: post_iteration
      command: ./after
      timeout: 10s
    - {hook: gate_opened, url: "https://example.com/x", timeout: none, on_fault: block, name: tell}
`))
	if len(p.problems) > 0 {
		t.Fatal(p.problems)
	}
	want := hook.Settings{{Hook: hook.PostIteration, Command: "./after", Timeout: 10 * time.Second},
		{Hook: hook.GateOpened, URL: "https://example.com/x", Timeout: hook.NoTimeout, OnFault: hook.FaultBlocks,
			Name: "tell"}}
	if diff := cmp.Diff(want, p.hooks); diff != "" {
		t.Error(diff)
	}
	if p.values["loop.max_iterations"].text != "20" {
		t.Errorf("values %+v", p.values)
	}
}

func TestHooksThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"no list":       {"loop: {hooks: x}", "loop.hooks is not a list"},
		"unknown field": {"loop: {hooks: [{hook: gate_opened, cmd: x}]}", "cmd"},
		"unknown hook":  {"loop: {hooks: [{hook: gate_open, command: x}]}", "gate_open"},
		"no handler":    {"loop: {hooks: [{hook: gate_opened}]}", "command"},
		"time":          {"loop: {hooks: [{hook: gate_opened, command: x, timeout: soon}]}", `"soon" is not a time`},
		"policy":        {"loop: {hooks: [{hook: gate_opened, command: x, on_fault: maybe}]}", "maybe"},
		"another key":   {"loop: {hook: x}", "unknown key"},
	} {
		p := parseFile("config.yaml", []byte(c.text))
		if len(p.problems) == 0 || !strings.Contains(p.problems[0].Error(), c.want) ||
			!strings.Contains(p.problems[0].Error(), "config.yaml:1") {
			t.Errorf("%s: %v", name, p.problems)
		}
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	p := parseFile("config.yaml", []byte("loop:\n  chains:\n    default: [claude, codex]\n    tests: [codex]\n"))
	if len(p.problems) > 0 {
		t.Fatal(p.problems)
	}
	l := &Loop{Agent: "gemini", Chains: p.chains}
	for kind, want := range map[string][]string{"": {"claude", "codex"}, "default": {"claude", "codex"},
		"tests": {"codex"}} {
		if got, err := l.Chain(kind); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v", kind, got, err)
		}
	}
	if _, err := l.Chain("docs"); err == nil || !strings.Contains(perdure.HintOf(err), "default, tests") {
		t.Errorf("a type that is not set: %v", err)
	}
	if got, err := (&Loop{Agent: "gemini"}).Chain(""); err != nil || !cmp.Equal(got, []string{"gemini"}) {
		t.Errorf("without chains: %v, %v", got, err)
	}
	for _, text := range []string{"loop: {chains: [x]}", "loop: {chains: {x: []}}", "loop: {chains: {x: ['']}}",
		"loop: {chains: {x: y}}"} {
		if p := parseFile("config.yaml", []byte(text)); len(p.problems) == 0 {
			t.Errorf("%s is taken", text)
		}
	}
}

func TestRisks(t *testing.T) {
	t.Parallel()
	p := parseFile("config.yaml", []byte("loop:\n  risks:\n    git_remove: gate\n    write_test: allow\n"))
	if len(p.problems) > 0 || p.risks["git_remove"] != "gate" || p.risks["write_test"] != "allow" {
		t.Errorf("%v, %v", p.risks, p.problems)
	}
	p = parseFile("config.yaml", []byte("loop:\n  risks:\n    commands:\n      make  db-wipe: block\n      psql: allow\n"))
	if len(p.problems) > 0 || len(p.risks) != 2 || p.risks["command make db-wipe"] != "block" ||
		p.risks["command psql"] != "allow" {
		t.Errorf("%v, %v", p.risks, p.problems)
	}
	for text, want := range map[string]string{"loop: {risks: {rm: block}}": `unknown pattern "rm"`,
		"loop: {risks: {commands: {make x: ask}}}": `commands.make x: "ask" is not one of`,
		"loop: {risks: {commands: {'': block}}}":   "a command is empty",
		"loop: {risks: {commands: block}}":         "unknown pattern",
		"loop: {risks: {git_remove: ask}}":         `"ask" is not one of`, "loop: {risks: [x]}": "write git_remove"} {
		if p := parseFile("config.yaml", []byte(text)); len(p.problems) == 0 ||
			!strings.Contains(p.problems[0].Error(), want) {
			t.Errorf("%s: %v", text, p.problems)
		}
	}
}

// The section loop, and the origin of a value that several sources set.
func TestLoopSettings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := `loop:
  enabled: false
  max_iterations: 20
  max_retries: 5
  gate_timeout: 90m
  auto_escalate_on_critical: false
  best_output: false
  require_verification: true
  detection_latency_budget: none
  max_overhead_percent: 2.5
  notify:
    command: ./tell "me"
    webhook: https://chat.example/x
    desktop: true
`
	if err := os.MkdirAll(filepath.Join(dir, FolderName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FolderName, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Sources{Dir: dir, Environ: []string{"PERDURE_LOOP_MAX_RETRIES=6", "PERDURE_LOOP_MAX_ITERATIONS=30",
		"PERDURE_LOOP_NOTIFY_WEBHOOK=https://chat.example/y"},
		Flags: map[string]string{"loop.max_iterations": "40"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Default().Loop
	want.MaxIterations, want.MaxRetries, want.GateTimeout, want.RequireVerification = 40, 6, 90*time.Minute, true
	want.Enabled, want.AutoEscalateCritical, want.BestOutput, want.DetectionBudget, want.OverheadPercent = false, false,
		false, 0, 2.5
	want.NotifyCommand, want.NotifyWebhook, want.NotifyDesktop = `./tell "me"`, "https://chat.example/y", true
	if diff := cmp.Diff(want, l.Loop); diff != "" {
		t.Error(diff)
	}
	from := make(map[string]Setting)
	for _, s := range l.Effective() {
		from[s.Key] = s
	}
	for key, want := range map[string][2]string{"loop.max_iterations": {OriginFlag, "40"},
		"loop.max_retries": {OriginEnv, "6"}, "loop.gate_timeout": {OriginFile, "1h30m"},
		"loop.detection_latency_budget": {OriginFile, "none"}, "loop.timeout": {OriginDefault, "1h"}} {
		if s := from[key]; s.Origin != want[0] || s.Text != want[1] {
			t.Errorf("%s is %s from %s, want %v", key, s.Text, s.Origin, want)
		}
	}
	if s := from["loop.detection_latency_budget"]; s.Value != nil {
		t.Errorf("no limit is %v for programs", s.Value)
	}
	// The printed settings can be loaded again.
	if err := os.WriteFile(filepath.Join(dir, FolderName, FileName), []byte(l.YAML()), 0o600); err != nil {
		t.Fatal(err)
	}
	if again, err := Load(Sources{Dir: dir}); err != nil || !cmp.Equal(again.Loop, l.Loop) {
		t.Errorf("%v\n%s", err, cmp.Diff(l.Loop, again.Loop))
	}
}

func TestLoopSettingsThatAreNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"loop.gate_timeout: 0s":               "loop.gate_timeout: 0s is not a limit; write none",
		"loop.gate_timeout: -5m":              "is not longer than 0",
		"loop.gate_timeout: 5":                "it has no unit",
		"loop.detection_latency_budget: 0":    "0 is not a limit; write none",
		"loop.max_overhead_percent: 0":        "0 is not a limit; write none",
		"loop.max_overhead_percent: -1":       "is not between 0 and",
		"loop.max_overhead_percent: NaN":      "is not between 0 and",
		"loop.enabled: perhaps":               `"perhaps" is neither true nor false`,
		"loop.notify: x":                      "loop.notify has no keys",
		"loop: {notify: {comand: x}}":         `did you mean "loop.notify.command"?`,
		"loop.notify.webhook: chat":           "is not a URL",
		"loop.notify.webhook: https://a:b@h/": "contains a password",
	} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, FolderName), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, FolderName, FileName), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Sources{Dir: dir}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Every counterpart is a setting.
func TestCounterparts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"enabled", "detection.mode", "reinforcement.default_level",
		"reinforcement.escalation_thresholds.iteration_3", "reinforcement.quality_plateau_threshold",
		"recovery.max_retries", "recovery.auto_escalate_on_critical", "recovery.human_gate_timeout_minutes",
		"best_output_selection.enabled",
		"best_output_selection.quality_threshold", "best_output_selection.require_verification",
		"performance.detection_latency_budget_ms",
		"performance.max_integration_overhead_percentage"} {
		for _, own := range strings.Split(Counterpart(name), ", ") {
			if _, ok := find(new(Config), own); !ok {
				t.Errorf("%s is said to be %q", name, own)
			}
		}
	}
	if got := Counterpart("max_retries"); got != "" {
		t.Errorf("a name of nothing is said to be %q", got)
	}
}

package config

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// harmless are the settings that a repository can set without trust: they execute nothing,
// connect to nothing, redirect nothing and permit nothing.
func harmless() []string {
	return []string{"concurrency", "max_depth", "max_children", "max_nodes", "max_attempts", "chunk_tokens",
		"search_above", "confirm_above", "structured_output",
		"prompt_caching", "native_tools", "call_timeout", "call_retries", "patience", "max_wait",
		"budget_calls", "budget_tokens", "budget_usd",
		"retention.completed", "retention.failed", "retention.remove_failed", "retention.checkpoints",
		"retention.handoffs", "handoff.warn_percent", "handoff.stop_percent", "drain_timeout", "log_level", "log_format",
		"loop.model", "loop.meter", "loop.max_iterations", "loop.timeout", "loop.idle_timeout", "loop.context_window",
		"loop.check_timeout", "loop.gate_timeout", "loop.reinforcement", "loop.standard_from",
		"loop.aggressive_from", "loop.plateau_percent", "loop.reminders", "loop.max_retries", "loop.best_output",
		"loop.commit", "loop.worktree",
		"loop.require_verification", "loop.detection_latency_budget", "loop.max_overhead_percent",
		"loop.notify.desktop"}
}

// TestEverySettingIsClassified: a new setting acts, or is listed as harmless.
func TestEverySettingIsClassified(t *testing.T) {
	t.Parallel()
	values := map[string]string{"model": "exec:x", "sub_model": "openai:x", "judge": "anthropic:x",
		"repl_unsandboxed": "true",
		"loop.permission":  "all", "cache": "true", "loop.coverage": "x", "loop.types": "x", "loop.lint": "x",
		"loop.approver": "any", "loop.enabled": "false", "loop.detection": "minimal", "loop.snapshot_risky": "high",
		"loop.auto_escalate_on_critical": "false", "loop.quality_threshold": "69", "loop.sealed": "off",
		"loop.coverage_threshold": "none", "loop.sensitive_coverage_threshold": "0.6",
		"loop.mutation_percent": "none", "loop.held_out_gap": "30"}
	for _, s := range settings(new(Config)) {
		value := values[s.key]
		if value == "" {
			value = "x"
		}
		if acts := s.acts != nil && s.acts(value) != ""; acts == slices.Contains(harmless(), s.key) {
			t.Errorf("%s: acts %v", s.key, acts)
		}
	}
}

// TestWeakerSettingsAct: settings that weaken the checks act, stricter ones do not.
func TestWeakerSettingsAct(t *testing.T) {
	t.Parallel()
	for line, acts := range map[string]bool{
		"enabled: false": true, "enabled: true": false, "detection: off": true, "detection: minimal": true,
		"detection: aggressive": false, "sealed: off": true, "sealed: always": false, "quality_threshold: 50": true,
		"quality_threshold: 90": false, "coverage_threshold: 5": true, "coverage_threshold: none": true,
		"coverage_threshold: 1": false, "coverage: off": true, "coverage: auto": false, "patterns_off: [open-ends]": true,
		"patterns_enabled: [test_deletion]": true, "pattern_actions: {symbol-removed: tell}": true,
		"act_confidence: 0.9": true, "act_confidence: 0.5": false, "protected_paths: [deploy/**]": false,
		"sensitive_paths: auth": true, "max_iterations: 3": false,
	} {
		l, plain := load(t, "loop:\n  "+line+"\n", nil), load(t, "", nil)
		if got := len(l.Acting()) > 0; got != acts {
			t.Errorf("%s: acts %v, want %v", line, got, acts)
		}
		if l.IgnoreActing(); acts && !reflect.DeepEqual(l.Loop, plain.Loop) { // as without the file
			t.Errorf("%s: after it was ignored: %+v", line, l.Loop)
		}
	}
}

func TestModelEffect(t *testing.T) {
	t.Parallel()
	for chain, acts := range map[string]bool{"": false, "builtin:extract": false, "mock:echo,builtin:extract": false,
		"rule:len(text) > 1": false, "openai:gpt-5": true, "anthropic:x": true, "builtin:extract,exec:sh -c 'a, b'": true,
		"mock:echo, openai:x": true, "unknown": true} {
		if got := ModelEffect(chain); (got != "") != acts {
			t.Errorf("%q: %q", chain, got)
		}
	}
}

const actingFile = `model: exec:evil
sub_model: builtin:extract
base_url: http://example.com/v1
budget_calls: 7
agents:
  reviewer: {model: openai:x, system: be kind}
  offline: {system: be short}
loop:
  permission: edits
  approver: token
  lint: evil-lint
  hooks:
    - {hook: loop_start, command: evil}
  metrics: {size: evil}
  chains: {default: [codex]}
  risks: {git_remove: allow, write_test: block}
  notify: {command: evil}
`

func load(t *testing.T, text string, flags map[string]string) *Loaded {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, FolderName), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, FolderName, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Sources{Dir: dir, Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestActing(t *testing.T) {
	t.Parallel()
	l := load(t, actingFile, nil)
	var keys []string
	for _, a := range l.Acting() {
		keys = append(keys, a.Key)
		if a.Effect == "" {
			t.Errorf("%s has no effect", a.Key)
		}
	}
	want := "agents.reviewer.model base_url loop.lint loop.notify.command model " +
		"loop.hooks loop.chains loop.metrics loop.risks"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("acting: %s\nwant: %s", got, want)
	}
	l.IgnoreActing()
	if l.Model != "builtin:extract" || l.BaseURL != "" || l.Loop.Lint != "auto" || l.Loop.NotifyCommand != "" ||
		len(l.Loop.Hooks)+len(l.Loop.Metrics)+len(l.Loop.Chains) > 0 || l.Loop.Risks["git_remove"] != "" {
		t.Errorf("not ignored: %+v", l.Config)
	}
	if l.Loop.Risks["write_test"] != "block" {
		t.Errorf("a stricter answer is ignored: %v", l.Loop.Risks)
	}
	if l.BudgetCalls != 7 || l.Agents["offline"] == nil || l.Agents["reviewer"] != nil {
		t.Errorf("others are to stay: %d, %v", l.BudgetCalls, l.Agents)
	}
	if len(l.Acting()) > 0 {
		t.Errorf("still acting: %v", l.Acting())
	}
}

// TestActingHash: the hash changes with each setting that acts and with no other, and does
// not depend on flags.
func TestActingHash(t *testing.T) {
	t.Parallel()
	base := load(t, actingFile, nil).ActingHash()
	if got := load(t, actingFile, map[string]string{"model": "mock:echo"}).ActingHash(); got != base {
		t.Error("a flag changes the hash")
	}
	for from, to := range map[string]string{"exec:evil": "exec:other", "example.com": "example.org", "evil-lint": "lint",
		"hook: loop_start": "hook: loop_complete", "size: evil": "size: worse", "[codex]": "[claude]",
		"git_remove: allow,": "", "openai:x": "openai:y"} {
		if load(t, strings.Replace(actingFile, from, to, 1), nil).ActingHash() == base {
			t.Errorf("%q for %q does not change the hash", to, from)
		}
	}
	for from, to := range map[string]string{"calls: 7": "calls: 8", "be kind": "be rude",
		"write_test: block": "write_test: gate", "permission: edits": "permission: read"} {
		if load(t, strings.Replace(actingFile, from, to, 1), nil).ActingHash() != base {
			t.Errorf("%q for %q changes the hash", to, from)
		}
	}
}

// TestPricesAct: a file of prices comes with the folder and decides when a budget is spent.
func TestPricesAct(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, FolderName, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again := func() *Loaded {
		l, err := Load(Sources{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := os.MkdirAll(filepath.Join(dir, FolderName), 0o700); err != nil {
		t.Fatal(err)
	}
	if l := again(); len(l.Acting()) > 0 || !l.UsesPricesFile() {
		t.Errorf("without a file: %v", l.Acting())
	}
	write(PricesName, "models: {}\n")
	first := again()
	if got := first.Acting(); len(got) != 1 || got[0].Key != PricesName {
		t.Errorf("acting: %v", got)
	}
	write(PricesName, "models: { }\n")
	if again().ActingHash() == first.ActingHash() {
		t.Error("another file has the same hash")
	}
	if first.IgnoreActing(); first.UsesPricesFile() {
		t.Error("the file is not ignored")
	}
}

// TestActingIsOverridden: a setting that a flag overrides does not act.
func TestActingIsOverridden(t *testing.T) {
	t.Parallel()
	l := load(t, "model: exec:evil\n", map[string]string{"model": "mock:echo"})
	if got := l.Acting(); len(got) > 0 {
		t.Errorf("acting: %v", got)
	}
	if got := l.AllActing(); len(got) != 1 || got[0].Key != "model" || !got[0].Overridden {
		t.Errorf("all: %v", got)
	}
	l.IgnoreActing()
	if l.Model != "mock:echo" {
		t.Errorf("the flag is lost: %s", l.Model)
	}
}

func TestActingHidesPasswords(t *testing.T) {
	t.Parallel()
	l := load(t, "base_url: https://example.com/?x=1\n", nil)
	l.acting = l.findActing(map[string]given{"store": {text: "postgres://u:secret@h/d"}})
	if got := l.acting[0].Value; strings.Contains(got, "secret") {
		t.Errorf("shown as %s", got)
	}
}

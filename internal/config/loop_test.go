package config

import (
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
		{Hook: hook.GateOpened, URL: "https://example.com/x", Timeout: hook.NoTimeout, OnFault: hook.FaultBlocks, Name: "tell"}}
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
		"no list":       {"loop: {hooks: x}", "is a list"},
		"unknown field": {"loop: {hooks: [{hook: gate_opened, cmd: x}]}", "cmd"},
		"unknown hook":  {"loop: {hooks: [{hook: gate_open, command: x}]}", "gate_open"},
		"no handler":    {"loop: {hooks: [{hook: gate_opened}]}", "command"},
		"time":          {"loop: {hooks: [{hook: gate_opened, command: x, timeout: soon}]}", `"soon" is no time`},
		"policy":        {"loop: {hooks: [{hook: gate_opened, command: x, on_fault: maybe}]}", "maybe"},
		"another key":   {"loop: {hook: x}", "unknown key"},
	} {
		p := parseFile("config.yaml", []byte(c.text))
		if len(p.problems) == 0 || !strings.Contains(p.problems[0].Error(), c.want) || !strings.Contains(p.problems[0].Error(), "config.yaml:1") {
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
	for kind, want := range map[string][]string{"": {"claude", "codex"}, "default": {"claude", "codex"}, "tests": {"codex"}} {
		if got, err := l.Chain(kind); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v, %v", kind, got, err)
		}
	}
	if _, err := l.Chain("docs"); err == nil || !strings.Contains(perdure.HintOf(err), "there are default, tests") {
		t.Errorf("a type that is not set: %v", err)
	}
	if got, err := (&Loop{Agent: "gemini"}).Chain(""); err != nil || !cmp.Equal(got, []string{"gemini"}) {
		t.Errorf("without chains: %v, %v", got, err)
	}
	for _, text := range []string{"loop: {chains: [x]}", "loop: {chains: {x: []}}", "loop: {chains: {x: ['']}}", "loop: {chains: {x: y}}"} {
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
	for text, want := range map[string]string{"loop: {risks: {rm: block}}": `no pattern "rm"`, "loop: {risks: {git_remove: ask}}": `"ask" is none of`, "loop: {risks: [x]}": "write git_remove"} {
		if p := parseFile("config.yaml", []byte(text)); len(p.problems) == 0 || !strings.Contains(p.problems[0].Error(), want) {
			t.Errorf("%s: %v", text, p.problems)
		}
	}
}

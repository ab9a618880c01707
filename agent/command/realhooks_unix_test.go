//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

// hooks are programs as hooks, and what becomes of a call.
func hooks() map[string]struct {
	script string
	made   bool
	told   string
} {
	return map[string]struct {
		script string
		made   bool
		told   string
	}{
		"silent": {script: "", made: true},
		"warns": {script: `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"mind the ` +
			`gap"}}'`, made: true, told: "mind the gap"},
		"denies": {script: `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",` +
			`"permissionDecisionReason":"not here"}}'`, told: "not here"},
		"fails":   {script: "echo no idea >&2; exit 2", told: "no idea"},
		"crashes": {script: "exit 1"},
		"killed":  {script: "kill -9 $$"},
		"looks after": {script: `grep -q '"PostToolUse"' "$0.in" && echo ` +
			`'{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"a test is gone"}}' || true`,
			made: true, told: "a test is gone"},
	}
}

// TestRealHooks: a client runs the hook before its calls, keeps to what it says, and
// takes one that fails for a refusal.
func TestRealHooks(t *testing.T) {
	t.Parallel()
	for _, c := range clients()[:2] {
		for name, h := range hooks() {
			t.Run(c.preset+" "+name, func(t *testing.T) {
				t.Parallel()
				i := install(t, c)
				i.cfg.Permission = command.PermissionAll
				program := filepath.Join(t.TempDir(), "it's a hook")
				if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > \"$0.in\"; cat \"$0.in\" >> \"$0.all\"\n"+h.script+"\n"),
					0o700); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(i.dir, "out.txt")
				_, _, err := i.turn(t.Context(), t, agent.Turn{Hook: []string{program, "--socket", "x y"}},
					sized(c.write(path, "hello"), 1000, 400, 50), sized(reply{Text: "Done."}, 1200, 1000, 10))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := os.Stat(path); (err == nil) != h.made {
					t.Errorf("the call was made: %v, want %v", err == nil, h.made)
				}
				said, err := os.ReadFile(program + ".all")
				if err != nil || !strings.Contains(string(said), `"PreToolUse"`) ||
					strings.Contains(string(said), `"PostToolUse"`) != h.made {
					t.Errorf("the hook heard %s, %v", said, err)
				}
				if !strings.Contains(i.provider.Heard(), h.told) {
					t.Errorf("the model was not told %q: %s", h.told, i.provider.Heard())
				}
				t.Logf("%s", said)
			})
		}
	}
}

// TestRealHooksMissing: a program that is not there is a refusal.
func TestRealHooksMissing(t *testing.T) {
	t.Parallel()
	for _, c := range clients()[:2] {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			i := install(t, c)
			i.cfg.Permission = command.PermissionAll
			path := filepath.Join(i.dir, "out.txt")
			if _, _, err := i.turn(t.Context(), t, agent.Turn{Hook: []string{"/no/such/program"}},
				sized(c.write(path, "hello"), 1000, 400, 50), sized(reply{Text: "Done."}, 1200, 1000, 10)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path); err == nil {
				t.Error("the call was made")
			}
		})
	}
}

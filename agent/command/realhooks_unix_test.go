//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

// hookTest is a program as a hook, and what becomes of a call.
type hookTest struct {
	// script is run at each event, before is run before a call and after is run after it: what
	// they print is the reply.
	script, before, after string
	made                  bool
	told                  string
}

// replies returns the replies of a hook in the form of an agent: one that says nothing, one
// with a text, a denial, and one with a text after a call.
func replies(preset string) (silent, warns, denies, after string) {
	specific := func(rest string) string {
		return `echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse",` + rest + `}}'`
	}
	silent, warns = "true", specific(`"additionalContext":"mind the gap"`)
	denies = specific(`"permissionDecision":"deny","permissionDecisionReason":"not here"`)
	after = `echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"a test is gone"}}'`
	if preset == "opencode" {
		return `echo '{"verdict":"pass"}'`, `echo '{"verdict":"pass","text":"mind the gap"}'`,
			`echo '{"verdict":"deny","text":"not here"}'`, `echo '{"verdict":"pass","text":"a test is gone"}'`
	}
	return silent, warns, denies, after
}

func hooks(preset string) map[string]hookTest {
	silent, warns, denies, after := replies(preset)
	return map[string]hookTest{
		"silent":      {before: silent, after: silent, made: true},
		"warns":       {before: warns, after: silent, made: true, told: "mind the gap"},
		"denies":      {before: denies, told: "not here"},
		"fails":       {script: "echo no idea >&2; exit 2", told: "no idea"},
		"crashes":     {script: "exit 1"},
		"killed":      {script: "kill -9 $$"},
		"looks after": {before: silent, after: after, made: true, told: "a test is gone"},
	}
}

// TestRealHooks: a client runs the hook before its calls, keeps to what it says, and
// takes one that fails for a refusal.
func TestRealHooks(t *testing.T) {
	t.Parallel()
	for _, c := range hookedClients() {
		for name, h := range hooks(c.preset) {
			t.Run(c.preset+" "+name, func(t *testing.T) {
				t.Parallel()
				i := install(t, c)
				i.cfg.Permission = command.PermissionAll
				program := filepath.Join(t.TempDir(), "it's a hook")
				if err := os.WriteFile(program, []byte("#!/bin/sh\ncat > \"$0.in\"; cat \"$0.in\" >> \"$0.all\"\n"+h.script+
					"\nif grep -q PreToolUse \"$0.in\"; then\n:;"+h.before+"\nelse\n:;"+h.after+"\nfi\n"),
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
	for _, c := range hookedClients() {
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

// hookedClients are the clients that run a hook for one turn. Gemini CLI reads further settings
// only from files of root.
func hookedClients() []client {
	return slices.DeleteFunc(clients(), func(c client) bool { return c.preset == "gemini" })
}

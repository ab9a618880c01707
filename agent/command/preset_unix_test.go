//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
)

// actor is a preset whose program is this test binary, which does what todo
// says whatever its arguments are; PRESET:NAME stands for a recorded file.
func actor(t *testing.T, preset string, todo ...string) command.Config {
	t.Helper()
	cfg := player(t)
	for i, do := range todo {
		verb, name, _ := strings.Cut(do, ":")
		if verb == "replay" || verb == "complain" {
			path, err := filepath.Abs(filepath.Join("testdata", preset, name))
			if err != nil {
				t.Fatal(err)
			}
			todo[i] = verb + ":" + path
		}
	}
	cfg.Preset, cfg.Env, cfg.Grace = preset, []string{playVar + "=" + strings.Join(todo, "\n"), raceVar}, -1
	return cfg
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		preset string
		cfg    command.Config
		want   string
	}{
		{"claude", command.Config{}, "-p --output-format stream-json --verbose --include-partial-messages " +
			"--permission-mode acceptEdits --resume ID"},
		{"claude", command.Config{Permission: command.PermissionRead, Model: "m"}, "-p --output-format stream-json " +
			"--verbose --include-partial-messages --permission-mode plan --model m --resume ID"},
		{"claude", command.Config{Permission: command.PermissionAll, Args: []string{"--settings", "x"}},
			"-p --output-format stream-json --verbose --include-partial-messages --permission-mode bypassPermissions " +
				"--resume ID --settings x"},
		{"claude", command.Config{Permission: command.PermissionOwn},
			"-p --output-format stream-json --verbose --include-partial-messages --resume ID"},
		{"codex", command.Config{}, "exec --json --skip-git-repo-check --sandbox workspace-write resume ID -"},
		{"codex", command.Config{Permission: command.PermissionRead, Model: "m"},
			"exec --json --skip-git-repo-check --sandbox read-only --model m resume ID -"},
		{"codex", command.Config{Permission: command.PermissionAll, Args: []string{"-c", "x=1"}},
			"exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -c x=1 resume ID -"},
		{"codex", command.Config{Permission: command.PermissionOwn}, "exec --json --skip-git-repo-check resume ID -"},
		{"gemini", command.Config{}, "--output-format stream-json --approval-mode auto_edit --resume ID"},
		{"gemini", command.Config{Permission: command.PermissionRead, Model: "m"},
			"--output-format stream-json --approval-mode plan --model m --resume ID"},
		{"gemini", command.Config{Permission: command.PermissionAll},
			"--output-format stream-json --approval-mode yolo --resume ID"},
		{"gemini", command.Config{Permission: command.PermissionOwn, Args: []string{"-e", "none"}},
			"--output-format stream-json --resume ID -e none"},
		{"opencode", command.Config{}, "run --format json --print-logs --log-level ERROR --session ID"},
		{"opencode", command.Config{Permission: command.PermissionAll, Model: "m"},
			"run --format json --print-logs --log-level ERROR --auto --model m --session ID"},
	}
	for _, tt := range tests {
		t.Run(tt.preset+"/"+string(tt.cfg.Permission), func(t *testing.T) {
			t.Parallel()
			cfg := actor(t, tt.preset, "line", "cat")
			cfg.Permission, cfg.Model, cfg.Args = tt.cfg.Permission, tt.cfg.Model, tt.cfg.Args
			a := newAgent(t, cfg)
			if a.Sight() != agent.SightObserved {
				t.Errorf("sight %q", a.Sight())
			}
			fresh := strings.NewReplacer(" --resume ID", "", " resume ID", "", " --session ID", "").Replace(tt.want)
			for session, want := range map[string]string{"ID": tt.want, "ID#1.2.3.4.5": tt.want, "": fresh} {
				turn := newTurn(t)
				turn.Session = session
				var out []string
				turn.Observe = func(ev agent.Event) { out = append(out, ev.Text) }
				_, err := a.Run(t.Context(), turn)
				e := wantKind(t, err, agent.KindFailed) // no stream at all
				if diff := cmp.Diff([]string{want, "do it"}, out); diff != "" || !strings.Contains(e.Msg, "without a result") {
					t.Errorf("%v\n%s", e, diff)
				}
			}
		})
	}
}

// The variables a preset sets give way to those of the user.
func TestPresetEnvironment(t *testing.T) {
	t.Setenv("CLAUDECODE", "1")
	t.Setenv("CLAUDE_CODE_ENTRYPOINT", "cli")
	t.Setenv("OPENCODE_PERMISSION", "")
	if err := os.Unsetenv("OPENCODE_PERMISSION"); err != nil {
		t.Fatal(err)
	}
	ask := func(preset, name string, env ...string) string {
		cfg := actor(t, preset, "env:"+name)
		cfg.Env = append(cfg.Env, env...)
		turn := newTurn(t)
		got := ""
		turn.Observe = func(ev agent.Event) { got += ev.Text + string(ev.Raw) }
		_, err := newAgent(t, cfg).Run(t.Context(), turn)
		wantKind(t, err, agent.KindFailed)
		return got
	}
	for _, name := range []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"} {
		if got := ask("claude", name); got != "" {
			t.Errorf("claude gets %s=%s", name, got)
		}
	}
	if got := ask("opencode", "OPENCODE_PERMISSION"); !strings.Contains(got, `"bash":"deny"`) {
		t.Errorf("OPENCODE_PERMISSION=%s", got)
	}
	if got := ask("opencode", "OPENCODE_PERMISSION", "OPENCODE_PERMISSION={}"); got != "{}" {
		t.Errorf("OPENCODE_PERMISSION=%s", got)
	}
	if got := ask("claude", "DISABLE_AUTOUPDATER"); got != "1" {
		t.Errorf("DISABLE_AUTOUPDATER=%s", got)
	}
}

// Agents that would go on for ever.
func TestEndlessAgents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  command.Config
		from string
		want agent.Kind // empty: done
		text string
	}{
		{"asks again without end", actor(t, "opencode", "complain:quota.stderr", "hang"), "", agent.KindQuota,
			"exceeded your current quota"},
		{"asks again after a message", actor(t, "gemini", "replay:500.jsonl", "complain:500.stderr", "hang"), "",
			agent.KindUnavailable, "overloaded"},
		{"announces a long wait", actor(t, "claude",
			`out:{"type":"system","subtype":"api_retry","retry_delay_ms":7200000,"error_status":429,"error":"rate_limit"}`,
			"hang"),
			"", agent.KindRateLimit, "rate_limit"},
		{"subscription", actor(t, "claude",
			`out:{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":4000000000,`+
				`"rateLimitType":"five_hour"}}`, "hang"),
			"", agent.KindRateLimit, "five_hour"},
		{"shortens its context again and again", actor(t, "opencode", "replay:over.jsonl", "hang"), "", agent.KindOverflow,
			"6 times in a row"},
		{"begins another session", actor(t, "codex", "replay:badsession.jsonl", "hang"), "rubbish", agent.KindSession,
			`"rubbish"`},
		{"goes on after its end", actor(t, "claude", "replay:ok.jsonl", "hang"), "", "", "was stopped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := tt.cfg
			cfg.Patience, cfg.Linger = 50*time.Millisecond, 50*time.Millisecond
			turn := newTurn(t)
			turn.Session = tt.from
			res, err := newAgent(t, cfg).Run(t.Context(), turn)
			if tt.want == "" {
				if err != nil || res.Text != "Done." || !strings.Contains(strings.Join(res.Notes, "\n"), tt.text) {
					t.Errorf("%+v, %v", res, err)
				}
				return
			}
			e := wantKind(t, err, tt.want)
			if !strings.Contains(e.Error(), tt.text) || tt.want == agent.KindRateLimit && e.Until.IsZero() {
				t.Errorf("error = %v, until %v", e, e.Until)
			}
		})
	}
}

// An agent that reported a good end is believed, whatever its exit status.
func TestExitStatusesLie(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"exit:1", "kill"} {
		res, err := newAgent(t, actor(t, "claude", "replay:ok.jsonl", end)).Run(t.Context(), newTurn(t))
		if err != nil || len(res.Notes) != 2 || res.Text != "Done." {
			t.Errorf("%s: %+v, %v", end, res, err)
		}
	}
	_, err := newAgent(t, actor(t, "claude", "replay:interrupted.jsonl", "exit:0")).Run(t.Context(), newTurn(t))
	wantKind(t, err, agent.KindFailed)
	// OpenCode goes on after an overflow and exits with 1 all the same.
	stream := `out:{"type":"error","sessionID":"s","error":{"name":"ContextOverflowError","data":{"message":"too long"}}}`
	step := `out:{"type":"step_finish","sessionID":"s","part":{"reason":"stop","tokens":{"input":5,"output":1}}}`
	res, err := newAgent(t, actor(t, "opencode", stream, step, "exit:1")).Run(t.Context(), newTurn(t))
	if err != nil || res.Usage.InputTokens != 5 || len(res.Notes) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
	_, err = newAgent(t, actor(t, "opencode", step, stream, "exit:1")).Run(t.Context(), newTurn(t))
	wantKind(t, err, agent.KindOverflow)
}

// A line that is too long is left out, and the turn goes on.
func TestLongLine(t *testing.T) {
	t.Parallel()
	cfg := actor(t, "codex", "flood:4:0", "out:", "replay:ok.jsonl")
	cfg.MaxLineBytes = 1 << 20
	res, err := newAgent(t, cfg).Run(t.Context(), newTurn(t))
	if err != nil || res.Text != "Done." || len(res.Notes) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range command.Presets() {
		names = append(names, p.Name)
		for what, text := range map[string]string{"title": p.Title, "program": p.Program, "install": p.Install,
			"tested": p.Tested, "calls": p.Calls, "usage": p.Usage, "context": p.Context} {
			if text == "" {
				t.Errorf("%s has no %s", p.Name, what)
			}
		}
		if len(p.Permissions) != 4 {
			t.Errorf("%s tells of %d permissions", p.Name, len(p.Permissions))
		}
	}
	if diff := cmp.Diff([]string{"claude", "codex", "gemini", "opencode"}, names); diff != "" {
		t.Error(diff)
	}
}

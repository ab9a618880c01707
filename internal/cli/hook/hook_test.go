package hook_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/cli/hook"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/internal/toolguard/approval"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

// call runs the command as an agent does in a folder.
type call struct {
	stdin io.Reader
	out   io.Writer
	args  []string
	env   map[string]string
}

func (c call) run(ctx context.Context) (string, error) {
	var b bytes.Buffer
	if c.out == nil {
		c.out = &b
	}
	if c.args == nil {
		c.args = []string{"claude-code"}
	}
	p := env.Process{Stdin: c.stdin, Stdout: c.out}
	for name, value := range c.env {
		p.Environ = append(p.Environ, name+"="+value)
	}
	cmd := hook.Command(env.New(p))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(c.args)
	err := cmd.ExecuteContext(ctx)
	return b.String(), err
}

func event(t *testing.T, name, dir, tool string, input map[string]any) io.Reader {
	t.Helper()
	doc, err := json.Marshal(map[string]any{"session_id": "s", "cwd": dir, "hook_event_name": name, "tool_name": tool,
		"tool_input": input, "tool_use_id": "1"})
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(doc)
}

func bash(command string) map[string]any { return map[string]any{"command": command} }

// refuses reports whether an error has exit status 2.
func refuses(err error) bool { return err != nil && perdure.CodeOf(err) == perdure.CodeInvalid }

// project is a folder with settings.
func project(t *testing.T, settings string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".perdure"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".perdure", "config.yaml"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAlone: without a loop, the table and the settings of the project decide.
func TestAlone(t *testing.T) {
	t.Parallel()
	plain, set, off := t.TempDir(), project(t, "loop: {risks: {delete_test: gate, git_remove: block}}"), project(t,
		"loop: {enabled: false}")
	sub := filepath.Join(set, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, event, tool, command, want string }{
		{plain, "PreToolUse", "Bash", "ls", ""},
		{plain, "PreToolUse", "Bash", "git reset --hard", `"deny"`},
		{plain, "PreToolUse", "Bash", "rm a_test.go", `"additionalContext"`},
		{plain, "PreToolUse", "Bash", "rm -rf .", `"deny"`},
		{plain, "PreToolUse", "Read", "", ""},
		{plain, "PostToolUse", "Bash", "git reset --hard", ""},
		{set, "PreToolUse", "Bash", "rm a_test.go", `"deny"`},
		{set, "PreToolUse", "Bash", "git rm a.go", `"deny"`},
		{sub, "PreToolUse", "Bash", "rm ../a_test.go", `"deny"`},
		{sub, "PreToolUse", "Bash", "echo x > ../.perdure/config.yaml", `"deny"`},
		{off, "PreToolUse", "Bash", "git reset --hard", `"deny"`}, // it is not trusted
	} {
		input := bash(tt.command)
		if tt.tool == "Read" {
			input = map[string]any{"file_path": "/etc/passwd"}
		}
		out, err := call{stdin: event(t, tt.event, tt.dir, tt.tool, input)}.run(t.Context())
		if err != nil || (tt.want == "") != (out == "") || !strings.Contains(out, tt.want) {
			t.Errorf("%+v: %q, %v", tt, out, err)
		}
	}
	attended := call{stdin: event(t, "PreToolUse", set, "Bash", bash("rm a_test.go")), env: map[string]string{
		"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}}
	if out, err := attended.run(t.Context()); err != nil || !strings.Contains(out, `"ask"`) {
		t.Errorf("with a person at the agent: %q, %v", out, err)
	}
	trusted := call{env: map[string]string{"PERDURE_TRUST": "1"}, stdin: event(t, "PreToolUse", off, "Bash",
		bash("git reset --hard"))}
	if out, err := trusted.run(t.Context()); err != nil || out != "" {
		t.Errorf("where the user switched it off: %q, %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(plain, ".perdure")); err == nil {
		t.Error("a folder was made")
	}
}

// TestFailsClosed: any error before a call denies it.
func TestFailsClosed(t *testing.T) {
	t.Parallel()
	dir, bad := t.TempDir(), project(t, "loop: [")
	ended, stop := context.WithCancel(t.Context())
	stop()
	pipe, _ := io.Pipe()
	for name, tt := range map[string]struct {
		ctx context.Context
		call
	}{
		"nothing":          {call: call{stdin: strings.NewReader("")}},
		"no JSON":          {call: call{stdin: strings.NewReader("rm -rf /")}},
		"too much":         {call: call{stdin: io.LimitReader(endless{}, vendorhook.MaxBytes+10)}},
		"a broken project": {call: call{stdin: event(t, "PreToolUse", bad, "Bash", bash("ls"))}},
		"no such agent":    {call: call{stdin: event(t, "PreToolUse", dir, "Bash", bash("ls")), args: []string{"other"}}},
		"a crash":          {call: call{stdin: crashing{}}},
		"no loop by flag": {call: call{stdin: event(t, "PreToolUse", dir, "Bash", bash("ls")),
			args: []string{"codex", "--socket", filepath.Join(dir, "gone")}}},
		"no loop by variable": {call: call{stdin: event(t, "PreToolUse", dir, "Read", map[string]any{"file_path": "x"}),
			env: map[string]string{"PERDURE_HOOK_SOCKET": filepath.Join(dir, "gone")}}},
		"it was stopped": {ctx: ended, call: call{stdin: pipe}},
		"nobody reads": {call: call{stdin: event(t, "PreToolUse", dir, "Bash", bash("git reset --hard")),
			out: closed{}}},
	} {
		ctx := tt.ctx
		if ctx == nil {
			ctx = t.Context()
		}
		if out, err := tt.run(ctx); !refuses(err) || out != "" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
	_, err := call{stdin: event(t, "PostToolUse", dir, "Bash", bash("ls")),
		args: []string{"codex", "--socket", filepath.Join(dir, "gone")}}.run(t.Context())
	if err == nil || refuses(err) {
		t.Errorf("after the call there is nothing to refuse: %v", err)
	}
	_, err = call{stdin: event(t, "PostToolUse", dir, "Bash", map[string]any{})}.run(t.Context())
	if err == nil || refuses(err) {
		t.Errorf("a call that was made and is not understood: %v", err)
	}
	_, err = call{stdin: strings.NewReader("{")}.run(t.Context())
	if hint := perdure.HintOf(err); !strings.Contains(hint, "one JSON object") {
		t.Errorf("the hint does not say what is wanted: %q", hint)
	}
}

// TestRemovedFolder: a call from a folder that was removed is judged in the project, so that the
// agent can leave the folder, and destroys nothing.
func TestRemovedFolder(t *testing.T) {
	t.Parallel()
	set, other := project(t, "loop: {risks: {git_remove: block}}"), t.TempDir()
	gone := filepath.Join(set, ".claude", "worktrees", "gone")
	for _, tt := range []struct{ dir, project, command, want string }{
		{gone, "", "cd / && ls", ""},
		{gone, "", "git rm a.go", `"deny"`}, // by the settings of the project
		{gone, "", "rm -rf .", `"deny"`},
		{filepath.Join(other, "gone"), "", "ls", ""},
		{filepath.Join(other, "gone"), "", "git reset --hard", `"deny"`},
		{filepath.Join(other, "gone"), set, "git rm a.go", `"deny"`},
		{filepath.Join(other, "gone"), filepath.Join(other, "gone"), "ls", ""},
	} {
		out, err := call{stdin: event(t, "PreToolUse", tt.dir, "Bash", bash(tt.command)),
			env: map[string]string{"CLAUDE_PROJECT_DIR": tt.project}}.run(t.Context())
		if err != nil || (tt.want == "") != (out == "") || !strings.Contains(out, tt.want) {
			t.Errorf("%+v: %q, %v", tt, out, err)
		}
	}
}

type crashing struct{}

func (crashing) Read([]byte) (int, error) { panic("crash") }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

// TestInALoop: the loop decides, before and after a call.
func TestInALoop(t *testing.T) {
	t.Parallel()
	l, err := vendorhook.Listen(t.Context(), []string{t.TempDir()},
		func(_ context.Context, q *vendorhook.Question) vendorhook.Answer {
			if q.Event == vendorhook.PreToolUse {
				return vendorhook.Answer{Verdict: vendorhook.Deny, Text: "no " + q.Call.Command}
			}
			return vendorhook.Answer{Verdict: vendorhook.Pass, Text: "a test is gone"}
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for name, want := range map[string]string{"PreToolUse": `"permissionDecisionReason":"no ls"`,
		"PostToolUse": `"additionalContext":"a test is gone"`} {
		out, err := call{stdin: event(t, name, t.TempDir(), "Bash", bash("ls")),
			args: []string{"--socket", l.Socket(), "claude-code"}}.run(t.Context())
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

// TestGateIsDenied: where an agent cannot ask, a gate denies the call and names the command
// that allows it; an allowed call is made once, and only this call.
func TestGateIsDenied(t *testing.T) {
	t.Parallel()
	dir, state := project(t, "loop: {risks: {delete_test: gate}}"), map[string]string{"XDG_STATE_HOME": t.TempDir()}
	run := func(agent, dir, command, description string) string {
		t.Helper()
		name := map[string]string{"gemini": "BeforeTool"}[agent]
		out, err := call{stdin: event(t, cmp.Or(name, "PreToolUse"), dir, "Bash", map[string]any{"command": command,
			"description": description}), args: []string{agent}, env: state}.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	folder, err := approval.Open(func(name string) string { return state[name] })
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{"claude-code", "codex", "gemini", "opencode"} {
		const command = "rm a_test.go"
		denied := run(agent, dir, command, "first")
		id := regexp.MustCompile("`perdure hook allow ([0-9a-f]{12})`").FindStringSubmatch(denied)
		if id == nil || !strings.Contains(denied, `"deny"`) {
			t.Fatalf("%s: %s", agent, denied)
		}
		if again := run(agent, dir, command, "in other words"); again != denied {
			t.Errorf("%s: %s, then %s", agent, denied, again)
		}
		waits, err := folder.Find(id[1])
		if err == nil {
			_, err = folder.Allow(waits, caller.Caller{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if out := run(agent, dir, "rm b_test.go", ""); !strings.Contains(out, `"deny"`) || strings.Contains(out, id[1]) {
			t.Errorf("%s: another call: %s", agent, out)
		}
		if out := run(agent, dir, command, "now"); strings.Contains(out, `"deny"`) {
			t.Errorf("%s: allowed: %s", agent, out)
		}
		if out := run(agent, dir, command, "twice"); !strings.Contains(out, `"deny"`) {
			t.Errorf("%s: a second time: %s", agent, out)
		}
	}
}

// TestAllowNeedsAPerson: without a terminal no call is allowed, and an unknown ID is said to
// be unknown.
func TestAllowNeedsAPerson(t *testing.T) {
	t.Parallel()
	dir, state := project(t, "loop: {risks: {delete_test: gate}}"), map[string]string{"XDG_STATE_HOME": t.TempDir()}
	denied, err := call{stdin: event(t, "PreToolUse", dir, "Bash", bash("rm a_test.go")), args: []string{"codex"},
		env: state}.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := regexp.MustCompile("hook allow ([0-9a-f]{12})").FindStringSubmatch(denied)[1]
	if _, err := (call{args: []string{"allow", "--yes", id}, env: state}).run(t.Context()); perdure.CodeOf(err) !=
		perdure.CodeConflict {
		t.Errorf("without a terminal: %v", err)
	}
	for _, unknown := range []string{"000000000000", "../../etc/x", ""} {
		if _, err := (call{args: []string{"allow", unknown}, env: state}).run(t.Context()); perdure.CodeOf(err) !=
			perdure.CodeNotFound {
			t.Errorf("%q: %v", unknown, err)
		}
	}
	out, err := call{args: []string{"allow"}, env: state}.run(t.Context())
	if err != nil || !strings.Contains(out, id) || !strings.Contains(out, "rm a_test.go") {
		t.Errorf("%s, %v", out, err)
	}
}

// TestLateWarning: an agent that takes no warning before a call gets it after the call.
func TestLateWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, want := range map[string]string{"BeforeTool": "", "AfterTool": "You are about to delete a test"} {
		out, err := call{stdin: event(t, name, dir, "run_shell_command", bash("rm a_test.go")), args: []string{"gemini"}}.
			run(t.Context())
		if err != nil || (want == "") != (out == "") || !strings.Contains(out, want) {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

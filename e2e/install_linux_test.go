package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hookHome is a home with a project in which deleting files needs a person.
type hookHome struct {
	t                  *testing.T
	home, dir, program string
}

func newHookHome(t *testing.T) *hookHome {
	t.Helper()
	program, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	h := &hookHome{t: t, home: t.TempDir(), program: program}
	h.dir = filepath.Join(h.home, "project")
	writeText(t, filepath.Join(h.dir, ".perdure", "config.yaml"), "loop: {risks: {delete_files: gate}}\n")
	return h
}

func (h *hookHome) command(words ...string) *exec.Cmd {
	cmd := exec.CommandContext(h.t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = h.dir, []string{"HOME=" + h.home, "PATH=/usr/bin:/bin", "TERM=dumb"}
	return cmd
}

// perdure runs the program and returns its standard output, which is JSON, and its status.
func (h *hookHome) perdure(args ...string) (out string, status int) {
	h.t.Helper()
	cmd := h.command(append([]string{h.program}, args...)...)
	var b, fault bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &fault
	err := cmd.Run()
	if cmd.ProcessState == nil {
		h.t.Fatal(err)
	}
	h.t.Logf("%q: %v %s", args, err, fault.String())
	return b.String(), cmd.ProcessState.ExitCode()
}

// asks sends a call to the hook, started by another program.
func (h *hookHome) asks(starter []string, command string) string {
	h.t.Helper()
	event, err := json.Marshal(map[string]any{"hook_event_name": "PreToolUse", "cwd": h.dir, "tool_name": "Bash",
		"tool_input": map[string]string{"command": command}})
	if err != nil {
		h.t.Fatal(err)
	}
	cmd := h.command(append(starter, h.program, "hook", "codex")...)
	cmd.Stdin = bytes.NewReader(event)
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatal(err)
	}
	return string(out)
}

func idIn(t *testing.T, denied string) string {
	t.Helper()
	return captured(t, "`perdure hook allow ([0-9a-f]{12})`", denied)
}

// TestHookAllow: a person at a terminal allows a denied call once; a program without a
// terminal, one that answers no, and one that the agent has started cannot.
func TestHookAllow(t *testing.T) {
	t.Parallel()
	h := newHookHome(t)
	agent := []string{"timeout", "60"} // it starts the hook, and not the terminal
	id := idIn(t, h.asks(agent, "rm old.txt"))
	if _, status := h.perdure("hook", "allow", "--yes", id); status != 5 {
		t.Errorf("without a terminal the status is %d", status)
	}
	no := onTerminal(t, h.command(h.program, "hook", "allow", id))
	if shown := no.until("[y/N]"); !strings.Contains(shown, "rm old.txt") {
		t.Errorf("the terminal shows %s", shown)
	}
	no.types("n")
	if shown, status := no.ends(); status != 5 || !strings.Contains(h.asks(agent, "rm old.txt"), `"deny"`) {
		t.Errorf("no: status %d, %s", status, shown)
	}
	yes := onTerminal(t, h.command(h.program, "hook", "allow", id))
	yes.until("[y/N]")
	yes.types("y")
	if shown, status := yes.ends(); status != 0 {
		t.Errorf("yes: status %d, %s", status, shown)
	}
	if out := h.asks(agent, "rm other.txt"); !strings.Contains(out, `"deny"`) {
		t.Errorf("another call: %s", out)
	}
	if out := h.asks(agent, "rm old.txt"); strings.Contains(out, `"deny"`) {
		t.Errorf("the allowed call: %s", out)
	}
	if out := h.asks(agent, "rm old.txt"); !strings.Contains(out, `"deny"`) {
		t.Errorf("the call again: %s", out)
	}
	// Here the test is the agent, and has started both.
	own := idIn(t, h.asks(nil, "rm own.txt"))
	for _, words := range [][]string{{h.program, "hook", "allow", "--yes", own},
		{"sh", "-c", "'" + h.program + "' hook allow --yes " + own + "; exit $?"}} {
		if shown, status := onTerminal(t, h.command(words...)).ends(); status != 5 || !strings.Contains(shown, "agent") {
			t.Errorf("%q: status %d, %s", words, status, shown)
		}
	}
	if out := h.asks(nil, "rm own.txt"); !strings.Contains(out, `"deny"`) {
		t.Errorf("the agent allowed its own call: %s", out)
	}
}

// TestInstall: for each agent, an installation in an empty home ends with a hook that denies
// a call, a second one changes nothing, and its removal leaves nothing.
func TestInstall(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{"--user", "--project"} {
		for _, agent := range []string{"claude-code", "codex", "gemini", "opencode"} {
			h := newHookHome(t)
			var r struct {
				Scope, SelfTest string
				Trusted         *bool
				Notes           []string
				Files           []struct{ Path, Change string }
			}
			run := func(args ...string) {
				t.Helper()
				out, status := h.perdure(append(args, agent, scope, "--json")...)
				if err := json.Unmarshal([]byte(strings.ReplaceAll(out, "self_test", "selftest")), &r); err != nil || status != 0 {
					t.Fatalf("%q: %s, %d, %v", args, out, status, err)
				}
			}
			run("install", "--dry-run")
			if _, err := os.Stat(r.Files[0].Path); err == nil || r.Files[0].Change != "created" {
				t.Errorf("%s: a dry run writes: %+v", agent, r)
			}
			run("install")
			if _, err := os.Stat(r.Files[0].Path); err != nil || r.SelfTest != "passed" || "--"+r.Scope != scope ||
				(r.Trusted != nil) != (agent == "codex") || len(r.Notes) == 0 {
				t.Errorf("%s: %v, %+v", agent, err, r)
			}
			doctor, _ := h.perdure("doctor", "--json")
			want := map[string]string{"--user": "active for the user", "--project": "active in this project"}[scope]
			if agent == "codex" {
				want = "not trusted" // Codex is not installed
			}
			if !strings.Contains(doctor, want) {
				t.Errorf("%s: %s", agent, doctor)
			}
			run("install")
			for _, f := range r.Files {
				if f.Change != "unchanged" {
					t.Errorf("%s a second time: %+v", agent, r)
				}
			}
			run("uninstall")
			for _, f := range r.Files {
				if _, err := os.Stat(f.Path); err == nil || f.Change != "removed" {
					t.Errorf("%s: %+v", agent, f)
				}
			}
		}
	}
}

// TestInstallRefuses: settings that are not valid are left alone, with the line in the error;
// a program that a loop has started installs and removes nothing.
func TestInstallRefuses(t *testing.T) {
	t.Parallel()
	h := newHookHome(t)
	path := filepath.Join(h.home, ".claude", "settings.json")
	writeText(t, path, "{\n  \"a\": 1\n  \"b\": 2\n}\n")
	cmd := h.command(h.program, "install", "claude-code")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), path+": line 3") {
		t.Errorf("%s, %v", out, err)
	}
	if text := readText(t, path); text != "{\n  \"a\": 1\n  \"b\": 2\n}\n" {
		t.Errorf("the file is %q", text)
	}
	for _, args := range [][]string{{"install", "gemini"}, {"uninstall", "gemini"}, {"hook", "allow", "123456789012"}} {
		cmd := h.command(append([]string{h.program}, args...)...)
		cmd.Env = append(cmd.Env, "PERDURE_LOOP=loop-1", "PERDURE_TASK=task-1")
		if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 5 {
			t.Errorf("%q: %s, %v", args, out, err)
		}
	}
}

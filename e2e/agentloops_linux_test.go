package e2e

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/testing/modelserver"
)

// tapCheck is a completion command: each file in tests/ is a test, which passes if work.txt
// contains its text.
const tapCheck = `n=0; bad=0
for f in tests/*; do n=$((n+1)); t=$(basename "$f")
if grep -qxF "$(cat "$f")" work.txt; then echo "ok $n - $t"; else echo "not ok $n - $t"; bad=1; fi
done; echo "1..$n"; exit $bad
`

// agentLoop is what a model has its agent do in a loop, and what becomes of it.
type agentLoop struct {
	// turns are the words for the calls and messages of the model.
	turns  string
	flags  []string
	status int
	says   []string
	// requests is the number of requests that the model gets, 0: as many as there are turns.
	requests int
	work     string
}

func agentLoops() map[string]agentLoop {
	return map[string]agentLoop{
		"done": {turns: "discard fix done", work: "one\ntwo\n", says: []string{
			"iteration 1: risky tool call (critical), denied: git reset --hard", "iteration 1: check passes",
			"completed: the check passes after iteration 1"}},
		"cheat": {turns: "cheat done fix done", flags: []string{"--unattended"}, work: "one\ntwo\n", says: []string{
			"iteration 1: check passes, quality", "is void", "iteration 1: regression: 1 test removed: two",
			"iteration 1: diagnosis: reward_hacking (the check was weakened instead of passed)",
			"1 file restored, as from before iteration 1: tests/two", "completed: the check passes after iteration 2"}},
		"budget": {turns: "list list list list list list list done",
			flags: []string{"--unattended", "--budget-tokens", "3500"}, status: 1, requests: 4, work: "one\n", says: []string{
				"iteration 1: turn stopped: budget exhausted: 4,040 of 3,500 tokens", "iteration 1: check fails (1 test)",
				"failed: budget exhausted: 4,040 of 3,500 tokens, after 1 iteration"}},
	}
}

// reply returns what a model answers for a word.
func (a *realAgent) reply(dir, word string) modelserver.Reply {
	shell := func(line string) modelserver.Reply {
		return modelserver.Reply{Tool: a.tool, Input: map[string]any{a.member: line, "description": "run it"}}
	}
	switch word {
	case "discard":
		return shell("git reset --hard")
	case "cheat":
		return shell("rm tests/two")
	case "list":
		return shell("ls")
	case "done":
		return modelserver.Reply{Text: "The work is complete."}
	}
	if a.name == "codex" {
		return shell("echo two >> work.txt")
	}
	return modelserver.Reply{Tool: "Write", Input: map[string]any{"file_path": filepath.Join(dir, "work.txt"),
		"content": "one\ntwo\n"}}
}

// newAgentLoop installs the hooks in an empty home and returns a session with the agent's
// settings for the model.
func newAgentLoop(t *testing.T, a *realAgent) *session {
	t.Helper()
	folder := os.Getenv(realAgentsVar)
	if folder == "" {
		t.Skip(realAgentsVar + " names no folder with the clients; `make test/agents` installs them")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{realAgent: a, home: filepath.Join(root, "home"), dir: filepath.Join(root, "project"),
		model: &modelserver.Server{}}
	server := httptest.NewServer(s.model)
	t.Cleanup(server.Close)
	own := filepath.Join(root, "bin", "perdure")
	program, err := programFile()
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(own), 0o700), os.MkdirAll(s.home, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, own); err != nil {
		t.Fatal(err)
	}
	s.env = append([]string{"HOME=" + s.home, "LANG=C.UTF-8", "PATH=" + strings.Join([]string{filepath.Dir(own),
		filepath.Join(folder, "node_modules", "node", "bin"), filepath.Join(folder, "node_modules", ".bin"),
		os.Getenv("PATH")}, ":")}, a.env(s.home, server.URL)...)
	for name, text := range map[string]string{"check.sh": tapCheck, "tests/one": "one\n", "tests/two": "two\n",
		"work.txt": "one\n"} {
		writeText(t, filepath.Join(s.dir, name), text)
	}
	s.run(t, "git", "init", "-q")
	for _, name := range []string{"claude-code", "codex"} {
		t.Logf("%s", s.run(t, own, "install", name))
	}
	for name, text := range a.files(s.home, server.URL, s.dir) {
		name = filepath.Join(s.home, name)
		if installed, err := os.ReadFile(name); err == nil { // keys of the root come before tables
			text += string(installed)
		}
		writeText(t, name, text)
	}
	return s
}

// TestRealAgentsLoops: with hooks installed in an empty home, a loop with Claude Code and with
// Codex completes a task and denies the call that discards work, catches a removed test and
// restores it, and stops a turn with the model's answer that exceeds the budget.
func TestRealAgentsLoops(t *testing.T) {
	t.Parallel()
	for _, a := range realAgents()[:2] {
		for name, test := range agentLoops() {
			t.Run(a.name+"/"+name, func(t *testing.T) {
				s := newAgentLoop(t, &a)
				s.play(test.turns)
				said, status := s.loop(t, test.flags...)
				t.Logf("%s", said)
				if status != test.status {
					t.Errorf("exit status %d, want %d", status, test.status)
				}
				for _, want := range test.says {
					if !strings.Contains(said, want) {
						t.Errorf("%q is missing", want)
					}
				}
				if got := readText(t, filepath.Join(s.dir, "work.txt")); got != test.work {
					t.Errorf("the work is %q, want %q", got, test.work)
				}
				if got := readText(t, filepath.Join(s.dir, "tests", "two")); got != "two\n" {
					t.Errorf("the test is %q", got)
				}
				want := test.requests
				if want == 0 {
					want = len(strings.Fields(test.turns))
				}
				if got := len(s.model.Requests()); got != want {
					t.Errorf("the model got %d requests, want %d", got, want)
				}
			})
		}
	}
}

// play sets the answers of the model, each of which uses 1,010 tokens.
func (s *session) play(turns string) {
	var script []modelserver.Reply
	for _, word := range strings.Fields(turns) {
		r := s.reply(s.dir, word)
		r.In, r.Out = 1000, 10
		script = append(script, r)
	}
	s.model.Play(script)
}

// loop runs a loop and returns its output and exit status.
func (s *session) loop(t *testing.T, flags ...string) (said string, status int) {
	t.Helper()
	return s.loopWith(t, strings.TrimSuffix(s.name, "-code"), flags...)
}

// loopWith is loop with an agent.
func (s *session) loopWith(t *testing.T, agent string, flags ...string) (said string, status int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, s.find("perdure"), append([]string{"loop", "run", "Complete the work",
		"--until", "sh check.sh", "--agent", agent, "--env", "LOCAL_KEY"}, flags...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.env, time.Second
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), exit.ExitCode()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), 0
}

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
	"github.com/perdure/perdure/internal/testing/modelserver"
)

// recordVar, if set, records the exchanges for the test of internal/cli/hook.
const recordVar = "PERDURE_TEST_RECORD"

// realAgent is a real client with the hook of `perdure install`.
type realAgent struct {
	name, program string
	// tool is its tool for command lines, input its input.
	tool, member string
	// env are its variables; files are files in its home.
	env   func(home, url string) []string
	files func(home, url, dir string) map[string]string
	// headless and interactive are its command lines for a prompt; preset and acp those of the
	// Agent Client Protocol, of which it has none if preset is empty.
	headless, interactive []string
	preset                string
	acp                   []string
}

const prompt = "do it"

func realAgents() []realAgent {
	return []realAgent{
		{
			name: "claude-code", program: "claude", tool: "Bash", member: "command",
			env: func(home, url string) []string {
				return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=x", "ANTHROPIC_MODEL=scripted",
					"ANTHROPIC_SMALL_FAST_MODEL=scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1",
					"DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "IS_SANDBOX=1", "CLAUDE_CONFIG_DIR=" + home + "/.claude"}
			},
			files: func(_, _, dir string) map[string]string {
				return map[string]string{".claude/.claude.json": `{"hasCompletedOnboarding":true,"theme":"dark",` +
					`"customApiKeyResponses":{"approved":["x"],"rejected":[]},"projects":{"` + dir +
					`":{"hasTrustDialogAccepted":true}}}`}
			},
			headless:    []string{"-p", prompt, "--permission-mode", "bypassPermissions"},
			interactive: []string{"--allowedTools", "Bash", "--", prompt},
			preset:      "claude", acp: []string{"claude-agent-acp"},
		},
		{
			name: "codex", program: "codex", tool: "exec_command", member: "cmd",
			env: func(home, _ string) []string {
				return []string{"LOCAL_KEY=x", "CODEX_HOME=" + home + "/.codex", "CODEX_API_KEY=x", "NO_BROWSER=1",
					"INITIAL_AGENT_MODE=agent-full-access"}
			},
			files: func(_, url, dir string) map[string]string {
				return map[string]string{".codex/config.toml": "model = \"m\"\nmodel_provider = \"local\"\n" +
					"check_for_update_on_startup = false\n[model_providers.local]\nname = \"local\"\nbase_url = \"" + url + "/v1\"\n" +
					"env_key = \"LOCAL_KEY\"\nwire_api = \"responses\"\n[analytics]\nenabled = false\n[feedback]\nenabled = false\n" +
					"[projects.\"" + dir + "\"]\ntrust_level = \"trusted\"\n"}
			},
			headless:    []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", prompt},
			interactive: []string{"--dangerously-bypass-approvals-and-sandbox", prompt},
			preset:      "codex", acp: []string{"codex-acp"},
		},
		{
			name: "gemini", program: "gemini", tool: "run_shell_command", member: "command",
			env: func(home, url string) []string {
				return []string{"GEMINI_CLI_HOME=" + home, "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=x",
					"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true"}
			},
			files: func(string, string, string) map[string]string {
				return map[string]string{".gemini/settings.json": "{\n  // kept\n  \"general\": {\"enableAutoUpdate\": false},\n" +
					"  \"privacy\": {\"usageStatisticsEnabled\": false},\n  \"telemetry\": {\"enabled\": false},\n" +
					"  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}, \"folderTrust\": {\"enabled\": false}}\n}\n"}
			},
			headless:    []string{"-p", prompt, "-m", "gemini-2.5-pro", "--approval-mode", "yolo"},
			interactive: []string{"-i", prompt, "-m", "gemini-2.5-pro", "--approval-mode", "yolo"},
		},
		{
			name: "opencode", program: "opencode", tool: "bash", member: "command",
			env: func(home, url string) []string {
				return []string{"XDG_CONFIG_HOME=" + home + "/config", "XDG_DATA_HOME=" + home + "/data", "XDG_STATE_HOME=" +
					home + "/state", "XDG_CACHE_HOME=" + home + "/cache", "OPENCODE_DISABLE_AUTOUPDATE=1",
					"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "npm_config_registry=http://127.0.0.1:9",
					"npm_config_fetch_retries=0",
					`OPENCODE_CONFIG_CONTENT={"model":"local/m","small_model":"local/m","autoupdate":false,"share":"disabled",` +
						`"permission":"allow","provider":{"local":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"` + url +
						`/v1","apiKey":"x"},"models":{"m":{"limit":{"context":100000,"output":4000}}}}}}`}
			},
			files:       func(string, string, string) map[string]string { return nil },
			headless:    []string{"run", "--auto", prompt},
			interactive: []string{"--prompt", prompt},
			preset:      "opencode", acp: []string{"opencode", "acp"},
		},
	}
}

// verdictCall is a call with a verdict in the project of the test.
type verdictCall struct{ verdict, command string }

// verdictCalls are the calls in the order in which the model makes them.
func verdictCalls() []verdictCall {
	return []verdictCall{{"allow", "echo made > made.txt"}, {"warn", "rm a_test.go"}, {"block", "git reset --hard"},
		{"gate", "rm old.txt"}}
}

// exchange is what a client sent to the hook, the answer, and what the client then did.
type exchange struct {
	Verdict  string          `json:"verdict"`
	Command  string          `json:"command"`
	Sent     json.RawMessage `json:"sent"`
	Env      []string        `json:"env,omitempty"`
	Answered string          `json:"answered"`
	Status   int             `json:"status"`
	// Made reports whether the client made the call, Heard the part of the answer that its model
	// received; Asked is set if it asked its user.
	Made  bool   `json:"made"`
	Asked bool   `json:"asked,omitempty"`
	Heard string `json:"heard,omitempty"`
}

// exchangeFile is a file of exchanges.
type exchangeFile struct {
	Client    string     `json:"client"`
	Mode      string     `json:"mode"`
	Exchanges []exchange `json:"exchanges"`
}

// session is a real client in a home and a project of its own.
type session struct {
	*realAgent
	home, dir, log string
	env            []string
	model          *modelserver.Server
	done           chan struct{}
}

func newSession(t *testing.T, a *realAgent) *session {
	t.Helper()
	folder := os.Getenv(realAgentsVar)
	if folder == "" {
		t.Skip(realAgentsVar + " names no folder with the clients; `make test/agents` installs them")
	}
	model := &modelserver.Server{}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{realAgent: a, home: filepath.Join(root, "home"), dir: filepath.Join(root, "project"),
		log: filepath.Join(root, "log"), model: model, done: make(chan struct{})}
	bin := filepath.Join(root, "bin")
	for name, text := range a.files(s.home, server.URL, s.dir) {
		writeText(t, filepath.Join(s.home, name), text)
	}
	writeText(t, filepath.Join(s.dir, ".perdure", "config.yaml"), "loop: {risks: {delete_files: gate}}\n")
	for _, name := range []string{"a_test.go", "old.txt", "work.txt"} {
		writeText(t, filepath.Join(s.dir, name), name+"\n")
	}
	writeText(t, filepath.Join(s.log, "empty"), "")
	program, err := programFile()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(bin, "perdure")
	if err := os.Link(program, own); err != nil {
		t.Fatal(err)
	}
	s.env = append([]string{"HOME=" + s.home, "TERM=xterm-256color", "LANG=C.UTF-8", "PATH=" + strings.Join([]string{bin,
		filepath.Join(folder, "node_modules", "node", "bin"), filepath.Join(folder, "node_modules", ".bin"),
		os.Getenv("PATH")}, ":")}, a.env(s.home, server.URL)...)
	s.run(t, "git", "init", "-q")
	s.run(t, "git", "add", "-A")
	s.run(t, "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "begin")
	writeText(t, filepath.Join(s.dir, "work.txt"), "work that is not committed\n")
	t.Logf("%s", s.run(t, own, "install", a.name))
	// The hook is run through a program that records it, at the same path.
	if err := os.Rename(own, own+".real"); err != nil {
		t.Fatal(err)
	}
	writeText(t, own, "#!/bin/sh\nn='"+s.log+"'/$$\ncat > $n.in\nenv | grep -E '^(CLAUDE_CODE_ENTRYPOINT|"+
		"CLAUDE_CODE_SESSION_ATTENDED)=' > $n.env\n"+
		"'"+own+".real' \"$@\" < $n.in > $n.out 2> $n.err\ns=$?\necho $s > $n.exit\n"+
		"cat $n.out\ncat $n.err >&2\nexit $s\n")
	if err := os.Chmod(own, 0o700); err != nil {
		t.Fatal(err)
	}
	var script []modelserver.Reply
	for _, c := range verdictCalls() {
		script = append(script, modelserver.Reply{Tool: a.tool, In: 100 + len(script), Out: 10,
			Input: map[string]any{a.member: c.command, "description": "run it"}})
	}
	s.model.Play(append(script, modelserver.Reply{Text: "Done.", In: 200, Out: 5}))
	return s
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a program in the project and returns its output.
func (s *session) run(t *testing.T, words ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	cmd := exec.CommandContext(ctx, s.find(words[0]), words[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.env, time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// find returns a program in the search path of the session.
func (s *session) find(name string) string {
	for _, v := range s.env {
		dirs, ok := strings.CutPrefix(v, "PATH=")
		for _, dir := range strings.Split(dirs, ":") {
			if at := filepath.Join(dir, name); ok && !filepath.IsAbs(name) {
				if _, err := exec.LookPath(at); err == nil {
					return at
				}
			}
		}
	}
	return name
}

// modes run a client.
func modes() map[string]func(t *testing.T, s *session) (asked bool) {
	return map[string]func(t *testing.T, s *session) bool{
		"headless": func(t *testing.T, s *session) bool {
			t.Helper()
			t.Logf("%s", s.run(t, append([]string{s.program}, s.headless...)...))
			return false
		},
		"acp": func(t *testing.T, s *session) bool {
			t.Helper()
			if s.preset == "" {
				t.Skip("Gemini CLI runs no hooks over the Agent Client Protocol: see TestRealDenial of agent/acp")
			}
			a, err := acp.New(acp.Config{Preset: s.preset, Command: append([]string{s.find(s.acp[0])}, s.acp[1:]...),
				Env: s.env, Grace: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			_, err = a.Run(t.Context(), &agent.Turn{Prompt: prompt, Dir: s.dir, IdleTimeout: 4 * time.Minute, Env: s.env,
				Observe: func(e agent.Event) { t.Logf("%s %s", e.Kind, e.Text) },
				Decide:  func(context.Context, agent.ToolCall) agent.Decision { return agent.Decision{Allow: true} }})
			if err != nil {
				t.Fatal(err)
			}
			return false
		},
		"interactive": func(t *testing.T, s *session) bool { t.Helper(); return s.attended(t) },
	}
}

// attended runs a client on a terminal until its model has heard of all calls, or the client
// asks its user.
func (s *session) attended(t *testing.T) (asked bool) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is not installed")
	}
	var once sync.Once
	s.model.Ended(len(verdictCalls())+1, func() { once.Do(func() { close(s.done) }) })
	pipe := filepath.Join(s.log, "terminal")
	socket := filepath.Join(s.log, "tmux")
	s.run(t, "mkfifo", pipe)
	t.Cleanup(func() {
		cmd := exec.Command("tmux", "-S", socket, "kill-server")
		cmd.Env = s.env
		_ = cmd.Run() // it can have ended
	})
	line := "exec '" + s.find(s.program) + "'"
	for _, w := range s.interactive {
		line += " '" + w + "'"
	}
	s.run(t, "tmux", "-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", "150", "-y", "50", "sh", "-c", line)
	s.run(t, "tmux", "-S", socket, "pipe-pane", "cat > '"+pipe+"'")
	seen, sees := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sees)
		f, err := os.Open(pipe)
		if err != nil {
			return
		}
		defer f.Close()
		in, text := bufio.NewReader(f), ""
		for err == nil {
			var r rune
			if r, _, err = in.ReadRune(); r > ' ' { // clients position words instead of printing blanks
				text += string(r)
			}
			if strings.HasSuffix(text, "confirmation") {
				close(seen)
				return
			}
		}
	}()
	select {
	case <-s.done:
	case <-seen:
		asked = true
		t.Logf("%s", s.run(t, "tmux", "-S", socket, "capture-pane", "-p"))
	case <-time.After(4 * time.Minute):
		t.Fatalf("the client does nothing:\n%s", s.run(t, "tmux", "-S", socket, "capture-pane", "-p"))
	}
	return asked
}

// exchanges returns what the hook heard before calls, and what became of the calls.
func (s *session) exchanges(t *testing.T, asked bool) []exchange {
	t.Helper()
	heard := strings.Join(s.model.Requests(), "\n")
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(s.dir, name)); return err == nil }
	work, err := os.ReadFile(filepath.Join(s.dir, "work.txt"))
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{"allow": exists("made.txt"), "warn": !exists("a_test.go"),
		"block": string(work) != "work that is not committed\n", "gate": !exists("old.txt")}
	parts := map[string]string{"warn": "You are about to delete a test", "block": "This discards uncommitted work",
		"gate": "perdure hook allow"}
	inputs, err := filepath.Glob(filepath.Join(s.log, "*.in"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(inputs)
	var all []exchange
	for _, c := range verdictCalls() {
		e := exchange{Verdict: c.verdict, Command: c.command, Made: made[c.verdict], Status: -1}
		e.Asked = asked && c.verdict == "gate"
		for _, in := range inputs {
			text, err := os.ReadFile(in)
			if err != nil || !strings.Contains(string(text), c.command) || !strings.Contains(string(text), `"PreToolUse"`) &&
				!strings.Contains(string(text), `"BeforeTool"`) {
				continue
			}
			base := strings.TrimSuffix(in, ".in")
			e.Sent = json.RawMessage(s.portable(string(text)))
			e.Answered = s.portable(readText(t, base+".out"))
			e.Env = strings.Fields(readText(t, base+".env"))
			if _, err := fmt.Sscan(readText(t, base+".exit"), &e.Status); err != nil {
				t.Fatal(err)
			}
		}
		if part := parts[c.verdict]; part != "" && strings.Contains(heard, part) {
			e.Heard = part
		}
		all = append(all, e)
	}
	return all
}

// version returns the version of the client, or that of its adapter.
func (s *session) version(t *testing.T, mode string) string {
	t.Helper()
	if mode != "acp" || s.acp[0] == s.program {
		return strings.TrimSpace(s.run(t, s.program, "--version"))
	}
	at, err := filepath.EvalSymlinks(s.find(s.acp[0]))
	if err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(at); dir != "/"; dir = filepath.Dir(dir) {
		var p struct{ Name, Version string }
		if text, err := os.ReadFile(filepath.Join(dir, "package.json")); err == nil && json.Unmarshal(text, &p) == nil {
			return p.Name + " " + p.Version
		}
	}
	return s.acp[0]
}

// portable replaces the folders of a session.
func (s *session) portable(text string) string {
	return strings.NewReplacer(s.dir, "/DIR", s.home, "/HOME").Replace(text)
}

func readText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestRealAgentsMatrix: for each client with the installed hook, in each of its modes: a call
// that is allowed or warned about is made, one that is blocked or gated is not, and the model
// receives the warning, the reason, and the command that allows the call.
func TestRealAgentsMatrix(t *testing.T) {
	t.Parallel()
	agents := realAgents()
	for i := range agents {
		for mode, runs := range modes() {
			t.Run(agents[i].name+"/"+mode, func(t *testing.T) {
				s := newSession(t, &agents[i])
				asked := runs(t, s)
				got := s.exchanges(t, asked)
				for _, e := range got {
					made := e.Verdict == "allow" || e.Verdict == "warn"
					if e.Made != made || e.Status != 0 || (e.Heard == "") != (e.Verdict == "allow" || e.Asked) {
						t.Errorf("%+v\nsent %s", e, e.Sent)
					}
				}
				if folder := os.Getenv(recordVar); folder != "" && !t.Failed() {
					doc, err := json.MarshalIndent(exchangeFile{Client: s.version(t, mode), Mode: mode, Exchanges: got}, "", "  ")
					if err != nil {
						t.Fatal(err)
					}
					writeText(t, filepath.Join(folder, s.name+"-"+mode+".json"), string(doc)+"\n")
				}
			})
		}
	}
}

//go:build unix

package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// client is a real agent that is installed.
type client struct {
	preset  string
	program string
	// env points it at a model server and away from everything else.
	env func(home, url string) []string
	// write is its tool for writing files.
	write func(path string) step
	shell func(command string) step
	model string
	// forgets: it does not find sessions of the same minute again.
	forgets bool
	// silent: it does not tell that a tool call begins after it asked.
	silent bool
}

func clients() []client {
	return []client{
		{
			preset: "opencode", program: "opencode",
			env: func(home, url string) []string {
				cfg := obj{
					"model": "local/scripted", "small_model": "local/scripted", "autoupdate": false, "share": "disabled",
					"provider": obj{"local": obj{
						"npm": "@ai-sdk/openai-compatible", "options": obj{"baseURL": url + "/v1", "apiKey": "none"},
						"models": obj{"scripted": obj{"limit": obj{"context": 8000, "output": 1000},
							"cost": obj{"input": 1, "output": 2}}},
					}},
				}
				raw, _ := json.Marshal(cfg)
				return []string{
					"OPENCODE_CONFIG_CONTENT=" + string(raw), "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
					"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
				}
			},
			write: func(path string) step {
				return step{tool: "write", args: obj{"filePath": path, "content": "hello\n"}}
			},
			shell: func(command string) step {
				return step{tool: "bash", args: obj{"command": command, "description": "run it"}}
			},
		},
		{
			// "auto" would ask a model which
			preset: "gemini", program: "gemini", forgets: true, silent: true, model: "gemini-2.5-pro",
			env: func(home, url string) []string {
				settings := `{"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},` +
					`"telemetry":{"enabled":false},` +
					`"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}`
				_ = os.MkdirAll(filepath.Join(home, ".gemini"), 0o755)
				_ = os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte(settings), 0o600)
				return []string{
					"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=none", "GEMINI_CLI_HOME=" + home,
					"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_NO_RELAUNCH=true",
				}
			},
			write: func(path string) step {
				return step{tool: "write_file", args: obj{"file_path": path, "content": "hello\n"}}
			},
			shell: func(command string) step {
				return step{tool: "run_shell_command", args: obj{"command": command, "description": "run it"}}
			},
		},
		{
			preset: "codex", program: "codex-acp",
			env: func(home, url string) []string {
				cfg := "model = \"scripted\"\nmodel_provider = \"local\"\ncheck_for_update_on_startup = false\n" +
					"model_context_window = 8000\n" +
					"[model_providers.local]\nname = \"local\"\nbase_url = \"" + url + "/v1\"\nenv_key = \"LOCAL_KEY\"\n" +
					"wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n" +
					"[analytics]\nenabled = false\n[feedback]\nenabled = false\n[otel]\nexporter = \"none\"\n"
				_ = os.MkdirAll(filepath.Join(home, ".codex"), 0o755)
				_ = os.WriteFile(filepath.Join(home, ".codex", "config.toml"), []byte(cfg), 0o600)
				return []string{"CODEX_HOME=" + filepath.Join(home, ".codex"), "LOCAL_KEY=none", "CODEX_API_KEY=none",
					"NO_BROWSER=1", "INITIAL_AGENT_MODE=agent-full-access"}
			},
			write: func(path string) step {
				return step{tool: "exec_command", args: obj{"cmd": "echo hello > " + path}}
			},
			shell: func(command string) step {
				return step{tool: "exec_command", args: obj{"cmd": command}}
			},
		},
	}
}

// installed makes an agent of an installed client.
func installed(t *testing.T, c client, url string, changes ...func(*acp.Config)) (*acp.Agent, *agent.Turn) {
	t.Helper()
	folder := os.Getenv("PERDURE_TEST_AGENTS")
	if folder == "" {
		t.Skip("PERDURE_TEST_AGENTS names no folder with agents")
	}
	bin := filepath.Join(folder, "node_modules", ".bin")
	program := filepath.Join(bin, c.program)
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	preset, _ := presetOf(c.preset)
	cfg := acp.Config{
		Preset: c.preset, Ask: true, Command: append([]string{program}, preset.Command[1:]...), Model: c.model,
		Env: c.env(t.TempDir(), url), Grace: 10 * time.Second,
	}
	for _, change := range changes {
		change(&cfg)
	}
	if record := os.Getenv("PERDURE_TEST_RECORD"); record != "" {
		raw, _ := json.Marshal(cfg.Command)
		cfg.Env = append(cfg.Env, "TEE_COMMAND="+string(raw),
			"TEE_FILE="+filepath.Join(record, strings.ReplaceAll(t.Name(), "/", "_")+".jsonl"))
		cfg.Command = []string{os.Args[0], agentArg, "tee"}
	}
	a, err := acp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	dir := t.TempDir()
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return a, &agent.Turn{
		Prompt: "write a.txt", Dir: dir, IdleTimeout: time.Minute,
		Env: []string{
			"HOME=" + home, "XDG_CONFIG_HOME=" + home + "/config", "XDG_DATA_HOME=" + home + "/data",
			"XDG_CACHE_HOME=" + home + "/cache", "XDG_STATE_HOME=" + home + "/state",
			"PATH=" + filepath.Join(folder, "node_modules", "node", "bin") + ":" + os.Getenv("PATH"),
		},
	}
}

func presetOf(name string) (acp.Preset, bool) {
	for _, p := range acp.Presets() {
		if p.Name == name {
			return p, true
		}
	}
	return acp.Preset{}, false
}

// TestRealTurn writes a file, runs a command that fails, and goes on in a
// second turn.
func TestRealTurn(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			m := newModelServer(t)
			a, tr := installed(t, c, m.URL)
			path := filepath.Join(tr.Dir, "a.txt")
			m.script(c.write(path), c.shell("echo out; exit 3"), step{text: "Written."})
			var results []agent.Event
			tr.Observe = func(e agent.Event) {
				t.Logf("%s %s %s", e.Kind, e.Text, e.Raw)
				if e.Kind == agent.EventToolResult {
					results = append(results, e)
				}
			}
			tr.Decide = func(_ context.Context, call agent.ToolCall) agent.Decision {
				t.Logf("asked: %s", show(call))
				return agent.Decision{Allow: true}
			}
			got, err := a.Run(t.Context(), tr)
			t.Logf("%s, %v", show(got), err)
			if err != nil {
				t.Fatal(detail(err))
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "hello\n" {
				t.Errorf("file: %q, %v", text, err)
			}
			if got.Text != "Written." || got.StopReason != "end_turn" || !got.Usage.Reported {
				t.Errorf("result %s", show(got))
			}
			if len(results) != 2 || results[1].Call.Command != "echo out; exit 3" || results[1].Call.Kind != agent.ToolExecute {
				t.Errorf("results of tools: %s", show(results))
			}
			tr.Session, tr.Prompt = got.Session, "and now?"
			m.script(step{text: "Now rest."})
			got, err = a.Run(t.Context(), tr)
			t.Logf("%s, %v", show(got), err)
			if c.forgets && err != nil {
				wantKind(t, err, agent.KindSession)
				return
			}
			if err != nil {
				t.Fatal(detail(err))
			}
			if got.Text != "Now rest." || got.Messages != 1 || got.Session != tr.Session {
				t.Errorf("result %s", show(got))
			}
		})
	}
}

// TestRealDenial denies a call: what it would have done is not done.
func TestRealDenial(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			m := newModelServer(t)
			a, tr := installed(t, c, m.URL)
			if a.Sight() != agent.SightNative {
				t.Skip("is only observed")
			}
			tr.Observe = func(e agent.Event) { t.Logf("%s %s %s", e.Kind, e.Text, e.Raw) }
			for _, s := range []step{c.write(filepath.Join(tr.Dir, "a.txt")), c.shell("echo x > b.txt")} {
				m.script(s, step{text: "Then not."})
				asked := 0
				tr.Decide = func(_ context.Context, call agent.ToolCall) agent.Decision {
					asked++
					return agent.Decision{}
				}
				got, err := a.Run(t.Context(), tr)
				t.Logf("%s, %v", show(got), err)
				if err != nil || asked == 0 {
					t.Errorf("asked %d times: %s", asked, detail(err))
				}
			}
			for _, name := range []string{"a.txt", "b.txt"} {
				if _, err := os.Stat(filepath.Join(tr.Dir, name)); err == nil {
					t.Errorf("%s was written", name)
				}
			}
		})
	}
}

// TestRealCancel cancels a turn while the agent waits for a permission or its
// model.
func TestRealCancel(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			m := newModelServer(t)
			a, tr := installed(t, c, m.URL)
			m.script(c.shell("echo begun > b.txt; sleep 1000"), step{text: "Too late."})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tr.Observe = func(e agent.Event) {
				t.Logf("%s %s %s", e.Kind, e.Text, e.Raw)
				if e.Kind == agent.EventToolCall && e.Call.Status == agent.ToolRunning {
					cancel()
				}
			}
			tr.Decide = func(context.Context, agent.ToolCall) agent.Decision {
				if c.silent {
					cancel() // it does not tell when a command begins
				}
				return agent.Decision{Allow: true}
			}
			got, err := a.Run(ctx, tr)
			t.Logf("%s, %v", show(got), err)
			wantKind(t, err, agent.KindCanceled)
		})
	}
}

// TestRealFaults has the model fail: what is said of it in which words decides
// what is done about it.
func TestRealFaults(t *testing.T) {
	t.Parallel()
	faults := []struct {
		name string
		step step
		want agent.Kind
	}{
		{"rate limit", step{status: 429,
			text: `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","type":"rate_limit_error","message":"Rate limit ` +
				`reached. Please try again in 20s."}}`}, agent.KindRateLimit},
		{"quota", step{status: 429,
			text: `{"error":{"code":"insufficient_quota","status":"RESOURCE_EXHAUSTED","type":"insufficient_quota","message":"You exceeded ` +
				`your current quota, please check your plan and billing details."}}`}, agent.KindQuota},
		{"key", step{status: 401, text: `{"error":{"code":401,"status":"UNAUTHENTICATED","type":"authentication_error",` +
			`"message":"Incorrect API key provided"}}`}, agent.KindAuth},
		{"overflow", step{status: 400,
			text: `{"error":{"code":"context_length_exceeded","type":"invalid_request_error","message":"This model's maximum ` +
				`context length is 8000 tokens, however you requested 9000 tokens"}}`}, agent.KindOverflow},
		{"down", step{status: 503, text: `{"error":{"code":503,"status":"UNAVAILABLE","type":"server_error",` +
			`"message":"The model is overloaded. Please try again later."}}`}, agent.KindUnavailable},
	}
	for _, c := range clients() {
		for _, fault := range faults {
			t.Run(c.preset+" "+fault.name, func(t *testing.T) {
				t.Parallel()
				m := newModelServer(t)
				a, tr := installed(t, c, m.URL)
				m.forever(fault.step)
				tr.Observe = func(e agent.Event) {
					if e.Kind != agent.EventStderr {
						t.Logf("%s %s %.600s", e.Kind, e.Text, e.Raw)
					}
				}
				tr.IdleTimeout = 20 * time.Second // some try again without end
				ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
				defer cancel()
				got, err := a.Run(ctx, tr)
				t.Logf("%s, %s", show(got), detail(err))
				var e *agent.Error
				if !errors.As(err, &e) {
					t.Fatal(err)
				}
				late := fault.want != agent.KindQuota && (e.Kind == agent.KindIdle || e.Kind == agent.KindTimeout)
				if e.Kind != fault.want && !late {
					t.Errorf("kind %s", e.Kind)
				}
			})
		}
	}
}

func show(r any) string {
	raw, _ := json.Marshal(r)
	return string(raw)
}

func detail(err error) string {
	e, ok := err.(*agent.Error) //nolint:errorlint // only for a message
	if !ok {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%v\nhint: %s\ndetail: %s", e, e.Hint, e.Detail)
}

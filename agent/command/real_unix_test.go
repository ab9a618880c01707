//go:build unix

package command_test

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/command"
	"github.com/perdure/perdure/internal/testing/modelserver"
)

// reply is what the model answers to a request.
type reply = modelserver.Reply

type object = map[string]any

// agentsVar names a folder with the real clients (claude, codex, gemini,
// opencode, and a node that runs them), or one that npm installed them into.
// Without it they are not tested.
const agentsVar = "PERDURE_TEST_AGENTS"

// client is what it takes to run a real client against a scripted provider.
type client struct {
	preset string
	// prepare writes settings below home and returns variables and options.
	prepare func(t *testing.T, home, url string) (env, args []string)
	// write is a tool call that writes a file.
	write func(path, content string) reply
	// exact: usage is that of the conversation alone; else side requests are
	// counted in.
	exact bool
}

func clients() []client {
	return []client{
		{preset: "claude", prepare: prepareClaude, exact: true, write: func(path, content string) reply {
			return reply{Text: "I write it.", Tool: "Write", Input: object{"file_path": path, "content": content}}
		}},
		{preset: "codex", prepare: prepareCodex, exact: true, write: func(path, content string) reply {
			return reply{Tool: "exec_command", Input: object{"cmd": "printf '" + content + "' > '" + path + "'"}}
		}},
		{preset: "gemini", prepare: prepareGemini, write: func(path, content string) reply {
			return reply{Tool: "write_file", Input: object{"file_path": path, "content": content}}
		}},
		{preset: "opencode", prepare: prepareOpencode, exact: true, write: func(path, content string) reply {
			return reply{Text: "I write it.", Tool: "write", Input: object{"filePath": path, "content": content}}
		}},
	}
}

func prepareClaude(_ *testing.T, home, url string) (env, args []string) {
	return []string{
		"CLAUDE_CONFIG_DIR=" + home, "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=x", "ANTHROPIC_AUTH_TOKEN=",
		"ANTHROPIC_MODEL=scripted", "ANTHROPIC_SMALL_FAST_MODEL=scripted", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_RETRIES=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "IS_SANDBOX=1",
	}, nil
}

func prepareCodex(_ *testing.T, home, url string) (env, args []string) {
	for _, set := range []string{
		`model="m"`, `model_provider="local"`, `model_providers.local.name="local"`, `model_providers.local.base_url="` +
			url + `/v1"`,
		`model_providers.local.env_key="LOCAL_KEY"`, `model_providers.local.wire_api="responses"`,
		`check_for_update_on_startup=false`,
		`analytics.enabled=false`, `feedback.enabled=false`,
	} {
		args = append(args, "-c", set)
	}
	return []string{"CODEX_HOME=" + home, "LOCAL_KEY=x"}, args
}

func prepareGemini(t *testing.T, home, url string) (env, args []string) {
	settings := `{"general":{"enableAutoUpdate":false},"privacy":{"usageStatisticsEnabled":false},` +
		`"telemetry":{"enabled":false},` +
		`"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}`
	if err := os.MkdirAll(filepath.Join(home, ".gemini"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"GEMINI_CLI_HOME=" + home, "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=x"}, nil
}

func prepareOpencode(_ *testing.T, home, url string) (env, args []string) {
	return []string{
		"XDG_DATA_HOME=" + home + "/data", "XDG_CONFIG_HOME=" + home + "/config", "XDG_STATE_HOME=" + home + "/state",
		"XDG_CACHE_HOME=" + home + "/cache",
		`OPENCODE_CONFIG_CONTENT={"model":"local/m","small_model":"local/m","autoupdate":false,"share":"disabled",` +
			`"provider":{"local":{"npm":"@ai-sdk/openai-compatible",` +
			`"options":{"baseURL":"` + url + `/v1","apiKey":"x"},"models":{"m":{"limit":{"context":100000,"output":4000}}}}}}`,
		"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1",
		// It installs its package for plugins first, and waits for the network.
		"npm_config_registry=http://127.0.0.1:9", "npm_config_fetch_retries=0",
	}, nil
}

// installed is a real client that talks to a scripted provider.
type installed struct {
	client
	cfg      command.Config
	provider *modelserver.Server
	dir      string
}

// findClient returns where a client is, empty when it is not. That of Claude
// Code is replaced by the real one only when npm may run its script.
func findClient(folder, name string) string {
	for _, pattern := range []string{name, "node_modules/@anthropic-ai/" + name + "-code-*/" + name,
		"node_modules/.bin/" + name} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(paths) == 0 {
			continue
		}
		if _, err := exec.LookPath(paths[0]); err == nil {
			return paths[0]
		}
	}
	return ""
}

func install(t *testing.T, c client) *installed {
	t.Helper()
	folder := os.Getenv(agentsVar)
	if folder == "" {
		t.Skip(agentsVar + " names no folder with the clients")
	}
	program := findClient(folder, c.preset)
	if program == "" {
		t.Fatalf("%s is not in %s", c.preset, folder)
	}
	p := &modelserver.Server{}
	server := httptest.NewServer(p)
	home := t.TempDir()
	env, args := c.prepare(t, home, server.URL)
	env = append(env, "HOME="+home,
		"PATH="+strings.Join([]string{folder, filepath.Join(folder, "node_modules", "node", "bin"), os.Getenv("PATH")}, ":"))
	t.Cleanup(server.Close)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if folder := os.Getenv("PERDURE_TEST_RECORD"); folder != "" {
		program = recording(t, program, filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "_")))
	}
	cfg := command.Config{Preset: c.preset, Program: program, Args: args, Env: env}
	return &installed{client: c, cfg: cfg, provider: p, dir: dir}
}

// recording returns a program that runs another one and keeps what it writes in path.jsonl and
// path.stderr.
func recording(t *testing.T, program, path string) string {
	t.Helper()
	script := "#!/bin/bash\nset -o pipefail\n'" + program + "' \"$@\" 2> >(tee -a '" + path + ".stderr' >&2) | tee -a '" +
		path + ".jsonl'\n"
	name := filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(name, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return name
}

// turn does a turn with an agent of its own, as after a restart.
func (i *installed) turn(ctx context.Context, t *testing.T, turn agent.Turn, script ...reply) (*agent.Result,
	[]agent.Event, error) {
	t.Helper()
	i.provider.Play(script)
	var events []agent.Event
	told := turn.Observe
	turn.Prompt, turn.Dir, turn.IdleTimeout = "write the file", i.dir, 3*time.Minute
	turn.Observe = func(ev agent.Event) {
		events = append(events, ev)
		if told != nil {
			told(ev)
		}
	}
	res, err := newAgent(t, i.cfg).Run(ctx, &turn)
	t.Cleanup(func() {
		for n := 0; t.Failed() && n < len(events); n++ {
			t.Logf("%s %.300s %.2000s", events[n].Kind, events[n].Text, events[n].Raw)
		}
	})
	return res, events, err
}

func sized(r reply, in, cached, out int) reply {
	r.In, r.Cached, r.Out = in, cached, out
	return r
}

// Each client does a turn with a tool call, is continued by another process,
// and differs from one whose session is gone.
func TestRealClients(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			i := install(t, c)
			path := filepath.Join(i.dir, "out.txt")
			res, events, err := i.turn(t.Context(), t, agent.Turn{}, sized(c.write(path, "hello"), 1000, 400, 50),
				sized(reply{Text: "Done."}, 1200, 1000, 10))
			if err != nil {
				t.Fatalf("%v\n%+v", err, events)
			}
			if data, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(data)) != "hello" {
				t.Errorf("%q, %v", data, err)
			}
			i.wantUsage(t, res, 2200, 60)
			if res.Text != "Done." || res.Session == "" || res.CostMicros != nil {
				t.Errorf("%+v", res)
			}
			i.wantCall(t, events, path)
			want := map[string]string{"claude": "scripted", "codex": "m", "gemini": "scripted"}[c.preset]
			if res.Model != want || res.Usage.CachedTokens != 1400 {
				t.Errorf("model %q, %d cached tokens, want %q and 1400", res.Model, res.Usage.CachedTokens, want)
			}

			res, _, err = i.turn(t.Context(), t, agent.Turn{Session: res.Session}, sized(reply{Text: "Second."}, 3000, 1000, 30))
			if err != nil || res.Text != "Second." {
				t.Fatalf("%+v, %v", res, err)
			}
			i.wantUsage(t, res, 3000, 30)

			for _, session := range []string{"01a1fa7c-8f65-7861-8e02-78d14626783c", "rubbish"} {
				_, _, err = i.turn(t.Context(), t, agent.Turn{Session: session}, reply{Text: "No."})
				wantKind(t, err, agent.KindSession)
			}
		})
	}
}

func (i *installed) wantUsage(t *testing.T, res *agent.Result, in, out int64) {
	t.Helper()
	u := res.Usage
	if !u.Reported || u.InputTokens < in || u.OutputTokens < out || i.exact &&
		(u.InputTokens != in || u.OutputTokens != out) || u.InputTokens > in+100 {
		t.Errorf("usage %+v, want %d and %d", u, in, out)
	}
}

func (i *installed) wantCall(t *testing.T, events []agent.Event, path string) {
	t.Helper()
	var got []string
	for _, ev := range events {
		if ev.Call != nil {
			got = append(got, string(ev.Kind)+" "+string(ev.Call.Status))
			if ev.Call.Command == "" && !cmp.Equal(ev.Call.Paths, []string{path}) || ev.Call.Command != "" &&
				!strings.Contains(ev.Call.Command, path) {
				t.Errorf("call %+v", ev.Call)
			}
		}
	}
	if diff := cmp.Diff([]string{"tool_call running", "tool_result completed"}, got); diff != "" {
		t.Error(diff)
	}
}

// What an interrupted turn used is neither lost nor counted twice.
func TestRealClientsInterrupted(t *testing.T) {
	t.Parallel()
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			i := install(t, c)
			res, events, err := i.turn(t.Context(), t, agent.Turn{}, sized(reply{Text: "First."}, 500, 0, 5))
			if err != nil {
				t.Fatalf("%v\n%+v", err, events)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			turn := agent.Turn{Session: res.Session}
			cut, _, err := i.turn(ctx, t, turn, sized(c.write(filepath.Join(i.dir, "out.txt"), "hello"), 1000, 400, 50),
				reply{Hang: cancel})
			wantKind(t, err, agent.KindCanceled)
			if cut.Session == "" {
				t.Fatalf("no session: %+v", cut)
			}
			last, _, err := i.turn(t.Context(), t, agent.Turn{Session: cut.Session},
				sized(reply{Text: "Third."}, 3000, 1000, 30))
			if err != nil {
				t.Fatal(err)
			}
			sum := cut.Usage.InputTokens + last.Usage.InputTokens
			t.Logf("interrupted %+v, then %+v", cut.Usage, last.Usage)
			want := int64(4000)
			if c.preset == "gemini" {
				want = 3010 // it tells nothing of a turn that did not end
			}
			if sum != want {
				t.Errorf("together %d, want %d", sum, want)
			}
		})
	}
}

// Refusals of the provider have a kind of their own.
func TestRealClientsRefused(t *testing.T) {
	t.Parallel()
	fault := func(status int, kind, code, text string) reply {
		return reply{
			Status: status, Header: map[string]string{"Retry-After": "1"},
			Body: `{"type":"error","error":{"type":"` + kind + `","message":"` + text + `","code":"` + code + `"}}`,
		}
	}
	tests := []struct {
		name  string
		reply reply
		want  agent.Kind
	}{
		{"rate limit", fault(429, "rate_limit_error", "rate_limit_exceeded", "slow down"), agent.KindRateLimit},
		{"quota", fault(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota, please check "+
			"your plan and billing details."), agent.KindQuota},
		{"key", fault(401, "authentication_error", "invalid_api_key", "Incorrect API key provided"), agent.KindAuth},
		{"model", fault(404, "not_found_error", "model_not_found", "The model m does not exist"), agent.KindInvalid},
		{"overload", fault(503, "overloaded_error", "server_is_overloaded", "overloaded"), agent.KindUnavailable},
		{"overflow", fault(400, "invalid_request_error", "context_length_exceeded", "prompt is too long: maximum context "+
			"length is 100000 tokens"), agent.KindOverflow},
	}
	for _, c := range clients() {
		t.Run(c.preset, func(t *testing.T) {
			t.Parallel()
			i := install(t, c)
			// Those that ask again without end.
			i.cfg.Patience = 4 * time.Second
			for _, tt := range tests {
				_, events, err := i.turn(t.Context(), t, agent.Turn{}, tt.reply)
				t.Logf("%s: %v", tt.name, err)
				e := wantKind(t, err, tt.want)
				limited := slices.ContainsFunc(events, func(ev agent.Event) bool { return ev.Kind == agent.EventRateLimited })
				if e.Class() == agent.ClassWait && !limited {
					t.Errorf("%s: no event tells of the limit", tt.name)
				}
			}
		})
	}
}

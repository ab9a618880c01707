package acp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// history is what an agent replays of a session.
func history(f *fake) {
	f.update(`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"old question"}}`)
	f.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"old thought"}}`)
	f.message("old answer")
	f.update(`{"sessionUpdate":"tool_call","toolCallId":"c-1","title":"old","status":"completed"}`)
	f.update(`{"sessionUpdate":"plan","entries":[]}`)
	f.update(`{"sessionUpdate":"usage_update","used":500,"size":8000,"cost":{"amount":1,"currency":"USD"}}`)
}

// TestLoad continues a session whose history comes before the response, after
// it, or both, and is not counted.
func TestLoad(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before", "after", "later"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			script := func(f *fake) {
				f.caps = `{"loadSession":true}`
				f.greet()
				m := f.want("session/load")
				f.message(string(m.Params)) // history, too
				if when == "before" {
					history(f)
				}
				f.answer(m, `{}`)
				if when == "after" {
					history(f)
				}
				for i := 0; ; i++ {
					m = f.recv()
					if m.Method == "session/prompt" {
						break
					}
					if i == 1 && when == "later" {
						history(f)
					}
					f.refuse(m, -32601, "method not found", "null")
				}
				f.message("new")
				f.update(`{"sessionUpdate":"usage_update","used":600,"size":8000,"cost":{"amount":1.5,"currency":"USD"}}`)
				f.finish(m)
			}
			got, events, err := run(t, acp.Config{}, &agent.Turn{Session: "s-1"}, script)
			if err != nil {
				t.Fatal(err)
			}
			cost := int64(500_000)
			want := &agent.Result{
				Text: "new", Session: "s-1", StopReason: "end_turn", Messages: 1, CostMicros: &cost,
				Context: &agent.Context{Used: 600, Size: 8000, Source: agent.SourceReported},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			all := strings.Join(events, "\n")
			if strings.Contains(all, "old") || strings.Contains(all, "tool") || !strings.HasSuffix(all, "message new\nusage ") {
				t.Errorf("events:\n%s", all)
			}
		})
	}
}

func TestResumeIsPreferred(t *testing.T) {
	t.Parallel()
	params := ""
	got, events, err := run(t, acp.Config{}, &agent.Turn{Session: "s-1"}, func(f *fake) {
		f.caps = `{"loadSession":true,"sessionCapabilities":{"resume":{}}}`
		f.greet()
		m := f.want("session/resume")
		params = string(m.Params)
		f.answer(m, `null`)
		p := f.want("session/prompt")
		f.message("new")
		f.update(`{"sessionUpdate":"usage_update","used":600,"size":8000,"cost":{"amount":1.5,"currency":"USD"}}`)
		f.finish(p)
	})
	if err != nil || got.Session != "s-1" || got.CostMicros != nil || len(got.Notes) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	wantBrief(t, events, "message new", "usage ")
	if want := `{"cwd":"/w","mcpServers":[],"sessionId":"s-1"}`; params != want {
		t.Errorf("parameters %s", params)
	}
}

// TestCostOfLaterTurns: an agent tells what a session cost, a turn costs the
// difference.
func TestCostOfLaterTurns(t *testing.T) {
	t.Parallel()
	total := 0.25
	a := piped(t, acp.Config{}, func(f *fake) {
		f.caps = `{"sessionCapabilities":{"resume":{}}}`
		f.greet()
		m := f.recv()
		f.answer(m, `{"sessionId":"s-1"}`)
		p := f.want("session/prompt")
		f.update(fmt.Sprintf(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":%v,"currency":"USD"}}`,
			total))
		total += 0.5
		f.finish(p)
		f.recv()
	})
	tr := &agent.Turn{Prompt: "p", Dir: "/w"}
	for _, want := range []int64{250_000, 500_000, 500_000} {
		got, err := a.Run(t.Context(), tr)
		if err != nil || got.CostMicros == nil || *got.CostMicros != want {
			t.Errorf("want %d: %+v, %v", want, got, err)
		}
		tr.Session = got.Session
	}
}

func TestSessionsThatCannotBeContinued(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, caps string
		code       int
		text, data string
		want       agent.Kind
	}{
		{"no capability", `{}`, 0, "", "null", agent.KindSession},
		{"not found", `{"loadSession":true}`, -32002, "Resource not found", `{"sessionId":"s-1"}`, agent.KindSession},
		{"invalid", `{"loadSession":true}`, -32603, "Internal error", `{"details":"Invalid session identifier \"s-1\"."}`,
			agent.KindSession},
		{"unknown parameters", `{"sessionCapabilities":{"resume":{}}}`, -32602, "Invalid params", "null", agent.KindSession},
		{"not logged in", `{"loadSession":true}`, -32000, "Authentication required", "null", agent.KindAuth},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := run(t, acp.Config{}, &agent.Turn{Session: "s-1"}, func(f *fake) {
				f.caps = tt.caps
				f.greet()
				if m := f.recv(); m.ID != nil {
					f.refuse(m, tt.code, tt.text, tt.data)
				}
			})
			wantKind(t, err, tt.want)
			if got.Session != "" || got.Messages != 0 {
				t.Errorf("result %+v", got)
			}
		})
	}
}

// conversation answers everything and notes what was asked.
func conversation(f *fake, session string, asked *[]string) {
	f.greet()
	for {
		m := f.recv()
		switch m.Method {
		case "":
			return
		case "session/new":
			f.answer(m, session)
		case "session/prompt":
			f.finish(m)
		default:
			var p map[string]any
			_ = json.Unmarshal(m.Params, &p)
			delete(p, "sessionId")
			raw, _ := json.Marshal(p)
			*asked = append(*asked, m.Method+string(raw))
			f.answer(m, `{}`)
		}
	}
}

func TestConfiguredSessions(t *testing.T) {
	t.Parallel()
	const (
		modes = `{"sessionId":"s-1","modes":{"currentModeId":"default","availableModes":[{"id":"default"},` +
			`{"id":"yolo"}]},"models":{"availableModels":[{"modelId":"m-1"},{"modelId":"m-2"}]}}`
		options = `{"sessionId":"s-1","configOptions":[{"id":"model","category":"model","type":"select",` +
			`"options":[{"value":"m-1"},{"value":"m-2"}]},` +
			`{"id":"how","category":"mode","type":"select","options":[{"group":"g","name":"G","options":[{"value":"default"},` +
			`{"value":"plan"}]}]},` +
			`{"id":"effort","type":"select","options":[{"value":"low"},{"value":"high"}]},{"id":"fast","type":"boolean"},7]}`
	)
	tests := []struct {
		name    string
		cfg     acp.Config
		session string
		want    []string
		err     string
	}{
		{name: "nothing", session: modes},
		{
			name: "mode and model", cfg: acp.Config{Mode: "yolo", Model: "m-2"}, session: modes,
			want: []string{`session/set_model{"modelId":"m-2"}`, `session/set_mode{"modeId":"yolo"}`},
		},
		{
			name: "as options", cfg: acp.Config{Mode: "plan", Model: "m-2",
				Options: map[string]string{"fast": "true", "effort": "high"}}, session: options,
			want: []string{
				`session/set_config_option{"configId":"model","value":"m-2"}`,
				`session/set_config_option{"configId":"how","value":"plan"}`,
				`session/set_config_option{"configId":"effort","value":"high"}`,
				`session/set_config_option{"configId":"fast","type":"boolean","value":true}`,
			},
		},
		{name: "preset's mode", cfg: acp.Config{Preset: "gemini"}, session: modes,
			want: []string{`session/set_mode{"modeId":"default"}`}},
		{name: "preset's mode as option", cfg: acp.Config{Preset: "gemini"}, session: options,
			want: []string{`session/set_config_option{"configId":"how","value":"default"}`}},
		{name: "preset's mode that is not there", cfg: acp.Config{Preset: "gemini"}, session: `{"sessionId":"s-1"}`},
		{name: "login", cfg: acp.Config{AuthMethod: "key"}, session: modes, want: []string{`authenticate{"methodId":"key"}`}},
		{name: "no such mode", cfg: acp.Config{Mode: "wild"}, session: modes, err: `no mode "wild"|offers default, yolo`},
		{name: "no such mode option", cfg: acp.Config{Mode: "wild"}, session: options,
			err: `no value of how "wild"|offers default, plan`},
		{name: "no modes", cfg: acp.Config{Mode: "wild"}, session: `{"sessionId":"s-1"}`, err: `no mode "wild"|offers none`},
		{name: "no such model", cfg: acp.Config{Model: "m-3"}, session: modes, err: `no model "m-3"|offers m-1, m-2`},
		{name: "no such value", cfg: acp.Config{Model: "m-3"}, session: options,
			err: `no value of model "m-3"|offers m-1, m-2`},
		{name: "no such option", cfg: acp.Config{Options: map[string]string{"colour": "red"}}, session: options,
			err: `no option "colour"|offers model, how`},
		{name: "no switch", cfg: acp.Config{Options: map[string]string{"fast": "very"}}, session: options,
			err: `no value of fast "very"|offers true, false`},
		{name: "no session", session: `{}`, err: "without an ID|"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			_, _, err := run(t, tt.cfg, &agent.Turn{}, func(f *fake) { conversation(f, tt.session, &asked) })
			if diff := cmp.Diff(tt.want, asked); diff != "" {
				t.Error(diff)
			}
			if tt.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e := wantKind(t, err, agent.KindInvalid)
			text, hint, _ := strings.Cut(tt.err, "|")
			if !strings.Contains(e.Error(), text) || !strings.Contains(e.Hint, hint) {
				t.Errorf("error %q, hint %q", e, e.Hint)
			}
		})
	}
}

func TestOtherVersions(t *testing.T) {
	t.Parallel()
	for _, hello := range []string{`{"protocolVersion":2}`, `{}`, `"hello"`, `null`} {
		_, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) { f.answer(f.want("initialize"), hello) })
		wantKind(t, err, agent.KindInvalid)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code       int
		text, data string
		want       agent.Kind
	}{
		{-32000, "Authentication required", "null", agent.KindAuth},
		{-32603, "Internal error", `{"errorKind":"rate_limit"}`, agent.KindRateLimit},
		{-32603, "API Error", `{"errorKind":"billing_error"}`, agent.KindQuota},
		{-32603, "API Error", `{"codexErrorInfo":"usageLimitExceeded"}`, agent.KindRateLimit},
		{-32603, "Quota exceeded. Check your plan and billing details.", `{"codexErrorInfo":"usageLimitExceeded"}`,
			agent.KindQuota},
		{-32603, "Internal error: You exceeded your current quota, please check your plan and billing details.",
			`{"errorKind":"rate_limit"}`, agent.KindQuota},
		{-32603, "You're out of extra usage", `{"errorKind":"rate_limit"}`, agent.KindQuota},
		{-32603, "You've hit your weekly limit", `{"errorKind":"unknown"}`, agent.KindRateLimit},
		{-32603, "You exceeded your current quota. Please retry in 34.5s.", `{"errorKind":"rate_limit"}`, agent.KindRateLimit},
		{-32603, "Rate limit reached for gpt-5. You can add a payment method at https://platform.openai.com/account/billing.",
			`{"errorKind":"rate_limit"}`, agent.KindRateLimit},
		{-32603, "Quota exceeded, try again in 3 hours", "null", agent.KindRateLimit},
		{-32603, "Internal error", `{"codexErrorInfo":"contextWindowExceeded"}`, agent.KindOverflow},
		{-32603, "Internal error", `{"codexErrorInfo":{"responseTooManyFailedAttempts":{"httpStatusCode":503}}}`,
			agent.KindUnavailable},
		{-32603, "Internal error", `{"service":"session","errorName":"ContextOverflowError"}`, agent.KindOverflow},
		{429, "Rate limit exceeded. Try again later.", "null", agent.KindRateLimit},
		{429, "You exceeded your current quota", "null", agent.KindQuota},
		{400, "The input token count exceeds the maximum number of tokens allowed", "null", agent.KindOverflow},
		{401, "no", "null", agent.KindAuth},
		{503, "no", "null", agent.KindUnavailable},
		{404, "model is not found", "null", agent.KindInvalid},
		{500, "something", "null", agent.KindFailed},
		{500, "fetch failed", "null", agent.KindUnavailable},
		{-32603, "exceeded retry limit, last status: 429 Too Many Requests", "null", agent.KindRateLimit},
		{-32603, "Codex ran out of room in the model's context window.", "null", agent.KindOverflow},
		{-32002, "Resource not found", "null", agent.KindSession},
		{-32601, "Method not found", "null", agent.KindInvalid},
		{-32603, "Internal error", `"words"`, agent.KindFailed},
		{0, "", `null`, agent.KindFailed},
	}
	for _, tt := range tests {
		_, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) { f.refuse(f.begin(), tt.code, tt.text, tt.data) })
		var e *agent.Error
		if !errors.As(err, &e) || e.Kind != tt.want {
			t.Errorf("%d %s %s: %v, want %s", tt.code, tt.text, tt.data, err, tt.want)
		}
	}
}

// TestRetriesWithoutQuota: an agent that retries although its quota is used up is stopped; one that
// retries after another refusal is not.
func TestRetriesWithoutQuota(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.Kind{
		"Reconnecting... 1/5 (You exceeded your current quota, please check your plan.)": agent.KindQuota,
		"Reconnecting... 1/5 (Quota exceeded, try again in 20s)":                         "",
		"Reconnecting... 1/5 (429 Too Many Requests)":                                    "",
	} {
		_, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) {
			p := f.begin()
			f.update(fmt.Sprintf(`{"sessionUpdate":"session_info_update","_meta":{"codex":{"error":{"message":%q}}}}`, text))
			if want == "" {
				f.finish(p)
			} else {
				f.want("session/cancel")
				f.answer(p, `{"stopReason":"cancelled"}`)
			}
		})
		if want != "" {
			wantKind(t, err, want)
		} else if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRateLimitSaysWhen(t *testing.T) {
	t.Parallel()
	_, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) {
		f.refuse(f.begin(), -32603, "429: rate limit, please try again in 20s. key sk-abcdefghijklmnopqrstuvwx", "null")
	})
	e := wantKind(t, err, agent.KindRateLimit)
	if e.Until.IsZero() || strings.Contains(e.Error(), "sk-abc") {
		t.Errorf("%v, until %s", e, e.Until)
	}
}

func TestLoginIsAskedFor(t *testing.T) {
	t.Parallel()
	_, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) {
		f.greet()
		f.refuse(f.want("session/new"), -32000, "Authentication required", "null")
	})
	if e := wantKind(t, err, agent.KindAuth); !strings.Contains(e.Hint, "key, browser") {
		t.Errorf("hint %q", e.Hint)
	}
}

func TestErrorsOfOtherForms(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`"boom"`, `[1]`, `{"code":"x","message":"boom"}`, `{}`} {
		_, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) {
			f.say(`{"jsonrpc":"2.0","id":%s,"error":%s}`, f.begin().ID, raw)
		})
		wantKind(t, err, agent.KindFailed)
	}
}

// An agent that failed may end its prompt normally and report the failure separately.
func TestFailureBesideTheResult(t *testing.T) {
	t.Parallel()
	const status = `{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":%q}}}}`
	for _, tt := range []struct {
		after string
		want  agent.Kind
	}{{"systemError", agent.KindRateLimit}, {"active", ""}} {
		got, _, err := run(t, acp.Config{}, &agent.Turn{}, func(f *fake) {
			p := f.begin()
			f.message("I begin.")
			f.update(fmt.Sprintf(status, "systemError"))
			f.update(fmt.Sprintf(status, tt.after))
			f.message("exceeded retry limit, last status: 429 Too Many Requests")
			f.finish(p)
		})
		var e *agent.Error
		if errors.As(err, &e); (e == nil) != (tt.want == "") || e != nil &&
			(e.Kind != tt.want || !strings.Contains(e.Error(), "429")) {
			t.Errorf("after %s: %v", tt.after, err)
		}
		if !strings.HasPrefix(got.Text, "exceeded") {
			t.Errorf("result %+v", got)
		}
	}
}

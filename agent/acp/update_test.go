package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/acp"
)

// story returns the events of updates.
func story(t *testing.T, updates ...string) []agent.Event {
	t.Helper()
	events, _, _, err := acp.Story(updates...)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	tests := []struct{ update, want string }{
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}`, "message hi"},
		{`{"sessionUpdate":"agent_message_chunk","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			"message a\nb"},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AAAA"}}`, "message [image]"},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"file:///a"}}`,
			"message [file:///a]"},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"u","text":"inside"}}}`,
			"message inside"},
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u0000b"}}`, "message a\uFFFDb"},
		{`{"sessionUpdate":"agent_message_chunk","content":7}`, "message "},
		{`{"sessionUpdate":"agent_message_chunk"}`, "message "},
		{`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`, "thought hm"},
		{`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"me"}}`, "unknown "},
		{`{"sessionUpdate":"plan","entries":[{"content":"one","status":"completed"},{"content":"two\nlines",` +
			`"status":"in_progress"},{"content":"three","status":"pending"}]}`, "notice plan: 1 of 3 steps done; now: two"},
		{`{"sessionUpdate":"plan","entries":"none"}`, "notice plan: 0 of 0 steps done"},
		{`{"sessionUpdate":"usage_update","used":"12","size":1e4}`, "usage "},
		{`{"sessionUpdate":"usage_update","size":1e4}`, "unknown "},
		{`{"sessionUpdate":"notice","severity":"warning","title":"Low disk","description":"clean up"}`,
			"notice Low disk: clean up"},
		{`{"sessionUpdate":"notice","severity":"warning","title":"Rate limit reached"}`, "rate_limited Rate limit reached"},
		{`{"sessionUpdate":"notice","severity":"info","title":"Rate limits have changed"}`,
			"notice Rate limits have changed"},
		{`{"sessionUpdate":"compaction_update","compactionId":"k","status":"in_progress"}`, "compaction in_progress"},
		{`{"sessionUpdate":"compaction_update","compactionId":"k","status":"failed","error":"no room"}`,
			"compaction failed no room"},
		{`{"sessionUpdate":"compaction_summary_chunk","compactionId":"k","content":{"type":"text","text":"so far"}}`,
			"compaction so far"},
		{`{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}`, `notice the agent's mode is "yolo" now`},
		{`{"sessionUpdate":"session_info_update","title":"A title"}`, "unknown "},
		{`{"sessionUpdate":"session_info_update","_meta":{"codex":{"error":{"message":"Reconnecting... 1/5",` +
			`"additionalDetails":"429 Too Many Requests","willRetry":true}}}}`,
			"rate_limited Reconnecting... 1/5 429 Too Many Requests"},
		{`{"sessionUpdate":"session_info_update","_meta":{"codex":{"error":{"message":"Reconnecting... 1/5"}}}}`,
			"rate_limited Reconnecting... 1/5"},
		{`{"sessionUpdate":"available_commands_update","availableCommands":[]}`, "unknown "},
		{`{"sessionUpdate":"config_option_update"}`, "unknown "},
		{`{"sessionUpdate":"something_new","content":{}}`, "unknown "},
		{`{"sessionUpdate":"tool_call","title":"no ID"}`, "unknown "},
		{`{"sessionUpdate":"tool_call","toolCallId":"c","status":"completed","content":[{"type":"content",` +
			`"content":{"type":"text","text":"out"}}]}`, "tool_result completed out"},
		{`{"sessionUpdate":"tool_call","toolCallId":"c","status":"brand_new","kind":"switch_mode"}`, "tool_call pending"},
	}
	for _, tt := range tests {
		if got := strings.Join(brief(story(t, tt.update)), "|"); got != tt.want {
			t.Errorf("%s\ngave %q, want %q", tt.update, got, tt.want)
		}
	}
}

// lastCall returns the last tool call and its text after updates.
func lastCall(t *testing.T, updates ...string) (agent.ToolCall, string) {
	t.Helper()
	events := story(t, updates...)
	last := events[len(events)-1]
	if last.Call == nil {
		t.Fatalf("event %s has no call", last.Kind)
	}
	return *last.Call, last.Text
}

// callCase are updates of a tool call and what they add up to.
type callCase struct {
	name    string
	updates []string
	want    agent.ToolCall
	text    string
}

func (tt *callCase) check(t *testing.T) {
	t.Run(tt.name, func(t *testing.T) {
		t.Parallel()
		got, text := lastCall(t, tt.updates...)
		if diff := cmp.Diff(tt.want, got); diff != "" || text != tt.text {
			t.Errorf("text %q, want %q; call differs (-want +got):\n%s", text, tt.text, diff)
		}
	})
}

const beginCall = `{"sessionUpdate":"tool_call","toolCallId":"c","title":"T","kind":"execute","status":"pending",`

func TestToolCalls(t *testing.T) {
	t.Parallel()
	for _, tt := range []callCase{
		{
			name: "what is not said stays",
			updates: []string{beginCall + `"name":"bash","rawInput":{"command":"ls"}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"in_progress","title":null,"name":null}`},
			want: agent.ToolCall{ID: "c", Name: "bash", Kind: agent.ToolExecute, Title: "T", Command: "ls",
				Input: json.RawMessage(`{"command":"ls"}`), Status: agent.ToolRunning},
		},
		{
			name:    "words of a command",
			updates: []string{beginCall + `"rawInput":{"command":["bash","-lc","go test ./... | tail"]}}`},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolExecute, Title: "T", Command: "go test ./... | tail",
				Input: json.RawMessage(`{"command":["bash","-lc","go test ./... | tail"]}`), Status: agent.ToolPending},
		},
		{
			name:    "a command in the title",
			updates: []string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"` + "`rm -rf x`" + `","kind":"execute"}`},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolExecute, Title: "`rm -rf x`", Command: "rm -rf x",
				Status: agent.ToolPending},
		},
		{
			name:    "no command yet",
			updates: []string{beginCall + `"rawInput":{}}`},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolExecute, Title: "T", Input: json.RawMessage(`{}`),
				Status: agent.ToolPending},
		},
		{
			name: "files from everywhere, once",
			updates: []string{
				`{"sessionUpdate":"tool_call","toolCallId":"c","kind":"edit","locations":[{"path":"/a"},{"path":"/b","line":3},` +
					`{}],"content":[{"type":"diff","path":"/c"},{"type":"diff","path":"/a"}],"rawInput":{"file_path":"/d",` +
					`"changes":{"/f":{},"/e":{}}}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","locations":[{"path":"/g"}]}`,
			},
			want: agent.ToolCall{
				ID: "c", Kind: agent.ToolEdit, Status: agent.ToolPending, Paths: []string{"/c", "/a", "/b", "/d", "/e", "/f", "/g"},
				Input: json.RawMessage(`{"file_path":"/d","changes":{"/f":{},"/e":{}}}`),
			},
		},
	} {
		tt.check(t)
	}
}

func TestToolOutputs(t *testing.T) {
	t.Parallel()
	for _, tt := range []callCase{
		{
			name: "output in pieces, exit status in _meta",
			updates: []string{
				beginCall + `"content":[{"type":"terminal","terminalId":"c"}],"rawInput":{"command":"x"}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"terminal_output_delta":{"data":"one\n"}}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","content":[{"type":"terminal"}],` +
					`"_meta":{"terminal_output_delta":{"data":"two\n"}}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed",` +
					`"_meta":{"terminal_exit":{"exit_code":3}}}`,
			},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolExecute, Title: "T", Command: "x",
				Input: json.RawMessage(`{"command":"x"}`), Status: agent.ToolFailed},
			text: "one\ntwo\n",
		},
		{
			name: "content is replaced",
			updates: []string{
				`{"sessionUpdate":"tool_call","toolCallId":"c","content":[{"type":"content","content":{"type":"text",` +
					`"text":"explained"}}]}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","content":[]}`,
			},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolOther, Status: agent.ToolFailed},
		},
		{
			name: "exit status in the raw output, a folder to run in",
			updates: []string{
				`{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","locations":[{"path":"/w"}],` +
					`"status":"completed","rawOutput":{"output":"out","metadata":{"exit":3}}}`,
			},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolExecute, Status: agent.ToolFailed},
			text: "out",
		},
		{
			name:    "raw output as words",
			updates: []string{`{"sessionUpdate":"tool_call","toolCallId":"c","status":"completed","rawOutput":"done"}`},
			want:    agent.ToolCall{ID: "c", Kind: agent.ToolOther, Status: agent.ToolCompleted},
			text:    "done",
		},
		{
			name: "raw output as fields, the tool's name in _meta",
			updates: []string{`{"sessionUpdate":"tool_call","toolCallId":"c","status":"completed","rawOutput":{"stdout":"a",` +
				`"stderr":"b","n":1},"_meta":{"claudeCode":{"toolName":"Bash"}}}`},
			want: agent.ToolCall{ID: "c", Name: "Bash", Kind: agent.ToolOther, Status: agent.ToolCompleted},
			text: "ab",
		},
		{
			name: "an ID is used again",
			updates: []string{
				beginCall + `"rawInput":{"command":"x"}}`,
				`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`,
				`{"sessionUpdate":"tool_call","toolCallId":"c","title":"U","kind":"read"}`,
			},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolRead, Title: "U", Status: agent.ToolPending},
		},
		{
			name: "fields of other forms",
			updates: []string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":7,"locations":"x","content":[1,` +
				`{"type":"diff","path":"/a"}],"status":["completed"],"_meta":[],"kind":"read"}`},
			want: agent.ToolCall{ID: "c", Kind: agent.ToolRead, Status: agent.ToolPending, Paths: []string{"/a"}},
		},
	} {
		tt.check(t)
	}
}

// A permission asks for a call that was reported: the tool's input stays, and
// explanations for people are not output.
func TestCallOfAPermission(t *testing.T) {
	t.Parallel()
	var asked []agent.ToolCall
	tr := &agent.Turn{Decide: func(_ context.Context, call agent.ToolCall) agent.Decision {
		asked = append(asked, call)
		return agent.Decision{Allow: true}
	}}
	_, events := ended(t, tr, func(f *fake) {
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"write","rawInput":{"path":"/a","content":"x"}}`)
		f.ask(`{"toolCallId":"c","title":"Write /a","kind":"edit","rawInput":{"diff":"+x"},"content":[{"type":"content",` +
			`"content":{"type":"text","text":"explained"}},{"type":"diff","path":"/b"}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}`)
		f.ask(`{}`)
	})
	want := []agent.ToolCall{
		{ID: "c", Kind: agent.ToolEdit, Title: "Write /a", Paths: []string{"/a", "/b"},
			Input: json.RawMessage(`{"path":"/a","content":"x"}`), Status: agent.ToolPending},
		{ID: "request 2", Kind: agent.ToolOther, Status: agent.ToolPending},
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	wantBrief(t, events, "tool_call pending", "tool_call pending", "tool_result completed", "tool_call pending")
}

func TestTitleThatIsAName(t *testing.T) {
	t.Parallel()
	var calls []agent.ToolCall
	tr := &agent.Turn{Observe: func(e agent.Event) {
		if e.Call != nil {
			calls = append(calls, *e.Call)
		}
	}}
	_, _, err := run(t, acp.Config{Preset: "opencode"}, tr, func(f *fake) {
		p := f.begin()
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash"}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"run the tests"}`)
		f.finish(p)
	})
	if err != nil || len(calls) != 2 || calls[1].Name != "bash" || calls[1].Title != "run the tests" {
		t.Errorf("%+v, %v", calls, err)
	}
}

// Subagents have sessions of their own: their tool calls count, their words do
// not.
func TestOtherSessions(t *testing.T) {
	t.Parallel()
	got, events := ended(t, &agent.Turn{}, func(f *fake) {
		other := func(update string) {
			f.say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-2","update":%s}}`, update)
		}
		f.message("mine")
		other(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"theirs"}}`)
		other(`{"sessionUpdate":"usage_update","used":1,"size":2}`)
		other(`{"sessionUpdate":"tool_call","toolCallId":"c","status":"in_progress"}`)
	})
	wantBrief(t, events, "message mine", "unknown ", "unknown ", "tool_call in_progress"[:10]+"running")
	if got.Text != "mine" || got.Context != nil || got.Messages != 2 {
		t.Errorf("result %+v", got)
	}
}

func TestLastMessage(t *testing.T) {
	t.Parallel()
	chunk := func(id, text string) string {
		return fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":%q,"content":{"type":"text","text":%q}}`, id,
			text)
	}
	const tool = `{"sessionUpdate":"tool_call","toolCallId":"c"}`
	const thought = `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`
	long := strings.Repeat("ü", agent.MaxTextBytes)
	tests := []struct {
		name     string
		updates  []string
		want     string
		messages int
		notes    int
	}{
		{"pieces", []string{chunk("", "a"), chunk("", "b")}, "ab", 1, 0},
		{"thoughts do not part", []string{chunk("", "a"), thought, chunk("", "b")}, "ab", 1, 0},
		{"tools part", []string{chunk("", "a"), tool, chunk("", "b")}, "b", 3, 0},
		{"IDs part", []string{chunk("1", "a"), chunk("1", "b"), chunk("2", "c")}, "c", 2, 0},
		{"none after the last tool", []string{chunk("", "a"), tool}, "a", 2, 0},
		{"nothing", nil, "", 0, 0},
		{"a long one", []string{chunk("", "x"+long)}, long[agent.MaxTextBytes:], 1, 1},
		{"a long one in pieces", []string{chunk("", long), chunk("", long), chunk("", "end")}, "", 1, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := ended(t, &agent.Turn{}, func(f *fake) {
				for _, u := range tt.updates {
					f.update(u)
				}
			})
			if tt.want != "" && got.Text != tt.want || got.Messages != tt.messages || len(got.Notes) != tt.notes {
				t.Errorf("%d bytes of text, %d messages, notes %q", len(got.Text), got.Messages, got.Notes)
			}
			if len(got.Text) > agent.MaxTextBytes || !utf8.ValidString(got.Text) {
				t.Errorf("%d bytes of text, valid %t", len(got.Text), utf8.ValidString(got.Text))
			}
		})
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	u := func(in, out, cached, written int64) agent.Usage {
		return agent.Usage{InputTokens: in, OutputTokens: out, CachedTokens: cached, CacheWriteTokens: written,
			Reported: true}
	}
	tests := []struct {
		name, result string
		want         agent.Usage
	}{
		{"none", `{"stopReason":"end_turn"}`, agent.Usage{}},
		{"null", `{"usage":null,"_meta":null}`, agent.Usage{}},
		{"caches beside the input", `{"usage":{"totalTokens":165,"inputTokens":100,"outputTokens":10,` +
			`"cachedReadTokens":50,"cachedWriteTokens":5}}`, u(155, 10, 50, 5)},
		{"caches in the input", `{"usage":{"totalTokens":110,"inputTokens":100,"outputTokens":10,"cachedReadTokens":50}}`,
			u(100, 10, 50, 0)},
		{"thoughts beside the output",
			`{"usage":{"totalTokens":167,"inputTokens":100,"outputTokens":10,"cachedReadTokens":50,"thoughtTokens":7}}`,
			u(150, 17, 50, 0)},
		{"thoughts in the output", `{"usage":{"totalTokens":160,"inputTokens":100,"outputTokens":10,"cachedReadTokens":50,` +
			`"thoughtTokens":7}}`, u(150, 10, 50, 0)},
		{"thoughts beside, caches in",
			`{"usage":{"totalTokens":117,"inputTokens":100,"outputTokens":10,"cachedReadTokens":50,"thoughtTokens":7}}`,
			u(100, 17, 50, 0)},
		{"no total", `{"usage":{"inputTokens":100,"outputTokens":10,"cachedReadTokens":50}}`, u(150, 10, 50, 0)},
		{"Gemini's place", `{"_meta":{"quota":{"token_count":{"input_tokens":2000,"output_tokens":40}}}}`, u(2000, 40, 0, 0)},
		{"another place", `{"_meta":{"usage":{"inputTokens":20,"outputTokens":4}}}`, u(20, 4, 0, 0)},
		{"odd numbers", `{"usage":{"totalTokens":"x","inputTokens":"12","outputTokens":1e300,"cachedReadTokens":-5}}`,
			u(12, 1<<53, 0, 0)},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, acp.UsageOf(tt.result)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// Calls without end do not fill the memory.
func TestManyCalls(t *testing.T) {
	t.Parallel()
	var updates []string
	for i := range acp.MaxCalls + 100 {
		updates = append(updates, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d"}`, i))
	}
	if _, calls, _, _ := acp.Story(updates...); calls != acp.MaxCalls {
		t.Errorf("%d calls are held", calls)
	}
	big := quote(strings.Repeat("x", 1<<20))
	updates = nil
	for i := range 24 {
		updates = append(updates, fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c%d","rawInput":{"a":%s}}`, i, big))
	}
	if _, calls, bytes, _ := acp.Story(updates...); bytes > acp.MaxCallBytes || calls != 15 {
		t.Errorf("%d bytes of %d calls are held", bytes, calls)
	}
}

func TestKindOfText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]agent.Kind{
		"exceeded retry limit, last status: 429 Too Many Requests": agent.KindRateLimit,
		"Quota exceeded. Check your plan and billing details.":     agent.KindQuota,
		"Codex ran out of room in the model's context window.":     agent.KindOverflow,
		"Your credit balance is too low":                           agent.KindQuota,
		"prompt is too long: 210000 tokens > 200000 maximum":       agent.KindOverflow,
		"Please log in with `agent login`":                         agent.KindAuth,
		"Incorrect API key provided":                               agent.KindAuth,
		"connect ECONNREFUSED 127.0.0.1:1":                         agent.KindUnavailable,
		"529 {\"type\":\"overloaded_error\"}":                      agent.KindUnavailable,
		"Incomplete response returned, reason: max_output_tokens":  agent.KindLimit,
		"You've hit your usage limit. Try again later.":            agent.KindRateLimit,
		"The model was not found: model_not_found":                 agent.KindInvalid,
		"cannot read properties of undefined (reading 'length')":   "",
		"": "",
	} {
		if got := acp.KindOfText(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestJoinWords(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"git commit -m 'a b' ''": {"git", "commit", "-m", "a b", ""},
		"rm -rf x; ls":           {"/bin/zsh", "-lc", "rm -rf x; ls"},
		`echo 'it'\''s'`:         {"echo", "it's"},
	} {
		if got := acp.JoinWords(words); got != want {
			t.Errorf("%q gave %q, want %q", words, got, want)
		}
	}
}

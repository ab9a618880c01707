package vendorhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/vendorhook"
)

// Input of Claude Code 2.1.328 and Codex 0.169.0.
const (
	claudeWrite = `{"session_id":"de8b","transcript_path":"/h/t.jsonl","cwd":"/w","prompt_id":"5097",` +
		`"permission_mode":"bypassPermissions","effort":{"level":"high"},` +
		`"hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{"file_path":"/w/out.txt","content":"hello"},` +
		`"tool_use_id":"toolu_1000"}`
	claudeWrote = `{"session_id":"de8b","cwd":"/w","hook_event_name":"PostToolUse","tool_name":"Write",` +
		`"tool_input":{"file_path":"/w/out.txt","content":"hello"},` +
		`"tool_response":{"type":"create","filePath":"/w/out.txt","originalFile":null},"tool_use_id":"toolu_1000",` +
		`"duration_ms":125}`
	codexShell = `{"session_id":"01a2","turn_id":"01a3","transcript_path":"/h/r.jsonl","cwd":"/w",` +
		`"hook_event_name":"PreToolUse","model":"m",` +
		`"permission_mode":"bypassPermissions","tool_name":"Bash","tool_input":{"command":"printf 'hello' > out.txt"},` +
		`"tool_use_id":"call_1"}`
)

func dialect(t *testing.T, agentName string) *vendorhook.Dialect {
	t.Helper()
	d, ok := vendorhook.DialectOf(agentName)
	if !ok {
		t.Fatalf("no dialect %q", agentName)
	}
	return d
}

// read reads an event of an agent about a call.
func read(t *testing.T, agentName, event, tool, input string) *vendorhook.Event {
	t.Helper()
	e, err := dialect(t, agentName).Read(strings.NewReader(`{"hook_event_name":"` + event + `","cwd":"/w","tool_name":"` +
		tool + `","tool_input":` + input + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, event, command string
		paths                []string
	}{
		{claudeWrite, vendorhook.PreToolUse, "", []string{"/w/out.txt"}},
		{claudeWrote, vendorhook.PostToolUse, "", []string{"/w/out.txt"}},
		{codexShell, vendorhook.PreToolUse, "printf 'hello' > out.txt", nil},
	} {
		e, err := dialect(t, "claude-code").Read(strings.NewReader(tt.text))
		if err != nil || e.Name != tt.event || e.Dir != "/w" || e.Call == nil || e.Call.Command != tt.command ||
			!cmp.Equal(e.Call.Paths, tt.paths) || e.Call.ID == "" {
			t.Errorf("%s: %+v, %v", tt.text, e, err)
		}
	}
	for _, text := range []string{`{"hook_event_name":"Stop"}`, `{"hook_event_name":"SomethingNew","tool_name":3}`} {
		if e, err := dialect(t, "codex").Read(strings.NewReader(text)); text == `{"hook_event_name":"Stop"}` &&
			(err != nil || e.Call != nil) {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}

// TestUnreadable: a call that cannot be judged is an error.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty": "", "no JSON": "{", "an array": "[]", "no event": "{}", "more than one": claudeWrite + claudeWrite,
		"no tool":         `{"hook_event_name":"PreToolUse","cwd":"/w","tool_input":{}}`,
		"no input":        `{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash"}`,
		"a text as input": `{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash","tool_input":"rm"}`,
		"no command":      `{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash","tool_input":{"Command":"ls"}}`,
		"no text":         `{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash","tool_input":{"command":{"a":1}}}`,
		"no file":         `{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Edit","tool_input":{"old_string":"a"}}`,
		"no folder":       `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}`,
		"too long": `{"hook_event_name":"PreToolUse","cwd":"/w","tool_name":"Bash","tool_input":{"command":"` +
			strings.Repeat("a", vendorhook.MaxBytes) + `"}}`,
	} {
		if e, err := dialect(t, "codex").Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, err := dialect(t, "codex").Read(io.MultiReader(strings.NewReader(claudeWrite), failing{})); err == nil {
		t.Error("a pipe that breaks is not an error")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

// TestWrite: the answers in the form of each agent. None takes a gate for consent.
func TestWrite(t *testing.T) {
	t.Parallel()
	const input = `{"command":"ls","file_path":"/w/a"}`
	pass, warn := vendorhook.Answer{Verdict: vendorhook.Pass}, vendorhook.Answer{Verdict: vendorhook.Pass, Text: "mind"}
	deny, ask := vendorhook.Answer{Verdict: vendorhook.Deny, Text: "no"},
		vendorhook.Answer{Verdict: vendorhook.Leave, Text: "sure?"}
	specific := func(event, rest string) string {
		return `{"hookSpecificOutput":{"hookEventName":"` + event + `",` + rest + `}}`
	}
	denied := func(reason string) string {
		return specific("PreToolUse", `"permissionDecision":"deny","permissionDecisionReason":"`+reason+`"`)
	}
	for _, tt := range []struct {
		agent, event string
		a            vendorhook.Answer
		want         string
	}{
		{"claude-code", "PreToolUse", pass, ""},
		{"claude-code", "PreToolUse", warn, specific("PreToolUse", `"additionalContext":"mind"`)},
		{"claude-code", "PreToolUse", deny, denied("no")},
		{"claude-code", "PreToolUse", ask, specific("PreToolUse",
			`"permissionDecision":"ask","permissionDecisionReason":"sure?"`)},
		{"claude-code", "PreToolUse", vendorhook.Answer{}, denied("this call is not allowed here")},
		{"claude-code", "PostToolUse", deny, specific("PostToolUse", `"additionalContext":"no"`)},
		{"claude-code", "Stop", deny, ""},
		{"codex", "PreToolUse", pass, ""},
		{"codex", "PreToolUse", warn, specific("PreToolUse", `"additionalContext":"mind"`)},
		{"codex", "PreToolUse", deny, denied("no")},
		{"codex", "PreToolUse", ask, denied("sure?")}, // it would make the call
		{"codex", "PreToolUse", vendorhook.Answer{Verdict: "new"}, denied("this call is not allowed here")},
		{"opencode", "PreToolUse", pass, `{"verdict":"pass"}`},
		{"opencode", "PreToolUse", warn, `{"verdict":"pass","text":"mind"}`},
		{"opencode", "PreToolUse", ask, `{"verdict":"deny","text":"sure?"}`},
		{"gemini", "BeforeTool", pass, ""},
		{"gemini", "BeforeTool", warn, ""}, // it comes after the call
		{"gemini", "BeforeTool", deny, `{"decision":"deny","reason":"no"}`},
		{"gemini", "BeforeTool", ask, `{"decision":"deny","reason":"sure?"}`}, // it would wait for ever
		{"gemini", "AfterTool", warn, specific("AfterTool", `"additionalContext":"mind"`)},
		{"gemini", "AfterTool", pass, ""},
	} {
		var b bytes.Buffer
		e := read(t, tt.agent, tt.event, "Bash", input)
		if err := e.Write(&b, tt.a); err != nil || strings.TrimSpace(b.String()) != tt.want {
			t.Errorf("%s %s %+v: %q, %v", tt.agent, tt.event, tt.a, b.String(), err)
		}
	}
}

// TestAsks: only Claude Code asks, and only if it says that a person is at its terminal.
func TestAsks(t *testing.T) {
	t.Parallel()
	attended := map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "1", "CLAUDE_CODE_ENTRYPOINT": "cli"}
	for _, d := range vendorhook.Dialects() {
		e := &vendorhook.Event{}
		for name := range map[string]bool{"PreToolUse": true, "BeforeTool": true} {
			if got, err := d.Read(strings.NewReader(strings.Replace(codexShell, "PreToolUse", name, 1))); err == nil &&
				got.Call != nil {
				e = got
			}
		}
		if got := e.Asks(func(name string) string { return attended[name] }); got != (d.Agent == "claude-code") {
			t.Errorf("%s asks a person: %v", d.Agent, got)
		}
		for name, value := range map[string]string{"CLAUDE_CODE_SESSION_ATTENDED": "0", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"} {
			if e.Asks(func(asked string) string {
				if asked == name {
					return value
				}
				return attended[asked]
			}) {
				t.Errorf("%s asks with %s=%s", d.Agent, name, value)
			}
		}
	}
}

// TestFolder: a command is judged in the folder in which it runs; without an ID the events
// before and after a call have the same.
func TestFolder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ agent, event, input, want string }{
		{"opencode", "PreToolUse", `{"command":"ls","workdir":"/other"}`, "/other"},
		{"opencode", "PreToolUse", `{"command":"ls","workdir":"sub"}`, "/w/sub"},
		{"gemini", "BeforeTool", `{"command":"ls","dir_path":"sub"}`, "/w/sub"},
		{"codex", "PreToolUse", `{"command":"ls","workdir":7}`, "/w"},
		{"claude-code", "PreToolUse", `{"command":"ls","workdir":"sub"}`, "/w"},
	} {
		if e := read(t, tt.agent, tt.event, "bash", tt.input); e.Dir != tt.want {
			t.Errorf("%+v: %s", tt, e.Dir)
		}
	}
	before, after := read(t, "gemini", "BeforeTool", "run_shell_command", `{"command":"ls"}`), read(t, "gemini",
		"AfterTool", "run_shell_command", `{"command":"ls"}`)
	if before.Call.ID == "" || before.Call.ID != after.Call.ID || after.Name != vendorhook.PostToolUse || !after.Late() {
		t.Errorf("%+v, %+v", before.Call, after.Call)
	}
}

// FuzzRead: any input is an event that can be judged and answered, or an error.
func FuzzRead(f *testing.F) {
	for _, text := range []string{claudeWrite, claudeWrote, codexShell, `{"hook_event_name":"Stop"}`,
		`{"hook_event_name":"PreToolUse","cwd":"/","tool_name":"apply_patch","tool_input":{"command":"*** Delete File: a"}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range vendorhook.Dialects() {
			fuzzDialect(t, d, text)
		}
	})
}

func fuzzDialect(t *testing.T, d *vendorhook.Dialect, text string) {
	t.Helper()
	e, err := d.Read(strings.NewReader(text))
	if err != nil {
		return
	}
	if e.Name == vendorhook.PreToolUse && (e.Call == nil || e.Call.Kind == agent.ToolExecute && e.Call.Command == "") {
		t.Errorf("a call that cannot be judged: %+v", e)
	}
	var b bytes.Buffer
	if err := e.Write(&b, vendorhook.Answer{Verdict: vendorhook.Deny, Text: text}); err != nil || e.Call != nil &&
		!json.Valid(b.Bytes()) {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestCodexReason: Codex shows a reason as one sentence and ends it itself.
func TestCodexReason(t *testing.T) {
	t.Parallel()
	e := read(t, "codex", vendorhook.PreToolUse, "Bash", `{"command":"x"}`)
	for text, want := range map[string]string{"Not here.": `"Not here"`, "Not here": `"Not here"`} {
		var out bytes.Buffer
		if err := e.Write(&out, vendorhook.Answer{Verdict: vendorhook.Deny, Text: text}); err != nil ||
			!strings.Contains(out.String(), `"permissionDecisionReason":`+want) {
			t.Errorf("%q: %s, %v", text, &out, err)
		}
	}
}

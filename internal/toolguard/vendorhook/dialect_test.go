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
		e, err := vendorhook.Read(strings.NewReader(tt.text))
		if err != nil || e.Name != tt.event || e.Dir != "/w" || e.Call == nil || e.Call.Command != tt.command ||
			!cmp.Equal(e.Call.Paths, tt.paths) || e.Call.ID == "" {
			t.Errorf("%s: %+v, %v", tt.text, e, err)
		}
	}
	for _, text := range []string{`{"hook_event_name":"Stop"}`, `{"hook_event_name":"SomethingNew","tool_name":3}`} {
		if e, err := vendorhook.Read(strings.NewReader(text)); text == `{"hook_event_name":"Stop"}` &&
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
		if e, err := vendorhook.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, err := vendorhook.Read(io.MultiReader(strings.NewReader(claudeWrite), failing{})); err == nil {
		t.Error("a pipe that breaks is not an error")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("broken") }

func TestWrite(t *testing.T) {
	t.Parallel()
	before, after, other := &vendorhook.Event{Name: "PreToolUse", Call: &agent.ToolCall{}}, &vendorhook.Event{
		Name: "PostToolUse", Call: &agent.ToolCall{}}, &vendorhook.Event{Name: "Stop"}
	for _, tt := range []struct {
		e    *vendorhook.Event
		a    vendorhook.Answer
		want string
	}{
		{before, vendorhook.Answer{Verdict: vendorhook.Pass}, ""},
		{before, vendorhook.Answer{Verdict: vendorhook.Pass, Text: "mind"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"mind"}}`},
		{before, vendorhook.Answer{Verdict: vendorhook.Deny, Text: "no"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		{before, vendorhook.Answer{Verdict: vendorhook.Leave, Text: "sure?"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask",` +
				`"permissionDecisionReason":"sure?"}}`},
		{before, vendorhook.Answer{},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",` +
				`"permissionDecisionReason":"this call is not allowed here"}}`},
		{after, vendorhook.Answer{Verdict: vendorhook.Deny, Text: "lost"},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"lost"}}`},
		{other, vendorhook.Answer{Verdict: vendorhook.Deny, Text: "x"}, ""},
	} {
		var b bytes.Buffer
		if err := tt.e.Write(&b, tt.a); err != nil || strings.TrimSpace(b.String()) != tt.want {
			t.Errorf("%s %+v: %q, %v", tt.e.Name, tt.a, b.String(), err)
		}
	}
}

// FuzzRead: any input is an event that can be judged and answered, or an error.
func FuzzRead(f *testing.F) {
	for _, text := range []string{claudeWrite, claudeWrote, codexShell, `{"hook_event_name":"Stop"}`,
		`{"hook_event_name":"PreToolUse","cwd":"/","tool_name":"apply_patch","tool_input":{"command":"*** Delete File: a"}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := vendorhook.Read(strings.NewReader(text))
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
	})
}

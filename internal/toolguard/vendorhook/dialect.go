package vendorhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/perdure/perdure/agent"
)

// MaxBytes limits the input from an agent.
const MaxBytes = 16 << 20

// Supported events; others of the agents are ignored.
const (
	PreToolUse         = "PreToolUse"
	PostToolUse        = "PostToolUse"
	PostToolUseFailure = "PostToolUseFailure"
)

// Event is an event that an agent sends to its hook.
type Event struct {
	// Name is the agent's name of the event.
	Name string
	// Session is the agent's session; may be empty.
	Session string
	// Dir is the agent's working folder, an absolute path.
	Dir string
	// Call is the tool call of the event; nil if it has none.
	Call *agent.ToolCall
}

// input is the JSON that an agent sends.
type input struct {
	Event     string          `json:"hook_event_name"`
	Session   string          `json:"session_id"`
	Dir       string          `json:"cwd"`
	Tool      string          `json:"tool_name"`
	ToolInput json.RawMessage `json:"tool_input"`
	CallID    string          `json:"tool_use_id"`
}

// Read reads an event. A call that cannot be parsed completely is an error, because it
// cannot be judged; the event is returned with the error as far as it is known.
func Read(r io.Reader) (*Event, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read hook event: %w", err)
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("read hook event: more than %d bytes", MaxBytes)
	}
	var in input
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("read hook event: %w", err)
	}
	e := &Event{Name: in.Event, Session: in.Session, Dir: in.Dir}
	if in.Event == "" {
		return nil, errors.New("read hook event: hook_event_name is missing")
	}
	if !slices.Contains([]string{PreToolUse, PostToolUse, PostToolUseFailure}, in.Event) {
		return e, nil
	}
	if e.Call, err = in.call(); err != nil {
		return e, fmt.Errorf("read hook event %s: %w", in.Event, err)
	}
	if !filepath.IsAbs(e.Dir) {
		return e, fmt.Errorf("read hook event %s: cwd %.100q is not an absolute path", in.Event, e.Dir)
	}
	return e, nil
}

func (in *input) call() (*agent.ToolCall, error) {
	if in.Tool == "" {
		return nil, errors.New("tool_name is missing")
	}
	if given := bytes.TrimSpace(in.ToolInput); len(given) == 0 || given[0] != '{' {
		return nil, errors.New("tool_input is not an object")
	}
	call := agent.Describe(in.CallID, in.Tool, in.ToolInput)
	switch call.Kind {
	case agent.ToolExecute:
		if call.Command == "" {
			return nil, fmt.Errorf("tool %.100q: tool_input has no command", in.Tool)
		}
	case agent.ToolEdit, agent.ToolDelete, agent.ToolMove:
		if len(call.Paths) == 0 {
			return nil, fmt.Errorf("tool %.100q: tool_input has no file", in.Tool)
		}
	default:
	}
	return &call, nil
}

// Verdict is the answer about a call.
type Verdict string

// Verdicts.
const (
	// Pass leaves the call to the agent's own rules; the agent receives the text.
	Pass Verdict = "pass"
	// Deny refuses the call, Leave leaves it to the person at the agent; the text is the
	// reason.
	Deny  Verdict = "deny"
	Leave Verdict = "ask"
)

// Answer is the answer of a hook.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text,omitempty"`
}

// specific is the JSON that the agent receives in hookSpecificOutput.
type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

// Write answers an event. Pass does not allow the call: the agent's own rules still
// apply. Nothing is written if the answer is empty.
func (e *Event) Write(w io.Writer, a Answer) error {
	out := specific{Event: e.Name}
	switch {
	case e.Call == nil:
		return nil
	case e.Name == PreToolUse && a.Verdict != Pass:
		if a.Verdict != Leave {
			a.Verdict = Deny
		}
		out.Decision, out.Reason = string(a.Verdict), cmp.Or(a.Text, "this call is not allowed here")
	case a.Text == "":
		return nil
	default:
		out.Context = a.Text
	}
	doc, err := json.Marshal(map[string]specific{"hookSpecificOutput": out})
	if err != nil {
		return err
	}
	_, err = w.Write(append(doc, '\n'))
	return err
}

// Patience is the maximum time of a hook; agents are configured to wait a little longer.
const Patience = 10 * time.Minute

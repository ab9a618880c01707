package vendorhook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/agent"
)

// MaxBytes is the most that is read of an agent.
const MaxBytes = 16 << 20

// The events that mean something here; agents have more, which are let be.
const (
	PreToolUse         = "PreToolUse"
	PostToolUse        = "PostToolUse"
	PostToolUseFailure = "PostToolUseFailure"
)

// Event is what an agent tells its hook.
type Event struct {
	// Name is the agent's name of the event.
	Name string
	// Session is the agent's session; may be empty.
	Session string
	// Dir is the agent's working folder, an absolute path.
	Dir string
	// Call is the call of a tool that the event is about; nil where it is about none.
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

// Read reads an event. An event about a call that is not understood whole is an
// error: what cannot be read cannot be judged. Which event it was is told all the same,
// where that is known.
func Read(r io.Reader) (*Event, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("read the event: it has more than %d bytes", MaxBytes)
	}
	var in input
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("read the event: %w", err)
	}
	e := &Event{Name: in.Event, Session: in.Session, Dir: in.Dir}
	if in.Event == "" {
		return nil, errors.New("read the event: hook_event_name is missing")
	}
	switch in.Event {
	case PreToolUse, PostToolUse, PostToolUseFailure:
	default:
		return e, nil
	}
	if e.Call, err = in.call(); err != nil {
		return e, fmt.Errorf("read the event %s: %w", in.Event, err)
	}
	if !filepath.IsAbs(e.Dir) {
		return e, fmt.Errorf("read the event %s: cwd %.100q is no absolute path", in.Event, e.Dir)
	}
	return e, nil
}

func (in *input) call() (*agent.ToolCall, error) {
	if in.Tool == "" {
		return nil, errors.New("tool_name is missing")
	}
	if given := bytes.TrimSpace(in.ToolInput); len(given) == 0 || given[0] != '{' {
		return nil, errors.New("tool_input is no object")
	}
	call := agent.Describe(in.CallID, in.Tool, in.ToolInput)
	switch call.Kind {
	case agent.ToolExecute:
		if call.Command == "" {
			return nil, fmt.Errorf("the tool %.100q runs a command, and tool_input has none", in.Tool)
		}
	case agent.ToolEdit, agent.ToolDelete, agent.ToolMove:
		if len(call.Paths) == 0 {
			return nil, fmt.Errorf("the tool %.100q changes files, and tool_input names none", in.Tool)
		}
	default:
	}
	return &call, nil
}

// Verdict is what is answered about a call.
type Verdict string

// The verdicts.
const (
	// Pass leaves the call to the agent's own rules; text is told to the agent.
	Pass Verdict = "pass"
	// Deny refuses it, Leave leaves it to the person at the agent; text says why.
	Deny  Verdict = "deny"
	Leave Verdict = "ask"
)

// Answer is what a hook says.
type Answer struct {
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text,omitempty"`
}

// output is the JSON that an agent is answered with.
type output struct {
	Specific specific `json:"hookSpecificOutput"`
}

type specific struct {
	Event    string `json:"hookEventName"`
	Decision string `json:"permissionDecision,omitempty"`
	Reason   string `json:"permissionDecisionReason,omitempty"`
	Context  string `json:"additionalContext,omitempty"`
}

// Write answers an event. A call that passes is not allowed by that: the agent's
// own rules still hold. Nothing is written where there is nothing to say.
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
	doc, err := json.Marshal(output{out})
	if err != nil {
		return err
	}
	_, err = w.Write(append(doc, '\n'))
	return err
}

// Patience is how long a hook may take; agents are told to wait a little longer.
const Patience = 10 * time.Minute

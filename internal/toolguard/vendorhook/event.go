package vendorhook

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/perdure/perdure/agent"
)

// MaxBytes limits the input from an agent.
const MaxBytes = 16 << 20

// Supported events; others of the agents are ignored. Dialects translate the names of their
// agents.
const (
	PreToolUse         = "PreToolUse"
	PostToolUse        = "PostToolUse"
	PostToolUseFailure = "PostToolUseFailure"
)

// Patience is the maximum time of a hook; agents are configured to wait a little longer.
const Patience = 10 * time.Minute

// Event is an event that an agent sends to its hook.
type Event struct {
	// Name is one of the constants, or the agent's name of another event.
	Name string
	// Session is the agent's session; may be empty.
	Session string
	// Dir is the folder in which the call is made, an absolute path.
	Dir string
	// Call is the tool call of the event; nil if it has none.
	Call *agent.ToolCall

	dialect *Dialect
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
func (d *Dialect) Read(r io.Reader) (*Event, error) {
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
	if in.Event == "" {
		return nil, errors.New("read hook event: hook_event_name is missing")
	}
	e := &Event{Name: in.Event, Session: in.Session, Dir: in.Dir, dialect: d}
	name, known := d.events[in.Event]
	if !known {
		return e, d.foreign(in.Event)
	}
	e.Name = name
	if e.Call, err = in.call(); err != nil {
		return e, fmt.Errorf("read hook event %s: %w", in.Event, err)
	}
	if !filepath.IsAbs(e.Dir) {
		return e, fmt.Errorf("read hook event %s: cwd %.100q is not an absolute path", in.Event, e.Dir)
	}
	if e.Call.Kind == agent.ToolExecute {
		e.Dir = d.folder(in.ToolInput, e.Dir)
	}
	return e, nil
}

// foreign returns an error for an event of another agent's dialect, whose reply its agent would
// not understand.
func (d *Dialect) foreign(event string) error {
	for _, other := range Dialects() {
		if _, ok := other.events[event]; ok {
			return fmt.Errorf("read hook event: %s has no event %s, it is one of %s", d.Title, event, other.Title)
		}
	}
	return nil
}

func (in *input) call() (*agent.ToolCall, error) {
	if in.Tool == "" {
		return nil, errors.New("tool_name is missing")
	}
	if given := bytes.TrimSpace(in.ToolInput); len(given) == 0 || given[0] != '{' {
		return nil, errors.New("tool_input is not an object")
	}
	call := agent.Describe(cmp.Or(in.CallID, in.id()), in.Tool, in.ToolInput)
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

// id returns the same ID for the events before and after a call, for agents that send none.
func (in *input) id() string {
	sum := sha256.Sum256([]byte(in.Session + "\x00" + in.Tool + "\x00" + string(in.ToolInput)))
	return "hook-" + hex.EncodeToString(sum[:8])
}

// folder returns the folder in which a command runs that the agent starts in dir.
func (d *Dialect) folder(toolInput json.RawMessage, dir string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(toolInput, &members) != nil {
		return dir
	}
	for _, name := range d.folders {
		var given string
		if json.Unmarshal(members[name], &given) != nil || given == "" {
			continue
		}
		if !filepath.IsAbs(given) {
			given = filepath.Join(dir, given)
		}
		return given
	}
	return dir
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

// Asks reports whether the agent asks its user before the call if its hook answers Leave.
// The environment is that of the hook.
func (e *Event) Asks(getenv func(string) string) bool {
	return e.dialect != nil && e.dialect.asks != nil && e.dialect.asks(getenv)
}

// Late reports whether the agent's model receives the text of an answer only after the call.
func (e *Event) Late() bool { return e.dialect != nil && e.dialect.late }

// noReason is the reason of a denial without a text.
const noReason = "this call is not allowed here"

// Write answers an event. Pass does not allow the call: the agent's own rules still
// apply. A verdict that is not known denies the call, and so does Leave if the agent cannot
// ask at all. Nothing is written if the answer is empty.
func (e *Event) Write(w io.Writer, a Answer) error {
	if e.Call == nil {
		return nil
	}
	if a.Verdict != Pass && (a.Verdict != Leave || e.dialect.asks == nil) {
		a.Verdict = Deny
	}
	if a.Verdict != Pass {
		a.Text = cmp.Or(a.Text, noReason)
	}
	reply := e.dialect.reply(e.Name, a)
	if reply == nil {
		return nil
	}
	doc, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	_, err = w.Write(append(doc, '\n'))
	return err
}

package hook

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/text/clip"
)

// Role is the role of the sender: the loop is the user, a handler the assistant.
type Role string

// The roles.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is the input of handlers of a hook. It is read-only for them, and
// for the loop after it is passed to a [Runner].
type Message struct {
	// Role is RoleUser; empty means the same.
	Role Role `json:"role"`
	// Content says in words what is asked.
	Content string `json:"content"`
	// Metadata says the same to programs.
	Metadata Metadata `json:"metadata"`
	// Timestamp is when it was sent, in UTC; [Runner.Run] fills it in.
	Timestamp time.Time `json:"timestamp,omitzero"`
	// Sender is the name of the sender; [Runner.Run] sets "perdure".
	Sender string `json:"sender,omitempty"`
}

// Metadata is the part of a [Message] that programs read.
type Metadata struct {
	// HookName is the hook. Required.
	HookName Name `json:"hook_name"`
	// LoopID is the loop; at most [MaxLoopIDBytes].
	LoopID string `json:"loop_id,omitempty"`
	// Iteration is its current iteration; 0 before the first.
	Iteration int `json:"iteration"`
	// Inputs are what the hook carries; see [Table]. Handlers in this process get
	// the values as they are; in a decoded message numbers are json.Number.
	Inputs map[string]any `json:"inputs"`
}

// validate says everything that is wrong, each with its field; but for the
// name of the hook.
func (m Message) validate() error {
	var errs []error
	if m.Role != RoleUser {
		errs = append(errs, fmt.Errorf("role: want %q, found %q", RoleUser, clip.Bytes(string(m.Role), MaxNameBytes)))
	}
	if id := m.Metadata.LoopID; strings.ContainsFunc(id, isControl) {
		errs = append(errs, errors.New("metadata.loop_id: contains a control character"))
	}
	if m.Metadata.Iteration < 0 {
		errs = append(errs, fmt.Errorf("metadata.iteration: want a whole number from 0, found %d", m.Metadata.Iteration))
	}
	return errors.Join(append(errs,
		within("metadata.loop_id", MaxLoopIDBytes, len(m.Metadata.LoopID)),
		within("sender", MaxNameBytes, len(m.Sender)))...)
}

// unknownHook returns the error of an unknown hook.
func unknownHook(field string, name Name) error {
	if name == "" {
		return fmt.Errorf("%s: is missing", field)
	}
	if near, ok := nearestName(name); ok {
		return fmt.Errorf("%s: there is no hook %q; did you mean %q?", field, clip.Bytes(string(name), MaxNameBytes), near)
	}
	return fmt.Errorf("%s: there is no hook %q", field, clip.Bytes(string(name), MaxNameBytes))
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// withDefaults fills in what the sender left out.
func (m Message) withDefaults(now time.Time) Message {
	m.Role = cmp.Or(m.Role, RoleUser)
	if m.Timestamp.IsZero() {
		m.Timestamp = now.UTC()
	}
	m.Sender = cmp.Or(m.Sender, "perdure")
	if m.Metadata.Inputs == nil {
		m.Metadata.Inputs = map[string]any{}
	}
	return m
}

// destroys reports whether the call a message is about may destroy something:
// unless the loop says that it does not.
func (m Message) destroys() bool {
	destructive, said := m.Metadata.Inputs["destructive"].(bool)
	return !said || destructive
}

// Encode returns the message as one JSON object without line breaks, valid
// under the schema hook-message. It fails when an input cannot be written as
// JSON, and with a [*LimitError] beyond [MaxMessageBytes].
func (m Message) Encode() ([]byte, error) {
	m.Role = cmp.Or(m.Role, RoleUser)
	if m.Metadata.Inputs == nil {
		m.Metadata.Inputs = map[string]any{}
	}
	doc, err := marshal(m)
	if err != nil {
		return nil, fmt.Errorf("write message as JSON: %w", err)
	}
	if err := within("message", MaxMessageBytes, len(doc)); err != nil {
		return nil, err
	}
	return doc, nil
}

// DecodeMessage reads a message, for handlers that are written in Go. Members
// it does not know are ignored; timestamp, sender, loop_id, iteration and inputs
// may be missing. The error names everything that is wrong.
func DecodeMessage(text []byte) (Message, error) {
	m, err := decodeMessage(text)
	if err != nil {
		return Message{}, fmt.Errorf("read message: %w", err)
	}
	return m, nil
}

func decodeMessage(text []byte) (m Message, err error) {
	if err := within("message", MaxMessageBytes, len(text)); err != nil {
		return m, err
	}
	o, err := parseObject(text)
	if err != nil {
		return m, err
	}
	m = Message{
		Role: Role(o.string("role", MaxNameBytes)), Content: o.string("content", MaxMessageBytes),
		Timestamp: o.time("timestamp").UTC(), Sender: o.string("sender", MaxNameBytes),
	}
	if meta, ok := o.child("metadata"); ok {
		m.Metadata = Metadata{
			HookName: Name(meta.string("hook_name", MaxNameBytes)), LoopID: meta.string("loop_id", MaxLoopIDBytes),
			Iteration: meta.count("iteration"), Inputs: meta.free("inputs", MaxMessageBytes),
		}
	}
	if m.Metadata.Inputs == nil {
		m.Metadata.Inputs = map[string]any{}
	}
	if err := errors.Join(*o.errs...); err != nil {
		return m, err
	}
	err = m.validate()
	if name := m.Metadata.HookName; !name.known() {
		err = errors.Join(unknownHook("metadata.hook_name", name), err)
	}
	return m, err
}

package wire

import (
	"encoding/json"

	"github.com/perdure/perdure/model"
)

// maxToolCalls bounds the calls of one reply.
const maxToolCalls = 100

// ToolCalls collects the calls of tools in a reply, which may arrive in parts. The zero value is
// empty.
type ToolCalls struct {
	calls []toolCall
	size  int
}

type toolCall struct {
	index     int
	id, name  string
	arguments []byte
}

// ToolPart is a part of a call: the first one has the name.
type ToolPart struct {
	Index     int
	ID, Name  string
	Arguments string
}

// Add adds a part to the call with its index. Some servers give all calls the same index: a
// part with another ID begins another call, and so does one with a name behind complete
// arguments. The error is that of a text that is too long for text.
func (t *ToolCalls) Add(p ToolPart, text *model.Collector) error {
	t.size += len(p.Name) + len(p.Arguments)
	switch size := t.size + text.Len(); {
	case text.Limit > 0 && size > text.Limit:
		return model.TooLarge(text.Limit)
	case text.Most > 0 && size > text.Most:
		return model.ErrOverLimit
	}
	c := t.find(p)
	if c == nil {
		if len(t.calls) == maxToolCalls {
			return nil
		}
		t.calls = append(t.calls, toolCall{index: p.Index})
		c = &t.calls[len(t.calls)-1]
	}
	if c.id == "" {
		c.id = p.ID
	}
	if c.name == "" {
		c.name = p.Name
	}
	c.arguments = append(c.arguments, p.Arguments...)
	return nil
}

// find returns the call that a part belongs to, nil for a new one.
func (t *ToolCalls) find(p ToolPart) *toolCall {
	for i := len(t.calls) - 1; i >= 0; i-- {
		c := &t.calls[i]
		switch {
		case c.index != p.Index:
			continue
		case p.ID != "" && c.id != "" && p.ID != c.id,
			p.ID == "" && p.Name != "" && json.Valid(c.arguments):
			return nil
		}
		return c
	}
	return nil
}

// Len returns the bytes of the calls.
func (t *ToolCalls) Len() int { return t.size }

// AppendTo writes the calls behind a text, each as a line.
func (t *ToolCalls) AppendTo(text *model.Collector) {
	for _, c := range t.calls {
		line := model.ToolLine(c.name, string(c.arguments))
		if text.Len() > 0 {
			line = "\n" + line
		}
		if _, err := text.WriteString(line); err != nil {
			return
		}
	}
	t.calls = nil
}

// AppendAsText writes the calls of a model that was sent no tools as text, in the form in which models
// write them.
func (t *ToolCalls) AppendAsText(text *model.Collector) {
	for _, c := range t.calls {
		raw, err := json.Marshal(map[string]string{"name": c.name, "arguments": string(c.arguments)})
		if err != nil {
			continue
		}
		if _, err := text.WriteString("<tool_call>\n" + string(raw) + "\n</tool_call>\n"); err != nil {
			return
		}
	}
	t.calls = nil
}

// Arguments are the arguments of a call: JSON in a string, or, of some servers, an object.
type Arguments string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *Arguments) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		*a = Arguments(data)
		return nil
	}
	var text Text
	err := text.UnmarshalJSON(data)
	*a = Arguments(text)
	return err
}

package wire

import (
	"strings"

	"github.com/perdure/perdure/model"
)

// Thoughts collects what a server sends as the thoughts of the model, apart from the answer. What is
// longer than is kept is dropped.
type Thoughts struct{ text strings.Builder }

// Add adds a part.
func (t *Thoughts) Add(parts ...Text) {
	for _, part := range parts {
		if t.text.Len() <= model.MaxThoughtsBytes {
			t.text.WriteString(string(part))
		}
	}
}

// Fill sets the thoughts of a response. Estimated usage includes them.
func (t *Thoughts) Fill(resp *model.Response) {
	resp.Thoughts = t.text.String()
	if resp.Usage.Estimated {
		resp.Usage.OutputTokens += model.EstimateTokens(t.text.Len())
	}
}

// String returns what was collected.
func (t *Thoughts) String() string { return t.text.String() }

// Content is the content of a message: text, or parts of which some can be thoughts.
type Content struct{ Text, Thoughts Text }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *Content) UnmarshalJSON(data []byte) error {
	*c = Content{}
	if data[0] == '[' {
		var parts []struct {
			Thinking Text `json:"thinking"`
		}
		_ = Decode(data, &parts) // the text is decoded again
		for _, part := range parts {
			c.Thoughts += part.Thinking
		}
	}
	return c.Text.UnmarshalJSON(data)
}

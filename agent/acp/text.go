package acp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// clean returns s as valid UTF-8 without NUL bytes.
func clean(s string) string {
	s, _ = model.Clean(s)
	return s
}

// ending keeps the end of text that arrives in parts.
type ending struct {
	text []byte
	cut  bool
}

// add appends a part. Twice the limit is held, so that most parts move
// nothing.
func (e *ending) add(piece string) {
	if len(piece) > agent.MaxTextBytes {
		piece, e.cut = clip.Suffix(piece, agent.MaxTextBytes), true
	}
	e.text = append(e.text, piece...)
	if over := len(e.text) - 2*agent.MaxTextBytes; over > 0 {
		e.text, e.cut = append(e.text[:0], e.text[len(e.text)-agent.MaxTextBytes:]...), true
	}
}

// String returns the end, of at most agent.MaxTextBytes, and sets cut when
// there was more.
func (e *ending) String() string {
	e.cut = e.cut || len(e.text) > agent.MaxTextBytes
	return strings.ToValidUTF8(clip.Suffix(string(e.text), agent.MaxTextBytes), "")
}

// content is the content of a message or a tool call: one block, or many.
type content []block

// UnmarshalJSON takes a block or a list of them; those that are not understood
// are empty.
func (c *content) UnmarshalJSON(raw []byte) error {
	*c = nil
	if string(raw) == "null" {
		return nil
	}
	if len(raw) > 0 && raw[0] == '[' {
		_ = json.Unmarshal(raw, (*[]block)(c)) // what is not a block stays empty
		return nil
	}
	var b block
	_ = json.Unmarshal(raw, &b)
	*c = content{b}
	return nil
}

// text joins what the blocks say in text. Diffs and terminals are shown by
// other fields of a tool call.
func (c content) text() string {
	texts := make([]string, 0, 1)
	for i := range c {
		if text := c[i].text(); text != "" {
			texts = append(texts, text)
		}
	}
	return clean(strings.Join(texts, "\n"))
}

// shows reports whether the content says what the output is: an empty one does,
// one that only points to a terminal does not.
func (c content) shows() bool {
	return c != nil && (len(c) == 0 || slices.ContainsFunc(c, func(b block) bool { return b.Type != "terminal" }))
}

// block is a content block, or what a tool call wraps around one.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Path     string `json:"path"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
	Content *block `json:"content"`
}

// text returns the text of a block; a block of another kind is described by its
// address or kind.
func (b *block) text() string {
	switch {
	case b.Type == "content" && b.Content != nil:
		return b.Content.text()
	case b.Type == "diff" || b.Type == "terminal" || b.Type == "content":
		return ""
	case b.Text != "":
		return b.Text
	case b.Resource.Text != "":
		return b.Resource.Text
	case b.URI != "" || b.Resource.URI != "":
		return "[" + b.URI + b.Resource.URI + "]"
	case b.Type != "" && b.Type != "text":
		return "[" + b.Type + "]"
	}
	return ""
}

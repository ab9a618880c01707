package acp

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/model"
)

// clean returns s as valid UTF-8 without NUL bytes.
func clean(s string) string {
	s, _ = model.Clean(s)
	return s
}

// tailOf returns the end of s, of at most limit bytes and never from within a
// character.
func tailOf(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// headOf returns the beginning of s, of at most limit bytes and never up to
// within a character.
func headOf(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// firstLine returns the first line of s, of at most limit bytes.
func firstLine(s string, limit int) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return headOf(strings.TrimSpace(s), limit)
}

// ending keeps the end of a text that arrives in pieces.
type ending struct {
	text []byte
	cut  bool
}

// add appends a piece. Twice the limit is held, so that most pieces move
// nothing.
func (e *ending) add(piece string) {
	if len(piece) > agent.MaxTextBytes {
		piece, e.cut = tailOf(piece, agent.MaxTextBytes), true
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
	return strings.ToValidUTF8(tailOf(string(e.text), agent.MaxTextBytes), "")
}

// block is a content block. Blocks of other kinds than text are told by name.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
	} `json:"resource"`
}

// blockText returns what a content block says in text.
func blockText(raw json.RawMessage) string {
	var b block
	if lenient(raw, &b) != nil {
		return ""
	}
	switch {
	case b.Text != "":
		return clean(b.Text)
	case b.Resource.Text != "":
		return clean(b.Resource.Text)
	case b.URI != "" || b.Resource.URI != "":
		return "[" + clean(b.URI+b.Resource.URI) + "]"
	case b.Type != "" && b.Type != "text":
		return "[" + clean(b.Type) + "]"
	}
	return ""
}

// blocksText joins what content blocks say.
func blocksText(blocks []json.RawMessage) string {
	texts := make([]string, 0, len(blocks))
	for _, b := range blocks {
		if text := blockText(b); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

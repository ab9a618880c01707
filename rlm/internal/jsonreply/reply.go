package jsonreply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxReplyJSON bounds the JSON that is looked for in a reply, in bytes,
// maxReplyStarts the places where it may begin, and maxReplyScan the bytes that
// are read from all of these.
const (
	maxReplyJSON   = 16 << 20
	maxReplyStarts = 200
	maxReplyScan   = 2 * maxReplyJSON
)

// JSONIn returns the JSON value that a model wrote: the whole reply, what
// stands in a fence, or the first object or list in the text around it. It is
// compact. The error says what is wrong in words that help the model.
func JSONIn(reply string) (json.RawMessage, error) {
	text := strings.TrimSpace(strings.TrimPrefix(reply, "\ufeff"))
	if len(text) > maxReplyJSON {
		return nil, fmt.Errorf("the reply has %d bytes, the limit is %d", len(text), maxReplyJSON)
	}
	if text == "" {
		return nil, errors.New("the reply is empty; reply with one JSON value")
	}
	if raw, err := compactJSON(text); err == nil {
		return raw, nil
	}
	for _, block := range fenced(text) {
		if raw, err := compactJSON(block); err == nil {
			return raw, nil
		}
	}
	return firstJSON(text)
}

func compactJSON(text string) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// fenced returns the text between lines of three backticks or tildes.
func fenced(text string) []string {
	var out []string
	fence, from, at := "", 0, 0
	for line := range strings.SplitAfterSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "" && strings.HasPrefix(trimmed, fence):
			out = append(out, text[from:at])
			fence = ""
		case fence == "" && (strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")):
			fence, from = trimmed[:3], at+len(line)
		}
		at += len(line)
	}
	if fence != "" { // never closed
		out = append(out, text[from:])
	}
	return out
}

// unfenced returns the text between the fences of a text that is one block, otherwise the text.
func unfenced(text string) string {
	whole := strings.TrimSpace(text)
	blocks := fenced(whole)
	if len(blocks) != 1 || !strings.HasPrefix(whole, "```") || !strings.HasSuffix(whole, "```") {
		return text
	}
	return blocks[0]
}

// firstJSON returns the first object or list of a text. Where none is whole,
// the error is of the first that began.
func firstJSON(text string) (json.RawMessage, error) {
	var first error
	at, scanned := 0, 0
	for i := 0; i < maxReplyStarts && scanned < maxReplyScan; i++ {
		next := strings.IndexAny(text[at:], "{[")
		if next < 0 {
			break
		}
		at += next
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		var raw json.RawMessage
		err := dec.Decode(&raw)
		if err == nil {
			return compactJSON(string(raw))
		}
		if first == nil {
			first = jsonFault(text[at:], err)
		}
		scanned += int(dec.InputOffset()) + 1
		if _, syntax := errors.AsType[*json.SyntaxError](err); !syntax {
			scanned += len(text) - at
		}
		at++
	}
	return nil, cmp.Or(first, errors.New("the reply contains no JSON; reply with one JSON value and nothing else"))
}

// jsonFault says where JSON that began is broken.
func jsonFault(text string, err error) error {
	syntax, ok := errors.AsType[*json.SyntaxError](err)
	if !ok {
		return errors.New("the JSON ends before it is complete")
	}
	at := max(min(int(syntax.Offset)-1, len(text)), 0)
	near := text[max(at-20, 0):at]
	return fmt.Errorf("the JSON is broken after %q: %s", strings.ToValidUTF8(near, ""),
		strings.TrimPrefix(syntax.Error(), "json: "))
}

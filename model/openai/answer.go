package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

// completion is an answer that is not streamed, or an event of one that is.
type completion struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   usage           `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

// choice is one answer of several; only the first is read. An answer that is
// not streamed has a message, an event of a stream has a delta.
type choice struct {
	Message      message `json:"message"`
	Delta        message `json:"delta"`
	FinishReason string  `json:"finish_reason"`
}

type message struct {
	Content wire.Text `json:"content"`
	Refusal wire.Text `json:"refusal"`
	// Calls are read only if tools were sent.
	Calls json.RawMessage `json:"tool_calls"`
}

// toolCall is a call of a tool, or a part of it.
type toolCall struct {
	Index    int       `json:"index"`
	ID       wire.Text `json:"id"`
	Function struct {
		Name      wire.Text      `json:"name"`
		Arguments wire.Arguments `json:"arguments"`
	} `json:"function"`
}

// usage is the tokens as the protocol counts them: cached ones are a part of
// those of the prompt.
type usage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) model() model.Usage {
	return model.Usage{InputTokens: u.Prompt, OutputTokens: u.Completion, CachedTokens: u.Details.Cached}
}

// answer collects what the server sends.
type answer struct {
	text  model.Collector
	model string
	stop  string
	usage usage
	// tools: tools were sent; calls are those of the model.
	tools bool
	calls wire.ToolCalls
	// ended: the server said that this is all.
	ended bool
	// refusal is what the model says instead of an answer.
	refusal strings.Builder
}

// Len returns the bytes of the answer that were read.
func (a *answer) Len() int { return a.text.Len() + a.calls.Len() }

// Usage returns what the server has reported so far.
func (a *answer) Usage() model.Usage { return a.usage.model() }

// ReadWhole reads the reply of a server that does not stream.
func (a *answer) ReadWhole(body io.Reader) error {
	var c completion
	if err := wire.ReadWhole(body, a.text.Limit, &c, func() bool { return len(c.Choices) > 0 }); err != nil {
		return err
	}
	first := c.Choices[0]
	a.model, a.usage, a.stop, a.ended = c.Model, c.Usage, first.FinishReason, true
	a.refusal.WriteString(string(first.Message.Refusal))
	if _, err := a.text.WriteString(string(first.Message.Content)); err != nil {
		return err
	}
	return a.call(first.Message.Calls, true)
}

// call adds calls of tools. Those of a reply that is whole are one each, whatever their index.
func (a *answer) call(raw json.RawMessage, whole bool) error {
	if !a.tools || len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var calls []toolCall
	if err := wire.Decode(raw, &calls); err != nil {
		return err
	}
	for i, c := range calls {
		p := wire.ToolPart{Index: c.Index, ID: string(c.ID), Name: string(c.Function.Name),
			Arguments: string(c.Function.Arguments)}
		if whole {
			p.Index = i
		}
		if err := a.calls.Add(p, &a.text); err != nil {
			return err
		}
	}
	return nil
}

// ReadStream reads a streamed reply.
func (a *answer) ReadStream(body io.Reader) error {
	events := 0
	for e, err := range wire.Events(body, a.text.Limit) {
		if bytes.HasPrefix(e.Data, []byte("[DONE]")) {
			return nil
		}
		var c completion
		if err == nil {
			err = decodeEvent(e.Data, &c)
		}
		switch {
		case err != nil && a.ended: // an error after the end changes nothing
			return nil
		case err != nil:
			return err
		}
		events++
		if err := a.add(&c); err != nil {
			return err
		}
	}
	switch {
	case a.ended:
		return nil
	case events == 0:
		return wire.ErrNotAnswer
	}
	return wire.ErrNoEnd
}

func decodeEvent(data []byte, c *completion) error {
	if err := wire.Decode(data, c); err != nil {
		return err
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return wire.ReadServerError(data)
	}
	return nil
}

func (a *answer) add(c *completion) error {
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage.Prompt > 0 || c.Usage.Completion > 0 {
		a.usage = c.Usage
	}
	if len(c.Choices) == 0 {
		return nil
	}
	first := c.Choices[0]
	if first.FinishReason == "error" {
		return wire.ErrNoEnd
	}
	if first.FinishReason != "" {
		a.stop, a.ended = first.FinishReason, true
	}
	a.refusal.WriteString(string(first.Delta.Refusal))
	if _, err := a.text.WriteString(string(first.Delta.Content)); err != nil {
		return err
	}
	return a.call(first.Delta.Calls, false)
}

// Response returns the response. sent is the length of the request in bytes.
func (a *answer) Response(sent int) (*model.Response, *model.Error) {
	a.calls.AppendTo(&a.text)
	resp := wire.Response(&a.text, sent, a.usage.model())
	resp.StopReason, resp.Model = a.stop, a.model
	if strings.TrimSpace(resp.Text) == "" {
		if err := a.why(); err != nil {
			return nil, err
		}
	}
	if a.stop == "length" {
		resp.Notes = append(resp.Notes, "the answer ends at the limit for answers")
	}
	return resp, nil
}

// why explains an empty answer, when asking again would not help.
func (a *answer) why() *model.Error {
	switch {
	case a.refusal.Len() > 0:
		return &model.Error{Kind: model.KindInvalid, Msg: "the model refuses to answer",
			Detail: model.Redact(a.refusal.String())}
	case a.stop == "content_filter":
		return &model.Error{Kind: model.KindInvalid, Msg: "the provider's content filter withheld the answer"}
	case a.stop == "length":
		return &model.Error{
			Kind: model.KindInvalid, Msg: "the answer ended at the limit for answers before there was any text",
			Hint: "raise the limit for answers; a reasoning model needs some of it before it writes",
		}
	}
	return nil
}

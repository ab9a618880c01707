package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"iter"
	"strings"

	"github.com/perdure/perdure/internal/text/sse"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

// completion is an answer that is not streamed, or an event of one that is.
type completion struct {
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   usage           `json:"usage"`
	Groq    groq            `json:"x_groq"`
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
}

// groq is where Groq reports the usage of a stream.
type groq struct {
	Usage usage `json:"usage"`
}

// choice is one answer of several; only the first is read. An answer that is
// not streamed has a message, an event of a stream has a delta, and the older protocol has a text.
type choice struct {
	Index        int       `json:"index"`
	Message      message   `json:"message"`
	Delta        message   `json:"delta"`
	Text         wire.Text `json:"text"`
	FinishReason string    `json:"finish_reason"`
	// Usage is where Moonshot reports the usage of a stream.
	Usage usage `json:"usage"`
}

// hasEnded reports whether this is the end of the choice. Some servers write null as text.
func (c *choice) hasEnded() bool { return c.FinishReason != "" && c.FinishReason != "null" }

// first returns the first choice, nil if the completion has only others or none.
func (c *completion) first() *choice {
	for i := range c.Choices {
		if c.Choices[i].Index == 0 {
			return &c.Choices[i]
		}
	}
	return nil
}

type message struct {
	Content wire.Content `json:"content"`
	Refusal wire.Text    `json:"refusal"`
	// Reasoning and ReasoningContent are the thoughts of the model, of which servers send one.
	Reasoning        wire.Text `json:"reasoning"`
	ReasoningContent wire.Text `json:"reasoning_content"`
	// Calls are calls of tools.
	Calls json.RawMessage `json:"tool_calls"`
}

// thoughts returns the thoughts of a message. Servers that send both fields send the same text twice.
func (m *message) thoughts() wire.Text {
	return cmp.Or(m.ReasoningContent, m.Reasoning, m.Content.Thoughts)
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
	Prompt     wire.Count `json:"prompt_tokens"`
	Completion wire.Count `json:"completion_tokens"`
	// Input and Output are the names in newer protocols.
	Input   wire.Count `json:"input_tokens"`
	Output  wire.Count `json:"output_tokens"`
	Details struct {
		Cached wire.Count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func (u *usage) model() model.Usage {
	return model.Usage{InputTokens: int64(cmp.Or(u.Prompt, u.Input)), OutputTokens: int64(cmp.Or(u.Completion, u.Output)),
		CachedTokens: int64(u.Details.Cached)}
}

// take takes over the figures of a later report. Reports are cumulative, and a figure that is left
// out stays as it was.
func (u *usage) take(later *usage) {
	u.Prompt, u.Completion = cmp.Or(later.Prompt, u.Prompt), cmp.Or(later.Completion, u.Completion)
	u.Input, u.Output = cmp.Or(later.Input, u.Input), cmp.Or(later.Output, u.Output)
	u.Details.Cached = cmp.Or(later.Details.Cached, u.Details.Cached)
}

// answer collects what the server sends.
type answer struct {
	text  model.Collector
	model string
	stop  string
	usage usage
	// tools: tools were sent; calls are those of the model, also of one that was sent none.
	tools bool
	calls wire.ToolCalls
	// ended: the server said that this is all.
	ended bool
	// refusal is what the model says instead of an answer.
	refusal strings.Builder
	// thoughts are what the model thought, of servers that send it apart.
	thoughts wire.Thoughts
}

// Len returns the bytes of the answer that were read.
func (a *answer) Len() int { return a.text.Len() + a.calls.Len() }

// Usage returns what the server has reported so far.
func (a *answer) Usage() model.Usage { return a.usage.model() }

// ReadWhole reads the reply of a server that does not stream.
func (a *answer) ReadWhole(document []byte) error {
	var c completion
	if err := wire.ReadWhole(document, &c, func() bool { return len(c.Choices) > 0 }); err != nil {
		return err
	}
	if c.first() == nil { // the only one, with another number
		c.Choices[0].Index = 0
	}
	a.ended = true
	return a.add(&c, true)
}

// call adds calls of tools. Those of a reply that is whole are one each, whatever their index.
func (a *answer) call(raw json.RawMessage, whole bool) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var calls []toolCall
	if err := wire.Decode(raw, &calls); err != nil {
		if !a.tools { // nothing was asked of them
			return nil
		}
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

// ReadEvents reads a streamed reply.
func (a *answer) ReadEvents(list iter.Seq2[sse.Event, error]) error {
	inForm := false // whether any event has the form of the protocol
	for e, err := range list {
		if bytes.HasPrefix(e.Data, []byte("[DONE]")) {
			return nil
		}
		var c completion
		if err == nil {
			err = decodeEvent(e, &c)
		}
		switch {
		case err != nil && a.ended: // an error after the end changes nothing
			return nil
		case err != nil:
			return err
		}
		inForm = inForm || c.Choices != nil || strings.HasPrefix(c.Object, "chat.completion")
		if err := a.add(&c, false); err != nil {
			return err
		}
	}
	switch {
	case a.ended:
		return nil
	case !inForm:
		return wire.ErrNotAnswer
	}
	return wire.ErrNoEnd
}

func decodeEvent(e sse.Event, c *completion) error {
	err := wire.Decode(e.Data, c)
	failed := e.Name == "error" || len(c.Error) > 0 && string(c.Error) != "null" || c.Object == "error"
	if err == nil && !failed && len(c.Choices) == 0 { // some servers send a bare message
		failed = wire.IsFault(e.Data)
	}
	if failed {
		return wire.ReadServerError(e.Data)
	}
	return err
}

// add adds an event of a stream or a whole completion.
func (a *answer) add(c *completion, whole bool) error {
	if c.Model != "" {
		a.model = c.Model
	}
	a.usage.take(&c.Groq.Usage)
	a.usage.take(&c.Usage)
	first := c.first()
	if first == nil {
		return nil
	}
	a.usage.take(&first.Usage)
	if first.FinishReason == "error" {
		return wire.ErrNoEnd
	}
	if first.hasEnded() {
		a.stop, a.ended = first.FinishReason, true
	}
	added := first.addition(whole || a.text.Len() == 0)
	a.refusal.WriteString(string(added.Refusal))
	a.thoughts.Add(first.Delta.thoughts())
	if whole {
		a.thoughts.Add(first.Message.thoughts())
	}
	if _, err := a.text.WriteString(string(added.Content.Text)); err != nil {
		return err
	}
	return a.call(added.Calls, whole)
}

// addition returns what a choice adds to the answer. Some servers repeat the whole message at the end
// of a stream: it counts only in a completion or if nothing came before.
func (c *choice) addition(useMessage bool) message {
	m := c.Delta
	if useMessage && m.isEmpty() {
		m = c.Message
	}
	m.Content.Text = cmp.Or(m.Content.Text, c.Text)
	return m
}

func (m *message) isEmpty() bool { return m.Content.Text == "" && m.Refusal == "" && len(m.Calls) == 0 }

// Response returns the response. sent is the length of the request in bytes.
func (a *answer) Response(sent int) (*model.Response, *model.Error) {
	if a.tools {
		a.calls.AppendTo(&a.text)
	} else if a.text.Len() == 0 {
		a.calls.AppendAsText(&a.text)
	}
	resp := wire.Response(&a.text, sent, a.usage.model())
	resp.StopReason, resp.Model = a.stop, a.model
	a.thoughts.Fill(resp)
	if strings.TrimSpace(resp.Text) == "" {
		if err := a.why(); err != nil {
			err.Thoughts = a.thoughts.String()
			return nil, err
		}
	}
	return resp, nil
}

// why explains an empty answer, when asking again would not help.
func (a *answer) why() *model.Error {
	switch {
	case a.refusal.Len() > 0:
		return &model.Error{Kind: model.KindInvalid, AboutText: true, Msg: "the model refuses to answer",
			Detail: model.Redact(a.refusal.String())}
	case a.stop == "content_filter":
		return &model.Error{Kind: model.KindInvalid, AboutText: true,
			Msg: "the provider's content filter withheld the answer"}
	case a.stop == "length":
		return &model.Error{
			Kind: model.KindInvalid, Msg: "the answer ended at the limit for answers before there was any text",
			Hint: "raise the limit for answers; a reasoning model needs some of it before it writes",
		}
	}
	return nil
}

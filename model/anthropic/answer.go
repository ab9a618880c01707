package anthropic

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

// The protocol's reasons to stop that need an explanation.
const (
	stopMaxTokens = "max_tokens"
	stopRefusal   = "refusal"
	stopWindow    = "model_context_window_exceeded"
)

// answer collects what the server sends.
type answer struct {
	text  model.Collector
	model string
	stop  string
	usage usage
	// tools: tools were sent; calls are those of the model. Otherwise the only tool is the schema
	// of the answer.
	tools bool
	calls wire.ToolCalls
	// begun: the server said that an answer begins; ended: that this is all.
	begun, ended bool
	// thoughts are what the model thought.
	thoughts wire.Thoughts
}

// usage is the tokens as the protocol counts them: what was read from a cache
// or written to one is not part of input.
type usage struct {
	Input      wire.Count `json:"input_tokens"`
	Output     wire.Count `json:"output_tokens"`
	CacheRead  wire.Count `json:"cache_read_input_tokens"`
	CacheWrite wire.Count `json:"cache_creation_input_tokens"`
}

// take takes over the figures of a later report. Reports are cumulative, and a part
// that is left out stays as it was.
func (u *usage) take(later usage) {
	u.Input, u.Output = max(u.Input, later.Input), max(u.Output, later.Output)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, later.CacheRead), max(u.CacheWrite, later.CacheWrite)
}

func (u *usage) model() model.Usage {
	return model.Usage{InputTokens: int64(u.Input + u.CacheRead + u.CacheWrite), OutputTokens: int64(u.Output),
		CachedTokens: int64(u.CacheRead), CacheWriteTokens: int64(u.CacheWrite)}
}

// message is an answer that is not streamed.
type message struct {
	Type       string  `json:"type"`
	Model      string  `json:"model"`
	Content    []block `json:"content"`
	StopReason string  `json:"stop_reason"`
	Usage      usage   `json:"usage"`
}

// block is a part of an answer, or the beginning of one.
type block struct {
	Type  string          `json:"type"`
	Text  wire.Text       `json:"text"`
	ID    wire.Text       `json:"id"`
	Name  wire.Text       `json:"name"`
	Input json.RawMessage `json:"input"`
	// Thinking is the text of a block of thoughts.
	Thinking wire.Text `json:"thinking"`
}

// Len returns the bytes of the answer that were read.
func (a *answer) Len() int { return a.text.Len() + a.calls.Len() }

// Usage returns what the server has reported so far.
func (a *answer) Usage() model.Usage { return a.usage.model() }

// ReadWhole reads the reply of a server that does not stream.
func (a *answer) ReadWhole(document []byte) error {
	var m message
	if err := wire.ReadWhole(document, &m, func() bool { return m.Type == "message" || len(m.Content) > 0 }); err != nil {
		return err
	}
	a.model, a.usage, a.stop, a.begun, a.ended = m.Model, m.Usage, m.StopReason, true, true
	for i, part := range m.Content {
		var err error
		a.thoughts.Add(part.Thinking)
		switch part.Type {
		case "text":
			_, err = a.text.WriteString(string(part.Text))
		case "tool_use":
			err = a.use(wire.ToolPart{Index: i, ID: string(part.ID), Name: string(part.Name), Arguments: string(part.Input)})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// use adds a part of the use of a tool.
func (a *answer) use(p wire.ToolPart) error {
	if a.tools {
		return a.calls.Add(p, &a.text)
	}
	_, err := a.text.WriteString(p.Arguments)
	return err
}

// event is what of an event of the stream matters here.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	Index        int   `json:"index"`
	ContentBlock block `json:"content_block"`
	Delta        struct {
		Type       string    `json:"type"`
		Text       wire.Text `json:"text"`
		Thinking   wire.Text `json:"thinking"`
		Input      wire.Text `json:"partial_json"`
		StopReason string    `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// ReadEvents reads a streamed reply. It is complete with the reason to stop, which some gateways
// send as the last event.
func (a *answer) ReadEvents(list iter.Seq2[sse.Event, error]) error {
	for raw, err := range list {
		var e event
		if err == nil {
			err = decodeEvent(raw, &e)
		}
		if err == nil {
			err = a.add(&e)
		}
		switch {
		case err != nil && a.stop != "": // an error after the end changes nothing
			return nil
		case err != nil || a.ended:
			return err
		}
	}
	switch {
	case a.stop != "":
		return nil
	case !a.begun:
		return wire.ErrNotAnswer
	}
	return wire.ErrNoEnd
}

func decodeEvent(raw sse.Event, e *event) error {
	if bytes.HasPrefix(raw.Data, []byte("[DONE]")) { // of gateways that translate another protocol
		return nil
	}
	if err := wire.Decode(raw.Data, e); err != nil && raw.Name != "error" {
		return err
	}
	failed := e.Type == "error" || raw.Name == "error"
	if e.Type == "" && !failed { // some servers send a bare message
		failed = wire.IsFault(raw.Data)
	}
	if !failed {
		return nil
	}
	return wire.ReadServerError(raw.Data)
}

func (a *answer) add(e *event) (err error) {
	switch e.Type {
	case "message_start":
		a.begun, a.model = true, e.Message.Model
		a.usage.take(e.Message.Usage)
	case "content_block_start":
		a.thoughts.Add(e.ContentBlock.Thinking)
		if b := &e.ContentBlock; b.Type != "tool_use" {
			_, err = a.text.WriteString(string(b.Text))
		} else if a.tools { // the arguments follow
			err = a.use(wire.ToolPart{Index: e.Index, ID: string(b.ID), Name: string(b.Name)})
		}
	case "content_block_delta":
		a.thoughts.Add(e.Delta.Thinking)
		switch e.Delta.Type {
		case "text_delta":
			_, err = a.text.WriteString(string(e.Delta.Text))
		case "input_json_delta":
			err = a.use(wire.ToolPart{Index: e.Index, Arguments: string(e.Delta.Input)})
		}
	case "message_delta":
		a.stop = cmp.Or(e.Delta.StopReason, a.stop)
		a.usage.take(e.Usage)
	case "message_stop":
		a.ended = true
	}
	return err
}

// Response returns the response. sent is the length of the request in bytes.
func (a *answer) Response(sent int) (*model.Response, *model.Error) {
	a.calls.AppendTo(&a.text)
	resp := wire.Response(&a.text, sent, a.usage.model())
	resp.StopReason, resp.Model = a.stop, a.model
	a.thoughts.Fill(resp)
	if err := a.why(resp.Text); err != nil {
		err.Thoughts = resp.Thoughts
		return nil, err
	}
	if a.stop == stopWindow {
		resp.Notes = append(resp.Notes, noteWindow)
	}
	return resp, nil
}

// why explains a refusal, and an empty answer when asking again would not help.
func (a *answer) why(text string) *model.Error {
	empty := strings.TrimSpace(text) == ""
	switch a.stop {
	case stopRefusal: // what was written before is not an answer
		return &model.Error{Kind: model.KindInvalid, AboutText: true, Msg: "the model refuses to answer",
			Detail: model.Redact(text)}
	case stopMaxTokens:
		if empty {
			return &model.Error{
				Kind: model.KindInvalid, Msg: "the answer ended at the limit for answers before there was any text",
				Hint: "raise the limit for answers; a model that thinks needs some of it before it writes",
			}
		}
	case stopWindow:
		if empty {
			return &model.Error{Kind: model.KindTooLong, Msg: "the request fills the model's context window",
				Hint: model.HintTooLong}
		}
	}
	return nil
}

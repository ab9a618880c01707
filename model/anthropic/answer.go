package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/perdure/perdure/model"
)

// bytesPerAnswerByte is how many bytes of JSON may come for one byte of an
// answer that is not streamed: "\u0041" and what stands around it.
const bytesPerAnswerByte = 8

var (
	errNoEnd     = errors.New("the stream ended without saying that it is complete")
	errNotAnswer = errors.New("the reply is not in the form of an answer")
)

// saidError is an error that a server sends in place of an answer, with a
// status of 200.
type saidError struct{ fault model.Fault }

func (e *saidError) Error() string { return e.fault.Text() }

// answer gathers what the server sends.
type answer struct {
	text  model.Collector
	limit int
	model string
	stop  string
	usage usage
	// begun: the server said that an answer begins; ended: that this is all.
	begun, ended bool
	// replaced: something that came was not UTF-8.
	replaced bool
}

// decode reads JSON. What is not UTF-8 in it is replaced here, because the
// decoder would do so without a word.
func (a *answer) decode(data []byte, into any) error {
	if !utf8.Valid(data) {
		text, _ := model.Clean(string(data))
		data, a.replaced = []byte(text), true
	}
	return json.Unmarshal(data, into)
}

// usage is the tokens as the protocol counts them: what was read from a cache
// or written to one is no part of input.
type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// take takes over what a later report says. Reports are cumulative, and a part
// that is left out stays as it was.
func (u *usage) take(later usage) {
	for _, f := range []struct{ now, then *int64 }{
		{&u.Input, &later.Input}, {&u.Output, &later.Output},
		{&u.CacheRead, &later.CacheRead}, {&u.CacheWrite, &later.CacheWrite},
	} {
		*f.now = max(*f.now, *f.then)
	}
}

func newAnswer(limit int, onText func(string)) *answer {
	return &answer{limit: limit, text: model.Collector{Limit: limit, OnText: onText}}
}

// read reads the reply in whatever form it came.
func (a *answer) read(raw *http.Response) error {
	kind, _, _ := mime.ParseMediaType(raw.Header.Get("Content-Type"))
	if kind == "application/json" || strings.HasSuffix(kind, "+json") {
		return a.readWhole(raw.Body)
	}
	return a.readStream(raw)
}

// message is an answer that is not streamed.
type message struct {
	Type    string `json:"type"`
	Model   string `json:"model"`
	Content []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
	StopReason string `json:"stop_reason"`
	Usage      usage  `json:"usage"`
}

// readWhole reads the reply of a server that does not stream.
func (a *answer) readWhole(body io.Reader) error {
	limit := int64(a.limit)*bytesPerAnswerByte + 1<<16
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return err
	case int64(len(data)) > limit:
		return model.TooLarge(a.limit)
	}
	var m message
	if err := a.decode(data, &m); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
			return io.ErrUnexpectedEOF
		}
		return errors.Join(errNotAnswer, err)
	}
	if m.Type != "message" {
		if f, ok := model.ParseFault(data); ok {
			return &saidError{f}
		}
		return errNotAnswer
	}
	a.model, a.usage, a.stop, a.begun, a.ended = m.Model, m.Usage, m.StopReason, true, true
	for _, part := range m.Content {
		if part.Type != "text" {
			continue
		}
		if _, err := a.text.WriteString(part.Text); err != nil {
			return err
		}
	}
	return nil
}

// event is what of an event of the stream matters here.
type event struct {
	Type    string `json:"type"`
	Message struct {
		Model string `json:"model"`
		Usage usage  `json:"usage"`
	} `json:"message"`
	ContentBlock struct {
		Text string `json:"text"`
	} `json:"content_block"`
	Delta struct {
		Type       string `json:"type"`
		Text       string `json:"text"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage usage `json:"usage"`
}

// readStream reads events. The SDK's own loop over them skips events that are
// not named and hides what kind of error a stream ends with; its decoder does
// neither.
func (a *answer) readStream(raw *http.Response) error {
	decoder := ssestream.NewDecoder(raw)
	defer decoder.Close()
	for !a.ended && decoder.Next() {
		data := decoder.Event().Data
		if len(data) == 0 {
			continue
		}
		var e event
		if err := a.decode(data, &e); err != nil {
			return err
		}
		if e.Type == "error" || decoder.Event().Type == "error" {
			f, ok := model.ParseFault(data)
			if !ok {
				f.Message = string(data)
			}
			return &saidError{f}
		}
		if err := a.add(&e); err != nil {
			return err
		}
	}
	switch {
	case a.ended: // what breaks after the end does no harm
		return nil
	case decoder.Err() != nil:
		return decoder.Err()
	case !a.begun:
		return errNotAnswer
	}
	return errNoEnd
}

func (a *answer) add(e *event) (err error) {
	switch e.Type {
	case "message_start":
		a.begun, a.model = true, e.Message.Model
		a.usage.take(e.Message.Usage)
	case "content_block_start":
		_, err = a.text.WriteString(e.ContentBlock.Text)
	case "content_block_delta":
		if e.Delta.Type == "text_delta" { // not what the model thinks
			_, err = a.text.WriteString(e.Delta.Text)
		}
	case "message_delta":
		a.stop = e.Delta.StopReason
		a.usage.take(e.Usage)
	case "message_stop":
		a.ended = true
	}
	return err
}

// response makes the response. sent is the length of the request in bytes.
func (a *answer) response(sent int) (*model.Response, error) {
	text, changed := a.text.Finish()
	if err := a.why(text); err != nil {
		return nil, err
	}
	u := a.usage
	resp := &model.Response{
		Text: text, StopReason: a.stop, Model: a.model, Tries: 1,
		Usage: model.Usage{
			InputTokens: u.Input + u.CacheRead + u.CacheWrite, OutputTokens: u.Output,
			CachedTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite,
		},
	}
	if resp.Usage == (model.Usage{}) {
		resp.Usage = model.Usage{
			InputTokens: model.EstimateTokens(sent), OutputTokens: model.EstimateTokens(len(text)), Estimated: true,
		}
	}
	if changed || a.replaced {
		resp.Notes = append(resp.Notes, model.NoteReplaced)
	}
	switch sdk.StopReason(a.stop) {
	case sdk.StopReasonMaxTokens:
		resp.Notes = append(resp.Notes, noteCut)
	case sdk.StopReasonModelContextWindowExceeded:
		resp.Notes = append(resp.Notes, noteWindow)
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonToolUse, sdk.StopReasonPauseTurn, sdk.StopReasonRefusal:
	}
	return resp, nil
}

// why explains a refusal, and an empty answer when asking again would not help.
func (a *answer) why(text string) error {
	empty := strings.TrimSpace(text) == ""
	switch sdk.StopReason(a.stop) {
	case sdk.StopReasonRefusal: // what was written before is not an answer
		return &model.Error{Kind: model.KindInvalid, Msg: "the model refuses to answer", Detail: model.Redact(text)}
	case sdk.StopReasonMaxTokens:
		if empty {
			return &model.Error{
				Kind: model.KindInvalid, Msg: "the answer ended at the limit for answers before there was any text",
				Hint: "raise the limit for answers; a model that thinks needs some of it before it writes",
			}
		}
	case sdk.StopReasonModelContextWindowExceeded:
		if empty {
			return &model.Error{Kind: model.KindTooLong, Msg: "the request fills the model's context window", Hint: model.HintTooLong}
		}
	case sdk.StopReasonEndTurn, sdk.StopReasonStopSequence, sdk.StopReasonToolUse, sdk.StopReasonPauseTurn:
	}
	return nil
}

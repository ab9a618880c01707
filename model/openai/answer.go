package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/perdure/perdure/model"
)

// bytesPerAnswerByte is how many bytes of JSON may come for one byte of an
// answer that is not streamed: "\u0041" and what stands around it.
const bytesPerAnswerByte = 8

var (
	errNoEnd     = errors.New("the stream ended without saying that it is complete")
	errNoChoice  = errors.New("the reply holds no answer")
	errNotAnswer = errors.New("the reply is not in the form of an answer")
)

// answer gathers what the server sends.
type answer struct {
	text  model.Collector
	limit int
	model string
	stop  string
	usage sdk.CompletionUsage
	// ended: the server said that this is all.
	ended bool
	// refusal is what the model says instead of an answer.
	refusal strings.Builder
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
	var c sdk.ChatCompletion
	if err := json.Unmarshal(data, &c); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) && syntax.Offset >= int64(len(data)) {
			return io.ErrUnexpectedEOF
		}
		return errors.Join(errNotAnswer, err)
	}
	if len(c.Choices) == 0 {
		return streamErrorIn(data, errNoChoice)
	}
	a.model, a.usage, a.ended = c.Model, c.Usage, true
	a.stop = c.Choices[0].FinishReason
	a.refusal.WriteString(c.Choices[0].Message.Refusal)
	_, err = a.text.WriteString(c.Choices[0].Message.Content)
	return err
}

// doneDecoder notices the mark at the end of a stream, which the SDK keeps to
// itself.
type doneDecoder struct {
	ssestream.Decoder
	done bool
}

func (d *doneDecoder) Next() bool {
	ok := d.Decoder.Next()
	if ok && bytes.HasPrefix(d.Event().Data, []byte("[DONE]")) {
		d.done = true
	}
	return ok
}

func (a *answer) readStream(raw *http.Response) error {
	decoder := &doneDecoder{Decoder: ssestream.NewDecoder(raw)}
	stream := ssestream.NewStream[sdk.ChatCompletionChunk](decoder, nil)
	defer stream.Close()
	events := 0
	for stream.Next() {
		events++
		if err := a.add(stream.Current()); err != nil {
			return err
		}
	}
	a.ended = a.ended || decoder.done
	switch {
	case a.ended: // what breaks after the end does no harm
		return nil
	case stream.Err() != nil:
		return stream.Err()
	case events == 0:
		return errNoChoice
	}
	return errNoEnd
}

func (a *answer) add(c sdk.ChatCompletionChunk) error {
	if c.Model != "" {
		a.model = c.Model
	}
	if c.Usage.PromptTokens > 0 || c.Usage.CompletionTokens > 0 {
		a.usage = c.Usage
	}
	if len(c.Choices) == 0 {
		return nil
	}
	first := c.Choices[0]
	if first.FinishReason == "error" {
		return errNoEnd
	}
	if first.FinishReason != "" {
		a.stop, a.ended = first.FinishReason, true
	}
	a.refusal.WriteString(first.Delta.Refusal)
	_, err := a.text.WriteString(first.Delta.Content)
	return err
}

// response makes the response. sent is the length of the request in bytes.
func (a *answer) response(sent int) (*model.Response, error) {
	text, changed := a.text.Finish()
	if strings.TrimSpace(text) == "" {
		if err := a.why(); err != nil {
			return nil, err
		}
	}
	resp := &model.Response{
		Text: text, StopReason: a.stop, Model: a.model, Tries: 1,
		Usage: model.Usage{
			InputTokens: a.usage.PromptTokens, OutputTokens: a.usage.CompletionTokens,
			CachedTokens: a.usage.PromptTokensDetails.CachedTokens,
		},
	}
	if resp.Usage == (model.Usage{}) {
		resp.Usage = model.Usage{
			InputTokens: model.EstimateTokens(sent), OutputTokens: model.EstimateTokens(len(text)), Estimated: true,
		}
	}
	if changed {
		resp.Notes = append(resp.Notes, model.NoteReplaced)
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
		return &model.Error{Kind: model.KindInvalid, Msg: "the model refuses to answer", Detail: model.Redact(a.refusal.String())}
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

// Package mock is a model that answers from a script: for tests and demos,
// without a network and without cost.
//
// The same [Script] can be played in process by a [Model], or over a socket by
// a [Server] that speaks the OpenAI chat completions protocol and Anthropic's
// messages protocol. Both keep a [Ledger] of what was asked and answered.
//
// # Scripts
//
// A script is a YAML or JSON file with a list of replies. For each request the
// first reply is taken that has uses left and whose pattern, if it has one,
// matches the request:
//
//	model: small            # the name the model reports; optional
//	window: 8000            # tokens one request may hold; 0, the default: no limit
//	limit: 6000             # tokens from which on requests are refused as too long,
//	                        # which the model does not report before; 0, the default: none
//	replies:
//	  - status: 429         # fails once with an HTTP status, then the next ones are used
//	    retry_after: 2s
//	  - match: 'count (\w+)' # a regular expression on the whole request
//	    text: "{{1}}: 42, see {{hash}}"
//	  - text: "{{hash}}"
//	    repeat: -1
//
// The fields of a reply:
//
//	match         regular expression (RE2) that the request has to match
//	text          the answer; see below
//	repeat        how often it is used; -1: without end.
//	              Default: without end with match, once without
//	delay         time before anything is sent, for example 50ms
//	status        fail with this HTTP status, 400 to 599
//	retry_after   with status: the time to wait before asking again
//	message       with status: what the error says
//	cut           break off after so many bytes of the answer
//	empty         true: an answer without text
//	invalid_utf8  true: the answer ends with bytes that are not UTF-8
//	size          repeat the text until it has so many bytes
//	stop_reason   default "stop"
//	usage         {input: 9, output: 2, cached: 4, written: 0}: tokens of the request
//	              and the answer, and how many of the request's were read from
//	              and written to the provider's cache; default: estimated from the
//	              text and reported like a real figure; {omit: true}: not reported
//
// A text may contain these placeholders: {{prompt}} the whole request as the
// model sees it, {{hash}} its sha-256 (see [Hash]), {{short}} the first 12
// digits of it, {{bytes}} its length, {{n}} the number of the request from 1,
// {{match}} what the pattern matched, {{1}} to {{9}} its groups.
package mock

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/model"
)

// chunk is how much of an answer is handed out at once at least, in bytes, and
// maxChunks in how many parts at most.
const (
	chunk     = 64
	maxChunks = 1000
)

// Model plays a script in process. It is safe for concurrent use.
type Model struct {
	script *Script
	ledger *Ledger
}

// New returns a model that plays the script. The script counts how often its
// replies were used; models and servers that share it share these counts.
func New(script *Script) *Model { return &Model{script: script, ledger: newLedger()} }

// Ledger returns what was asked and answered.
func (m *Model) Ledger() *Ledger { return m.ledger }

// Window returns the script's window in tokens, 0 for none.
func (m *Model) Window() int { return m.script.window }

// Generate plays the reply for the request. Usage is reported unless the reply
// omits it.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	text := model.RenderAll(req)
	call := m.ledger.begin(text)
	resp, err := m.play(ctx, req, text)
	call.done(err == nil)
	return resp, err
}

func (m *Model) play(ctx context.Context, req *model.Request, text string) (*model.Response, error) {
	r, err := m.script.next(text)
	if err != nil {
		return nil, err
	}
	if !wait(ctx, r.delay) {
		return nil, model.Canceled(ctx)
	}
	if r.status != 0 {
		return nil, &model.Error{
			Kind: model.Fault{Message: r.message}.Kind(r.status), Status: r.status, RetryAfter: r.retryAfter, Msg: r.message,
		}
	}
	out := model.Collector{OnText: req.OnText}
	for _, part := range r.parts() {
		if _, err := out.WriteString(part); err != nil {
			return nil, err
		}
	}
	answer, changed := out.Finish()
	if r.cut {
		return nil, &model.Error{Kind: model.KindCut, Msg: fmt.Sprintf("answer broke off after %d bytes", len(r.text))}
	}
	resp := &model.Response{
		Text: answer, StopReason: r.stopReason, Model: m.script.model, Tries: 1,
		Usage: model.Usage{
			InputTokens: r.usage.Input, OutputTokens: r.usage.Output, CachedTokens: r.usage.Cached,
			CacheWriteTokens: r.usage.Written, Estimated: r.usage.Omit,
		},
	}
	if changed {
		resp.Notes = append(resp.Notes, model.NoteReplaced)
	}
	return resp, nil
}

// wait waits for d and reports whether ctx lasted that long.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

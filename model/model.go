// Package model is the interface to models: language models behind HTTP
// endpoints, programs, scripts of prepared replies, and an offline retrieval
// engine. Optional abilities are further interfaces: [Windower], [Pricer].
//
// A Model makes one attempt. [Guarded] retries, honours Retry-After and pauses
// all calls after a rate limit, in the same way for all providers. The package
// does not depend on tasks or on the store.
package model

import (
	"context"
	"encoding/json"
	"fmt"
)

// Model answers requests. Implementations are safe for concurrent use.
//
// Generate makes one attempt: it neither retries nor waits for rate limits. A
// failure is an [*Error]; when ctx ended, it wraps ctx.Err(). The response is
// complete: a stream that broke off is an error.
type Model interface {
	Generate(ctx context.Context, req *Request) (*Response, error)
}

// Windower is implemented by models that know how many tokens one request may
// hold, prompt and answer together. 0 means no limit.
type Windower interface {
	Window() int
}

// Pricer is implemented by models whose price is known. Price returns the cost
// of an answer in millionths of a US dollar, and whether it is known. For a
// [Chain] it is the highest possible cost.
type Pricer interface {
	Price(u Usage) (micros int64, known bool)
}

// Document is text of one file, in general whole lines.
type Document struct {
	// File is the name as the user gave it.
	File string
	// StartLine is the number of the first line of Text, counted from 1.
	StartLine int
	// StartColumn is the byte of that line, counted from 1, at which Text begins; 0 if it is the
	// first one. It is not part of [Hash].
	StartColumn int
	// Text is valid UTF-8.
	Text string
	// Repeated is set if another request has the text too: it is there to understand the others by,
	// and not to be counted again.
	Repeated bool
}

// Layout is the order of a request's text; see [Render].
type Layout int

// The layouts. Requests of one layout have other hashes than those of another.
const (
	// PromptFirst puts the prompt before the documents.
	PromptFirst Layout = iota
	// DocumentsFirst puts it behind them, so that two prompts about the same documents begin with
	// the same text, which providers keep.
	DocumentsFirst
	// TextOnly is the text of the documents as it is, without prompt and system text, for programs
	// that process text.
	TextOnly
)

// Request is one question to a model. It is read-only for the model.
type Request struct {
	// System and Prompt are the instructions.
	System string
	Prompt string
	// Messages are what followed the prompt in a conversation, in order: replies of the model
	// and messages to it by turns. The last one is to the model.
	Messages []Message
	// Documents are the context of the prompt, in order; empty when there
	// are none. Models that read plain text render them with [Render].
	Documents []Document
	Layout    Layout
	// Temperature, Seed: nil leaves the provider's default.
	Temperature *float64
	Seed        *int64
	// MaxOutputTokens limits the answer; 0 leaves the provider's default.
	MaxOutputTokens int
	// Schema is a JSON Schema of the answer, nil for text. Models whose provider can
	// hold an answer to a schema send it; others leave it to the instructions, which
	// have to state it too. The answer has to be checked in any case. It is not part of
	// [Hash].
	Schema json.RawMessage
	// Tools are what the model may call. Models whose provider has tools send them; others leave
	// them to the instructions, which have to state them too, as lines of text. A call is a line
	// of the response's text in any case, see [ToolLine]. They are not part of [Hash].
	Tools []Tool
	// Shared are the places in the text of [Render], in bytes and ascending, up to which other
	// requests with the same System are the same: those that were sent, and the last one those that
	// are likely to follow. They are for models whose provider keeps the beginning of prompts only
	// when asked to. With Messages, and if it is not empty, requests that are likely to follow
	// begin with all of this one. It is not part of [Hash].
	Shared []int
	// Exact is set if a model that refuses the temperature, the seed or a further parameter is not
	// asked again without it. It is not sent, and not part of [Hash].
	Exact bool
	// Sample numbers equal requests that are to get different answers, for
	// example for a vote: caches keep them apart. It is not sent.
	Sample int
	// Divisible is set when the caller can send less at once: a [Chain] then
	// returns an error of KindTooLong instead of asking the next model. It is not
	// sent, and not part of [Hash].
	Divisible bool
	// Faults are the permanent faults that other requests of the same run met; see [Faults]. They are
	// not sent, and not part of [Hash].
	Faults *Faults
	// OnText, when set, receives the answer while it arrives. It is called
	// from one goroutine at a time and only before Generate returns.
	OnText func(text string)
	// OnSend, when set, is called before each request that is sent for an answer,
	// when it is its turn: retries and other models of a [Chain] included, answers
	// from a cache not. name is the configured name of the model. After an error
	// nothing is sent and the call ends with an error of KindCanceled that wraps it.
	// It is called from one goroutine at a time and only before Generate returns.
	// See [Announces].
	OnSend func(ctx context.Context, name string) error
	// OnFailed, when set, is called after a request that failed and that another
	// one is to follow, before that one waits for its turn. An error ends the call,
	// as one of OnSend does.
	OnFailed func(ctx context.Context, failed *Error) error
}

// followed calls OnFailed.
func (req *Request) followed(ctx context.Context, failed *Error) error {
	if req.OnFailed == nil {
		return nil
	}
	return req.OnFailed(ctx, failed)
}

// Message is one message of a conversation.
type Message struct {
	// Reply is set if the model wrote it.
	Reply bool   `json:"reply,omitempty"`
	Text  string `json:"text"`
}

// Response is a complete answer.
type Response struct {
	// Text is valid UTF-8 without NUL bytes; what a provider sent otherwise is
	// replaced by U+FFFD and told in Notes.
	Text string
	// Thoughts are what the model thought before or within the answer, which are no part of Text.
	Thoughts string
	// Separated is set if thoughts in the text were moved to Thoughts, see [SeparateThoughts].
	Separated bool
	// Citations are places the answer rests on; empty for most models.
	Citations []Citation
	Usage     Usage
	// StopReason is the provider's word, for example "stop" or "length".
	StopReason string
	// Model is the name the provider reports, when it does.
	Model string
	// Asked is the configured name of the model that answered, for example
	// "openai:gpt-4o"; empty when the model does not report it.
	Asked string
	// CostMicros is what the answer cost, in millionths of a US dollar; nil
	// when it is unknown. See [Pricer].
	CostMicros *int64
	// Cached is set when the answer was given before and nothing was sent.
	Cached bool
	// Tries is how many requests were sent until this answer, at least 1; 0
	// for one that is Cached.
	Tries int
	// Notes describe what was unusual (text replaced, output cut).
	Notes []string
}

// Kinds of citations other than passages that a model ranks.
const (
	// CitedQuote is text that a model quoted and that was found at this place.
	CitedQuote = "quote"
	// CitedRead is a place that was read for an answer. It has no text; its hash
	// is that of the text.
	CitedRead = "read"
)

// Citation is a place in a file of the context.
type Citation struct {
	// Kind is CitedQuote, CitedRead, or empty for a ranked passage.
	Kind      string `json:"kind,omitempty"`
	File      string `json:"file"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
	// StartColumn is the byte of the first line, counted from 1, at which Text begins; 0 if it is
	// the first one. Text that begins within a line may also end within one.
	StartColumn int `json:"start_column,omitempty"`
	// Cell is the number of the notebook's cell that StartLine is in, from 1; 0 in other files. Lines
	// are then those of the text that the notebook was read as.
	Cell int    `json:"cell,omitempty"`
	Text string `json:"text"`
	// SHA256 is the hexadecimal hash of Text; for CitedRead, of the text that was read.
	SHA256 string `json:"sha256"`
	// Score orders citations of one run; 0 when the model does not rank.
	Score float64 `json:"score,omitempty"`
}

// Place returns the place as FILE:FIRST-LAST, FILE:LINE:COLUMN for text that begins within a line, or
// FILE cell NUMBER:FIRST-LAST in a notebook.
func (c *Citation) Place() string {
	file := c.File
	if c.Cell > 0 {
		file = fmt.Sprintf("%s cell %d", c.File, c.Cell)
	}
	if c.StartColumn > 0 {
		return fmt.Sprintf("%s:%d:%d", file, c.StartLine, c.StartColumn)
	}
	return fmt.Sprintf("%s:%d-%d", file, c.StartLine, c.EndLine)
}

// Usage is what one request took, in tokens, as the provider reported it.
type Usage struct {
	// InputTokens are all tokens of the request, those of the caches below
	// among them.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// CachedTokens were read from the provider's own cache of prompts,
	// CacheWriteTokens written to it; both have other prices.
	CachedTokens     int64 `json:"cached_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	// Estimated is set when the provider did not report and the figures were
	// estimated with [EstimateTokens].
	Estimated bool `json:"estimated,omitempty"`
}

// EstimateTokens estimates the tokens of n bytes of text as n/4, rounded up.
func EstimateTokens(n int) int64 { return (int64(n) + 3) / 4 }

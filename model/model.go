// Package model is the port to whatever answers a prompt: a language model
// behind an HTTP endpoint, an ordinary program, a script of prepared replies,
// or an offline retrieval engine.
//
// The port is one method. Richer abilities are further small interfaces a
// value may also implement: [Preparer] for models that need one look at the
// whole context first, [Windower] for models that know how much they can read.
//
// A Model does one attempt and reports what happened; retrying, honouring
// Retry-After and pausing everybody after a rate limit is [Guarded]'s work, so
// that it is the same for all providers. Model and its implementations know
// nothing of tasks or of the store.
package model

import (
	"context"
	"encoding/json"
	"iter"
)

// Model answers requests. Implementations are safe for concurrent use.
//
// Generate does one attempt: it neither retries nor waits for rate limits. A
// failure is an [*Error], so that callers can tell what may be tried again;
// when ctx ended, the error wraps ctx.Err(). The response is complete: a
// stream that broke off is an error, never a short response.
type Model interface {
	Generate(ctx context.Context, req *Request) (*Response, error)
}

// Windower is implemented by models that know how many tokens one request may
// hold, prompt and answer together. 0 means no limit.
type Windower interface {
	Window() int
}

// Pricer is implemented by models whose price is known. Price returns what an
// answer that took this much costs, in millionths of a US dollar, and whether
// that is known; a price that is not known is not 0. For a [Chain] it is the
// most that it may cost.
type Pricer interface {
	Price(u Usage) (micros int64, known bool)
}

// Preparer is implemented by models that need one pass over the whole context
// before they can answer about a part of it (a retrieval engine needs document
// frequencies, for example). What Prepare returns is durable: it is computed
// once for a run, stored, and handed to each request as [Request.Prepared].
// It has to be deterministic.
type Preparer interface {
	Prepare(ctx context.Context, prompt string, docs iter.Seq2[Document, error]) (json.RawMessage, error)
}

// Document is a run of whole lines of one file.
type Document struct {
	// File is the name as the user gave it.
	File string
	// StartLine is the number of the first line of Text, counted from 1.
	StartLine int
	// Text is valid UTF-8.
	Text string
}

// Request is one question to a model. It is read-only for the model.
type Request struct {
	// System and Prompt are the instructions.
	System string
	Prompt string
	// Documents are the context of the prompt, in order; empty when there
	// are none. Models that read plain text render them with [Render].
	Documents []Document
	// Prepared is what [Preparer] computed for the run; nil for others.
	Prepared json.RawMessage
	// Temperature, Seed: nil leaves the provider's default.
	Temperature *float64
	Seed        *int64
	// MaxOutputTokens limits the answer; 0 leaves the provider's default.
	MaxOutputTokens int
	// Sample numbers requests that are alike on purpose, for example to vote
	// over several answers to one question: what shares answers keeps those
	// of different numbers apart. It is not sent.
	Sample int
	// Divisible tells that the caller can ask for less at once: a [Chain] then
	// returns that a model finds the request too long, instead of asking the next
	// one. It is not sent, and not part of [Hash].
	Divisible bool
	// OnText, when set, receives the answer while it arrives. It is called
	// from one goroutine at a time and only before Generate returns.
	OnText func(text string)
}

// Response is a complete answer.
type Response struct {
	// Text is valid UTF-8 without NUL bytes; what a provider sent otherwise is
	// replaced by U+FFFD and told in Notes.
	Text string
	// Citations are places the answer rests on; empty for most models.
	Citations []Citation
	Usage     Usage
	// StopReason is the provider's word, for example "stop" or "length".
	StopReason string
	// Model is the name the provider reports, when it does.
	Model string
	// Asked is what the model that answered is called in the configuration,
	// for example "openai:gpt-4o"; empty when the model does not report it. Of a [Chain] it
	// tells which one it was.
	Asked string
	// CostMicros is what the answer cost, in millionths of a US dollar; nil
	// when it is unknown. See [Pricer].
	CostMicros *int64
	// Cached is set when the answer was given before and nothing was sent.
	Cached bool
	// Tries is how many requests were sent until this answer, at least 1; 0
	// for one that is Cached.
	Tries int
	// Notes tell people what was unusual (text replaced, output cut).
	Notes []string
}

// Citation is a place in a file of the context.
type Citation struct {
	File      string `json:"file"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
	Text      string `json:"text"`
	// SHA256 is the hexadecimal hash of Text.
	SHA256 string `json:"sha256"`
	// Score orders citations of one run; 0 when the model does not rank.
	Score float64 `json:"score,omitempty"`
}

// Usage is what one answer took, in tokens, as the provider reported it.
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

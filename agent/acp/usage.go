package acp

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/jsonrpc"
)

// count is a number of tokens: whatever number JSON has, never negative.
type count int64

// UnmarshalJSON takes any number, also one in quotes; what is none is 0.
func (c *count) UnmarshalJSON(raw []byte) error {
	text := string(raw)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) {
		n = 0
	}
	*c = count(min(max(n, 0), 1<<53))
	return nil
}

// tokens are the counts of one prompt. The names are those of the protocol;
// vendors' own places use others for the same.
type tokens struct {
	Total       count  `json:"totalTokens"`
	Input       *count `json:"inputTokens"`
	Output      *count `json:"outputTokens"`
	Thought     count  `json:"thoughtTokens"`
	CachedRead  count  `json:"cachedReadTokens"`
	CachedWrite count  `json:"cachedWriteTokens"`
}

// usage returns the counts in this program's terms: the input includes cached tokens,
// the output includes thoughts. Agents differ in both; the total shows how they
// count. Without a matching total, cached tokens are added to the input and thoughts
// are taken as part of the output, as most agents count.
func (t tokens) usage() agent.Usage {
	if t.Input == nil && t.Output == nil {
		return agent.Usage{}
	}
	in, out := *cmp.Or(t.Input, new(count)), *cmp.Or(t.Output, new(count))
	cached := t.CachedRead + t.CachedWrite
	switch t.Total {
	case in + out + cached:
		in += cached
	case in + out + cached + t.Thought:
		in, out = in+cached, out+t.Thought
	case in + out:
	case in + out + t.Thought:
		out += t.Thought
	default:
		in += cached
	}
	return agent.Usage{
		InputTokens: int64(in), OutputTokens: int64(out),
		CachedTokens: int64(t.CachedRead), CacheWriteTokens: int64(t.CachedWrite), Reported: true,
	}
}

// completion is the end of a prompt: the result of session/prompt.
type completion struct {
	StopReason string `json:"stopReason"`
	Usage      tokens `json:"usage"`
	Meta       struct {
		Quota struct {
			TokenCount quotaCount `json:"token_count"`
		} `json:"quota"`
		Usage tokens `json:"usage"`
	} `json:"_meta"`
}

// quotaCount are the counts of Gemini, for all requests of the prompt and with cached
// tokens in the input.
type quotaCount struct {
	Input  *count `json:"input_tokens"`
	Output *count `json:"output_tokens"`
}

// readCompletion decodes the result of session/prompt.
func readCompletion(raw json.RawMessage) completion {
	var c completion
	_ = jsonrpc.Lenient(raw, &c) // invalid fields count as absent
	return c
}

// usage returns the tokens of the prompt from the field that the agent uses.
func (c *completion) usage() agent.Usage {
	if u := c.Usage.usage(); u.Reported {
		return u
	}
	if u := c.Meta.Usage.usage(); u.Reported {
		return u
	}
	q := c.Meta.Quota.TokenCount
	return tokens{Input: q.Input, Output: q.Output}.usage()
}

// cost is what a session has cost until now.
type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

// micros returns the cost in millionths of a US dollar, and whether it is one.
func (c *cost) micros() (int64, bool) {
	if c == nil || (c.Currency != "USD" && c.Currency != "") || !(c.Amount >= 0 && c.Amount < 1e9) {
		return 0, false
	}
	return int64(math.Round(c.Amount * 1e6)), true
}

// Package trajectory reads and writes logs of recursive language models as JSON Lines, in the
// form of the reference implementation (github.com/alexzhang13/rlm): one line with the settings
// of the run, then one for each reply of the model with its code blocks, their sub-calls and
// results. Its public viewer opens what [Writer] writes.
package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"
)

// Limits of a log.
const (
	MaxLineBytes  = 256 << 20
	MaxIterations = 100_000
)

// Types of lines.
const (
	typeMetadata  = "metadata"
	typeIteration = "iteration"
)

// Metadata is the line with the settings of a run. Nil fields are not known.
type Metadata struct {
	Type              string   `json:"type"`
	Timestamp         Time     `json:"timestamp"`
	RootModel         *string  `json:"root_model"`
	MaxDepth          *int     `json:"max_depth"`
	MaxIterations     *int     `json:"max_iterations"`
	Backend           *string  `json:"backend"`
	BackendKwargs     Settings `json:"backend_kwargs"`
	EnvironmentType   *string  `json:"environment_type"`
	EnvironmentKwargs Settings `json:"environment_kwargs"`
	OtherBackends     []string `json:"other_backends"`
}

// Settings are settings by name. Numbers are kept as they are written.
type Settings map[string]any

// UnmarshalJSON reads an object.
func (s *Settings) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return d.Decode((*map[string]any)(s))
}

// Iteration is a reply of the model, with what it was asked and what its code did.
type Iteration struct {
	Type      string `json:"type"`
	Iteration int    `json:"iteration"` // from 1
	Timestamp Time   `json:"timestamp"`
	// Prompt are the messages: logs of others repeat all in each iteration, [Writer]'s caller
	// writes those that are new.
	Prompt     []Message   `json:"prompt"`
	Response   string      `json:"response"`
	CodeBlocks []CodeBlock `json:"code_blocks"`
	// FinalAnswer is nil until there is one, and IterationTime, in seconds, if it is not known.
	FinalAnswer   *Answer  `json:"final_answer"`
	IterationTime *float64 `json:"iteration_time"`
}

// Message is a message of the conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// UnmarshalJSON reads a message. Content that is a list of parts becomes the text of its parts.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var read struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		return err
	}
	m.Role = read.Role
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(read.Content, &parts) != nil {
		if len(read.Content) == 0 {
			return nil
		}
		return json.Unmarshal(read.Content, &m.Content)
	}
	for _, p := range parts {
		m.Content += p.Text
	}
	return nil
}

// CodeBlock is a block of code with its result.
type CodeBlock struct {
	Code   string `json:"code"`
	Result Result `json:"result"`
}

// Result is what a block did.
type Result struct {
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// Locals are variables by name: values that JSON has, others as text. Some logs have none.
	Locals        map[string]json.RawMessage `json:"locals"`
	ExecutionTime *float64                   `json:"execution_time"` // in seconds
	Calls         []Call                     `json:"rlm_calls"`
	FinalAnswer   *Answer                    `json:"final_answer"`
}

// Call is a sub-call of the code.
type Call struct {
	RootModel string `json:"root_model"`
	// Prompt is a text, or messages.
	Prompt   json.RawMessage `json:"prompt"`
	Response string          `json:"response"`
	Usage    *Usage          `json:"usage_summary"`
	// PromptTokens and CompletionTokens are what the viewer shows.
	PromptTokens     int64    `json:"prompt_tokens"`
	CompletionTokens int64    `json:"completion_tokens"`
	ExecutionTime    *float64 `json:"execution_time"` // in seconds
	// Error is set if the call failed.
	Error *string `json:"error,omitempty"`
}

// Usage is what calls took, by model.
type Usage struct {
	Models map[string]ModelUsage `json:"model_usage_summaries"`
}

// ModelUsage is what the calls of a model took.
type ModelUsage struct {
	Calls        int64    `json:"total_calls"`
	InputTokens  int64    `json:"total_input_tokens"`
	OutputTokens int64    `json:"total_output_tokens"`
	Cost         *float64 `json:"total_cost,omitempty"` // in US dollars
}

// Text returns the prompt of a call, if it is a text.
func (c *Call) Text() (text string, ok bool) {
	return text, len(c.Prompt) > 0 && c.Prompt[0] == '"' && json.Unmarshal(c.Prompt, &text) == nil
}

// Answer is a final answer. In older logs it is a pair of how it was given and the text.
type Answer struct{ Text string }

// MarshalJSON writes the text.
func (a Answer) MarshalJSON() ([]byte, error) { return encode(a.Text) }

// UnmarshalJSON reads a text or a pair.
func (a *Answer) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		var pair []string
		if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
			return errors.New("final_answer is neither a text nor a pair")
		}
		a.Text = pair[1]
		return nil
	}
	return json.Unmarshal(raw, &a.Text)
}

// Time is an instant. Without a time zone it is read as UTC.
type Time struct{ time.Time }

// withoutZone is how the reference implementation writes an instant.
const withoutZone = "2006-01-02T15:04:05.999999"

// MarshalJSON writes the instant in UTC, without a zone and with microseconds.
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(t.UTC().Format(withoutZone)) }

// UnmarshalJSON reads an instant with or without a zone.
func (t *Time) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		at, err = time.Parse(withoutZone, text)
	}
	if err != nil || at.Year() < 1 || at.Year() > 9998 { // a zone can change the year
		return errors.New("timestamp is not an instant of ISO 8601")
	}
	t.Time = at.UTC().Truncate(time.Microsecond)
	return nil
}

// encode returns a value as JSON, without the escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

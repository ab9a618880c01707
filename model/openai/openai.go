// Package openai asks models behind the OpenAI chat completions protocol, which
// most servers speak.
//
// It does one attempt per call. Answers are streamed, so that a connection that
// breaks is noticed and a large answer is stopped in time; servers that do not
// stream are understood too.
package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/internal/wire"
)

// DefaultBaseURL is where OpenAI's own models are.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config configures [New].
type Config struct {
	// Model is the model's name at the server. Required.
	Model string
	// BaseURL is the address before /chat/completions. Empty: DefaultBaseURL.
	BaseURL string
	// APIKey is sent as a bearer token. It may be empty for servers on this
	// machine or in a private network. It never appears in errors.
	APIKey string
	// Window is how many tokens a request may hold; 0 means no limit.
	Window int
	// Params are further fields of each request, for example top_p. Those that this package sets
	// itself are refused.
	Params map[string]json.RawMessage
	// Header is added to each request.
	Header http.Header
	// Findings keeps what the server refuses for other processes. nil: only this one knows.
	Findings model.Findings
	// NoSchema and NoTools switch off that schemas of answers and tools are sent.
	NoSchema, NoTools bool
	// MaxResponseBytes is the largest answer accepted.
	// 0: model.DefaultMaxResponseBytes.
	MaxResponseBytes int
	// HTTPClient: nil means one of its own that keeps connections. Its Timeout
	// should be 0: the context limits calls.
	HTTPClient *http.Client
}

func (c Config) withDefaults() Config {
	c.BaseURL = cmp.Or(c.BaseURL, DefaultBaseURL)
	c.MaxResponseBytes = cmp.Or(c.MaxResponseBytes, model.DefaultMaxResponseBytes)
	c.HTTPClient = cmp.Or(c.HTTPClient, model.NewHTTPClient())
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Window < 0 {
		errs = append(errs, errors.New("Window is below 0"))
	}
	if c.MaxResponseBytes < 0 {
		errs = append(errs, errors.New("MaxResponseBytes is below 0"))
	}
	errs = append(errs, wire.CheckParams(c.Params, reflect.TypeFor[request]()))
	return errors.Join(errs...)
}

// Model asks one model at one server. It is safe for concurrent use.
type Model struct {
	cfg    Config
	caller *wire.Caller
}

// New checks the configuration; it sends nothing. The error is a
// [*model.Error].
func New(cfg Config) (*Model, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "configure OpenAI model", Err: err}
	}
	end, err := model.NewEndpoint(model.EndpointConfig{
		URL: cfg.BaseURL, Model: cfg.Model, Key: cfg.APIKey, Secrets: wire.Secrets(cfg.Header), KeyVariable: "OPENAI_API_KEY",
		URLVariable: "OPENAI_BASE_URL or --base-url", URLExample: DefaultBaseURL + " or http://127.0.0.1:11434/v1",
	})
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg}
	m.caller = &wire.Caller{
		End: end, Client: cfg.HTTPClient, Header: make(http.Header),
		Protocol: "OpenAI", Hint: m.hint, ServerErrorKind: serverErrorKind, Path: "chat/completions",
		MaxAnswer: cfg.MaxResponseBytes,
		NoSchema:  cfg.NoSchema, NoTools: cfg.NoTools, Params: cfg.Params, LimitName: wire.MaxTokens,
		Findings: cfg.Findings,
	}
	if m.official() { // other servers know the older name
		m.caller.LimitName = wire.MaxCompletionTokens
	}
	maps.Copy(m.caller.Header, cfg.Header)
	if cfg.APIKey != "" {
		m.caller.Header.Set("Authorization", "Bearer "+cfg.APIKey)
	}
	return m, nil
}

// Window returns the configured limit of a request in tokens, 0 for none.
func (m *Model) Window() int { return m.cfg.Window }

// Reach reports whether the server accepts a connection.
func (m *Model) Reach(ctx context.Context) error { return m.caller.End.Reach(ctx, m.cfg.HTTPClient) }

// Close closes the connections kept for the next calls.
func (m *Model) Close() { m.cfg.HTTPClient.CloseIdleConnections() }

// Generate sends one request; another one only when the model refuses a part of the first, which
// some do. When the server does not report usage, it is estimated and marked so.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	user := model.Render(req)
	return m.caller.Generate(ctx, req, func(o wire.Options) (*model.Response, error) {
		a := &answer{text: model.Collector{Limit: m.cfg.MaxResponseBytes, Most: model.MostAnswerBytes(req.MaxOutputTokens),
			OnText: req.OnText}, tools: len(o.Tools) > 0}
		body := wire.Body{Fields: m.request(req, user, o), Params: o.Params}
		return m.caller.Ask(ctx, req, body, wire.Bytes(req, user), a)
	})
}

// request is a request of the protocol.
type request struct {
	Messages            []requestMessage `json:"messages"`
	Model               string           `json:"model"`
	MaxCompletionTokens int              `json:"max_completion_tokens,omitempty"`
	MaxTokens           int              `json:"max_tokens,omitempty"`
	ResponseFormat      *format          `json:"response_format,omitempty"`
	Seed                *int64           `json:"seed,omitempty"`
	Temperature         *float64         `json:"temperature,omitempty"`
	Tools               []tool           `json:"tools,omitempty"`
	StreamOptions       *streamOptions   `json:"stream_options,omitempty"`
	Stream              bool             `json:"stream"`
}

type requestMessage struct {
	Content string `json:"content"`
	Role    string `json:"role"`
}

// format holds the answer to a schema.
type format struct {
	Type   string        `json:"type"`
	Schema *formatSchema `json:"json_schema,omitempty"`
}

type formatSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// tool is a function that the model may call.
type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

func (m *Model) request(req *model.Request, user string, o wire.Options) *request {
	r := &request{
		Model: m.cfg.Model, Seed: o.Seed, Temperature: o.Temperature, Stream: o.Stream,
	}
	if o.Stream && o.StreamUsage {
		r.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	switch o.System {
	case "":
	case wire.RoleUser:
		user = req.System + "\n\n" + user
	default:
		r.Messages = append(r.Messages, requestMessage{Role: o.System, Content: req.System})
	}
	r.Messages = append(r.Messages, requestMessage{Role: "user", Content: user})
	for _, msg := range req.Messages {
		r.Messages = append(r.Messages, requestMessage{Role: wire.Role(msg), Content: msg.Text})
	}
	switch {
	case o.Schema != nil && o.JSONObject:
		r.ResponseFormat = &format{Type: "json_object"}
	case o.Schema != nil:
		// OpenAI takes a part of JSON Schema only with strict; other servers hold the answer
		// to the schema in any case.
		r.ResponseFormat = &format{Type: "json_schema", Schema: &formatSchema{Name: "answer", Schema: o.Schema,
			Strict: strict(o.Schema)}}
	}
	// Whether and how often tools are called is left to the model: not all servers know more.
	for _, t := range o.Tools {
		r.Tools = append(r.Tools, tool{Type: "function", Function: function(t)})
	}
	switch o.LimitName {
	case wire.MaxCompletionTokens:
		r.MaxCompletionTokens = o.MaxOutput
	case wire.MaxTokens:
		r.MaxTokens = o.MaxOutput
	}
	return r
}

// official reports whether the server is OpenAI's own or Azure's.
func (m *Model) official() bool {
	host := m.caller.End.Host()
	return strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".azure.com")
}

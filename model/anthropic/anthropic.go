// Package anthropic asks Anthropic's models through the messages protocol.
//
// It does one attempt per call. Answers are streamed, so that a connection that
// breaks is noticed and a large answer is stopped in time; gateways that do not
// stream are understood too.
package anthropic

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

const (
	// DefaultBaseURL is where Anthropic's models are.
	DefaultBaseURL = "https://api.anthropic.com"
	// DefaultMaxOutput is the limit of an answer, in tokens, when the request
	// says; the protocol wants a limit.
	DefaultMaxOutput = 8192
)

// protocolVersion is the version of the messages protocol.
const protocolVersion = "2023-06-01"

// maxTemperature is the highest the protocol knows.
const maxTemperature = 1

// The notes of a response that was asked for otherwise.
const (
	noteTemperature = "the temperature was sent as 1, the highest this provider knows"
	noteSeed        = "the seed was not sent: this provider takes none"
	noteWindow      = "the answer ends where the model's context window does"
)

// Config configures [New].
type Config struct {
	// Model is the model's name at the server. Required.
	Model string
	// BaseURL is the address before /v1/messages. Empty: DefaultBaseURL.
	BaseURL string
	// APIKey is sent in the header x-api-key. It may be empty for servers on
	// this machine or in a private network. It never appears in errors.
	APIKey string
	// MaxOutput is how long an answer may be, in tokens, when a request does
	// not say. 0: DefaultMaxOutput.
	MaxOutput int
	// Window is how many tokens a request may hold; 0 means no limit.
	Window int
	// Params are further fields of each request, for example top_p. Those that this package sets
	// itself are refused.
	Params map[string]json.RawMessage
	// Header is added to each request.
	Header http.Header
	// Findings keeps what the server refuses for other processes. nil: only this one knows.
	Findings model.Findings
	// NoSchema, NoCaching and NoTools switch off that schemas of answers are sent, that the
	// provider is asked to keep the beginning of prompts that several requests share, and that
	// tools are sent.
	NoSchema, NoCaching, NoTools bool
	// MaxResponseBytes is the largest answer accepted.
	// 0: model.DefaultMaxResponseBytes.
	MaxResponseBytes int
	// HTTPClient: nil means one of its own that keeps connections. Its Timeout
	// should be 0: the context limits calls.
	HTTPClient *http.Client
}

func (c Config) withDefaults() Config {
	c.BaseURL = cmp.Or(c.BaseURL, DefaultBaseURL)
	c.MaxOutput = cmp.Or(c.MaxOutput, DefaultMaxOutput)
	c.MaxResponseBytes = cmp.Or(c.MaxResponseBytes, model.DefaultMaxResponseBytes)
	c.HTTPClient = cmp.Or(c.HTTPClient, model.NewHTTPClient())
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.MaxOutput < 0 {
		errs = append(errs, errors.New("MaxOutput is below 0"))
	}
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
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "configure Anthropic model", Err: err}
	}
	// Many users end the address in /v1, as that of other providers.
	end, err := model.NewEndpoint(model.EndpointConfig{
		URL: strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1"), Model: cfg.Model,
		Key: cfg.APIKey, Secrets: wire.Secrets(cfg.Header),
		KeyVariable: "ANTHROPIC_API_KEY", URLVariable: "ANTHROPIC_BASE_URL", URLExample: DefaultBaseURL,
	})
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg}
	m.caller = &wire.Caller{
		End: end, Client: cfg.HTTPClient, Header: make(http.Header),
		Protocol: "Anthropic", Hint: m.hint, ServerErrorKind: serverErrorKind, Path: "v1/messages",
		MaxAnswer: cfg.MaxResponseBytes,
		NoSchema:  cfg.NoSchema, Keeps: !cfg.NoCaching, NoTools: cfg.NoTools, Params: cfg.Params,
		LimitName: wire.MaxTokens, MaxOutput: cfg.MaxOutput, Findings: cfg.Findings,
	}
	maps.Copy(m.caller.Header, cfg.Header)
	m.caller.Header.Set("Anthropic-Version", protocolVersion)
	if cfg.APIKey != "" {
		m.caller.Header.Set("X-Api-Key", cfg.APIKey)
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
			OnText: req.OnText}, tools: len(o.Tools) > 0 && o.Schema == nil}
		body, notes := m.request(req, user, o)
		resp, err := m.caller.Ask(ctx, req, wire.Body{Fields: body, Params: o.Params}, wire.Bytes(req, user), a)
		if err != nil {
			return nil, err
		}
		resp.Notes = append(resp.Notes, notes...)
		return resp, nil
	})
}

// request is a request of the protocol.
type request struct {
	MaxTokens   int              `json:"max_tokens"`
	Messages    []requestMessage `json:"messages"`
	Model       string           `json:"model"`
	Temperature *float64         `json:"temperature,omitempty"`
	System      []textBlock      `json:"system,omitempty"`
	Tools       []tool           `json:"tools,omitempty"`
	ToolChoice  *toolChoice      `json:"tool_choice,omitempty"`
	Stream      bool             `json:"stream"`
}

type requestMessage struct {
	Content []textBlock `json:"content"`
	Role    string      `json:"role"`
}

type textBlock struct {
	Text  string `json:"text"`
	Type  string `json:"type"`
	Cache *cache `json:"cache_control,omitempty"`
}

// cache asks to keep the request up to the end of a block, for five minutes after its last
// use.
type cache struct {
	Type string `json:"type"`
}

// tool is a tool that the model may call, or one whose input is the answer: so the protocol holds
// an answer to a schema.
type tool struct {
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	Name        string          `json:"name"`
}

type toolChoice struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

const toolName = "answer"

// request returns the request to send, and notes on what of it could not be sent
// as the caller asked.
func (m *Model) request(req *model.Request, user string, o wire.Options) (r *request, notes []string) {
	r = &request{
		Model: m.cfg.Model, MaxTokens: o.MaxOutput, Stream: o.Stream,
	}
	switch o.System {
	case "":
	case wire.RoleUser:
		user = req.System + "\n\n" + user
	default:
		r.System = []textBlock{{Text: req.System, Type: "text"}}
	}
	r.Messages = messages(req, user, o.Shared)
	if wire.IsObject(o.Schema) { // the input of a tool is an object
		r.Tools = []tool{{Name: toolName, Description: "Takes the answer.", InputSchema: o.Schema}}
		r.ToolChoice = &toolChoice{Name: toolName, Type: "tool"}
	}
	for _, t := range o.Tools {
		if o.Schema == nil {
			r.Tools = append(r.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters})
		}
	}
	if t := o.Temperature; t != nil {
		r.Temperature = new(min(*t, maxTemperature))
		if *t > maxTemperature {
			notes = append(notes, noteTemperature)
		}
	}
	if req.Seed != nil {
		notes = append(notes, noteSeed)
	}
	return r, notes
}

// messages returns the messages of a request. The provider is asked to keep the text up to the
// last of these places, or a whole conversation that goes on.
func messages(req *model.Request, user string, shared []int) []requestMessage {
	list := []requestMessage{{Role: "user", Content: blocks(user, shared)}}
	for i, msg := range req.Messages {
		b := textBlock{Text: msg.Text, Type: "text"}
		if i == len(req.Messages)-1 && len(shared) > 0 {
			b.Cache = &cache{Type: "ephemeral"}
		}
		list = append(list, requestMessage{Role: wire.Role(msg), Content: []textBlock{b}})
	}
	return list
}

// blocks returns a text divided at these places. The block before the last place is kept:
// the provider finds what it has kept at the end of that block and of those before it.
func blocks(text string, places []int) []textBlock {
	var blocks []textBlock
	from := 0
	for _, to := range places {
		if from < to {
			blocks = append(blocks, textBlock{Text: text[from:to], Type: "text"})
			from = to
		}
	}
	if n := len(blocks); n > 0 {
		blocks[n-1].Cache = &cache{Type: "ephemeral"}
	}
	if from < len(text) || from == 0 {
		blocks = append(blocks, textBlock{Text: text[from:], Type: "text"})
	}
	return blocks
}

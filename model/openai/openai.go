// Package openai asks models behind the OpenAI chat completions protocol, which
// most servers speak.
//
// It does one attempt per call. Answers are streamed, so that a connection that
// breaks is noticed and a large answer is stopped in time; servers that do not
// stream are understood too.
package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/perdure/perdure/model"
)

// DefaultBaseURL is where OpenAI's own models are.
const DefaultBaseURL = "https://api.openai.com/v1"

// idleConnections is how many connections are kept for the next calls; Go's
// default of two would open a new one for almost every call of many at once.
const idleConnections = 256

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
	// MaxResponseBytes is the largest answer accepted.
	// 0: model.DefaultMaxResponseBytes.
	MaxResponseBytes int
	// HTTPClient: nil means one of its own that keeps connections. Its Timeout
	// should be 0: the context limits calls.
	HTTPClient *http.Client
	// Logger: nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	if c.MaxResponseBytes == 0 {
		c.MaxResponseBytes = model.DefaultMaxResponseBytes
	}
	if c.HTTPClient == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idleConnections, idleConnections
		c.HTTPClient = &http.Client{Transport: transport}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	if c.Model == "" {
		errs = append(errs, errors.New("the name of the model is missing"))
	}
	if c.Window < 0 {
		errs = append(errs, errors.New("Window is below 0"))
	}
	if c.MaxResponseBytes < 0 {
		errs = append(errs, errors.New("MaxResponseBytes is below 0"))
	}
	if strings.ContainsAny(c.APIKey, "\r\n\x00") {
		errs = append(errs, errors.New("the key holds a line break"))
	}
	return errors.Join(errs...)
}

// parseBaseURL reads the address and refuses what can never work.
func parseBaseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // without the address, which the caller names
		}
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New(`it does not begin with "http://" or "https://"`)
	case u.Hostname() == "":
		return nil, errors.New("it names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it holds a query or a fragment")
	}
	return u, nil
}

// Model asks one model at one server. It is safe for concurrent use.
type Model struct {
	cfg  Config
	base *url.URL
	chat sdk.ChatCompletionService
}

// New checks the configuration; it sends nothing. The error is a
// [*model.Error].
func New(cfg Config) (*Model, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, &model.Error{Kind: model.KindInvalid, Msg: "configure OpenAI model", Err: err}
	}
	base, err := parseBaseURL(cfg.BaseURL)
	if err != nil {
		return nil, &model.Error{
			Kind: model.KindInvalid, Msg: fmt.Sprintf("read base URL %q", model.Redact(cfg.BaseURL, cfg.APIKey)), Err: err,
			Hint: "set OPENAI_BASE_URL to an address such as " + DefaultBaseURL + " or http://127.0.0.1:11434/v1",
		}
	}
	if cfg.APIKey == "" && !private(base.Hostname()) {
		return nil, &model.Error{
			Kind: model.KindAuth, Msg: "there is no key for " + base.Redacted(),
			Hint: "set OPENAI_API_KEY; for a server that needs none, any text will do",
		}
	}
	m := &Model{cfg: cfg, base: base}
	// The service is made by itself, because a whole client would take keys and
	// addresses from the environment that nobody gave us.
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(base.String(), "/") + "/"),
		option.WithHTTPClient(cfg.HTTPClient),
		option.WithMaxRetries(0),
		option.WithMiddleware(m.readStatus),
	}
	if cfg.APIKey != "" {
		options = append(options, option.WithAPIKey(cfg.APIKey))
	}
	m.chat = sdk.NewChatCompletionService(options...)
	return m, nil
}

// private reports whether a host is this machine or in a private network, where
// servers need no key.
func private(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || addr.IsUnspecified()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return true
	}
	for _, suffix := range []string{".localhost", ".local", ".internal", ".lan", ".home.arpa"} {
		if strings.HasSuffix(host, suffix) {
			return true
		}
	}
	return false
}

// Window returns the configured limit of a request in tokens, 0 for none.
func (m *Model) Window() int { return m.cfg.Window }

// Close closes the connections kept for the next calls.
func (m *Model) Close() { m.cfg.HTTPClient.CloseIdleConnections() }

// Generate sends one request. When the server does not report usage, it is
// estimated and marked so.
func (m *Model) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	user := model.Render(req)
	var raw *http.Response
	_, err := m.chat.New(ctx, m.params(req, user), option.WithResponseBodyInto(&raw), option.WithJSONSet("stream", true))
	if err != nil {
		return nil, m.sendError(ctx, err)
	}
	defer raw.Body.Close()
	a := newAnswer(m.cfg.MaxResponseBytes, req.OnText)
	if err := a.read(raw); err != nil {
		return nil, m.readError(ctx, a, err)
	}
	return a.response(len(req.System) + len(user))
}

func (m *Model) params(req *model.Request, user string) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{
		Model:         shared.ChatModel(m.cfg.Model),
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	if req.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(req.System))
	}
	p.Messages = append(p.Messages, sdk.UserMessage(user))
	if req.Temperature != nil {
		p.Temperature = sdk.Float(*req.Temperature)
	}
	if req.Seed != nil {
		p.Seed = sdk.Int(*req.Seed)
	}
	switch {
	case req.MaxOutputTokens <= 0:
	case m.official():
		p.MaxCompletionTokens = sdk.Int(int64(req.MaxOutputTokens))
	default: // the older name is the one other servers know
		p.MaxTokens = sdk.Int(int64(req.MaxOutputTokens))
	}
	return p
}

// official reports whether the server is OpenAI's own or Azure's.
func (m *Model) official() bool {
	host := strings.ToLower(m.base.Hostname())
	return strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".azure.com")
}

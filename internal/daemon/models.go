package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/nearest"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/anthropic"
	"github.com/perdure/perdure/model/cache"
	"github.com/perdure/perdure/model/command"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/model/mock"
	"github.com/perdure/perdure/model/openai"
	"github.com/perdure/perdure/model/price"
	"github.com/perdure/perdure/rlm"
)

// ModelConfig configures models.
type ModelConfig struct {
	// Root is the folder in which programs start.
	Root string
	// Getenv returns the variables OPENAI_API_KEY, ANTHROPIC_API_KEY and
	// ANTHROPIC_BASE_URL; nil: they are empty.
	Getenv func(name string) string
	// Prices is the user's file of prices, which overrides the built-in table.
	Prices price.Config
	// CacheDir is the folder of cached answers; empty: no cache.
	CacheDir string
	// CacheSecret is the secret of their checksums; see [cache.Config].
	CacheSecret func() ([]byte, error)
	// CallTimeout and CallRetries are the defaults of runs. 0: the defaults of
	// model.Guarded.
	CallTimeout time.Duration
	CallRetries int
	// Answered, when set, reports whether a model at an address answered in an earlier process.
	Answered func(ctx context.Context, name, baseURL string) bool
	// NoSchema, NoCaching and NoTools switch off that schemas of answers are sent, that providers
	// are asked to keep the beginning of prompts, and that tools are sent.
	NoSchema, NoCaching, NoTools bool
	// Findings keeps what servers refuse between processes; nil: each process finds it out.
	Findings model.Findings
	// Lock, if not nil, is held open by the guards of programs until the programs have
	// ended, so that no other process takes over before.
	Lock *os.File
	// Logger: nil discards.
	Logger *slog.Logger
}

// Models finds models by name. The tasks of a process share a model, and with it its pause
// after a rate limit. It is safe for concurrent use.
type Models struct {
	cfg    ModelConfig
	prices *price.Table
	cache  *cache.Cache // nil without CacheDir

	mu      sync.Mutex // guards the fields below
	ready   map[modelKey]model.Model
	guards  map[modelKey]*model.Guarded
	retries map[modelKey]retry
}

// retry is the last retry of a request.
type retry struct {
	at     time.Time
	reason string
}

// modelKey identifies a model.
type modelKey struct {
	name string
	opt  rlm.ModelOptions
	// hasFallback reports whether the next model of a chain is called if this one is
	// paused for long.
	hasFallback bool
}

// NewModels returns a resolver of models.
func NewModels(cfg ModelConfig) *Models {
	if cfg.Getenv == nil {
		cfg.Getenv = func(string) string { return "" }
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	m := &Models{
		cfg: cfg, prices: price.New(cfg.Prices), ready: make(map[modelKey]model.Model),
		guards: make(map[modelKey]*model.Guarded), retries: make(map[modelKey]retry),
	}
	if cfg.CacheDir != "" {
		kept := cache.Config{Dir: cfg.CacheDir, Secret: cfg.CacheSecret, Logger: cfg.Logger}
		m.cache, _ = cache.New(kept) // fails only without a folder
	}
	return m
}

// Close waits until the cache has written its answers.
func (m *Models) Close() {
	if m.cache != nil {
		m.cache.Close()
	}
}

var _ rlm.Resolver = (*Models)(nil)

// Resolve returns the model of a name, one value for each name with its options. Several
// names, separated by commas, are a chain, in which each model is the fallback of the one
// before it. Answers include their cost if it is known. The error is a *perdure.Error: the
// name is unknown, the key is missing, or the program or script was not found.
func (m *Models) Resolve(name string, opt rlm.ModelOptions) (model.Model, error) {
	key := modelKey{name: name, opt: opt}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ready := m.ready[key]; ready != nil {
		return ready, nil
	}
	names := model.ChainNames(name)
	links := make([]model.Link, len(names))
	for i, one := range names {
		link, err := m.link(modelKey{name: one, opt: opt, hasFallback: i < len(names)-1})
		if err != nil {
			return nil, modelError(one, err)
		}
		links[i] = model.Link{Name: shownName(one), Model: link}
	}
	ready := links[0].Model
	if len(links) > 1 {
		chain, err := model.NewChain(links...)
		if err != nil {
			return nil, modelError(name, err)
		}
		ready = chain
	}
	m.ready[key] = ready
	return ready, nil
}

// Rate returns what is known of a model at an address; see [price.Table.Rate].
func (m *Models) Rate(name, baseURL string) (price.Rate, error) { return m.prices.Rate(name, baseURL) }

// link returns one model of a chain with its guard, its price and, if the run uses it, the
// cache. The caller holds mu.
func (m *Models) link(key modelKey) (model.Model, error) {
	endpoint := m.endpoint(key)
	rate, err := m.prices.Rate(key.name, endpoint)
	if err != nil {
		return nil, err
	}
	keep := key.opt.Cache && m.cache != nil && key.name != extract.Name // extract is as fast as the cache
	key.opt.Cache = false
	guarded, err := m.guarded(key, rate)
	if err != nil {
		return nil, err
	}
	link := price.Attach(guarded, key.name, rate)
	if !keep {
		return link, nil
	}
	return m.cache.Attach(link, key.name, endpoint+string(key.opt.Params)), nil
}

// endpoint returns the endpoint of a model: that of the run for openai: models, that of the
// environment for anthropic: models, or "".
func (m *Models) endpoint(key modelKey) string {
	switch scheme, _, _ := strings.Cut(key.name, ":"); scheme {
	case schemeOpenAI:
		return key.opt.BaseURL
	case schemeAnthropic:
		return m.cfg.Getenv("ANTHROPIC_BASE_URL")
	}
	return ""
}

// maxPauseInChain bounds the rate-limit pause that is waited for if the model has a
// fallback.
const maxPauseInChain = 10 * time.Second

// guarded returns a model with its guard. The caller holds mu.
func (m *Models) guarded(key modelKey, rate price.Rate) (*model.Guarded, error) {
	if g := m.guards[key]; g != nil {
		return g, nil
	}
	inner, err := m.make(key, rate)
	if err != nil {
		return nil, err
	}
	guard := model.NewGuarded
	if same := m.sameEndpoint(key); same != nil {
		guard = same.Variant
	}
	cfg := model.GuardedConfig{
		Model: inner, Name: shownName(key.name),
		MaxTries:    cmp.Or(key.opt.Tries, m.cfg.CallRetries+1),
		Timeout:     cmp.Or(time.Duration(key.opt.Timeout), m.cfg.CallTimeout),
		Concurrency: key.opt.Concurrency,
		MaxPause:    time.Duration(key.opt.MaxWait),
		Patience:    time.Duration(key.opt.Patience),
		UntilAnswer: untilAnswer(key.name),
		HasFallback: key.hasFallback,
		OnRetry:     func(r model.Retry) { m.noteRetry(key, r) },
		Logger:      m.cfg.Logger,
	}
	if m.cfg.Answered != nil {
		cfg.Answered = func(ctx context.Context) bool { return m.cfg.Answered(ctx, key.name, m.endpoint(key)) }
	}
	if key.hasFallback {
		cfg.MaxPause = maxPauseInChain
	}
	g, err := guard(cfg)
	if err != nil {
		return nil, err
	}
	m.guards[key] = g
	return g, nil
}

// maxStarts is how many programs run at once until one has shown that it can be started.
const maxStarts = 3

// untilAnswer returns how many requests may be in flight until a model has answered.
func untilAnswer(name string) int {
	switch scheme, _, _ := strings.Cut(name, ":"); scheme {
	case schemeOpenAI, schemeAnthropic:
		return 1
	case schemeExec:
		return maxStarts
	}
	return 0
}

// sameEndpoint returns a model that differs only in its limits, or nil. Both share their
// rate limit.
func (m *Models) sameEndpoint(key modelKey) *model.Guarded {
	for other, g := range m.guards {
		if other.name == key.name && other.opt.BaseURL == key.opt.BaseURL {
			return g
		}
	}
	return nil
}

// The schemes of the names of models.
const (
	schemeBuiltin   = "builtin"
	schemeExec      = "exec"
	schemeMock      = "mock"
	schemeOpenAI    = "openai"
	schemeAnthropic = "anthropic"
)

func (m *Models) make(key modelKey, rate price.Rate) (model.Model, error) {
	name := key.name
	scheme, rest, _ := strings.Cut(name, ":")
	if _, after, found := strings.Cut(rest, ","); found && (scheme == schemeOpenAI || scheme == schemeAnthropic) {
		return nil, unknownModel(strings.TrimSpace(after)) // their names have no commas
	}
	switch {
	case name == extract.Name:
		return extract.New(extract.Config{}), nil
	case scheme == schemeBuiltin || rest == "":
		return nil, unknownModel(name)
	case scheme == schemeExec:
		var hold []*os.File
		if m.cfg.Lock != nil {
			hold = []*os.File{m.cfg.Lock}
		}
		return command.New(command.Config{Command: rest, Dir: m.cfg.Root, Hold: hold, Logger: m.cfg.Logger})
	case scheme == schemeMock:
		script, err := mock.Open(rest)
		if err != nil {
			return nil, err
		}
		return mock.New(script), nil
	case scheme == schemeOpenAI:
		header, err := m.header(key)
		if err != nil {
			return nil, err
		}
		return openai.New(openai.Config{
			Params: key.opt.Params.Values(), Header: header,
			Model: rest, BaseURL: m.endpoint(key), APIKey: m.apiKey(key, "OPENAI_API_KEY"),
			NoSchema: m.cfg.NoSchema, NoTools: m.cfg.NoTools, Findings: m.cfg.Findings,
		})
	case scheme == schemeAnthropic:
		longest := anthropic.DefaultMaxOutput
		if rate.MaxOutput > 0 {
			longest = min(longest, rate.MaxOutput)
		}
		header, err := m.header(key)
		if err != nil {
			return nil, err
		}
		return anthropic.New(anthropic.Config{
			Params: key.opt.Params.Values(), Header: header,
			Model: rest, BaseURL: m.endpoint(key), APIKey: m.apiKey(key, "ANTHROPIC_API_KEY"), MaxOutput: longest,
			NoSchema: m.cfg.NoSchema, NoCaching: m.cfg.NoCaching, NoTools: m.cfg.NoTools,
			Findings: m.cfg.Findings,
		})
	}
	return nil, unknownModel(name)
}

// apiKey returns a key from the environment. A model that is asked nothing needs none.
func (m *Models) apiKey(key modelKey, variable string) string {
	own := m.cfg.Getenv(variable)
	if own == "" && key.opt.Unsent {
		return "none"
	}
	return own
}

// header returns the further headers of requests, with the values of the variables that they name.
func (m *Models) header(key modelKey) (http.Header, error) {
	header := make(http.Header)
	for name, source := range key.opt.Headers.Strings() {
		missing := ""
		value := os.Expand(source, func(variable string) string {
			text := m.cfg.Getenv(variable)
			if text == "" {
				missing = variable
			}
			return text
		})
		if missing != "" && !key.opt.Unsent {
			return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "use header " + name,
				Msg: fmt.Sprintf("environment variable %s is not set", missing), Hint: "set it where the tree is executed"}
		}
		header.Set(name, value)
	}
	return header, nil
}

// unknownModel returns the error for an unknown name, with the nearest known one.
func unknownModel(name string) error {
	hint := "models are builtin:extract, openai:NAME, anthropic:NAME, exec:COMMAND and mock:SCRIPT"
	examples := map[string]string{schemeOpenAI: "openai:gpt-4o-mini", schemeAnthropic: "anthropic:claude-haiku-4-5",
		schemeExec: "exec:cat", schemeMock: "mock:echo"}
	if name == "" || name[0] == ',' {
		return &perdure.Error{Code: perdure.CodeInvalid, Msg: "a name in the list of models is empty",
			Hint: "write one model between two commas, as in openai:gpt-4o,mock:echo; " + hint}
	}
	scheme, rest, found := strings.Cut(name, ":")
	near, ok := nearest.Word(scheme, []string{schemeOpenAI, schemeAnthropic, schemeExec, schemeMock, schemeBuiltin})
	_, isExtract := nearest.Word(name, []string{"extract", extract.Name})
	switch {
	case ok && near == schemeBuiltin, !ok && !found && isExtract:
		hint = fmt.Sprintf("did you mean %q?", extract.Name)
	case ok && near == scheme && rest == "":
		hint = fmt.Sprintf("%q needs a name after the scheme, for example %q", name, examples[near])
	case ok && rest != "":
		hint = fmt.Sprintf("did you mean %q?", near+":"+rest)
	case !found && strings.HasPrefix(name, "claude"):
		hint = fmt.Sprintf("did you mean %q? %s", schemeAnthropic+":"+name, hint)
	case !found:
		hint = fmt.Sprintf("did you mean %q? %s", schemeOpenAI+":"+name, hint)
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Msg: fmt.Sprintf("unknown model %q", shownName(name)), Hint: hint}
}

// modelError returns the error of a model as a *perdure.Error: a wrong name is invalid, a
// missing program or key is unavailable.
func modelError(name string, err error) error {
	if perdure.CodeOf(err) != perdure.CodeInternal {
		return err
	}
	e := &perdure.Error{Code: perdure.CodeInvalid, Op: fmt.Sprintf("use model %q", shownName(name)),
		Err: model.RedactError(err)}
	if prices, ok := errors.AsType[*price.Error](err); ok {
		e.Op, e.Msg, e.Err = "read prices", prices.Error(), nil
		e.Hint = "correct the file; `perdure config` prints its path (prices)"
		return e
	}
	if m, ok := errors.AsType[*model.Error](err); ok {
		// The message is sent over HTTP, the cause is not.
		e.Msg, e.Err, e.Hint = m.Error(), nil, m.Hint
		missing := (m.Kind == model.KindNotFound || m.Kind == model.KindRefused) && !strings.HasPrefix(name, schemeMock+":")
		if missing || m.Kind == model.KindAuth || m.Kind == model.KindUnavailable {
			e.Code = perdure.CodeUnavailable
		}
	}
	return e
}

// shownName returns the name of a model without secrets, shortened.
func shownName(name string) string { return clip.Runes(model.Redact(name), 80) }

func (m *Models) noteRetry(key modelKey, r model.Retry) {
	if r.Err.Kind == model.KindRateLimit {
		return // Waiting reports the pause
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.retries[key] = retry{at: time.Now().Add(r.Wait), reason: r.Err.Error()}
}

// Waiting returns the models that are paused after a rate limit, or whose request is about
// to be retried, one line each.
func (m *Models) Waiting() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for key, g := range m.guards {
		if outage := g.Outage(); outage != "" {
			lines = append(lines, outage)
			continue
		}
		until, reason := g.Paused()
		if left := time.Until(until); left > 0 {
			lines = append(lines, fmt.Sprintf("%s waits %s: %s", shownName(key.name), left.Round(time.Second), reason))
			continue
		}
		if r := m.retries[key]; time.Until(r.at) > 0 {
			lines = append(lines, fmt.Sprintf("%s is retried in %s: %s", shownName(key.name),
				time.Until(r.at).Round(time.Second), r.reason))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

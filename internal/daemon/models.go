package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
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

// ModelConfig says how models are reached.
type ModelConfig struct {
	// Root is the folder in which programs start.
	Root string
	// Getenv looks up keys and Anthropic's address (OPENAI_API_KEY,
	// ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL); nil finds none.
	Getenv func(name string) string
	// Prices is the user's file of prices, which stands above the built-in
	// table.
	Prices price.Config
	// CacheDir is the folder of the answers that runs with a cache share;
	// empty: no run has one.
	CacheDir string
	// CallTimeout and CallRetries are used where a run does not say. 0: the
	// defaults of model.Guarded.
	CallTimeout time.Duration
	CallRetries int
	// Lock, when set, is held open by the guards of programs until these are
	// gone, so that nobody takes over while one still runs.
	Lock *os.File
	// Logger: nil discards.
	Logger *slog.Logger
}

// Models finds models by name. What it returns is shared in the process: one
// model asked by many tasks has one pause after a rate limit. It is safe for
// concurrent use.
type Models struct {
	cfg    ModelConfig
	prices *price.Table
	cache  *cache.Cache // nil without a folder for it

	mu    sync.Mutex // guards the fields below
	ready map[modelKey]model.Model
	found map[modelKey]*model.Guarded
	again map[modelKey]refusal
}

// refusal is the last fault after which a request was to be sent again.
type refusal struct {
	until  time.Time // when it is sent
	reason string
}

// modelKey is everything that makes two models different.
type modelKey struct {
	name string
	opt  rlm.ModelOptions
	// behind: another model is asked when this one cannot answer soon.
	behind bool
}

// NewModels returns a resolver that has found nothing yet.
func NewModels(cfg ModelConfig) *Models {
	if cfg.Getenv == nil {
		cfg.Getenv = func(string) string { return "" }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Models{
		cfg: cfg, prices: price.New(cfg.Prices), ready: make(map[modelKey]model.Model),
		found: make(map[modelKey]*model.Guarded), again: make(map[modelKey]refusal),
	}
	if cfg.CacheDir != "" {
		m.cache, _ = cache.New(cache.Config{Dir: cfg.CacheDir, Logger: cfg.Logger}) // fails without a folder only
	}
	return m
}

// Close waits until the answers of the cache are written.
func (m *Models) Close() {
	if m.cache != nil {
		m.cache.Close()
	}
}

var _ rlm.Resolver = (*Models)(nil)

// Resolve returns the model of a name, the same for the same name and options;
// for several names, separated by commas, a chain: each is asked when the one
// before it failed. Its answers tell what they cost, as far as it is known. The
// error is a *perdure.Error with a hint: the name is not known, the key is
// missing, there is no such program or script.
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
		link, err := m.link(modelKey{name: one, opt: opt, behind: i < len(names)-1})
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

// link makes one model: guarded, with its price, and behind the cache if the
// run has one. The caller holds mu.
func (m *Models) link(key modelKey) (model.Model, error) {
	endpoint := m.endpoint(key)
	rate, err := m.prices.Rate(key.name, endpoint)
	if err != nil {
		return nil, err
	}
	keep := key.opt.Cache && m.cache != nil && key.name != extract.Name // which is as quick as the cache
	key.opt.Cache = false
	guarded, err := m.guarded(key, rate)
	if err != nil {
		return nil, err
	}
	link := price.Attach(guarded, key.name, rate)
	if !keep {
		return link, nil
	}
	return m.cache.Attach(link, key.name, endpoint), nil
}

// endpoint is where a model is asked: a run chooses that of models behind the
// OpenAI protocol, the environment that of Anthropic's.
func (m *Models) endpoint(key modelKey) string {
	switch scheme, _, _ := strings.Cut(key.name, ":"); scheme {
	case schemeOpenAI:
		return key.opt.BaseURL
	case schemeAnthropic:
		return m.cfg.Getenv("ANTHROPIC_BASE_URL")
	}
	return ""
}

// patienceInChain is the longest rate-limit pause that is waited for where another
// model can be asked.
const patienceInChain = 10 * time.Second

// guarded finds or makes what asks a model. The caller holds mu.
func (m *Models) guarded(key modelKey, rate price.Rate) (*model.Guarded, error) {
	if g := m.found[key]; g != nil {
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
		OnRetry:     func(r model.Retry) { m.noteRetry(key, r) },
		Logger:      m.cfg.Logger,
	}
	if key.behind {
		cfg.MaxPause = patienceInChain
	}
	g, err := guard(cfg)
	if err != nil {
		return nil, err
	}
	m.found[key] = g
	return g, nil
}

// sameEndpoint finds a model that differs in nothing but limits: a rate limit
// of one is a rate limit of both.
func (m *Models) sameEndpoint(key modelKey) *model.Guarded {
	for other, g := range m.found {
		if other.name == key.name && other.opt.BaseURL == key.opt.BaseURL {
			return g
		}
	}
	return nil
}

// The first words of the names of models, as people write them.
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
		return nil, unknownModel(strings.TrimSpace(after)) // no name of theirs has a comma
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
		return openai.New(openai.Config{
			Model: rest, BaseURL: m.endpoint(key), APIKey: m.cfg.Getenv("OPENAI_API_KEY"),
		})
	case scheme == schemeAnthropic:
		longest := anthropic.DefaultMaxOutput
		if rate.MaxOutput > 0 {
			longest = min(longest, rate.MaxOutput)
		}
		return anthropic.New(anthropic.Config{
			Model: rest, BaseURL: m.endpoint(key), APIKey: m.cfg.Getenv("ANTHROPIC_API_KEY"), MaxOutput: longest,
		})
	}
	return nil, unknownModel(name)
}

// unknownModel names the nearest model that there is.
func unknownModel(name string) error {
	e := &perdure.Error{
		Code: perdure.CodeInvalid, Msg: fmt.Sprintf("there is no model %q", shownName(name)),
		Hint: "models are builtin:extract, openai:NAME, anthropic:NAME, exec:COMMAND and mock:SCRIPT",
	}
	scheme, rest, found := strings.Cut(name, ":")
	schemes := []string{schemeOpenAI, schemeAnthropic, schemeExec, schemeMock, schemeBuiltin}
	switch near, ok := nearest.Word(scheme, schemes); {
	case ok && (near == schemeBuiltin || near == scheme && rest == ""):
		e.Hint = nearestHint(name, near)
	case ok && rest != "":
		e.Hint = fmt.Sprintf("did you mean %q?", near+":"+rest)
	case !found:
		if near, ok := nearest.Word(name, []string{"extract", extract.Name}); ok && near != "" {
			e.Hint = fmt.Sprintf("did you mean %q?", extract.Name)
		} else {
			e.Hint = fmt.Sprintf("did you mean %q? %s", likelyScheme(name)+":"+name, e.Hint)
		}
	}
	return e
}

// likelyScheme guesses who serves a model by its name alone.
func likelyScheme(name string) string {
	if strings.HasPrefix(name, "claude") {
		return schemeAnthropic
	}
	return schemeOpenAI
}

func nearestHint(name, scheme string) string {
	examples := []string{extract.Name, schemeOpenAI + ":gpt-4o-mini", schemeAnthropic + ":claude-haiku-4-5",
		schemeExec + ":cat", schemeMock + ":echo"}
	for _, example := range examples {
		if strings.HasPrefix(example, scheme+":") && scheme != schemeBuiltin {
			return fmt.Sprintf("%q needs a name behind it, for example %q", name, example)
		}
	}
	return fmt.Sprintf("did you mean %q?", extract.Name)
}

// modelError gives a model's error the code that fits: what is written wrongly
// is invalid input, what is not there or not allowed is unavailable.
func modelError(name string, err error) error {
	var own *perdure.Error
	if errors.As(err, &own) {
		return err
	}
	e := &perdure.Error{Code: perdure.CodeInvalid, Op: fmt.Sprintf("use model %q", shownName(name)),
		Err: model.RedactError(err)}
	var prices *price.Error
	if errors.As(err, &prices) {
		e.Op, e.Msg, e.Err = "read prices", prices.Error(), nil
		e.Hint = "correct the file; `perdure config` shows which it is (prices)"
		return e
	}
	var m *model.Error
	if errors.As(err, &m) {
		// The message has to survive a way over HTTP, where causes are not told.
		e.Msg, e.Err, e.Hint = m.Error(), nil, m.Hint
		missing := m.Kind == model.KindNotFound && !strings.HasPrefix(name, schemeMock+":")
		if missing || m.Kind == model.KindAuth || m.Kind == model.KindUnavailable {
			e.Code = perdure.CodeUnavailable
		}
	}
	return e
}

// shownName is a model's name without secrets and without the arguments of a
// program, which may be long.
func shownName(name string) string {
	const most = 80
	return clip.Runes(model.Redact(name), most)
}

func (m *Models) noteRetry(key modelKey, r model.Retry) {
	if r.Err.Kind == model.KindRateLimit {
		return // told by the pause
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.again[key] = refusal{until: time.Now().Add(r.Wait), reason: r.Err.Error()}
}

// Waiting tells which models are waited for, after a rate limit or before a
// request is sent again, one line each.
func (m *Models) Waiting() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	for key, g := range m.found {
		until, reason := g.Paused()
		if left := time.Until(until); left > 0 {
			lines = append(lines, fmt.Sprintf("%s waits %s: %s", shownName(key.name), left.Round(time.Second), reason))
			continue
		}
		if r := m.again[key]; time.Until(r.until) > 0 {
			lines = append(lines, fmt.Sprintf("%s is asked again in %s: %s", shownName(key.name),
				time.Until(r.until).Round(time.Second), r.reason))
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Defaults of [GuardedConfig].
const (
	DefaultMaxTries         = 6
	DefaultMaxTimeouts      = 2
	DefaultTimeout          = 300 * time.Second
	DefaultMaxResponseBytes = 10 << 20
	DefaultInitialBackoff   = 500 * time.Millisecond
	DefaultMaxBackoff       = 60 * time.Second
	// DefaultMaxPause is the longest wait that a provider may ask for: some name the end of the
	// day.
	DefaultMaxPause = 30 * time.Minute
	// DefaultPatience is how long a server that answered before may refuse connections.
	DefaultPatience = 5 * time.Minute
)

// GuardedConfig configures [NewGuarded].
type GuardedConfig struct {
	// Model is what is asked. Required.
	Model Model
	// Name is how errors, reasons and log lines call it, for example
	// "openai:gpt-4o". Empty: "model".
	Name string
	// MaxTries is the largest number of requests for one answer. 0:
	// DefaultMaxTries. A rate limit counts as a try only when no call got an
	// answer in the meantime.
	MaxTries int
	// MaxTimeouts is how many of these may run into Timeout. 0:
	// DefaultMaxTimeouts.
	MaxTimeouts int
	// Timeout is the limit for one request, without waiting for its turn.
	// 0: DefaultTimeout; negative: none.
	Timeout time.Duration
	// Concurrency is how many requests may be in flight at once. 0: no limit.
	Concurrency int
	// MaxResponseBytes is the largest answer accepted.
	// 0: DefaultMaxResponseBytes.
	MaxResponseBytes int
	// InitialBackoff, MaxBackoff: the waits between tries double from the first
	// to the second, each varied at random by half; so do pauses while no call
	// gets an answer, when the provider does not say how long.
	// 0: DefaultInitialBackoff, DefaultMaxBackoff.
	InitialBackoff time.Duration
	MaxBackoff     time.Duration
	// MaxPause is the longest wait that a provider may ask for, with a rate limit or another
	// failure. 0: DefaultMaxPause; negative: any. While a pause lasts longer, calls fail at once
	// with KindRateLimit and the rest of it as RetryAfter.
	MaxPause time.Duration
	// Patience is how long to wait for a server that answered before and refuses connections.
	// 0: DefaultPatience; negative: it is not waited for.
	Patience time.Duration
	// Answered, when set, reports whether the server answered in an earlier process. It has to be
	// safe for concurrent use.
	Answered func(context.Context) bool
	// UntilAnswer is how many requests may be in flight until the first answer, and after a
	// permanent fault until the next one. 0: as many as Concurrency.
	UntilAnswer int
	// HasFallback is set if another model is asked instead: permanent faults are then not
	// repeated, and a server that refuses connections is not waited for.
	HasFallback bool
	// OnPause, when set, is called when a rate limit stops all calls. It must not
	// block and has to be safe for concurrent use.
	OnPause func(until time.Time, reason string)
	// OnRetry, when set, is called before a request is sent again; text that
	// OnText received before is void then. The rules of OnPause apply.
	OnRetry func(Retry)
	// Logger: nil discards.
	Logger *slog.Logger
}

// Retry describes a request that is about to be sent again.
type Retry struct {
	// Try is the number of the try that failed, from 1.
	Try int
	// Wait is the time until the next one, not counting its turn.
	Wait time.Duration
	// Err is why.
	Err *Error
}

// Guarded asks a [Model] with retries, growing random waits, Retry-After, a pause
// of all calls after a rate limit, and limits on requests in flight, on the time
// of each and on the size of an answer. It refuses empty answers.
//
// All callers of one model in a process share one Guarded. It is safe for
// concurrent use and owns no goroutine.
type Guarded struct {
	cfg       GuardedConfig
	admission *admission
	// closedOnly is set if replies have only the closing mark of their thoughts.
	closedOnly *atomic.Bool
}

// NewGuarded checks the configuration and returns a Guarded.
func NewGuarded(cfg GuardedConfig) (*Guarded, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	a := newAdmission(cfg.Concurrency, cfg.InitialBackoff, cfg.MaxBackoff)
	a.untilAnswer = cfg.UntilAnswer
	return &Guarded{cfg: cfg, admission: a, closedOnly: new(atomic.Bool)}, nil
}

// Variant returns a Guarded with other limits that shares the pauses and the
// concurrency limit of g.
func (g *Guarded) Variant(cfg GuardedConfig) (*Guarded, error) {
	v, err := NewGuarded(cfg)
	if err != nil {
		return nil, err
	}
	v.admission, v.closedOnly = g.admission, g.closedOnly
	return v, nil
}

func (c GuardedConfig) withDefaults() GuardedConfig {
	c.Name = cmp.Or(c.Name, "model")
	c.MaxTries = cmp.Or(c.MaxTries, DefaultMaxTries)
	c.MaxTimeouts = cmp.Or(c.MaxTimeouts, DefaultMaxTimeouts)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.MaxResponseBytes = cmp.Or(c.MaxResponseBytes, DefaultMaxResponseBytes)
	c.InitialBackoff = cmp.Or(c.InitialBackoff, DefaultInitialBackoff)
	c.MaxBackoff = cmp.Or(c.MaxBackoff, DefaultMaxBackoff)
	c.MaxPause = cmp.Or(c.MaxPause, DefaultMaxPause)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c GuardedConfig) validate() error {
	var errs []error
	check := func(ok bool, msg string) {
		if !ok {
			errs = append(errs, errors.New("guard model: "+msg))
		}
	}
	check(c.Model != nil, "Model is missing")
	check(c.MaxTries > 0, "MaxTries is below 1")
	check(c.MaxTimeouts > 0, "MaxTimeouts is below 1")
	check(c.Concurrency >= 0, "Concurrency is below 0")
	check(c.MaxResponseBytes > 0, "MaxResponseBytes is below 1")
	check(c.InitialBackoff > 0, "InitialBackoff is not above 0")
	check(c.MaxBackoff >= c.InitialBackoff, "MaxBackoff is below InitialBackoff")
	check(c.UntilAnswer >= 0, "UntilAnswer is below 0")
	return errors.Join(errs...)
}

// Unwrap returns the model that is asked; [AsWindower] looks through it.
func (g *Guarded) Unwrap() Model { return g.cfg.Model }

// Paused returns until when a rate limit stops everybody and why; the zero
// time when it does not.
func (g *Guarded) Paused() (until time.Time, reason string) { return g.admission.paused() }

// Announces returns true.
func (g *Guarded) Announces() bool { return true }

// Generate asks until there is an answer or asking again is of no use. The
// error is an [*Error] that says how many tries there were.
func (g *Guarded) Generate(ctx context.Context, req *Request) (*Response, error) {
	p := g.newPatience()
	var last *Error
	for try := 1; ; try++ {
		t, err := g.admission.enter(ctx, max(g.cfg.MaxPause, 0))
		if errors.Is(err, errPaused) {
			return nil, g.paused(try-1, last)
		}
		if err != nil {
			return nil, canceled(ctx, try-1)
		}
		if fault := req.Faults.standingFault(g.admission); fault != nil {
			g.admission.leave(nothing)
			fault.Tries = try - 1
			return nil, fault
		}
		if req.OnSend != nil {
			if err := req.OnSend(ctx, g.cfg.Name); err != nil {
				g.admission.leave(nothing)
				return nil, Stopped(err, try-1)
			}
		}
		resp, retry := g.try(ctx, req, t, p)
		if resp != nil {
			resp.Tries = try
			return resp, nil
		}
		retry.Try, retry.Err.Tries = try, try
		last = retry.Err
		if p.isSpent(retry.Err) || g.givesWay(retry) {
			return nil, retry.Err
		}
		if err := req.followed(ctx, last); err != nil {
			return nil, Stopped(err, try)
		}
		g.tellRetry(retry)
		if err := g.wait(ctx, req, p, retry); err != nil {
			err.Tries = try
			return nil, err
		}
	}
}

// wait waits until the next try. The error ends the call.
func (g *Guarded) wait(ctx context.Context, req *Request, p *patience, r Retry) *Error {
	switch {
	case r.Err.Kind == KindRateLimit:
		return nil // the pause is the wait
	case r.Err.Kind == KindRefused && !p.waitsSince.IsZero():
		return g.awaitServer(ctx, req, r.Err, p.waitsSince)
	case !sleep(ctx, r.Wait):
		return canceled(ctx, r.Try)
	}
	return nil
}

// The tries for one answer after failures that mostly come again.
const (
	maxRepeats      = 1 // of a fault amid answers, which can be a proxy's, and of an empty answer
	maxRefusedTries = 3
)

// patience is what is left of it for one answer.
type patience struct {
	tries, timeouts int
	// repeats is how many requests failed in a way that mostly comes again, refused how many got no
	// connection.
	repeats, refused int
	// waitsSince is since when a server that refuses connections is waited for, zero if it is not.
	waitsSince time.Time
	backoff    backoff.ExponentialBackOff
}

func (g *Guarded) newPatience() *patience {
	p := &patience{tries: g.cfg.MaxTries, timeouts: g.cfg.MaxTimeouts, backoff: backoff.ExponentialBackOff{
		InitialInterval:     g.cfg.InitialBackoff,
		RandomizationFactor: backoff.DefaultRandomizationFactor,
		Multiplier:          2,
		MaxInterval:         g.cfg.MaxBackoff,
	}}
	p.backoff.Reset()
	return p
}

// isSpent reports whether a request that failed is not sent again.
func (p *patience) isSpent(failure *Error) bool {
	if failure.Permanent {
		return true
	}
	switch failure.Kind {
	case KindRefused:
		return p.waitsSince.IsZero() && (p.refused >= maxRefusedTries || p.tries <= 0)
	case KindAuth, KindNotFound, KindQuota, KindEmpty, KindThoughts:
		return p.repeats > maxRepeats || p.tries <= 0
	}
	return !failure.Retryable() || p.tries <= 0 || p.timeouts <= 0
}

// try sends one request with a ticket, which it gives back; a rate limit stops
// the others before the place is given to the next one.
func (g *Guarded) try(ctx context.Context, req *Request, t ticket, p *patience) (resp *Response, retry Retry) {
	learned := nothing
	defer func() { g.admission.leave(learned) }()
	resp, failure := g.once(ctx, g.noteBeginning(req))
	if failure == nil {
		learned = answered
		req.Faults.noteAnswer(g.admission)
		return resp, Retry{}
	}
	learned = lessonOf(failure)
	g.count(ctx, t, p, failure)
	awaited := failure.Kind == KindRefused && !p.waitsSince.IsZero()
	stops := !awaited && req.Faults.note(g.admission, failure, g.cfg.HasFallback)
	if failure.Kind == KindRateLimit {
		return nil, Retry{Wait: g.pauseAll(t, failure, failure.RetryAfter), Err: failure}
	}
	retry = Retry{Wait: max(p.backoff.NextBackOff(), failure.RetryAfter), Err: failure}
	if learned == faulty && !stops && !awaited && !g.cfg.HasFallback {
		g.admission.hold(retry.Wait, g.cfg.Name+": "+failure.Error())
	}
	return nil, retry
}

// count counts a failed request.
func (g *Guarded) count(ctx context.Context, t ticket, p *patience, failure *Error) {
	if failure.Kind == KindTimeout {
		p.timeouts--
	}
	if failure.Kind != KindRateLimit || !g.admission.progress(t) {
		p.tries--
	}
	switch failure.Kind {
	case KindAuth, KindNotFound, KindQuota:
		if p.repeats++; !g.admission.hasAnswered() || g.cfg.HasFallback {
			p.repeats = maxRepeats + 1
		}
	case KindEmpty, KindThoughts:
		p.repeats++
	case KindRefused:
		if p.refused++; g.cfg.HasFallback {
			p.refused = maxRefusedTries
		}
		if p.waitsSince.IsZero() && g.waitsForServer(ctx) {
			p.waitsSince = time.Now()
		}
	}
}

// once sends one request.
func (g *Guarded) once(ctx context.Context, req *Request) (*Response, *Error) {
	callCtx, cancel := ctx, context.CancelFunc(func() {})
	if g.cfg.Timeout > 0 {
		callCtx, cancel = context.WithTimeout(ctx, g.cfg.Timeout)
	}
	defer cancel()
	resp, err := g.generate(callCtx, req)
	switch {
	case err == nil && resp == nil:
		return nil, &Error{Kind: KindFailed, Msg: g.cfg.Name + " returned neither an answer nor an error"}
	case err == nil:
		return g.check(resp)
	case ctx.Err() != nil:
		return nil, Canceled(ctx)
	case callCtx.Err() != nil:
		return nil, &Error{
			Kind: KindTimeout,
			Msg:  fmt.Sprintf("%s did not answer within %s", g.cfg.Name, g.cfg.Timeout),
			Hint: "raise the time limit for one call, or ask for less at once",
			Err:  err,
		}
	}
	return nil, asError(err)
}

// generate has the model answer; OnText receives the text without thoughts.
func (g *Guarded) generate(ctx context.Context, req *Request) (*Response, error) {
	if req.OnText == nil || textKind(g.cfg.Model) == TextQuoted {
		return g.cfg.Model.Generate(ctx, req)
	}
	own, stream := *req, g.answerStream(req.OnText)
	own.OnText = stream.Add
	resp, err := g.cfg.Model.Generate(ctx, &own)
	if err == nil {
		stream.Close()
	}
	return resp, err
}

// asError returns a copy of the *Error in err, so that it can be changed, or
// makes one.
func asError(err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		return &Error{Kind: KindFailed, Err: err}
	}
	c := *e
	if e != err { //nolint:errorlint // asks whether something was wrapped around it
		c.Err = err
	}
	return &c
}

// check refuses answers that are too large or empty, cleans the rest and separates thoughts.
func (g *Guarded) check(resp *Response) (*Response, *Error) {
	if len(resp.Text) > g.cfg.MaxResponseBytes {
		err := TooLarge(g.cfg.MaxResponseBytes)
		err.Usage = resp.Usage
		return nil, err
	}
	if textKind(g.cfg.Model) == TextGenerated && !resp.Separated {
		g.noteClosedOnly(resp.Text)
	}
	resp = SeparateThoughts(g.cfg.Model, resp)
	if err := OnlyThoughts(g.cfg.Name, resp); err != nil {
		return nil, err
	}
	if strings.TrimSpace(resp.Text) == "" && len(resp.Citations) == 0 {
		return nil, &Error{
			Kind: KindEmpty, Usage: resp.Usage,
			Msg:  g.cfg.Name + " returned an empty answer",
			Hint: "look at the model's own log; a longer limit for answers may help",
		}
	}
	c := *resp
	text, changed := Clean(resp.Text)
	if c.Text = text; changed {
		c.Notes = append(slices.Clip(resp.Notes), NoteReplaced)
	}
	return &c, nil
}

// pauseAll stops all calls after a rate limit, reports it once, and returns
// how long it lasts.
func (g *Guarded) pauseAll(t ticket, failure *Error, asked time.Duration) time.Duration {
	reason := g.cfg.Name + ": " + failure.Error()
	until, fresh := g.admission.pause(t, asked, reason)
	wait := time.Until(until)
	if !fresh {
		return wait
	}
	g.cfg.Logger.Warn("rate limit pauses the model", "model", g.cfg.Name, "duration_ms", wait.Milliseconds())
	if g.cfg.OnPause != nil {
		g.cfg.OnPause(until, reason)
	}
	return wait
}

func (g *Guarded) tellRetry(r Retry) {
	g.cfg.Logger.Warn("retrying model call", "model", g.cfg.Name, "try", r.Try,
		"duration_ms", r.Wait.Milliseconds(), "error", r.Err.Error())
	if g.cfg.OnRetry != nil {
		g.cfg.OnRetry(r)
	}
}

// givesWay reports whether the wait that a provider asks for is too long.
func (g *Guarded) givesWay(r Retry) bool {
	wait := r.Err.RetryAfter
	if r.Err.Kind == KindRateLimit {
		wait = r.Wait
	}
	return g.cfg.MaxPause > 0 && wait > g.cfg.MaxPause
}

// paused is the error of a call that does not wait for a pause to end.
func (g *Guarded) paused(tries int, last *Error) *Error {
	until, reason := g.admission.paused()
	left := max(time.Until(until), 0)
	var u Usage
	if last != nil {
		u = last.Usage
	}
	return &Error{
		Kind: KindRateLimit, RetryAfter: left, Tries: tries, Usage: u,
		Msg:  fmt.Sprintf("%s is paused for %s by a rate limit (%s)", g.cfg.Name, left.Round(time.Second), reason),
		Hint: "the provider limits requests: use less concurrency, or wait",
	}
}

func canceled(ctx context.Context, tries int) *Error {
	err := Canceled(ctx)
	err.Tries = tries
	return err
}

// sleep waits for d and reports whether ctx lasted that long.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

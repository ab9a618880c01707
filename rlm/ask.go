package rlm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// journaled is what the journal keeps of a call in addition to its text.
type journaled struct {
	Data
	Request *loggedRequest `json:"request,omitempty"`
	// Limits are the limits stated in a request for a plan, or the terms of one of a search.
	Limits json.RawMessage `json:"told,omitempty"`
	// Refused is the limit that a request passed which was too long, as the server named it.
	Refused *model.TokenLimit `json:"refused,omitempty"`
}

// ask has the model answer a request as the call of this number of the attempt.
// A call that was finished before is not made again.
func (a *attempt) ask(ctx context.Context, position int, m *asked, req *model.Request) (string, Data, error) {
	x, err := a.send(ctx, position, m, req)
	if err != nil || x.known {
		return x.text, x.data, err
	}
	return a.record(ctx, x.sending, req, x.resp)
}

// exchanged is a request with its answer: known from the journal, or received and not recorded
// yet.
type exchanged struct {
	known bool
	text  string
	data  Data

	sending *sending
	resp    *model.Response
}

// send sends a request, unless the journal has its answer.
func (a *attempt) send(ctx context.Context, position int, m *asked, req *model.Request) (x exchanged, err error) {
	hash := model.Hash(m.name, req)
	req.Exact = a.run.cfg.Mode == ModeStrict
	if req.Divisible { // then the position can have an answer to a shorter request
		if err := a.refusedBefore(ctx, position, hash); err != nil {
			return x, err
		}
	}
	if err := a.checkReplay(ctx, position, hash); err != nil {
		return x, err
	}
	spec := a.announce(position, m, req, hash)
	call, found, err := a.l.FindCall(ctx, spec)
	if err != nil {
		return x, a.interrupted(ctx, err)
	}
	if found {
		var j journaled
		if len(call.Data) > 0 {
			if err := json.Unmarshal(call.Data, &j); err != nil {
				return x, failf(KindPlan, "read call %q: %w", call.ID, err)
			}
		}
		return exchanged{known: true, text: call.Response, data: j.Data}, nil
	}
	out := &streamed{ctx: ctx, l: a.l, begun: time.Now()}
	if !m.ranked && !m.quiet {
		req.OnText = out.add
	}
	x.sending = &sending{a: a, m: m, spec: spec}
	if x.resp, err = x.sending.generate(ctx, req); err != nil {
		return x, a.unanswered(ctx, x.sending, req, err)
	}
	return x, nil
}

// announce reserves what the call may take at most, as far as it can be known.
func (a *attempt) announce(position int, m *asked, req *model.Request, hash string) perdure.CallSpec {
	spec := perdure.CallSpec{Position: position, Model: m.name, RequestHash: hash}
	if m.ranked || m.tool != "" {
		return spec
	}
	r := a.reserve(m, req)
	spec.ReserveTokens, spec.ReserveCostMicros = r.tokens, r.micros
	return spec
}

// reserve returns what a request may take at most: the tokens of its text are estimated on
// the high side.
func (a *attempt) reserve(m *asked, req *model.Request) amount {
	return a.reserveBytes(m, requestBytes(req), len(req.Shared) > 0)
}

// requestBytes returns the length of a request with its tools.
func requestBytes(req *model.Request) int {
	n := len(model.RenderAll(req))
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n
}

// reserveBytes is reserve for a request of n bytes, of which the provider is asked to keep the
// beginning if shared is set.
func (a *attempt) reserveBytes(m *asked, n int, shared bool) amount {
	u := model.Usage{InputTokens: reservedTokens(n), OutputTokens: a.run.plan.Answer}
	r := amount{calls: 1, tokens: u.InputTokens + u.OutputTokens}
	micros, known := a.e.price(m, u)
	if known && shared { // writing to the provider's cache can cost more
		u.CacheWriteTokens = u.InputTokens
		written, _ := a.e.price(m, u)
		micros = max(micros, written)
	}
	if known {
		r.micros = micros
	}
	return r
}

// reservedTokens is the tokens that n bytes hardly exceed.
func reservedTokens(n int) int64 { return (int64(n) + 2) / 3 }

// checkReplay refuses, in mode strict, a request that is not the one the
// journal has at its place.
func (a *attempt) checkReplay(ctx context.Context, position int, hash string) error {
	if a.run.cfg.Mode != ModeStrict || a.l.Fence() <= 1 {
		return nil
	}
	calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
	if err != nil {
		return err
	}
	for _, c := range calls {
		if c.Attempt == a.l.Task.Attempts && c.Position == position && c.State == perdure.CallCompleted &&
			c.RequestHash != hash {
			return failf(KindDiverged, "the request is not the one of call %q, and mode strict allows no other", c.ID)
		}
	}
	return nil
}

// interrupted returns why a context ended.
func (a *attempt) interrupted(ctx context.Context, err error) error {
	if over := a.outOfTime(ctx); over != nil {
		return over
	}
	return err
}

// unanswered ends a call without an answer. A call whose caller was stopped is
// left open: whether it was paid for is not known, and the next attempt
// counts it as uncertain.
func (a *attempt) unanswered(ctx context.Context, s *sending, req *model.Request, cause error) error {
	over := a.outOfTime(ctx)
	if over == nil && ctx.Err() != nil {
		return cause
	}
	f := modelFailure(s.m.name, cause)
	switch {
	case errors.Is(s.refused, perdure.ErrBudgetExceeded), errors.Is(s.refused, errLastPaid):
		f = &attemptError{kind: KindBudget, err: s.refused}
	case s.refused != nil && over == nil:
		return s.refused
	}
	if !s.begun {
		return cmp.Or[error](over, f)
	}
	e, _ := errors.AsType[*model.Error](cause)
	var data json.RawMessage
	if kept := a.logged(req); kept != nil || a.limits != nil {
		var err error
		if data, err = encode("call", journaled{Request: kept, Limits: a.limits, Refused: refusedLimit(e)}); err != nil {
			return err
		}
	}
	if err := s.fail(ctx, e, &perdure.TaskError{Kind: f.kind, Message: f.Error()}, data); err != nil {
		return err
	}
	return cmp.Or[error](over, f)
}

// refusedLimit returns the limit that a server named for a request that was too long, nil for others.
func refusedLimit(e *model.Error) *model.TokenLimit {
	if e == nil || e.Kind != model.KindTooLong || e.Limit == (model.TokenLimit{}) {
		return nil
	}
	return &e.Limit
}

// record makes an answer durable before anything is made of it.
func (a *attempt) record(ctx context.Context, s *sending, req *model.Request, resp *model.Response) (string, Data,
	error) {
	r, data, err := a.settlement(ctx, s, req, resp)
	if err != nil {
		return "", Data{}, err
	}
	last, done := lastWrite(ctx)
	defer done()
	if err := a.l.SettleCall(last, s.call.ID, r); err != nil {
		return "", Data{}, err
	}
	return resp.Text, data, nil
}

// settlement returns what the journal keeps of an answer.
func (a *attempt) settlement(ctx context.Context, s *sending, req *model.Request, resp *model.Response) (
	r perdure.CallResult, data Data, err error) {
	if !s.begun { // it was known
		if err := s.begin(ctx); err != nil {
			return r, data, a.interrupted(ctx, err)
		}
	}
	j := journaled{Data: Data{Citations: resp.Citations, Notes: resp.Notes, Cut: resp.IsCut()}, Limits: a.limits,
		Request: a.logged(req)}
	raw, err := encode("call", j)
	if err != nil {
		return r, data, err
	}
	u := resp.Usage
	r = perdure.CallResult{Response: resp.Text, Thoughts: resp.Thoughts, Data: raw, Tries: 1, NotSent: resp.Cached,
		InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, Estimated: u.Estimated}
	if !model.Announces(s.m.Model) {
		r.Tries = resp.Tries
	}
	if resp.Asked != s.m.name && s.m.tool == "" {
		r.Model = resp.Asked
	}
	if micros, known := a.e.cost(s.m, resp); known {
		r.CostMicros = &micros
	}
	return r, j.Data, nil
}

// price is what an answer of a model costs that takes this much, as far as it
// is known.
func (e *Executor) price(m *asked, u model.Usage) (micros int64, known bool) {
	if m.tool != "" {
		return 0, true
	}
	if e.cfg.Price != nil {
		return e.cfg.Price(m.name, u)
	}
	if p, ok := model.AsPricer(m.Model); ok {
		return p.Price(u)
	}
	return 0, deterministic(m.name)
}

// cost is what an answer did cost: what it says itself, because of several
// models that may have answered it knows which did.
func (e *Executor) cost(m *asked, resp *model.Response) (micros int64, known bool) {
	switch {
	case resp.Cached:
		return 0, true
	case resp.CostMicros != nil && e.cfg.Price == nil:
		return *resp.CostMicros, true
	case resp.Asked != "" && resp.Asked != m.name && e.cfg.Price == nil:
		return 0, false // one of several, whose price is not known
	}
	return e.price(m, resp.Usage)
}

// How often text that arrives is written to the task's output: not for answers
// that are quick, and not for each word.
const (
	streamAfter = time.Second
	streamBytes = 16 << 10
)

// streamed writes an answer to the task's output while it arrives. What cannot
// be written is not a reason to stop: the answer itself comes at the end.
type streamed struct {
	ctx   context.Context // of the call, which it does not outlive
	l     *perdure.Lease
	begun time.Time
	text  []byte
}

func (s *streamed) add(text string) {
	s.text = append(s.text, text...)
	if time.Since(s.begun) < streamAfter && len(s.text) < streamBytes {
		return
	}
	if err := s.l.AppendOutput(s.ctx, string(s.text)); err == nil {
		s.text, s.begun = s.text[:0], time.Now()
	}
}

package rlm

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// sending records the requests of one call in the journal when it is their turn: a request
// that waits for its turn is not begun, and reserves nothing, and each one that is sent is
// counted.
type sending struct {
	a     *attempt
	m     *asked
	spec  perdure.CallSpec
	call  perdure.Call // of the request that was sent last
	begun bool         // call is open
	again bool         // a request failed before
	// model is the name of the model that was asked last, if it is one of a chain.
	model string
	// refused is why the journal let no request be sent.
	refused error
}

// generate asks the model.
func (s *sending) generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if s.m.tool != "" {
		return s.runTool(ctx, req)
	}
	req.Faults = s.a.run.faults
	if model.Announces(s.m.Model) {
		req.OnSend, req.OnFailed = s.send, s.settle
	} else if err := s.send(ctx, ""); err != nil {
		return nil, model.Stopped(err, 0)
	}
	resp, err := s.m.Generate(ctx, req)
	if err != nil || resp == nil {
		return resp, err
	}
	resp = model.SeparateThoughts(s.m.Model, resp) // of a model without a guard
	if failed := model.OnlyThoughts(s.m.name, resp); failed != nil {
		return nil, failed
	}
	return resp, nil
}

// runTool runs a tool. Its failure is an answer, unless the tool could not be started or was
// stopped.
func (s *sending) runTool(ctx context.Context, req *model.Request) (*model.Response, error) {
	if model.Announces(s.m.Model) {
		req.OnSend = s.send
	} else if err := s.send(ctx, ""); err != nil {
		return nil, model.Stopped(err, 0)
	}
	resp, err := s.m.Generate(ctx, req)
	switch {
	case err != nil && (!s.begun || ctx.Err() != nil):
		return nil, err
	case err != nil:
		resp = failedTool(s.m, err)
	}
	resp.Usage, resp.CostMicros, resp.Text = model.Usage{}, nil, clip.Storable(resp.Text)
	return resp, nil
}

// send begins the call of a request, see [model.Request.OnSend].
func (s *sending) send(ctx context.Context, name string) error {
	s.model = name
	if s.again && s.m.again != nil {
		s.refused = s.m.again(ctx)
	}
	if s.refused == nil {
		s.refused = s.begin(ctx)
	}
	return s.refused
}

func (s *sending) begin(ctx context.Context) (err error) {
	s.call, _, err = s.a.l.BeginCall(ctx, s.spec)
	if s.begun = err == nil; s.begun {
		s.a.asked.Add(1)
	}
	return err
}

// settle settles the call of a request that failed, see [model.Request.OnFailed].
func (s *sending) settle(ctx context.Context, e *model.Error) error {
	if !s.begun {
		return nil
	}
	f := modelFailure(cmp.Or(s.model, s.m.name), e)
	return s.fail(ctx, e, &perdure.TaskError{Kind: f.kind, Message: f.Error()}, nil)
}

// fail settles the open call as failed.
func (s *sending) fail(ctx context.Context, e *model.Error, why *perdure.TaskError, data json.RawMessage) error {
	r := s.failed(e)
	r.Err, r.Data = why, data
	last, done := lastWrite(ctx)
	defer done()
	err := s.a.l.SettleCall(last, s.call.ID, r)
	s.begun, s.again = err != nil, true
	return err
}

// failed returns what a request that failed took.
func (s *sending) failed(e *model.Error) perdure.CallResult {
	r := perdure.CallResult{Tries: 1}
	if s.model != s.m.name {
		r.Model = s.model
	}
	if e == nil {
		return r
	}
	if !model.Announces(s.m.Model) {
		r.Tries = e.Tries
	}
	u := e.Usage
	r.Thoughts = e.Thoughts
	r.InputTokens, r.OutputTokens, r.CachedTokens, r.Estimated = u.InputTokens, u.OutputTokens, u.CachedTokens, u.Estimated
	if micros, known := s.a.e.price(s.m, u); known && u != (model.Usage{}) {
		r.CostMicros = &micros
	}
	return r
}

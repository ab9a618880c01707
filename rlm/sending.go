package rlm

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// sending records the requests of one call in the journal when it is their turn: a call
// that waits for its turn is not begun, and each request that is sent is counted.
type sending struct {
	a     *attempt
	m     *asked
	spec  perdure.CallSpec
	call  perdure.Call // set if begun
	begun bool
	// model is the name of the model that was asked last, if it is one of a chain.
	model string
	// refused is why the journal let no request be sent.
	refused error
}

// generate asks the model.
func (s *sending) generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if model.Announces(s.m.Model) {
		req.OnSend = s.send
	} else if err := s.send(ctx, model.Sending{}); err != nil {
		return nil, model.Stopped(err, nil)
	}
	return s.m.Generate(ctx, req)
}

// send is called before each request, see [model.Request.OnSend].
func (s *sending) send(ctx context.Context, next model.Sending) error {
	var err error
	if s.begun {
		err = s.again(ctx, s.failed(next.After))
	} else {
		err = s.begin(ctx)
	}
	s.refused, s.model = err, next.Model
	return err
}

// again records that the request is sent again.
func (s *sending) again(ctx context.Context, failed perdure.CallResult) error {
	if s.m.again != nil {
		if err := s.m.again(ctx, failed); err != nil {
			return err
		}
	}
	return s.a.l.ResendCall(ctx, s.call.ID, failed)
}

func (s *sending) begin(ctx context.Context) (err error) {
	s.call, _, err = s.a.l.BeginCall(ctx, s.spec)
	if s.begun = err == nil; s.begun {
		s.a.asked.Add(1)
	}
	return err
}

// failed returns what a request that failed took.
func (s *sending) failed(e *model.Error) perdure.CallResult {
	r := perdure.CallResult{Tries: 1, Err: &perdure.TaskError{Kind: KindModel}}
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
	r.InputTokens, r.OutputTokens, r.CachedTokens, r.Estimated = u.InputTokens, u.OutputTokens, u.CachedTokens, u.Estimated
	if micros, known := s.a.e.price(s.m, u); known && u != (model.Usage{}) {
		r.CostMicros = &micros
	}
	return r
}

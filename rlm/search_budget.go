package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// searchTerms are decided when a request of a search is begun, from the rest of the tree's
// budget. They are part of the request, and recorded with its reply: a repeated search makes
// the same request, whatever the budget is then.
type searchTerms struct {
	// Replies is the most replies that the request names.
	Replies int `json:"replies"`
	// Last is set if the reply can only be an answer, Budget if that is because of the budget.
	Last   bool `json:"last,omitempty"`
	Budget bool `json:"budget,omitempty"`
	// Repeated is set if the prompt says that the last reply repeated requests.
	Repeated bool `json:"repeated,omitempty"`
}

// errLastPaid stops a request that is about to be sent again: the rest of the budget is
// needed for the answer.
var errLastPaid = errors.New("the rest of the budget pays for an answer only")

// recordedTerms returns the terms of the requests that the journal has.
func (h *hunt) recordedTerms(ctx context.Context) ([]recordedTerms, error) {
	if h.a.l.Fence() <= 1 {
		return nil, nil
	}
	calls, err := h.a.e.cfg.Store.Calls(ctx, h.a.l.Task.ID)
	if err != nil {
		return nil, err
	}
	var all []recordedTerms
	for _, c := range calls {
		var j journaled
		if !h.a.l.Replays(c.Attempt) || len(c.Data) == 0 || json.Unmarshal(c.Data, &j) != nil || j.Limits == nil {
			continue
		}
		r := recordedTerms{hash: c.RequestHash}
		if err := json.Unmarshal(j.Limits, &r.searchTerms); err != nil {
			return nil, failf(KindPlan, "read call %q: %w", c.ID, err)
		}
		answered := c.State == perdure.CallCompleted
		if answered || c.Error != nil && c.Error.Kind == KindTooLong {
			all = append(all, r)
		}
	}
	return all, nil
}

// recordedTerms are the terms of a request in the journal.
type recordedTerms struct {
	searchTerms
	hash string
}

// terms returns the terms of the request for a reply: those of the journal if it has the
// request, otherwise those that the budget allows.
func (h *hunt) terms(ctx context.Context, reply int) (searchTerms, error) {
	var tried []searchTerms
	for _, r := range h.recorded {
		if slices.Contains(tried, r.searchTerms) {
			continue
		}
		tried = append(tried, r.searchTerms)
		hash := model.Hash(h.m.name, h.request(reply, r.searchTerms))
		if slices.ContainsFunc(h.recorded, func(r recordedTerms) bool { return r.hash == hash }) {
			return r.searchTerms, nil
		}
	}
	rest, err := h.rest(ctx)
	if err != nil {
		return searchTerms{}, err
	}
	after := h.afterwards(reply)
	t := searchTerms{Replies: h.a.run.cfg.SearchReplies, Repeated: h.repeated}
	if paid := rest.calls - after.calls + 1; paid < int64(t.Replies-reply+1) {
		t.Replies = reply + max(int(paid)-1, 0)
	}
	this := h.a.reserve(h.m, h.request(reply, t))
	t.Budget = !rest.pays(this, after)
	t.Last = t.Budget || reply >= t.Replies || h.s.Full()
	return t, nil
}

// amount is calls with their tokens and costs.
type amount struct{ calls, tokens, micros int64 }

func (a amount) plus(b amount) amount {
	return amount{a.calls + b.calls, a.tokens + b.tokens, a.micros + b.micros}
}

// pays reports whether the amount is enough for others together.
func (a amount) pays(others ...amount) bool {
	var sum amount
	for _, o := range others {
		sum = sum.plus(o)
	}
	return sum.calls <= a.calls && sum.tokens <= a.tokens && sum.micros <= a.micros
}

// rest returns what of the tree's limits is neither used nor reserved.
func (h *hunt) rest(ctx context.Context) (amount, error) {
	const unlimited = math.MaxInt64 / 2
	rest := amount{unlimited, unlimited, unlimited}
	p, err := h.a.e.cfg.Store.Progress(ctx, h.a.l.Tree.ID)
	for _, l := range p.Limits {
		switch left := l.Value - l.Used; l.Limit {
		case "calls":
			rest.calls = left
		case "tokens":
			rest.tokens = left
		case "cost_micros":
			rest.micros = left
		}
	}
	return rest, err
}

// afterwards returns what has to be left after a request for more than an answer: for the
// answer to a prompt that is as long as it can get, and for the call that forms a structured
// result of it.
func (h *hunt) afterwards(reply int) amount {
	a := h.a
	size := requestBytes(h.request(reply, searchTerms{Replies: MaxSearchReplies})) + h.s.Growth()
	after := a.reserveBytes(h.m, size, true)
	if a.run.shape != nil {
		answer := 4 * int(a.run.plan.Answer)
		size := len(model.RenderAll(a.formRequest(""))) + len(a.run.shape.Instruction()) + answer
		after = after.plus(a.reserveBytes(a.writer(), size, false))
	}
	return after
}

// again refuses to send a request again that would leave too little for the answer.
func (h *hunt) again(ctx context.Context, reply int, t searchTerms) error {
	rest, err := h.rest(ctx)
	if err == nil && !rest.pays(h.a.reserve(h.m, h.request(reply, t)), h.afterwards(reply)) {
		err = errLastPaid
	}
	return err
}

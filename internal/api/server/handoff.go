package server

import (
	"fmt"
	"time"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/handoff/ledger"
)

// handoff returns the ledger of a reference: the open one, else the last.
func (s *server) handoff(r *request) (any, error) {
	ref := ledger.Ref{Place: r.text("place"), Task: r.text("task")}
	if err := r.done(); err != nil {
		return nil, err
	}
	return s.ledgers.Handoff(r.Context(), ref)
}

func parseHandoffID(text string) (id ledger.ID, err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// handoffs lists ledgers, the newest first.
func (s *server) handoffs(r *request) (any, error) {
	filter := ledger.Filter{Before: parsed(r, r.text("before"), parseHandoffID), Limit: r.limit(defaultPage)}
	if err := r.done(); err != nil {
		return nil, err
	}
	list, err := s.ledgers.Handoffs(r.Context(), filter)
	return client.HandoffPage{Handoffs: list,
		Next: next(list, filter.Limit, func(h *ledger.Handoff) ledger.ID { return h.ID })}, err
}

// handoffEntries lists the entries of a ledger behind a number.
func (s *server) handoffEntries(r *request) (any, error) {
	id := parsed(r, r.PathValue("id"), parseHandoffID)
	after, limit := r.number("after", 0, 1<<62, 0), r.limit(maxPage)
	if err := r.done(); err != nil {
		return nil, err
	}
	list, err := s.ledgers.HandoffEntries(r.Context(), id, after, limit)
	return object{"entries": list}, err
}

func (s *server) writeHandoff(r *request) (any, error) {
	var body ledger.Write
	if err := r.body(&body); err != nil {
		return nil, err
	}
	return s.ledgers.WriteHandoff(r.Context(), body)
}

func (s *server) claimHandoff(r *request) (any, error) {
	var body struct {
		ledger.ClaimSpec
		TTLSeconds float64 `json:"ttl_seconds"`
	}
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if limit := ledger.MaxTTL.Seconds(); body.TTLSeconds < 0 || body.TTLSeconds > limit {
		return nil, invalid("claim handoff", fmt.Sprintf("field \"ttl_seconds\" is %g, seconds up to %.0f are needed",
			body.TTLSeconds, limit), "")
	}
	body.TTL = time.Duration(body.TTLSeconds * float64(time.Second))
	return s.ledgers.ClaimHandoff(r.Context(), body.ClaimSpec)
}

func (s *server) releaseHandoff(r *request) (any, error) {
	var body struct {
		ledger.Ref
		Token string `json:"token"`
	}
	if err := r.body(&body); err != nil {
		return nil, err
	}
	err := s.ledgers.ReleaseHandoff(r.Context(), body.Ref, body.Token)
	return object{"released": body.Ref}, err
}

package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure/handoff/ledger"
)

// work reads which ledger a request is about.
func (q *query) work() ledger.Ref {
	return ledger.Ref{Place: q.text("place"), Task: q.text("task")}
}

// handoff tells the ledger of a reference: the open one, else the last.
func (s *server) handoff(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	ref := q.work()
	if err := q.done(); err != nil {
		return err
	}
	h, err := s.ledgers.Handoff(r.Context(), ref)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, h)
}

func (q *query) handoffID(text string) ledger.ID {
	if text == "" {
		return 0
	}
	var id ledger.ID
	q.keep(id.UnmarshalText([]byte(text)))
	return id
}

// handoffs lists ledgers, the newest first.
func (s *server) handoffs(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	filter := ledger.Filter{Before: q.handoffID(q.text("before")), Limit: q.limit(defaultPage)}
	if err := q.done(); err != nil {
		return err
	}
	list, err := s.ledgers.Handoffs(r.Context(), filter)
	if err != nil {
		return err
	}
	page := struct {
		Handoffs []ledger.Handoff `json:"handoffs"`
		// Next is where the list goes on; not there at its end.
		Next ledger.ID `json:"next,omitempty"`
	}{Handoffs: list}
	if len(list) == filter.Limit {
		page.Next = list[len(list)-1].ID
	}
	return s.reply(w, http.StatusOK, page)
}

// handoffEntries lists what a ledger has behind a number.
func (s *server) handoffEntries(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	id := q.handoffID(r.PathValue("id"))
	after, limit := q.number("after", 0, 1<<62, 0), q.limit(maxPage)
	if err := q.done(); err != nil {
		return err
	}
	list, err := s.ledgers.HandoffEntries(r.Context(), id, after, limit)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Entries []ledger.Entry `json:"entries"`
	}{list})
}

func (s *server) writeHandoff(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body ledger.Write
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	h, err := s.ledgers.WriteHandoff(r.Context(), body)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, h)
}

func (s *server) claimHandoff(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body struct {
		ledger.ClaimSpec
		TTLSeconds float64 `json:"ttl_seconds"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	if limit := ledger.MaxTTL.Seconds(); body.TTLSeconds < 0 || body.TTLSeconds > limit {
		return invalid("claim handoff", fmt.Sprintf("field \"ttl_seconds\" is %g, seconds up to %.0f are needed",
			body.TTLSeconds, limit), "")
	}
	body.TTL = time.Duration(body.TTLSeconds * float64(time.Second))
	claim, err := s.ledgers.ClaimHandoff(r.Context(), body.ClaimSpec)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, claim)
}

func (s *server) releaseHandoff(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body struct {
		ledger.Ref
		Token string `json:"token"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	if err := s.ledgers.ReleaseHandoff(r.Context(), body.Ref, body.Token); err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Released ledger.Ref `json:"released"`
	}{body.Ref})
}

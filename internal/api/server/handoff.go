package server

import (
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure"
)

// work reads which ledger a request is about.
func (q *query) work() perdure.HandoffRef {
	return perdure.HandoffRef{Place: q.text("place"), Task: q.text("task")}
}

// handoff tells the ledger of a reference: the open one, else the last.
func (s *server) handoff(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	ref := q.work()
	if err := q.done(); err != nil {
		return err
	}
	h, err := s.store.Handoff(r.Context(), ref)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, h)
}

func (q *query) handoffID(text string) perdure.HandoffID {
	if text == "" {
		return 0
	}
	var id perdure.HandoffID
	q.keep(id.UnmarshalText([]byte(text)))
	return id
}

// handoffs lists ledgers, the newest first.
func (s *server) handoffs(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	filter := perdure.HandoffFilter{Before: q.handoffID(q.text("before")), Limit: q.limit(defaultPage)}
	if err := q.done(); err != nil {
		return err
	}
	list, err := s.store.Handoffs(r.Context(), filter)
	if err != nil {
		return err
	}
	page := struct {
		Handoffs []perdure.Handoff `json:"handoffs"`
		// Next is where the list goes on; not there at its end.
		Next perdure.HandoffID `json:"next,omitempty"`
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
	list, err := s.store.HandoffEntries(r.Context(), id, after, limit)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Entries []perdure.HandoffEntry `json:"entries"`
	}{list})
}

func (s *server) writeHandoff(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var body perdure.HandoffWrite
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	h, err := s.store.WriteHandoff(r.Context(), body)
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
		perdure.HandoffClaimSpec
		TTLSeconds float64 `json:"ttl_seconds"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	if limit := perdure.MaxHandoffTTL.Seconds(); body.TTLSeconds < 0 || body.TTLSeconds > limit {
		return invalid("claim handoff", fmt.Sprintf("field \"ttl_seconds\" is %g, seconds up to %.0f are needed",
			body.TTLSeconds, limit), "")
	}
	body.TTL = time.Duration(body.TTLSeconds * float64(time.Second))
	claim, err := s.store.ClaimHandoff(r.Context(), body.HandoffClaimSpec)
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
		perdure.HandoffRef
		Token string `json:"token"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	if err := s.store.ReleaseHandoff(r.Context(), body.HandoffRef, body.Token); err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Released perdure.HandoffRef `json:"released"`
	}{body.HandoffRef})
}

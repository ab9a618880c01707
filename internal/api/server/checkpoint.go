package server

import (
	"net/http"

	"github.com/perdure/perdure"
)

func (s *server) saveCheckpoint(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	ref, err := s.change(w, r, &body, s.limits.JSONBytes)
	if err != nil {
		return err
	}
	c, err := s.store.SaveCheckpoint(r.Context(), ref, body.Name, body.Description)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusCreated, c)
}

// checkpoints lists all of a state; there are at most a hundred, so it has no
// pages.
func (s *server) checkpoints(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.readRef(r)
	if err != nil {
		return err
	}
	list, err := s.store.Checkpoints(r.Context(), ref)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Checkpoints []perdure.Checkpoint `json:"checkpoints"`
	}{list})
}

// diff compares a state at two instants: checkpoints by ID or name, mutations
// (before them), or now when one is left out.
func (s *server) diff(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	ref, from, to := q.ref(), q.text("from"), q.text("to")
	if err := q.done(); err != nil {
		return err
	}
	ref, err := s.resolve(r, ref)
	if err != nil {
		return err
	}
	changes, err := s.store.Diff(r.Context(), ref, from, to)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, struct {
		Changes []perdure.VarChange `json:"changes"`
	}{changes})
}

func (s *server) rollback(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		To     string `json:"to"`
		Source string `json:"source"`
		Reason string `json:"reason"`
	}
	ref, err := s.change(w, r, &body, s.limits.JSONBytes)
	if err != nil {
		return err
	}
	report, err := s.store.Rollback(r.Context(), ref, body.To, perdure.Cause{Source: body.Source, Reason: body.Reason})
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, report)
}

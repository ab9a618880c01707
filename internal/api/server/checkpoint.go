package server

import "github.com/perdure/perdure"

func (s *server) saveCheckpoint(r *request) (any, error) {
	var body struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	ref, err := s.change(r, &body, s.limits.JSONBytes)
	if err != nil {
		return nil, err
	}
	c, err := s.store.SaveCheckpoint(r.Context(), ref, body.Name, body.Description)
	return created{value: c}, err
}

// checkpoints lists all of a state; there are at most a hundred, so it has no
// pages.
func (s *server) checkpoints(r *request) (any, error) {
	ref, err := s.ref(r)
	if err != nil {
		return nil, err
	}
	list, err := s.store.Checkpoints(r.Context(), ref)
	return object{"checkpoints": list}, err
}

// deleteCheckpoint removes one by ID or name.
func (s *server) deleteCheckpoint(r *request) (any, error) {
	var body struct {
		Checkpoint string `json:"checkpoint"`
	}
	ref, err := s.change(r, &body, s.limits.JSONBytes)
	if err != nil {
		return nil, err
	}
	return object{"deleted": body.Checkpoint}, s.store.DeleteCheckpoint(r.Context(), ref, body.Checkpoint)
}

// diff compares a state at two instants: checkpoints by ID or name, mutations
// (before them), or now when one is left out.
func (s *server) diff(r *request) (any, error) {
	from, to := r.text("from"), r.text("to")
	ref, err := s.ref(r)
	if err != nil {
		return nil, err
	}
	changes, err := s.store.Diff(r.Context(), ref, from, to)
	return object{"changes": changes}, err
}

func (s *server) rollback(r *request) (any, error) {
	var body struct {
		To     string `json:"to"`
		Source string `json:"source"`
		Reason string `json:"reason"`
	}
	ref, err := s.change(r, &body, s.limits.JSONBytes)
	if err != nil {
		return nil, err
	}
	return s.store.Rollback(r.Context(), ref, body.To, perdure.Cause{Source: body.Source, Reason: body.Reason})
}

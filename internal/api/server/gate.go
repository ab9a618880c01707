package server

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// maxShownWaiters bounds the tasks that are shown at a gate.
const maxShownWaiters = 100

// gates lists the gates of a loop or a run.
func (s *server) gates(r *request) (any, error) {
	id := r.pathTree()
	if err := r.done(); err != nil {
		return nil, err
	}
	list, err := s.store.Gates(r.Context(), id)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if g := &list[i]; g.Waiting > 0 {
			if g.Tasks, err = s.store.GateTasks(r.Context(), id, g.Number, maxShownWaiters); err != nil {
				return nil, err
			}
		}
	}
	return object{"gates": list}, nil
}

// openGates lists the unanswered gates of all loops and runs.
func (s *server) openGates(r *request) (any, error) {
	if err := r.done(); err != nil {
		return nil, err
	}
	list, err := s.store.OpenGates(r.Context())
	return object{"gates": list}, err
}

// answerGate answers an open gate of a loop or a run.
func (s *server) answerGate(r *request) (any, error) {
	var body struct {
		perdure.GateDecision
		Gate int `json:"gate"`
	}
	id := r.pathTree()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if err := s.approved(r.Context(), id, body.Gate, body.Token); err != nil {
		return nil, err
	}
	return s.store.AnswerGate(r.Context(), id, body.Gate, body.GateDecision)
}

// gateOf returns the last open gate of a tree; nil without one.
func (s *server) gateOf(ctx context.Context, id perdure.TreeID, progress *perdure.Progress) (*client.OpenGate, error) {
	if progress.Waiting == 0 || progress.State.Terminal() {
		return nil, nil
	}
	list, err := s.store.Gates(ctx, id)
	if err != nil || len(list) == 0 || list[len(list)-1].AnsweredAt != nil {
		return nil, err
	}
	runnable, err := s.store.Runnable(ctx, id)
	return &client.OpenGate{Gate: list[len(list)-1], Rests: !runnable}, err
}

package server

import (
	"context"
	"net/http"

	"github.com/perdure/perdure"
)

// maxShownWaiters bounds the tasks that are shown at a gate.
const maxShownWaiters = 100

// gates lists the gates of a loop or a run.
func (s *server) gates(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	list, err := s.store.Gates(r.Context(), id)
	if err != nil {
		return err
	}
	for i := range list {
		if g := &list[i]; g.Waiting > 0 {
			if g.Tasks, err = s.store.GateTasks(r.Context(), id, g.Number, maxShownWaiters); err != nil {
				return err
			}
		}
	}
	return s.reply(w, http.StatusOK, gateList{list})
}

// openGates lists the unanswered gates of all loops and runs.
func (s *server) openGates(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	list, err := s.store.OpenGates(r.Context())
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, gateList{list})
}

type gateList struct {
	Gates []perdure.Gate `json:"gates"`
}

// answerGate answers an open gate of a loop or a run.
func (s *server) answerGate(w http.ResponseWriter, r *http.Request) error {
	id, err := loopID(r)
	if err != nil {
		return err
	}
	var body struct {
		perdure.GateDecision
		Gate int `json:"gate"`
	}
	if err := s.decode(w, r, &body); err != nil {
		return err
	}
	g, err := s.store.AnswerGate(r.Context(), id, body.Gate, body.GateDecision)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, g)
}

// openGate is an unanswered gate.
type openGate struct {
	perdure.Gate
	// Rests reports that the whole tree waits for the answer.
	Rests bool `json:"rests"`
}

// gateOf is the last open gate of a tree; nil without one.
func (s *server) gateOf(ctx context.Context, id perdure.TreeID, progress *perdure.Progress) (*openGate, error) {
	if progress.Waiting == 0 || progress.State.Terminal() {
		return nil, nil
	}
	list, err := s.store.Gates(ctx, id)
	if err != nil || len(list) == 0 || list[len(list)-1].AnsweredAt != nil {
		return nil, err
	}
	runnable, err := s.store.Runnable(ctx, id)
	return &openGate{Gate: list[len(list)-1], Rests: !runnable}, err
}

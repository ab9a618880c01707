package server

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/loop/record"
)

// maxIterations is the most iterations in one answer.
const maxIterations = 1000

func (s *server) loops(r *request) (any, error) {
	limit := r.limit(defaultPage)
	if err := r.done(); err != nil {
		return nil, err
	}
	list, err := s.records.Loops(r.Context(), limit)
	return object{"loops": list}, err
}

// maxNumber is above the numbers of iterations.
const maxNumber = 1<<31 - 1

// iterations answers with the iterations that list returns for the number in a
// parameter.
func iterations(parameter string, missing int64,
	list func(ctx context.Context, tree perdure.TreeID, number, limit int) ([]record.Iteration, error)) handler {
	return func(r *request) (any, error) {
		id, number, limit := r.pathTree(), r.number(parameter, 0, maxNumber, missing), r.limit(maxIterations)
		if err := r.done(); err != nil {
			return nil, err
		}
		found, err := list(r.Context(), id, int(number), limit)
		return object{"iterations": found}, err
	}
}

func (s *server) loopHistory(r *request) (any, error) {
	id := r.pathTree()
	req := record.HistoryRequest{Threshold: int(r.number("threshold", 0, 100, 0)),
		Each:  int(r.number("each", 0, maxNumber, 0)),
		Below: int(r.number("below", 0, maxNumber, maxNumber)), Best: r.flag("best")}
	if err := r.done(); err != nil {
		return nil, err
	}
	return s.records.LoopHistory(r.Context(), id, req)
}

// askLoop sends a control request to the process that runs a loop.
func (s *server) askLoop(r *request) (any, error) {
	var body struct {
		Control record.Control `json:"wish"`
	}
	id := r.pathTree()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if err := s.byUser(r.Context()); err != nil {
		return nil, err
	}
	if err := s.records.Ask(r.Context(), id, body.Control); err != nil {
		return nil, err
	}
	return s.records.Loop(r.Context(), id)
}

// resumeLoop resumes a loop. The body, which may be missing, holds changes of its
// configuration.
func (s *server) resumeLoop(r *request) (any, error) {
	var body record.ResumeRequest
	id := r.pathTree()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if err := s.byUser(r.Context()); err != nil {
		return nil, err
	}
	if body.Weaker {
		if err := s.weakens(r.Context(), id); err != nil {
			return nil, err
		}
	}
	if s.cfg.ResumeLoop == nil {
		return nil, &perdure.Error{Code: perdure.CodeUnavailable, Op: "resume loop", Msg: "this server runs no loops"}
	}
	return s.cfg.ResumeLoop(r.Context(), id, body)
}

// falseAlarms lists the findings that a person marked.
func (s *server) falseAlarms(r *request) (any, error) {
	id := r.pathTree()
	if err := r.done(); err != nil {
		return nil, err
	}
	if _, err := s.records.Loop(r.Context(), id); err != nil {
		return nil, err
	}
	list, err := s.records.FalseAlarms(r.Context(), id)
	return client.FalseAlarms{FalseAlarms: list}, err
}

func (s *server) markFalse(r *request) (any, error) {
	var body struct {
		Findings []record.FalseAlarm `json:"findings"`
	}
	id := r.pathTree()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if err := s.weakens(r.Context(), id); err != nil {
		return nil, err
	}
	marked, err := s.records.MarkFalse(r.Context(), id, body.Findings)
	if err != nil {
		return nil, err
	}
	list, err := s.records.FalseAlarms(r.Context(), id)
	return client.FalseAlarms{FalseAlarms: list, New: marked}, err
}

// refuseLoop returns an error if the tree is a loop that has not ended: a part of it
// that is cancelled or retried without the engine leaves the engine with a wrong state.
func (s *server) refuseLoop(ctx context.Context, op string, id perdure.TreeID) error {
	tree, err := s.store.Tree(ctx, id)
	if err != nil || tree.Kind != perdure.KindLoop || tree.State.Terminal() {
		return nil //nolint:nilerr // the change itself returns the error
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: op,
		Msg:  fmt.Sprintf("%q is a loop, which ends and repeats its parts by itself", id),
		Hint: "`perdure loop abort " + string(id) + "` ends it, `perdure loop pause` stops it for a while"}
}

// refuseLoopTask is refuseLoop for the tree of a task.
func (s *server) refuseLoopTask(ctx context.Context, op string, id perdure.TaskID) error {
	task, err := s.store.Task(ctx, id)
	if err != nil {
		return err
	}
	return s.refuseLoop(ctx, op, task.Tree)
}

package server

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm"
)

// task returns a task with its calls and its state. With node=1 the ID in the path is a node
// ID, the identity of the task in exported files.
func (s *server) task(r *request) (any, error) {
	var id perdure.TaskID
	if r.flag("node") {
		id = parsed(r, r.PathValue("id"), perdure.ParseNodeID).Task()
	} else {
		id = r.pathTask()
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	task, err := s.store.Task(r.Context(), id)
	if err != nil {
		return nil, err
	}
	shown := perdure.ShowTask{Task: task, Variables: make(map[string]perdure.Variable)}
	if shown.Calls, err = s.store.Calls(r.Context(), id); err != nil {
		return nil, err
	}
	ref := perdure.StateRef{Scope: perdure.ScopeTree, Tree: task.Tree, Task: id}
	list, err := s.store.Vars(r.Context(), ref, perdure.VarFilter{Limit: perdure.MaxVariables})
	if err != nil {
		return nil, err
	}
	for i := range list {
		shown.Variables[list[i].Name] = list[i]
	}
	if shown.Checkpoints, err = s.store.Checkpoints(r.Context(), ref); err != nil {
		return nil, err
	}
	shown.Turns, err = rlm.TurnsJSON(r.Context(), s.store, &task, shown.Calls)
	return shown, err
}

// taskCalls lists all calls of a task; there are as many as its attempts made,
// so it has no pages.
func (s *server) taskCalls(r *request) (any, error) {
	id := r.pathTask()
	if err := r.done(); err != nil {
		return nil, err
	}
	if _, err := s.store.Task(r.Context(), id); err != nil {
		return nil, err
	}
	calls, err := s.store.Calls(r.Context(), id)
	return object{"calls": orEmpty(calls)}, err
}

// reasonRequest is the body of a cancellation.
type reasonRequest struct {
	Reason string `json:"reason"`
}

func (s *server) cancelTask(r *request) (any, error) {
	var body reasonRequest
	id := r.pathTask()
	if err := r.body(&body); err != nil {
		return nil, err
	}
	if err := s.refuseLoopTask(r.Context(), "cancel task", id); err != nil {
		return nil, err
	}
	n, err := s.store.CancelTask(r.Context(), id, body.Reason)
	return object{"cancelled": n}, err
}

func (s *server) retryTask(r *request) (any, error) {
	id := r.pathTask()
	if err := r.body(&struct{}{}); err != nil {
		return nil, err
	}
	if err := s.refuseLoopTask(r.Context(), "retry task", id); err != nil {
		return nil, err
	}
	if err := s.store.RetryTask(r.Context(), id); err != nil {
		return nil, err
	}
	return s.store.Task(r.Context(), id)
}

package server

import (
	"net/http"

	"github.com/perdure/perdure"
)

// task shows a task with its calls. With node=1 the ID in the path is a node
// ID, the identity of the task in exported files.
func (s *server) task(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	byNode := q.flag("node")
	if err := q.done(); err != nil {
		return err
	}
	id, err := pathTaskOrNode(r, byNode)
	if err != nil {
		return err
	}
	task, err := s.store.Task(r.Context(), id)
	if err != nil {
		return err
	}
	calls, err := s.store.Calls(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, perdure.ShowTask{Task: task, Calls: calls})
}

func pathTaskOrNode(r *http.Request, byNode bool) (perdure.TaskID, error) {
	if !byNode {
		return pathTask(r)
	}
	node, err := perdure.ParseNodeID(r.PathValue("id"))
	if err != nil {
		return 0, err
	}
	return node.Task(), nil
}

// taskCalls lists all calls of a task; there are as many as its attempts made,
// so it has no pages.
func (s *server) taskCalls(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	id, err := pathTask(r)
	if err != nil {
		return err
	}
	if _, err := s.store.Task(r.Context(), id); err != nil {
		return err
	}
	calls, err := s.store.Calls(r.Context(), id)
	if err != nil {
		return err
	}
	if calls == nil {
		calls = []perdure.Call{}
	}
	return s.reply(w, http.StatusOK, struct {
		Calls []perdure.Call `json:"calls"`
	}{calls})
}

func (s *server) cancelTask(w http.ResponseWriter, r *http.Request) error {
	id, err := pathTask(r)
	if err != nil {
		return err
	}
	reason, err := s.reason(w, r)
	if err != nil {
		return err
	}
	if err := s.wholeOf(r.Context(), "cancel task", id); err != nil {
		return err
	}
	n, err := s.store.CancelTask(r.Context(), id, reason)
	if err != nil {
		return err
	}
	return s.replyCancelled(w, n)
}

func (s *server) retryTask(w http.ResponseWriter, r *http.Request) error {
	id, err := pathTask(r)
	if err != nil {
		return err
	}
	if err := s.emptyRequest(w, r); err != nil {
		return err
	}
	if err := s.wholeOf(r.Context(), "retry task", id); err != nil {
		return err
	}
	if err := s.store.RetryTask(r.Context(), id); err != nil {
		return err
	}
	task, err := s.store.Task(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, task)
}

// reason reads the body of a cancellation.
func (s *server) reason(w http.ResponseWriter, r *http.Request) (string, error) {
	if err := noQuery(r); err != nil {
		return "", err
	}
	var body struct {
		Reason string `json:"reason"`
	}
	err := s.decode(w, r, &body)
	return body.Reason, err
}

// emptyRequest refuses parameters and any body but an empty object.
func (s *server) emptyRequest(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	return s.decode(w, r, &struct{}{})
}

func (s *server) replyCancelled(w http.ResponseWriter, n int64) error {
	return s.reply(w, http.StatusOK, struct {
		Cancelled int64 `json:"cancelled"`
	}{n})
}

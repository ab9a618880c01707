package server

import (
	"context"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/view/outline"
)

// treeOutline lists rows of a tree: the children of a task from a position on,
// the tasks that match a filter by ID, or tasks by their IDs.
func (s *server) treeOutline(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	query := outline.Query{
		Tasks:  q.tasks("task"),
		Parent: q.task("parent"),
		From:   q.number("from", 0, 1<<31, 0),
		States: q.states("state"),
		Text:   q.text("text"),
		After:  q.task("after"),
		All:    q.flag("all"),
		Limit:  q.limit(defaultPage),
	}
	if err := q.done(); err != nil {
		return err
	}
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	page := struct {
		Rows []outline.Row `json:"rows"`
	}{}
	err = s.store.ReadTx(r.Context(), func(ctx context.Context, tx *perdure.ReadTx) error {
		page.Rows, err = outline.Outline(ctx, tx, id, query)
		return err
	})
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, page)
}

// treeReport tells what a tree looks like as a whole.
func (s *server) treeReport(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	var report *outline.Report
	err = s.store.ReadTx(r.Context(), func(ctx context.Context, tx *perdure.ReadTx) error {
		report, err = outline.ReadReport(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, report)
}

// slowest is the task of a tree that runs longest.
type slowest struct {
	perdure.ActiveTask
	// Model and CallSince describe its open call.
	Model     string     `json:"model,omitempty"`
	CallSince *time.Time `json:"call_since,omitempty"`
}

// slowestOf finds it among the running tasks; nil when there are none.
func (s *server) slowestOf(r *http.Request, active []perdure.ActiveTask) (*slowest, error) {
	if len(active) == 0 {
		return nil, nil
	}
	slow := slowest{ActiveTask: active[0]}
	for _, a := range active {
		if a.Since.Before(slow.Since) {
			slow.ActiveTask = a
		}
	}
	call, found, err := outline.Open(r.Context(), s.store.Reader(), slow.Task)
	if found {
		since := time.UnixMicro(call.Since).UTC()
		slow.Model, slow.CallSince = call.Model, &since
	}
	return &slow, err
}

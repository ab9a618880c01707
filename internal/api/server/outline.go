package server

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/view/outline"
	"github.com/perdure/perdure/rlm"
)

// treeOutline lists rows of a tree: the children of a task from a position on,
// the tasks that match a filter by ID, or tasks by their IDs.
func (s *server) treeOutline(r *request) (any, error) {
	query := client.OutlineQuery{
		Tree:   r.pathTree(),
		Tasks:  r.tasks("task"),
		Parent: r.task("parent"),
		From:   r.number("from", 0, 1<<31, 0),
		States: r.states("state"),
		Text:   r.text("text"),
		After:  r.task("after"),
		All:    r.flag("all"),
		Limit:  r.limit(defaultPage),
	}
	if err := r.done(); err != nil {
		return nil, err
	}
	var rows []client.OutlineRow
	err := s.store.ReadTx(r.Context(), func(ctx context.Context, tx *perdure.ReadTx) (err error) {
		rows, err = outline.Outline(ctx, tx, &query)
		return err
	})
	return object{"rows": rows}, err
}

// treeTurns lists the turns of the tree's tasks with a REPL, or of one of them, in brief.
func (s *server) treeTurns(r *request) (any, error) {
	tree, task := r.pathTree(), r.task("task")
	if err := r.done(); err != nil {
		return nil, err
	}
	list, err := rlm.TreeTurns(r.Context(), s.store, tree, task)
	return object{"tasks": orEmpty(list)}, err
}

func (s *server) treeReport(r *request) (any, error) {
	id := r.pathTree()
	if err := r.done(); err != nil {
		return nil, err
	}
	var report *client.Report
	err := s.store.ReadTx(r.Context(), func(ctx context.Context, tx *perdure.ReadTx) (err error) {
		report, err = outline.ReadReport(ctx, tx, id)
		return err
	})
	return report, err
}

// slowestOf returns the running task that was claimed first; nil when there is none.
func (s *server) slowestOf(ctx context.Context, active []perdure.ActiveTask) (*client.SlowestTask, error) {
	if len(active) == 0 {
		return nil, nil
	}
	slow := client.SlowestTask{ActiveTask: active[0]}
	for _, a := range active {
		if a.Since.Before(slow.Since) {
			slow.ActiveTask = a
		}
	}
	return &slow, outline.AddOpenCall(ctx, s.store.Reader(), &slow)
}

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// maxMissing bounds the list of missing parts.
	maxMissing = 1000
	// maxMissingScan bounds how many ended tasks are looked at to count them.
	maxMissingScan = 20_000
	// missingPromptRunes is how much of a prompt stands in the list.
	missingPromptRunes = 200
)

// result is the outcome of a tree, the shape of `perdure run --json`.
type result struct {
	Tree    perdure.TreeID `json:"tree_id"`
	State   perdure.State  `json:"state"`
	Partial bool           `json:"partial"`
	// Answer is a string, or the structured result, or null without one.
	Answer    json.RawMessage    `json:"answer"`
	Citations json.RawMessage    `json:"citations"`
	Usage     perdure.Usage      `json:"usage"`
	Error     *perdure.TaskError `json:"error,omitempty"`
	Missing   []missingTask      `json:"missing"`
	// MissingTotal may be more than the list holds.
	MissingTotal int64 `json:"missing_total"`
	// Limits are the limits of the tree, with what was used of them; one that
	// was exceeded is why parts are missing.
	Limits []perdure.LimitUse `json:"limits"`
	details
}

// missingTask is a leaf without a result.
type missingTask struct {
	Task   perdure.TaskID     `json:"task_id"`
	Prompt string             `json:"prompt"`
	Error  *perdure.TaskError `json:"error"`
}

func (s *server) treeResult(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	id, err := pathTree(r)
	if err != nil {
		return err
	}
	res, err := s.resultOf(r.Context(), id)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, res)
}

func (s *server) resultOf(ctx context.Context, id perdure.TreeID) (*result, error) {
	tree, err := s.store.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	if !tree.State.Terminal() {
		return nil, &perdure.Error{Code: perdure.CodeConflict, Op: "read result",
			Msg:  fmt.Sprintf("tree %q is %s and has no result yet", id, tree.State),
			Hint: fmt.Sprintf("wait for it: `perdure status %s`, or GET /v1/trees/%s?wait=60s", id, id)}
	}
	root, err := s.store.Task(ctx, tree.Root)
	if err != nil {
		return nil, err
	}
	progress, err := s.store.Progress(ctx, id)
	if err != nil {
		return nil, err
	}
	res := &result{Tree: id, State: tree.State, Partial: tree.Partial, Usage: progress.Usage, Error: root.Error,
		Limits: progress.Limits}
	res.Answer, res.Citations, err = answer(&root)
	if err != nil {
		return nil, err
	}
	res.details = detailsOf(root.Data)
	m := missing{store: s.store, total: progress.Failed + progress.Cancelled}
	if tree.State == perdure.Completed && !tree.Partial {
		m.total = 0 // what failed at first was made good later
	}
	if err := m.find(ctx, id); err != nil {
		return nil, err
	}
	res.Missing, res.MissingTotal = m.list, m.count
	return res, nil
}

// answer takes the answer and its citations from a root task.
func answer(root *perdure.Task) (text, citations json.RawMessage, err error) {
	var data struct {
		Structured json.RawMessage `json:"structured"`
		Citations  json.RawMessage `json:"citations"`
	}
	if len(root.Data) > 0 {
		if err := json.Unmarshal(root.Data, &data); err != nil {
			return nil, nil, fmt.Errorf("read data of task %q: %w", root.ID, err)
		}
	}
	if len(data.Citations) == 0 || string(data.Citations) == "null" {
		data.Citations = json.RawMessage("[]")
	}
	switch {
	case root.State != perdure.Completed:
		return json.RawMessage("null"), data.Citations, nil
	case len(data.Structured) > 0 && string(data.Structured) != "null":
		return data.Structured, data.Citations, nil
	}
	text, err = json.Marshal(root.Result)
	return text, data.Citations, err
}

// missing finds the leaves of a tree that ended without a result.
type missing struct {
	store *perdure.Store
	total int64 // of tasks that failed or were cancelled, inner ones included
	seen  int64
	list  []missingTask
	count int64
	// inner are tasks that have children, as far as known.
	inner map[perdure.TaskID]bool
}

// find lists the failed and cancelled tasks in the order of their IDs. If a tree has
// more of them than the limit, the rest is counted, inner tasks included.
func (m *missing) find(ctx context.Context, tree perdure.TreeID) error {
	m.list, m.inner = []missingTask{}, make(map[perdure.TaskID]bool)
	filter := perdure.TaskFilter{Tree: tree, States: []perdure.State{perdure.Failed, perdure.Cancelled}, Limit: maxPage,
		Brief: true}
	for m.total > 0 && m.seen < maxMissingScan {
		tasks, err := m.store.Tasks(ctx, filter)
		if err != nil {
			return err
		}
		for i := range tasks {
			m.inner[tasks[i].Parent] = true
		}
		for i := range tasks {
			if err := m.look(ctx, &tasks[i]); err != nil {
				return err
			}
		}
		m.seen += int64(len(tasks))
		if len(tasks) < maxPage {
			return nil
		}
		filter.After = tasks[len(tasks)-1].ID
	}
	m.count += max(0, m.total-m.seen)
	return nil
}

func (m *missing) look(ctx context.Context, t *perdure.Task) error {
	if m.inner[t.ID] {
		return nil
	}
	children, err := m.store.Tasks(ctx, perdure.TaskFilter{Tree: t.Tree, Parent: &t.ID, Limit: 1, Brief: true})
	if err != nil || len(children) > 0 {
		return err
	}
	m.count++
	if len(m.list) < maxMissing {
		why := t.Error
		if why == nil {
			why = &perdure.TaskError{Kind: string(t.State), Message: "the task was " + string(t.State)}
		}
		m.list = append(m.list, missingTask{Task: t.ID, Prompt: clip.Runes(t.Prompt, missingPromptRunes), Error: why})
	}
	return nil
}

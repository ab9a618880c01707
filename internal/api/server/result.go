package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm"
)

const (
	// maxMissing bounds the list of missing parts.
	maxMissing = 1000
	// maxMissingScan bounds how many ended tasks are looked at to count them.
	maxMissingScan = 20_000
	// missingPromptRunes is how much of a prompt stands in the list.
	missingPromptRunes = 200
)

// result is a client.Result whose citations have all members that the executor wrote.
type result struct {
	Tree         perdure.TreeID       `json:"tree_id"`
	State        perdure.State        `json:"state"`
	Partial      bool                 `json:"partial"`
	Answer       json.RawMessage      `json:"answer"`
	Citations    json.RawMessage      `json:"citations"`
	Usage        perdure.Usage        `json:"usage"`
	Error        *perdure.TaskError   `json:"error,omitempty"`
	Missing      []client.MissingTask `json:"missing"`
	MissingTotal int64                `json:"missing_total"`
	Limits       []perdure.LimitUse   `json:"limits"`
	Resumable    bool                 `json:"resumable,omitempty"`
	client.Details
}

func (s *server) treeResult(ctx context.Context, id perdure.TreeID) (*result, error) {
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
		Limits: progress.Limits, Resumable: rlm.CanResume(&tree)}
	res.Answer, res.Citations, err = answer(&root)
	if err != nil {
		return nil, err
	}
	res.Details = detailsOf(root.Data)
	m := missing{store: s.store, root: &root, total: progress.Failed + progress.Cancelled}
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

// detailsOf reads the details in a result's data. What has another form is left out: the
// data is the executor's own.
func detailsOf(data json.RawMessage) (d client.Details) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return d
	}
	take(fields["notes"], &d.Notes)
	take(fields["left_out"], &d.LeftOut)
	take(fields["quotes_dropped"], &d.QuotesDropped)
	take(fields["too_long"], &d.TooLong)
	take(fields["cut"], &d.Cut)
	take(fields["more_citations"], &d.MoreCitations)
	take(fields["votes"], &d.Votes)
	take(fields["abstained"], &d.Abstained)
	take(fields["scores"], &d.Scores)
	take(fields["gate"], &d.Gate)
	return d
}

// take decodes a value if it has the form.
func take[T any](raw json.RawMessage, to *T) {
	var value T
	if len(raw) > 0 && json.Unmarshal(raw, &value) == nil {
		*to = value
	}
}

// missing finds the leaves of a tree that ended without a result.
type missing struct {
	store *perdure.Store
	root  *perdure.Task
	parts *rlm.Parts // opened for the first missing part
	total int64      // of tasks that failed or were cancelled, inner ones included
	seen  int64
	list  []client.MissingTask
	count int64
	// inner are tasks that have children, as far as known.
	inner map[perdure.TaskID]bool
}

// find lists the failed and cancelled tasks in the order of their IDs. If a tree has
// more of them than the limit, the rest is counted, inner tasks included.
func (m *missing) find(ctx context.Context, tree perdure.TreeID) (err error) {
	defer func() {
		if m.parts != nil {
			err = errors.Join(err, m.parts.Close())
		}
	}()
	m.list, m.inner = []client.MissingTask{}, make(map[perdure.TaskID]bool)
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
		why := perdure.TaskError{Kind: string(t.State), Message: "the task was " + string(t.State)}
		if t.Error != nil {
			why = *t.Error
		}
		part := client.MissingTask{Task: t.ID, Prompt: clip.Runes(t.Prompt, missingPromptRunes), Error: why}
		part.Files, part.MoreFiles = m.places(ctx, t)
		m.list = append(m.list, part)
	}
	return nil
}

// places returns the files and lines that a task of a run is about. A context that cannot
// be read any more names none.
func (m *missing) places(ctx context.Context, t *perdure.Task) (files []client.Place, more int) {
	if m.parts == nil {
		parts, err := rlm.OpenParts(ctx, m.store, m.root)
		if err != nil {
			parts = &rlm.Parts{}
		}
		m.parts = parts
	}
	found, more, err := m.parts.Of(t)
	if err != nil {
		return nil, 0
	}
	for _, p := range found {
		files = append(files, client.Place(p))
	}
	return files, more
}

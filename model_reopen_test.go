package perdure_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
)

// endOf returns the state of a tree that an event reports.
func endOf(e *perdure.Event) perdure.State {
	if strings.Contains(string(e.Data), `"partial":true`) {
		return perdure.Partial
	}
	return perdure.State(strings.TrimPrefix(string(e.Kind), "tree."))
}

// keepCalls notes whether the calls of the attempt answer those of later ones.
func (t *mTask) keepCalls(keep bool) {
	switch {
	case !keep:
		t.replays = 0
	case t.replays == 0:
		t.replays = t.attempt
	}
}

// earlier returns the call of an earlier attempt that answers a call.
func (t *mTask) earlier(l *mLease, spec *perdure.CallSpec) (found *mCall) {
	better := func(c *mCall) bool {
		switch here := c.position == spec.Position; {
		case found == nil:
			return true
		case here != (found.position == spec.Position):
			return here
		case c.attempt != found.attempt:
			return c.attempt > found.attempt
		case c.position != found.position:
			return c.position > found.position
		default:
			return c.id > found.id
		}
	}
	for _, c := range t.calls {
		if l.replays > 0 && c.attempt >= l.replays && c.attempt < l.attempt && c.hash == spec.RequestHash &&
			c.state == perdure.CallCompleted && (c.position == spec.Position || !l.used[c.id]) && better(c) {
			found = c
		}
	}
	if found != nil {
		l.used[found.id] = true
	}
	return found
}

// mReopening is a set of tasks to reopen.
type mReopening map[*mTask]bool

// incomplete reports whether the task ended without a whole result.
func (t *mTask) incomplete() bool {
	return t.state == perdure.Failed || t.state == perdure.Cancelled || t.state == perdure.Completed && t.partial
}

// collect adds the incomplete tasks from t on, with those between.
func (set mReopening) collect(t *mTask) {
	below := false
	for _, c := range t.children {
		set.collect(c)
		below = below || set[c]
	}
	if t.state.Terminal() && (below || t.incomplete()) {
		set[t] = true
	}
}

// apply reopens the tasks and those above that have ended.
func (set mReopening) apply(m *model, tree *mTree, attempts int) {
	for t := range set {
		for p := t.parent; p != nil && p.state.Terminal(); p = p.parent {
			set[p] = true
		}
	}
	for id := perdure.TaskID(1); int64(id) <= m.lastTask; id++ {
		t := m.tasks[id]
		if t == nil || !set[t] {
			continue
		}
		t.result, t.data, t.partial = "", "", false
		if t.fence > 0 {
			t.attempt++
			t.max = max(t.max, t.attempt+attempts-1)
		}
		t.state, t.ready = perdure.Queued, true
		for _, c := range t.children {
			if set[c] {
				t.state, t.ready = perdure.Waiting, false
			}
		}
		if t.state == perdure.Waiting || t.parent == nil || t.parent.spec.Strategy != perdure.Sequential {
			continue
		}
		for _, s := range t.siblings() {
			if s.id < t.id && set[s] {
				t.waitsFor, t.ready = s, false
			}
		}
	}
	if len(set) > 0 && tree.state.Terminal() {
		tree.state = perdure.Running
	}
}

func (m *model) retry(id perdure.TaskID) string {
	t := m.tasks[id]
	if t == nil {
		return missing
	}
	if t.state != perdure.Failed {
		return conflict
	}
	set := mReopening{}
	set.collect(t)
	for at := t; at != nil; at = at.parent {
		if at != t && (at.state == perdure.Completed && !at.partial || at.state == perdure.Cancelled) {
			return conflict
		}
		if at.state != perdure.Failed || at.parent == nil || !at.parent.failFast() {
			continue
		}
		for _, s := range at.siblings() {
			if s.state == perdure.Cancelled {
				set.collect(s)
			}
		}
	}
	set.apply(m, t.tree, 1)
	return "done"
}

func (m *model) reopenTree(t *mTree, s *mSession, limits *perdure.Limits) string {
	if t.state == perdure.Cancelled || t.owner != nil && t.owner != s && !t.owner.dead {
		return conflict
	}
	for _, task := range m.tasks {
		if task.tree == t && task.session != nil && !task.session.dead {
			return conflict
		}
	}
	set := mReopening{}
	if t.state != perdure.Completed {
		set.collect(t.root)
	}
	if len(set) > 0 || !t.state.Terminal() && limits != nil && *limits != t.limits {
		t.reopened++
		if s != nil {
			t.owner = s
		}
		if limits != nil {
			t.limits = *limits
		}
	}
	set.apply(m, t, 2)
	return fmt.Sprintf("reopened %d", len(set))
}

func (w *world) reopenTree() *op {
	if len(w.m.trees) == 0 {
		return nil
	}
	t, s := w.m.trees[w.pick(len(w.m.trees))], w.session()
	spec := perdure.ReopenSpec{Attempts: 2}
	var owner *mSession
	if s != nil {
		spec.Owner, owner = s.ss, s.m
	}
	if w.pick(2) == 0 {
		spec.Limits = new(w.limits())
	}
	return &op{
		name: "reopen " + string(t.id),
		run: func(ctx context.Context) string {
			r, err := w.store().Reopen(ctx, t.id, spec)
			return text(err, "reopened %d", r.Reopened)
		},
		want: func() string { return w.m.reopenTree(t, owner, spec.Limits) },
	}
}

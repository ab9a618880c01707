package server

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// ref reads which state a request is about, after its other parameters: scope, and
// session, tree, task or name with it. Without a scope it is that of what is named. It
// fills in the tree of a task that is named alone.
func (s *server) ref(r *request) (perdure.StateRef, error) {
	ref := perdure.StateRef{Scope: perdure.Scope(r.text("scope")), Session: r.text("session"),
		Tree: r.tree("tree"), Task: r.task("task"), Name: r.text("name")}
	if ref.Scope == "" {
		switch {
		case ref.Tree != "" || ref.Task != 0:
			ref.Scope = perdure.ScopeTree
		case ref.Session != "":
			ref.Scope = perdure.ScopeSession
		case ref.Name != "":
			ref.Scope = perdure.ScopeTemporary
		default:
			r.fail("scope is missing", "set scope=global, or set session, tree, task or name")
		}
	}
	for _, p := range []struct {
		name  string
		there bool
		with  []perdure.Scope
	}{
		{"session", ref.Session != "", []perdure.Scope{perdure.ScopeSession, perdure.ScopeTree}},
		{"tree", ref.Tree != "", []perdure.Scope{perdure.ScopeTree}},
		{"task", ref.Task != 0, []perdure.Scope{perdure.ScopeTree}},
		{"name", ref.Name != "", []perdure.Scope{perdure.ScopeTemporary}},
	} {
		if p.there && ref.Scope != p.with[0] && ref.Scope != p.with[len(p.with)-1] {
			r.fail(fmt.Sprintf("parameter %q cannot be used with scope %q", p.name, ref.Scope), "")
		}
	}
	if err := r.done(); err != nil || ref.Task == 0 || ref.Tree != "" {
		return ref, err
	}
	task, err := s.store.Task(r.Context(), ref.Task)
	ref.Tree = task.Tree
	return ref, err
}

// change reads the state and the body of a change. Final of a loop is refused: it would complete the
// loop without its check.
func (s *server) change(r *request, body any, limit int64) (perdure.StateRef, error) {
	ref, err := s.ref(r)
	if err != nil {
		return ref, err
	}
	if ref.Scope == perdure.ScopeTree && r.PathValue("name") == perdure.VarFinal {
		if ref.Tree == "" {
			err = s.refuseLoopTask(r.Context(), "set Final", ref.Task)
		} else {
			err = s.refuseLoop(r.Context(), "set Final", ref.Tree)
		}
		if err != nil {
			return ref, err
		}
	}
	return ref, r.bodyUpTo(body, limit)
}

// state returns the counters of a state.
func (s *server) state(r *request) (any, error) {
	ref, err := s.ref(r)
	if err != nil {
		return nil, err
	}
	return s.store.State(r.Context(), ref)
}

// history lists mutations, the newest first.
func (s *server) history(r *request) (any, error) {
	before := parsed(r, r.text("before"), func(text string) (id perdure.MutationID, err error) {
		err = id.UnmarshalText([]byte(text))
		return id, err
	})
	filter := perdure.HistoryFilter{Name: r.text("variable"), Before: before, Limit: r.limit(defaultPage)}
	ref, err := s.ref(r)
	if err != nil {
		return nil, err
	}
	list, err := s.store.History(r.Context(), ref, filter)
	return client.HistoryPage{Mutations: list,
		Next: next(list, filter.Limit, func(m *perdure.Mutation) perdure.MutationID { return m.ID })}, err
}

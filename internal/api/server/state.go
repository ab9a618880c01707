package server

import (
	"fmt"
	"net/http"

	"github.com/perdure/perdure"
)

// ref reads which state a request is about: scope, and session, tree, task or
// name with it. Without a scope it is that of what is named.
func (q *query) ref() perdure.StateRef {
	ref := perdure.StateRef{Scope: perdure.Scope(q.text("scope")), Session: q.text("session"),
		Tree: q.tree("tree"), Task: q.task("task"), Name: q.text("name")}
	if ref.Scope == "" {
		switch {
		case ref.Tree != "" || ref.Task != 0:
			ref.Scope = perdure.ScopeTree
		case ref.Session != "":
			ref.Scope = perdure.ScopeSession
		case ref.Name != "":
			ref.Scope = perdure.ScopeTemporary
		default:
			q.fail("no state is named", "give scope=global, or session, tree, task or name")
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
			q.fail(fmt.Sprintf("parameter %q has no meaning in the scope %q", p.name, ref.Scope), "")
		}
	}
	return ref
}

// resolve fills in the tree of a task that is named alone.
func (s *server) resolve(r *http.Request, ref perdure.StateRef) (perdure.StateRef, error) {
	if ref.Task == 0 || ref.Tree != "" {
		return ref, nil
	}
	task, err := s.store.Task(r.Context(), ref.Task)
	ref.Tree = task.Tree
	return ref, err
}

// readRef reads the state of a request that has no other parameters.
func (s *server) readRef(r *http.Request) (perdure.StateRef, error) {
	q := readQuery(r)
	ref := q.ref()
	if err := q.done(); err != nil {
		return ref, err
	}
	return s.resolve(r, ref)
}

// state tells what is known of a state.
func (s *server) state(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.readRef(r)
	if err != nil {
		return err
	}
	info, err := s.store.State(r.Context(), ref)
	if err != nil {
		return err
	}
	return s.reply(w, http.StatusOK, info)
}

// history lists mutations, the newest first.
func (s *server) history(w http.ResponseWriter, r *http.Request) error {
	q := readQuery(r)
	ref := q.ref()
	filter := perdure.HistoryFilter{Name: q.text("variable"), Before: q.mutation("before"), Limit: q.limit(defaultPage)}
	if err := q.done(); err != nil {
		return err
	}
	ref, err := s.resolve(r, ref)
	if err != nil {
		return err
	}
	list, err := s.store.History(r.Context(), ref, filter)
	if err != nil {
		return err
	}
	page := struct {
		Mutations []perdure.Mutation `json:"mutations"`
		// Next is where the list goes on; not there at its end.
		Next perdure.MutationID `json:"next,omitempty"`
	}{Mutations: list}
	if len(list) == filter.Limit {
		page.Next = list[len(list)-1].ID
	}
	return s.reply(w, http.StatusOK, page)
}

func (q *query) mutation(name string) perdure.MutationID {
	v := q.text(name)
	if v == "" {
		return 0
	}
	var id perdure.MutationID
	q.keep(id.UnmarshalText([]byte(v)))
	return id
}

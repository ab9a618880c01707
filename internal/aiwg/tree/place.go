package tree

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// importStates writes the states that the store does not have, and adds missing
// variables to the others.
func (r *reader) importStates(ctx context.Context) error {
	for _, g := range r.trees {
		states := r.statesOf(g)
		p := r.placed[g]
		if len(states) == 0 || p.own {
			r.report.PresentStates += len(states)
			continue
		}
		nodes := make(map[string]perdure.TaskID, len(g.order))
		for _, t := range g.order {
			nodes[t.node] = p.byKey[t.key]
		}
		for _, s := range states {
			id := p.byKey[s.task.key]
			if s.task == g.order[0] {
				id = 0
			}
			s.ref = perdure.StateRef{Scope: perdure.ScopeTree, Tree: p.id, Task: id}
			s.ids, s.nodes = p.byKey, nodes
		}
		if err := r.writeStates(ctx, states); err != nil {
			return err
		}
	}
	for _, s := range r.states {
		if s.task != nil {
			continue
		}
		if err := r.placeState(ctx, s); err != nil {
			return err
		}
		if err := r.writeStates(ctx, []*state{s}); err != nil {
			return err
		}
	}
	return nil
}

// statesOf returns the states of a tree's tasks, from their documents and their records.
func (r *reader) statesOf(g *tree) []*state {
	byTask := make(map[*task]*state)
	find := func(node string) *task {
		if node == "" {
			return g.order[0]
		}
		i := slices.IndexFunc(g.order, func(t *task) bool { return t.node == node || t.id == node })
		if i < 0 {
			return nil
		}
		return g.order[i]
	}
	for _, s := range r.states {
		if s.scope != perdure.ScopeTree || s.tree != g.id || g.id == "" || r.cfg.Ref.Scope != "" {
			continue
		}
		t := find(s.node)
		if t == nil || byTask[t] != nil {
			r.note(Corrected, s.f, -1, "the task of %s is not in the tree or has another state; it was imported as a "+
				"temporary state", s.what())
			s.scope, s.name = perdure.ScopeTemporary, s.id
			continue
		}
		s.task, byTask[t] = t, s
	}
	var list []*state
	for _, t := range g.order {
		s := byTask[t]
		if t.vars != nil && len(t.vars.n.Members) > 0 {
			s = r.withRecord(t, s)
		}
		if s != nil {
			list = append(list, s)
		}
	}
	r.looseChecks(g, list)
	return list
}

// withRecord returns the state of a document with the variables of the task's record.
func (r *reader) withRecord(t *task, s *state) *state {
	t.vars.what = t.what()
	vars := r.variables(t.vars, perdure.ScopeTree)
	if s == nil {
		s = &state{f: t.f, scope: perdure.ScopeTree, task: t, vars: vars, tree: t.tree, node: t.node, created: t.CreatedAt}
		s.settle(r)
		return s
	}
	for _, v := range vars {
		i := slices.IndexFunc(s.vars, func(w *variable) bool { return w.Name == v.Name })
		switch {
		case i < 0:
			r.note(Corrected, t.f, t.n.Start, "%s: variable %s is not in %s; it was added", t.what(), quoted(v.Name), s.f.name)
			v.CreatedAt, v.UpdatedAt = s.created, s.created
			s.vars = append(s.vars, v)
		case !s.vars[i].same(v.Value):
			r.note(Corrected, t.f, t.n.Start, "%s: variable %s differs from %s, whose value is used", t.what(),
				quoted(v.Name), s.f.name)
		}
	}
	return s
}

// looseChecks reads the checkpoints of a tree that has no document of its state.
func (r *reader) looseChecks(g *tree, list []*state) {
	for _, name := range r.files {
		if g.id == "" || r.src.used[name] || path.Dir(name) != treesFolder+g.id+"/"+checksFolder ||
			path.Ext(name) != ".json" {
			continue
		}
		f := r.open(name)
		if f == nil || f.root.Kind != jsontree.Object {
			continue
		}
		id := f.root.Get("task_id").Text()
		i := slices.IndexFunc(list, func(s *state) bool { return id == "" || s.task.id == id || s.task.node == id })
		if i < 0 {
			r.note(NotRead, f, 0, "the task of this checkpoint has no variables")
			continue
		}
		r.checkpoint(list[i], f, f.root)
	}
}

// placeState sets the ref of a state that belongs to no imported tree.
func (r *reader) placeState(ctx context.Context, s *state) error {
	if r.cfg.Ref.Scope != "" {
		s.ref = r.cfg.Ref
		s.scope = s.ref.Scope
		return r.taskOf(ctx, s)
	}
	switch s.scope {
	case perdure.ScopeGlobal:
		s.ref = perdure.StateRef{Scope: perdure.ScopeGlobal}
	case perdure.ScopeSession:
		if s.session != "" {
			s.ref = perdure.StateRef{Scope: perdure.ScopeSession, Session: s.session}
		}
	case perdure.ScopeTree:
		done, err := r.treeState(ctx, s)
		if err != nil || done {
			return err
		}
		if s.tree == "" {
			r.note(Corrected, s.f, -1, "%s names no tree of the store; it was imported as a temporary state", s.what())
			break
		}
		r.note(Corrected, s.f, -1, "the tree %s of %s is not in the store; it was imported as a temporary state",
			quoted(s.tree), s.what())
	case perdure.ScopeTemporary:
	}
	if s.scope == perdure.ScopeSession && len(s.session) > 256 || s.ref.Scope == "" {
		s.scope = perdure.ScopeTemporary
		s.ref = perdure.StateRef{Scope: perdure.ScopeTemporary, Name: s.temporaryName()}
	}
	s.extra.Tree, s.extra.Session = s.tree, s.session
	if s.scope == perdure.ScopeSession {
		s.extra.Session = ""
	}
	return nil
}

func (s *state) temporaryName() string {
	for _, name := range []string{s.name, s.id} {
		if name != "" && len(name) <= 256 && !strings.Contains(name, "\x00") {
			return name
		}
	}
	return "imported " + path.Base(path.Dir(s.f.name))
}

// treeState sets the ref of a state to its tree in the store, and returns false if the
// store does not have it.
func (r *reader) treeState(ctx context.Context, s *state) (bool, error) {
	t, err := r.store.Tree(ctx, perdure.TreeID(s.tree))
	if errors.Is(err, perdure.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.ref = perdure.StateRef{Scope: perdure.ScopeTree, Tree: t.ID}
	if s.node != "" {
		list, err := treeTasks(ctx, r.store, t.ID, true)
		if err != nil {
			return false, err
		}
		i := slices.IndexFunc(list, func(t perdure.Task) bool {
			f := foreignOf(t.Metadata)
			return f != nil && f.Node == s.node || f == nil && t.Node.String() == s.node
		})
		if i < 0 {
			return false, nil
		}
		s.ref.Task = list[i].ID
	}
	return true, r.taskOf(ctx, s)
}

// taskOf reads the task of a state of a tree of the store.
func (r *reader) taskOf(ctx context.Context, s *state) error {
	if s.ref.Scope != perdure.ScopeTree {
		return nil
	}
	id := s.ref.Task
	if id == 0 {
		t, err := r.store.Tree(ctx, s.ref.Tree)
		if err != nil {
			return err
		}
		id = t.Root
	}
	t, err := r.store.Task(ctx, id)
	s.task = &task{Task: t}
	return err
}

// writeStates writes the states of one tree, or one other state.
func (r *reader) writeStates(ctx context.Context, states []*state) error {
	var fresh []*state
	for _, s := range states {
		if r.cfg.DryRun && s.ref.Scope == perdure.ScopeTree && s.ref.Tree == "" {
			fresh = append(fresh, s) // of a tree that would be new
			continue
		}
		have, err := r.store.StateRecord(ctx, s.ref)
		if errors.Is(err, perdure.ErrNotFound) {
			fresh = append(fresh, s)
			continue
		}
		if err != nil {
			return err
		}
		r.report.PresentStates++
		if err := r.merge(ctx, s, &have); err != nil {
			return err
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	before := len(r.report.Notes)
	records := r.replay(fresh)
	for i, s := range fresh {
		records[i].Ref = s.ref
	}
	if !r.cfg.DryRun {
		_, err := r.store.ImportStates(ctx, records)
		if errors.Is(err, perdure.ErrConflict) { // another import has just written one of them
			r.report.Notes = r.report.Notes[:before]
			return r.writeStates(ctx, fresh)
		}
		if err != nil {
			return err
		}
		failpoint.Hit("import.after_states")
	}
	for _, s := range fresh {
		r.report.States++
		r.report.Variables += len(s.vars)
		r.report.Mutations += len(s.mutations)
		r.report.Checkpoints += len(s.checks)
	}
	return nil
}

// merge adds the variables that a state of the store does not have. Different ones are
// noted and not changed.
func (r *reader) merge(ctx context.Context, s *state, have *perdure.StateRecord) error {
	values := make(map[string]string, len(have.Versions))
	for i := range have.Versions {
		if v := &have.Versions[i]; v.Dead == 0 {
			values[v.Name] = string(v.Value)
		}
	}
	for _, v := range s.vars {
		value, there := values[v.Name]
		switch {
		case there && value == string(v.Value):
		case there && v.Name == perdure.VarFinal && value == "null" && s.task != nil &&
			v.same(jsontree.MustMarshal(s.task.Result)):
			// The task completed without setting Final, so an export shows its result.
		case there:
			r.note(Differs, s.f, -1, "variable %s of %s differs from the store, which was not changed", quoted(v.Name),
				s.what())
		case len(values) >= perdure.MaxVariables:
			r.note(NotRead, s.f, -1, "variable %s of %s exceeds the limit of %d variables", quoted(v.Name), s.what(),
				perdure.MaxVariables)
		default:
			values[v.Name] = string(v.Value)
			r.report.Variables++
			if r.cfg.DryRun {
				continue
			}
			spec := perdure.VarSpec{Name: v.Name, Value: v.Value, Type: v.Type, Description: v.Description,
				ReadOnly: v.Metadata.ReadOnly, Cause: perdure.Cause{Source: "import"}}
			if v.Metadata.ExpiresAt != nil {
				spec.TTL = max(time.Until(*v.Metadata.ExpiresAt), time.Microsecond)
			}
			if _, err := r.store.SetVar(ctx, s.ref, spec); err != nil {
				return err
			}
		}
	}
	return nil
}

// taskOfNode returns the task of a history's node, which is its node ID or its ID.
func (s *state) taskOfNode(node string) perdure.TaskID { return cmp.Or(s.ids[node], s.nodes[node]) }

package tree

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// Histories are replayed: the mutations in their order give the previous values, so
// that checkpoints and rollbacks work in the store. If the files contradict each
// other, the variables of a checkpoint and at the end those of the document are used.
// The difference becomes mutations of the import, which no export shows.

// step is the distance between two numbers, with room for mutations of the import.
const step = 1 << 20

// replay is the replay of one state.
type replay struct {
	s        *state
	versions []*variable
	current  map[string]*variable
	muts     []perdure.MutationRecord
	checks   []perdure.CheckpointRecord
	last     int64 // the last number
	hidden   int   // the number of mutations of the import
}

// replay returns the records of the states of one tree, or of one other state. The
// states share one order, because a checkpoint of a tree covers those of its tasks.
func (r *reader) replay(states []*state) []perdure.StateRecord {
	entries := ordered(states)
	for _, s := range states {
		s.replay = &replay{s: s, current: make(map[string]*variable)}
		s.replay.begin()
	}
	numbers := make(map[string]int64) // of mutations and checkpoints, by ID and name
	for i := range entries {
		e := &entries[i]
		if e.check != nil {
			r.replayCheck(states, e, numbers)
			continue
		}
		e.s.replay.mutate(r, e.mutation, numbers)
	}
	out := make([]perdure.StateRecord, len(states))
	for i, s := range states {
		out[i] = s.replay.finish(r, int64(len(entries)+2)*step)
	}
	return out
}

// entry is a mutation or a checkpoint of one of the states.
type entry struct {
	s        *state
	mutation *mutation
	check    *check
	sequence int64
	time     time.Time
}

// ordered returns the mutations and checkpoints in their order: by sequence if all have
// one, else by time, mutations first. It numbers them; entries with the same sequence,
// such as the rollback of a tree, get the same number.
func ordered(states []*state) []entry {
	var all []entry
	sequenced := true
	for _, s := range states {
		for _, m := range s.mutations {
			all = append(all, entry{s: s, mutation: m, sequence: m.sequence, time: m.Time})
			sequenced = sequenced && m.sequence > 0
		}
	}
	for _, s := range states {
		for _, c := range s.checks {
			all = append(all, entry{s: s, check: c, sequence: c.sequence, time: c.Time})
			sequenced = sequenced && c.sequence > 0
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		if sequenced {
			return cmp.Compare(a.sequence, b.sequence)
		}
		return a.time.Compare(b.time)
	})
	number := int64(1)
	for i := range all {
		e := &all[i]
		if i == 0 || !sequenced || all[i-1].sequence != e.sequence {
			number++
		}
		if e.mutation != nil {
			e.mutation.number = number * step
		} else {
			e.check.number = number * step
		}
	}
	return all
}

// begin adds the variable Prompt to the state of a task if its history does not.
func (m *replay) begin() {
	named := func(v *variable) bool { return v.Name == perdure.VarPrompt }
	if m.s.scope != perdure.ScopeTree || slices.ContainsFunc(m.s.vars, named) || m.s.compacted == 0 &&
		slices.ContainsFunc(m.s.mutations, func(e *mutation) bool { return e.Name == perdure.VarPrompt }) {
		return
	}
	v := &variable{}
	v.Name, v.Type, v.Source = perdure.VarPrompt, perdure.VarText, "user_input"
	v.CreatedAt, v.UpdatedAt, v.Metadata.ReadOnly = m.s.created, m.s.created, true
	m.set(v, 1)
}

// hide adds a mutation of the import, which no export shows, and returns its number.
func (m *replay) hide(operation, name string, number int64) int64 {
	m.last = max(m.last+1, number)
	e := perdure.MutationRecord{Foreign: perdure.ImportOnly}
	e.ID, e.Operation, e.Name, e.Source, e.Time = perdure.MutationID(m.last), operation, name, "import", m.s.created
	m.muts = append(m.muts, e)
	m.hidden++
	return m.last
}

// set sets a variable by a mutation of the import.
func (m *replay) set(v *variable, number int64) {
	operation := "update"
	if m.current[v.Name] == nil {
		operation = "create"
	}
	m.put(v, m.hide(operation, v.Name, number))
}

func (m *replay) put(v *variable, number int64) {
	m.remove(v.Name, number)
	v.Version, v.Dead = perdure.MutationID(number), 0
	m.current[v.Name] = v
	m.versions = append(m.versions, v)
}

func (m *replay) remove(name string, number int64) {
	if v := m.current[name]; v != nil {
		v.Dead = perdure.MutationID(number)
		delete(m.current, name)
	}
}

// mutate replays a mutation.
func (m *replay) mutate(r *reader, e *mutation, numbers map[string]int64) {
	number := e.number
	old := e.Old
	if e.Operation == "create" && string(old) == "null" {
		old = nil // there was none
	}
	if old != nil && e.Operation != "rollback" {
		if v := m.current[e.Name]; v == nil || !m.sameValue(v, old) {
			m.set(m.newVariable(old, e), number-step/2)
		}
	}
	switch e.Operation {
	case "delete":
		m.remove(e.Name, number)
	case "rename":
		m.rename(r, e, number)
	case "rollback":
		m.rollback(r, e, number, numbers)
	default:
		if !perdure.ValidName(e.Name) || e.New == nil {
			r.note(Corrected, e.f, e.off, "%s: a mutation of %s has no new value or no valid name", m.s.what(),
				quoted(e.Name))
			m.remove(e.Name, number)
			break
		}
		v := m.newVariable(e.New, e)
		if old := m.current[e.Name]; old != nil {
			v.CreatedAt = old.CreatedAt
		}
		m.put(v, number)
	}
	rec := e.MutationRecord
	rec.ID, rec.Old, rec.New = perdure.MutationID(number), nil, nil
	rec.To = clip.Prefix(rec.To, maxCheckName)
	if e.node != "" && m.s.task != nil {
		rec.Task = m.s.taskOfNode(e.node)
	}
	m.last = number
	m.muts = append(m.muts, rec)
	if e.Foreign != "" {
		numbers[e.Foreign] = number
	}
}

// newVariable returns the variable that a mutation makes.
func (m *replay) newVariable(value json.RawMessage, e *mutation) *variable {
	v := &variable{}
	v.Name, v.Value, v.Type, v.Source, v.CreatedAt, v.UpdatedAt = e.Name, value, kindOf(value), e.Source, e.Time, e.Time
	v.Metadata.Scope = m.s.scope
	v.Metadata.ReadOnly = e.Name == perdure.VarPrompt && m.s.scope == perdure.ScopeTree
	return v
}

// sameValue reports whether a variable has a value in compact form. A Prompt without a
// value has that of the task.
func (m *replay) sameValue(v *variable, value json.RawMessage) bool {
	if v.Value == nil && m.s.task != nil {
		return string(jsontree.MustMarshal(m.s.task.Prompt)) == string(value)
	}
	return v.same(value)
}

func (m *replay) rename(r *reader, e *mutation, number int64) {
	to := e.To
	if to == "" {
		_ = json.Unmarshal(e.New, &to) // some programs write the new name as the new value
	}
	v := m.current[e.Name]
	m.remove(e.Name, number)
	if v == nil || !perdure.ValidName(to) {
		r.note(Corrected, e.f, e.off, "%s: the renaming of %s to %s cannot be replayed", m.s.what(), quoted(e.Name),
			quoted(to))
		return
	}
	e.To = to
	next := *v
	next.Name, next.UpdatedAt = to, e.Time
	m.put(&next, number)
}

// rollback replays a rollback as the store does it: newer versions end, and the versions
// of then become current again.
func (m *replay) rollback(r *reader, e *mutation, number int64, numbers map[string]int64) {
	at, known := numbers[e.To]
	if !known {
		r.note(Corrected, e.f, e.off, "%s was rolled back to %s, which does not exist", m.s.what(), quoted(e.To))
		return
	}
	for _, name := range sortedKeys(m.current) {
		v := m.current[name]
		keep := name == perdure.VarPrompt || name == perdure.VarFinal && string(v.Value) != "null"
		if int64(v.Version) >= at && !keep {
			m.remove(name, number)
		}
	}
	for _, v := range slices.Clone(m.versions) {
		if int64(v.Version) < at && v.Dead != 0 && int64(v.Dead) >= at && m.current[v.Name] == nil {
			next := *v
			next.UpdatedAt = e.Time
			m.put(&next, number)
		}
	}
}

// replayCheck replays a checkpoint, with the variables that it has of the state and of
// the tasks below.
func (r *reader) replayCheck(states []*state, e *entry, numbers map[string]int64) {
	c := e.check
	m := e.s.replay
	if c.snapshot != nil {
		m.reconcile(c.snapshot, c.number-step/2, true)
	}
	for _, other := range states {
		if vars, ok := c.below[other.node]; ok && other != e.s {
			other.replay.reconcile(vars, c.number-step/2, true)
		}
	}
	rec := c.CheckpointRecord
	rec.ID = perdure.CheckpointID(c.number)
	m.checks = append(m.checks, rec)
	m.last = max(m.last, c.number)
	for _, name := range []string{c.id, c.Foreign, c.Name} {
		if name != "" {
			numbers[name] = c.number
		}
	}
}

// reconcile makes the variables of a list current. A variable with the same value only
// gets the metadata of the list.
func (m *replay) reconcile(vars []*variable, number int64, copies bool) {
	listed := make(map[string]bool, len(vars))
	for _, v := range vars {
		listed[v.Name] = true
		old := m.current[v.Name]
		if old != nil && m.sameValue(old, v.Value) {
			value, version := old.Value, old.Version
			old.Variable = v.Variable
			old.Value, old.Version = value, version
			if old.CreatedAt.IsZero() {
				old.CreatedAt, old.UpdatedAt = m.s.created, m.s.created
			}
			continue
		}
		next := v
		if copies {
			c := *v
			next = &c
		}
		if next.CreatedAt.IsZero() {
			next.CreatedAt, next.UpdatedAt = m.s.created, m.s.created
		}
		m.set(next, number)
	}
	for _, name := range sortedKeys(m.current) {
		if !listed[name] && (m.s.scope != perdure.ScopeTree || name != perdure.VarPrompt) {
			m.remove(name, m.hide("delete", name, number))
		}
	}
}

// finish makes the variables of the document current and returns the record.
func (m *replay) finish(r *reader, number int64) perdure.StateRecord {
	s := m.s
	before := m.hidden
	m.reconcile(s.vars, number, false)
	// A task that completes gets Final without a mutation.
	if n := m.hidden - before; len(s.mutations) > 0 && n > 0 && (n > 1 || m.muts[len(m.muts)-1].Name != perdure.VarFinal) {
		r.note(Corrected, s.f, -1, "the history of %s does not result in its variables; the import added %d changes",
			s.what(), n)
	}
	if s.scope == perdure.ScopeTree && m.current[perdure.VarFinal] == nil {
		v := &variable{}
		v.Name, v.Value, v.Type = perdure.VarFinal, json.RawMessage("null"), perdure.VarNull
		v.CreatedAt, v.UpdatedAt = s.created, s.created
		m.set(v, number)
	}
	rec := perdure.StateRecord{CreatedAt: s.created, UpdatedAt: s.updated, ExpiresAt: s.expires,
		Compacted: s.compacted, Mutations: m.muts, Checkpoints: m.checks}
	if s.extra.GivenID == "" {
		rec.Foreign = s.id
	}
	over := len(rec.Mutations) - perdure.MaxHistory // mutations of the import can be dropped
	rec.Mutations = slices.DeleteFunc(rec.Mutations, func(m perdure.MutationRecord) bool {
		drop := over > 0 && m.Foreign == perdure.ImportOnly
		if drop {
			over--
		}
		return drop
	})
	if raw := jsontree.MustMarshal(s.extra); string(raw) != "{}" {
		rec.Extra = raw
	}
	for _, v := range m.versions {
		if v.Name == perdure.VarPrompt && s.task != nil && m.sameValue(v, jsontree.MustMarshal(s.task.Prompt)) {
			v.Value = nil // that of the task
		}
		rec.Versions = append(rec.Versions, v.VersionRecord)
	}
	return rec
}

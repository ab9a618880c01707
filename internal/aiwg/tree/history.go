package tree

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/perdure/perdure"
)

// Histories are replayed: what was done, in its order, gives the values that
// were, so that checkpoints and rollbacks go on working in the store. Where the
// files contradict each other the variables of a snapshot, and in the end those
// of the document, count; what has to be done to get there is a mutation that
// only the import made and no export shows.

// step is the distance of two numbers, with room for such mutations between.
const step = 1 << 20

// simulation is the replay of one state.
type simulation struct {
	s        *state
	versions []*variable
	living   map[string]*variable
	muts     []perdure.MutationRecord
	checks   []perdure.CheckpointRecord
	last     int64 // the number given last
	changed  int   // by the import only
}

// replay brings the states of one tree, or one other state, into records. The
// states share one order, because a checkpoint of a tree covers its tasks'.
func (r *reader) replay(states []*state) []perdure.StateRecord {
	entries := ordered(states)
	for _, s := range states {
		s.sim = &simulation{s: s, living: make(map[string]*variable)}
		s.sim.begin()
	}
	numbers := make(map[string]int64) // of mutations and checkpoints, by ID and name
	for i := range entries {
		e := &entries[i]
		if e.check != nil {
			r.replayCheck(states, e, numbers)
			continue
		}
		e.s.sim.mutate(r, e.mutation, numbers)
	}
	out := make([]perdure.StateRecord, len(states))
	for i, s := range states {
		out[i] = s.sim.finish(r, int64(len(entries)+2)*step)
	}
	return out
}

// entry is something that was done to one of the states.
type entry struct {
	s        *state
	mutation *mutation
	check    *check
	sequence int64
	time     time.Time
}

// ordered lists what was done in its order: by sequence where every entry has
// one, else by time, mutations before checkpoints. It numbers the entries; those
// of one sequence are one, as a rollback of a tree is.
func ordered(states []*state) []entry {
	var all []entry
	sequenced := true
	for _, s := range states {
		for _, m := range s.mutations {
			all = append(all, entry{s: s, mutation: m, sequence: m.sequence, time: m.Time})
			sequenced = sequenced && m.sequence > 0
		}
		for _, c := range s.checks {
			all = append(all, entry{s: s, check: c, sequence: c.sequence, time: c.Time})
			sequenced = sequenced && c.sequence > 0
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		if sequenced {
			return cmp.Compare(a.sequence, b.sequence)
		}
		if c := a.time.Compare(b.time); c != 0 {
			return c
		}
		return rank(&a) - rank(&b)
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

func rank(e *entry) int {
	if e.check != nil {
		return 1
	}
	return 0
}

// begin gives the state of a task its special variables.
func (m *simulation) begin() {
	if m.s.scope != perdure.ScopeTree {
		return
	}
	created := m.s.created
	if m.has(perdure.VarPrompt) || m.s.compacted == 0 &&
		slices.ContainsFunc(m.s.mutations, func(e *mutation) bool { return e.Name == perdure.VarPrompt }) {
		return
	}
	v := &variable{}
	v.Name, v.Type, v.Source, v.CreatedAt, v.UpdatedAt = perdure.VarPrompt, perdure.VarText, "user_input", created, created
	v.Metadata.ReadOnly = true
	m.hidden(v, 1)
}

// has tells whether the document has a variable, so that it comes in anyway.
func (m *simulation) has(name string) bool {
	return slices.ContainsFunc(m.s.vars, func(v *variable) bool { return v.Name == name })
}

// hidden makes a value by a mutation that no export shows.
func (m *simulation) hidden(v *variable, number int64) {
	m.last = max(m.last+1, number)
	e := perdure.MutationRecord{Foreign: perdure.ImportOnly}
	e.ID, e.Operation, e.Name, e.Source, e.Time = perdure.MutationID(m.last), "update", v.Name, "import", m.s.created
	if m.living[v.Name] == nil {
		e.Operation = "create"
	}
	m.muts = append(m.muts, e)
	m.put(v, m.last)
	m.changed++
}

// hiddenDelete removes a value by a mutation that no export shows.
func (m *simulation) hiddenDelete(name string, number int64) {
	m.last = max(m.last+1, number)
	e := perdure.MutationRecord{Foreign: perdure.ImportOnly}
	e.ID, e.Operation, e.Name, e.Source, e.Time = perdure.MutationID(m.last), "delete", name, "import", m.s.created
	m.muts = append(m.muts, e)
	m.kill(name, m.last)
	m.changed++
}

func (m *simulation) put(v *variable, number int64) {
	m.kill(v.Name, number)
	v.Version, v.Dead = perdure.MutationID(number), 0
	m.living[v.Name] = v
	m.versions = append(m.versions, v)
}

func (m *simulation) kill(name string, number int64) {
	if v := m.living[name]; v != nil {
		v.Dead = perdure.MutationID(number)
		delete(m.living, name)
	}
}

// mutate replays a mutation.
func (m *simulation) mutate(r *reader, e *mutation, numbers map[string]int64) {
	number := e.number
	old, fresh := e.Old, e.New
	if e.Operation == "create" && string(old) == "null" {
		old = nil // there was none
	}
	if old != nil && e.Operation != "rollback" {
		if v := m.living[e.Name]; v == nil || !m.sameValue(v, old) {
			m.hidden(m.fresh(e.Name, old, e), number-step/2)
		}
	}
	switch e.Operation {
	case "delete":
		m.kill(e.Name, number)
	case "rename":
		m.rename(r, e, number)
	case "rollback":
		m.rollback(r, e, number, numbers)
	default:
		if !perdure.ValidName(e.Name) || fresh == nil {
			r.note(Corrected, e.f, e.off, "%s: a mutation of %s has no new value or no name that can be kept", m.s.what(),
				quoted(e.Name))
			m.kill(e.Name, number)
			break
		}
		v := m.fresh(e.Name, fresh, e)
		if was := m.living[e.Name]; was != nil {
			v.CreatedAt = was.CreatedAt
		}
		m.put(v, number)
	}
	rec := e.MutationRecord
	rec.ID, rec.Old, rec.New = perdure.MutationID(number), nil, nil
	if e.node != "" && m.s.task != nil {
		rec.Task = r.taskOfNode(m.s, e.node)
	}
	m.last = number
	m.muts = append(m.muts, rec)
	if e.Foreign != "" {
		numbers[e.Foreign] = number
	}
}

func (m *simulation) fresh(name string, value json.RawMessage, e *mutation) *variable {
	v := &variable{}
	v.Name, v.Value, v.Type, v.Source, v.CreatedAt, v.UpdatedAt = name, value, kindOf(value), e.Source, e.Time, e.Time
	v.Metadata.Scope = m.s.scope
	if name == perdure.VarPrompt && m.s.scope == perdure.ScopeTree {
		v.Metadata.ReadOnly = true
	}
	return v
}

// sameValue compares with a value in its shortest form; the prompt that stands
// for the task's has none of its own.
func (m *simulation) sameValue(v *variable, value json.RawMessage) bool {
	if v.Value == nil && m.s.task != nil {
		return string(mustJSON(m.s.task.Prompt)) == string(value)
	}
	return v.same(value)
}

func (m *simulation) rename(r *reader, e *mutation, number int64) {
	to := e.To
	if to == "" {
		_ = json.Unmarshal(e.New, &to) // some programs write the new name as the new value
	}
	v := m.living[e.Name]
	m.kill(e.Name, number)
	if v == nil || !perdure.ValidName(to) {
		r.note(Corrected, e.f, e.off, "%s: %s was renamed to %s, which cannot be followed", m.s.what(), quoted(e.Name),
			quoted(to))
		return
	}
	e.To = to
	next := *v
	next.Name, next.UpdatedAt = to, e.Time
	m.put(&next, number)
}

// rollback does what the store's does: what was born since dies, and what lived
// then is born again.
func (m *simulation) rollback(r *reader, e *mutation, number int64, numbers map[string]int64) {
	at, known := numbers[e.To]
	if !known {
		r.note(Corrected, e.f, e.off, "%s was rolled back to %s, which is not there", m.s.what(), quoted(e.To))
		return
	}
	stays := func(v *variable) bool {
		return v.Name == perdure.VarPrompt || v.Name == perdure.VarFinal && string(v.Value) != "null"
	}
	for _, name := range sortedKeys(m.living) {
		if v := m.living[name]; int64(v.Version) >= at && !stays(v) {
			m.kill(name, number)
		}
	}
	for _, v := range slices.Clone(m.versions) {
		if int64(v.Version) < at && v.Dead != 0 && int64(v.Dead) >= at && m.living[v.Name] == nil {
			next := *v
			next.UpdatedAt = e.Time
			m.put(&next, number)
		}
	}
}

// replayCheck makes the state, and those of tasks below it, as a snapshot says.
func (r *reader) replayCheck(states []*state, e *entry, numbers map[string]int64) {
	c := e.check
	m := e.s.sim
	if c.snapshot != nil {
		m.reconcile(c.snapshot, c.number-step/2, true)
	}
	for _, other := range states {
		if vars, ok := c.below[other.node]; ok && other != e.s {
			other.sim.reconcile(vars, c.number-step/2, true)
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

// reconcile makes the living variables those of a list. Where only what is said
// about a value is more, it is taken over.
func (m *simulation) reconcile(vars []*variable, number int64, copies bool) {
	listed := make(map[string]bool, len(vars))
	for _, v := range vars {
		listed[v.Name] = true
		was := m.living[v.Name]
		if was != nil && m.sameValue(was, v.Value) {
			value, version, dead := was.Value, was.Version, was.Dead
			was.Variable = v.Variable
			was.Value, was.Version, was.Dead = value, version, dead
			if was.CreatedAt.IsZero() {
				was.CreatedAt, was.UpdatedAt = m.s.created, m.s.created
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
		m.hidden(next, number)
	}
	for _, name := range sortedKeys(m.living) {
		if !listed[name] && (m.s.scope != perdure.ScopeTree || name != perdure.VarPrompt) {
			m.hiddenDelete(name, number)
		}
	}
}

// finals tells whether the last change of the import was to Final: a task that
// completes has one without a mutation.
func (m *simulation) finals() bool { return m.muts[len(m.muts)-1].Name == perdure.VarFinal }

// finish makes the variables those of the document and returns the record.
func (m *simulation) finish(r *reader, number int64) perdure.StateRecord {
	s := m.s
	before := m.changed
	m.reconcile(s.vars, number, false)
	if n := m.changed - before; len(s.mutations) > 0 && n > 0 && (n > 1 || !m.finals()) {
		r.note(Corrected, s.f, -1, "the history of %s does not lead to its variables; %d changes of the import do",
			s.what(), n)
	}
	if s.scope == perdure.ScopeTree && m.living[perdure.VarFinal] == nil {
		v := &variable{}
		v.Name, v.Value, v.Type, v.CreatedAt, v.UpdatedAt = perdure.VarFinal, json.RawMessage(
			"null"), perdure.VarNull, s.created, s.created
		m.hidden(v, number)
	}
	rec := perdure.StateRecord{Foreign: s.foreignID(), CreatedAt: s.created, UpdatedAt: s.updated, ExpiresAt: s.expires,
		Compacted: s.compacted, Mutations: m.muts, Checkpoints: m.checks}
	over := len(rec.Mutations) - perdure.MaxHistory // those the import made came on top, and nobody misses them
	rec.Mutations = slices.DeleteFunc(rec.Mutations, func(m perdure.MutationRecord) bool {
		drop := over > 0 && m.Foreign == perdure.ImportOnly
		if drop {
			over--
		}
		return drop
	})
	if raw := mustJSON(s.extra); string(raw) != "{}" {
		rec.Extra = raw
	}
	for _, v := range m.versions {
		if v.Name == perdure.VarPrompt && s.task != nil && m.sameValue(v, mustJSON(s.task.Prompt)) {
			v.Value = nil // the task's
		}
		rec.Versions = append(rec.Versions, v.VersionRecord)
	}
	return rec
}

package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// gap is the distance between the places in an exported history of what has a number in the
// store. Between them is room for changes that the store has elsewhere: the result of a task,
// and the end of each variable of a state whose time to live is over.
const gap = 2048

func place[N ~int64](number N) int64 { return gap * int64(number) }

// spread replaces the numbers of the record by their places.
func (s *stateExport) spread() {
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		v.Version, v.Dead = perdure.MutationID(place(v.Version)), perdure.MutationID(place(v.Dead))
	}
	for i := range s.rec.Mutations {
		m := &s.rec.Mutations[i]
		m.ID = perdure.MutationID(place(m.ID))
	}
	for i := range s.rec.Checkpoints {
		c := &s.rec.Checkpoints[i]
		c.ID = perdure.CheckpointID(place(c.ID))
	}
}

// expire removes the variables whose time to live is over, with a mutation of that time if the
// state has a history. The store removes them when their state is written.
func (s *stateExport) expire() {
	history := len(s.muts) > 0
	for i := range s.rec.Versions {
		v := &s.rec.Versions[i]
		if v.Dead != 0 || s.isCurrent(v) || len(s.muts) == perdure.MaxHistory {
			continue
		}
		v.Dead = perdure.MutationID(placeAt([]*stateExport{s}, *v.Metadata.ExpiresAt))
		if history {
			s.insert(&perdure.MutationRecord{Mutation: perdure.Mutation{ID: v.Dead, Operation: "delete", Name: v.Name,
				Source: "ttl", Time: *v.Metadata.ExpiresAt}})
		}
	}
}

// insert adds a mutation to the history at its place.
func (s *stateExport) insert(m *perdure.MutationRecord) {
	at := slices.IndexFunc(s.muts, func(is perdure.MutationRecord) bool { return is.ID > m.ID })
	if at < 0 {
		at = len(s.muts)
	}
	s.muts = slices.Insert(s.muts, at, *m)
}

// finish sets Final of a completed task to its result if the task did not set it. The store has
// the result in the task and not in its state; other readers of the format know only the state.
// A state with a history gets a mutation of that time, at its place in the histories of all.
func (s *stateExport) finish(task *perdure.Task, all []*stateExport) {
	i := slices.IndexFunc(s.rec.Versions, func(v perdure.VersionRecord) bool {
		return v.Dead == 0 && v.Name == perdure.VarFinal && string(v.Value) == "null"
	})
	if i < 0 || task.State != perdure.Completed {
		return
	}
	final := s.rec.Versions[i]
	final.Value, final.Type = jsontree.MustMarshal(task.Result), perdure.VarText
	final.Source, final.UpdatedAt = s.names[task.ID].id, task.CompletedAt
	if n := len(s.muts); n == 0 || n == perdure.MaxHistory {
		s.rec.Versions[i] = final
		return
	}
	final.Version = perdure.MutationID(placeAt(all, task.CompletedAt))
	s.rec.Versions[i].Dead = final.Version
	s.rec.Versions = slices.Insert(s.rec.Versions, i+1, final)
	s.insert(&perdure.MutationRecord{Mutation: perdure.Mutation{ID: final.Version, Operation: "update",
		Name: perdure.VarFinal, Source: final.Source, Task: task.ID, Time: task.CompletedAt}})
	if task.CompletedAt.After(s.rec.UpdatedAt) {
		s.rec.UpdatedAt = task.CompletedAt
	}
}

// placeAt returns the free place after all mutations and checkpoints up to a time.
func placeAt(states []*stateExport, until time.Time) int64 {
	last := int64(0)
	for _, s := range states {
		for i := range s.muts {
			if m := &s.muts[i]; !m.Time.After(until) {
				last = max(last, int64(m.ID))
			}
		}
		for i := range s.rec.Checkpoints {
			if c := &s.rec.Checkpoints[i]; !c.Time.After(until) {
				last = max(last, int64(c.ID))
			}
		}
	}
	return last + 1
}

// mutationName returns the ID of a mutation of the store, or one for a change that the store
// has elsewhere, the same in each export.
func (s *stateExport) mutationName(id perdure.MutationID) string {
	if id%gap == 0 {
		return (id / gap).String()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", s.id, id))
	return "mut-" + hex.EncodeToString(sum[:4])
}

// nameHistory assigns IDs to mutations and checkpoints, and numbers them from 1 in
// their order across the states.
func nameHistory(states []*stateExport) {
	var numbers []int64
	for _, s := range states {
		taken := newNames()
		for _, m := range s.muts {
			s.ids[int64(m.ID)] = taken.reserve(m.Foreign)
		}
		for _, c := range s.rec.Checkpoints {
			s.ids[int64(c.ID)] = taken.reserve(c.Foreign)
		}
		for _, m := range s.muts {
			numbers = append(numbers, int64(m.ID))
			s.ids[int64(m.ID)] = taken.hex(s.ids[int64(m.ID)], s.mutationName(m.ID), "mut-")
		}
		for _, c := range s.rec.Checkpoints {
			numbers = append(numbers, int64(c.ID))
			s.ids[int64(c.ID)] = taken.hex(s.ids[int64(c.ID)], (c.ID / gap).String(), "ckpt-")
		}
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, s := range states {
		for i := range s.rec.Checkpoints {
			c := &s.rec.Checkpoints[i]
			at, _ := slices.BinarySearch(numbers, int64(c.ID))
			d := checkDoc{ID: s.ids[int64(c.ID)], Name: c.Name, Time: c.Time, Description: c.Description, Sequence: at + 1}
			if s.dir != "" {
				d.Path = layoutName + "/" + s.dir + checksFolder + "/" + d.ID + ".json"
			}
			s.checks = append(s.checks, d)
		}
		for i := range s.muts {
			at, _ := slices.BinarySearch(numbers, int64(s.muts[i].ID))
			s.order[s.muts[i].ID] = at + 1
		}
	}
}

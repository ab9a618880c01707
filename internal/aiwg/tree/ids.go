package tree

import (
	"context"

	"github.com/perdure/perdure"
)

// wanted returns the ID of a record as an ID of the store, 0 if it has none.
func (t *task) wanted() perdure.TaskID {
	id, err := perdure.ParseTaskID(t.foreign.ID)
	if err != nil || id > perdure.MaxImportID {
		return 0
	}
	return id
}

// reserveIDs makes room for the IDs of all records, so that a new task, now or later, gets
// none of them.
func (r *reader) reserveIDs(ctx context.Context) (err error) {
	highest := perdure.TaskID(0)
	for _, g := range r.trees {
		for _, t := range g.tasks {
			highest = max(highest, t.wanted())
		}
	}
	if r.cfg.DryRun {
		r.unused, err = r.store.UnusedTasks(ctx)
		return err
	}
	if highest == 0 {
		return nil
	}
	return r.store.ReserveTasks(ctx, highest)
}

// noteID notes a record whose task has another ID in the store.
func (r *reader) noteID(t *task, id perdure.TaskID) {
	if t.foreign.ID != "" && t.wanted() != id {
		r.note(Renumbered, t.f, t.n.Start, "%s became %s: %s", t.what(), id, t.whyTaken())
	}
}

// whyTaken returns why a task does not keep its ID.
func (t *task) whyTaken() string {
	switch {
	case t.wanted() == 0:
		return "IDs in the store are from task-0001 to " + perdure.MaxImportID.String()
	case t.up != nil && t.up.wanted() >= t.wanted():
		return "its parent has a higher ID"
	}
	return "another task has or had its ID"
}

// noteTaken notes, in a dry run, a record that would get another ID.
func (r *reader) noteTaken(t *task) {
	want := t.wanted()
	if t.foreign.ID == "" {
		return
	}
	for i := range r.unused {
		in := &r.unused[i]
		if in.First <= want && want <= in.Last && (t.up == nil || t.up.wanted() < want) && !r.given[want] {
			r.given[want] = true
			return
		}
	}
	r.note(Renumbered, t.f, t.n.Start, "%s would get a new ID: %s", t.what(), t.whyTaken())
}

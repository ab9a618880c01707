package perdure

import (
	"context"
	"encoding/json"
)

// EventTaskAmended reports that [Store.AmendTask] changed a task; its data lists the
// changed fields.
const EventTaskAmended EventKind = "task.amended"

// Amendment lists new values for fields of a task. Nil fields are not changed.
type Amendment struct {
	// Priority and Agent can be changed of queued tasks only.
	Priority *int
	Agent    *string
	// Metadata replaces the metadata of a task in any state.
	Metadata json.RawMessage
}

const (
	sqlAmendOne      = `SELECT tree, state, rank FROM task_hot WHERE id = $1`
	sqlAmendPriority = `UPDATE task SET priority = $2 WHERE id = $1`
	sqlAmendRank     = `UPDATE task_hot SET rank = $2 WHERE id = $1`
	sqlAmendAgent    = `UPDATE task SET agent = $2 WHERE id = $1`
	sqlAmendMetadata = `UPDATE task SET metadata = $2 WHERE id = $1`
)

// AmendTask changes fields of a task. A lease of it keeps the fields that it was claimed
// with. AmendTask fails with CodeConflict when the priority or the agent of a task that
// is not queued is to be changed.
func (s *Store) AmendTask(ctx context.Context, id TaskID, a Amendment) error {
	spec := TaskSpec{Metadata: a.Metadata}
	if a.Priority != nil {
		spec.Priority = *a.Priority
	}
	if a.Agent != nil {
		spec.Agent = *a.Agent
	}
	if err := spec.validate(); err != nil {
		return err
	}
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return b.amend(ctx, int64(id), &a) }))
	s.recent.drop(int64(id))
	return err
}

func (b *batch) amend(ctx context.Context, id int64, a *Amendment) error {
	const op = "amend task"
	var tree, state, rank int64
	err := b.tx.QueryRow(ctx, sqlAmendOne, []any{id}, &tree, &state, &rank)
	if err != nil {
		return orNotFound(err, noTask(op, id))
	}
	if state != stQueued && (a.Priority != nil || a.Agent != nil) {
		return conflictf(op, "task %q is %s; only queued tasks can change their priority or agent", TaskID(id),
			stateOf(state))
	}
	var changed []string
	set := func(name, q string, v any) {
		if err == nil {
			_, err = b.tx.Exec(ctx, q, id, v)
			changed = append(changed, name)
		}
	}
	if a.Priority != nil {
		set("priority", sqlAmendPriority, *a.Priority)
		if err == nil && rank >= 0 { // a woken parent comes before all other tasks anyway
			_, err = b.tx.Exec(ctx, sqlAmendRank, id, rankOf(*a.Priority, depthOfRank(rank), id))
		}
	}
	if a.Agent != nil {
		set("agent", sqlAmendAgent, *a.Agent)
	}
	if len(a.Metadata) > 0 {
		set("metadata", sqlAmendMetadata, string(a.Metadata))
	}
	if err != nil || len(changed) == 0 {
		return err
	}
	names, err := json.Marshal(changed)
	b.event(tree, id, EventTaskAmended, `{"changed":`+string(names)+`}`)
	return err
}

// RemoveTree removes a terminal tree with all its rows; the next [Store.Prune] removes
// its blobs. It fails with CodeConflict for any other tree. If the process is killed
// halfway, readers no longer find the tree, and the next Prune removes the rest.
func (s *Store) RemoveTree(ctx context.Context, id TreeID) error {
	t, err := s.Tree(ctx, id)
	if err != nil {
		return err
	}
	if !t.State.Terminal() {
		return conflictf("remove tree", "tree %q is %s", id, t.State)
	}
	if err := s.forgetTree(ctx, t.key); err != nil {
		return err
	}
	if _, err := s.Tree(ctx, id); err == nil {
		return conflictf("remove tree", "a task of tree %q was retried just now", id)
	}
	return s.sweepTree(ctx, t.key)
}

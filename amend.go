package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
)

// EventTaskAmended tells that what is said of a task was changed from outside;
// its data has the names of what was.
const EventTaskAmended EventKind = "task.amended"

// Amendment says what to change of a task beside its state. What is nil stays.
type Amendment struct {
	// Priority and Agent are changed of queued tasks only.
	Priority *int
	Agent    *string
	// Metadata replaces the metadata; it is changed of any task.
	Metadata json.RawMessage
}

const (
	sqlAmendOne      = `SELECT tree, state, rank FROM task_hot WHERE id = $1`
	sqlAmendPriority = `UPDATE task SET priority = $2 WHERE id = $1`
	sqlAmendRank     = `UPDATE task_hot SET rank = $2 WHERE id = $1`
	sqlAmendAgent    = `UPDATE task SET agent = $2 WHERE id = $1`
	sqlAmendMetadata = `UPDATE task SET metadata = $2 WHERE id = $1`
)

// AmendTask changes what is said of a task, whoever runs it; a lease goes on
// with what it was claimed with. It is refused (CodeConflict) for the priority or
// the agent of a task that is not queued.
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
	if errors.Is(err, sql.ErrNoRows) {
		return notFoundf(op, "there is no task %q", TaskID(id))
	}
	if err != nil {
		return err
	}
	if state != stQueued && (a.Priority != nil || a.Agent != nil) {
		return conflictf(op, "task %q is %s; the priority and the agent are changed of queued tasks only", TaskID(id), stateOf(state))
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
		if rank >= 0 { // else it is a parent that was woken, which goes first anyway
			set("rank", sqlAmendRank, rankOf(*a.Priority, depthOfRank(rank), id))
			changed = changed[:len(changed)-1]
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

// RemoveTree removes a tree that is terminal, with all that belongs to it but
// the blobs, which go with the next [Store.Prune]. It is refused (CodeConflict)
// for any other tree. Killed halfway, the tree is gone for readers, and the next
// Prune removes the rest.
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
		return conflictf("remove tree", "tree %q goes on", id) // it was retried just now
	}
	return s.sweepTree(ctx, t.key)
}

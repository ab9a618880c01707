package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"

	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/text/clip"
)

// KindRecord is the kind of imported trees. They are not executed: tasks that were not
// finished are queued and stay so.
const KindRecord = sqldb.KindRecord

// TreeRecord is a tree to import.
type TreeRecord struct {
	// Key identifies the tree in all imports: a second record with the same key is
	// not imported again. Required.
	Key string
	// ID is the tree's ID, unless the store has it already; then a random one is used.
	ID     TreeID
	Name   string
	Config json.RawMessage
	Limits Limits
	// Partial is set for a completed tree that lacks some of its parts.
	Partial bool
	// Blobs are the blobs that the tree needs, put before.
	Blobs []BlobRef
	// Contexts are the IDs of contexts that the tree needs, put before.
	Contexts []string
	// Tasks begins with the root. ImportTasks may add more.
	Tasks []TaskRecord
}

// TaskRecord is a task to import. The task keeps its ID if [Store.ReserveTasks] made room
// for it, no other task has or had it and the parent's is lower; otherwise it gets a new
// one. The tree, node, depth, lease and WaitsFor of Task are ignored. A task that is not
// terminal becomes queued; its parent must not be terminal then.
type TaskRecord struct {
	Task
	// Parent is a task that is in the store already; if it is 0, the parent is At, the
	// index of an earlier record of the same call. The root has index 0.
	Parent TaskID
	At     int
	// Calls are the task's calls, which get new IDs. They are part of its Usage.
	Calls []Call
}

// ImportedTree is the tree that a record became.
type ImportedTree struct {
	ID   TreeID
	Root TaskID
	// Tasks are the IDs of the records, in their order; nil if Found.
	Tasks []TaskID
	// Found is set if a tree with the key existed, and nothing was changed.
	Found bool
}

// MaxImport bounds the records of one call, so that other writers do not wait
// long for it.
const MaxImport = 2000

// ImportTasks adds tasks to an imported tree. Either all are added or none.
func (s *Store) ImportTasks(ctx context.Context, tree TreeID, tasks []TaskRecord) ([]TaskID, error) {
	const op = "import tasks"
	if len(tasks) > MaxImport {
		return nil, invalidf(op, "there are %d records, the limit is %d", len(tasks), MaxImport)
	}
	list, err := s.prepareRecords(ctx, tasks, false)
	if err != nil {
		return nil, err
	}
	t, err := s.Tree(ctx, tree)
	if err != nil {
		return nil, err
	}
	if t.Kind != KindRecord {
		return nil, conflictf(op, "tree %q was not imported", tree)
	}
	var ids []TaskID
	err = s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		st, err := b.stat(ctx, t.key)
		if err != nil {
			return err
		}
		w := &recordRows{}
		if w.unused, err = b.unused(ctx, slices.Values(list)); err != nil {
			return err
		}
		if ids, err = b.importTasks(ctx, w, st, list); err != nil {
			return undoing(err)
		}
		return w.flush(ctx, b)
	}))
	return ids, err
}

// recordTask is a task about to be inserted as a record.
type recordTask struct {
	newTask
	rec          *TaskRecord
	result, data stored
	calls        []recordCall
	family       family // of its parent
	pending      int64
}

func (s *Store) prepareRecords(ctx context.Context, tasks []TaskRecord, rooted bool) ([]recordTask, error) {
	const op = "import task"
	list := make([]recordTask, len(tasks))
	for i := range tasks {
		r := &tasks[i]
		if r.State.number() == 0 || r.Parent == 0 && (r.At < 0 || r.At >= i) && (i > 0 || !rooted) {
			return nil, invalidf(op, "record %d has no state, or its parent is not before it", i)
		}
		if !storable(r.Result) || !storable(r.Output) || len(r.Result) > MaxResultBytes || len(r.Output) > MaxResultBytes {
			return nil, invalidf(op, "result or output of record %d is longer than %d bytes or not UTF-8 text", i,
				MaxResultBytes)
		}
		if err := validateObject(op, "result data", r.Data, MaxResultBytes); err != nil {
			return nil, err
		}
		t, err := s.prepareTask(ctx, &TaskSpec{Prompt: r.Prompt, Agent: r.Agent, Priority: r.Priority,
			MaxAttempts: r.MaxAttempts, Strategy: r.Strategy, Policy: r.Policy, Merge: r.Merge, Context: r.Context,
			Metadata: r.Metadata})
		if err != nil {
			return nil, err
		}
		list[i] = recordTask{newTask: t, rec: r}
		if list[i].calls, err = s.prepareCalls(ctx, r.Calls); err != nil {
			return nil, err
		}
		if list[i].result, list[i].data, err = s.storeBoth(ctx, r.Result, r.Data); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// importTasks queues the rows of records. The caller saves st.
func (b *batch) importTasks(ctx context.Context, w *recordRows, st *treeStat, list []recordTask) ([]TaskID, error) {
	const op = "import task"
	ids := make([]TaskID, len(list))
	parents := make(map[TaskID]*family)
	for i := range list {
		t := &list[i]
		t.pending = 0 // the transaction may be a repeated one
		t.tree, t.position = st.tree, t.rec.Position
		living := !t.rec.State.Terminal()
		switch {
		case t.rec.Parent != 0:
			f := parents[t.rec.Parent]
			if f == nil {
				f = &family{}
				err := b.tx.QueryRow(ctx, sqlParent, []any{int64(t.rec.Parent)}, &f.tree, &f.state, &f.flags, &f.depth)
				if err == nil && f.tree != st.tree {
					err = sql.ErrNoRows
				}
				if err != nil {
					return nil, orNotFound(err, notFoundf(op, "the tree has no task %q", t.rec.Parent))
				}
				parents[t.rec.Parent] = f
			}
			t.parent, t.family = int64(t.rec.Parent), *f
			if living {
				b.addOpen(t.parent, 1)
			}
		case i > 0:
			p := &list[t.rec.At]
			t.parent, t.family = p.id, family{state: p.recordState(), flags: p.spec.flags(), depth: p.depth}
			if living {
				p.pending++
			}
		}
		t.id = b.idOf(w.unused, t)
		ids[i] = TaskID(t.id)
		if t.parent != 0 {
			t.depth = t.family.depth + 1
			if living && stateOf(t.family.state).Terminal() {
				return nil, conflictf(op, "record %d is %s and its parent is %s", i, t.rec.State,
					stateOf(t.family.state))
			}
		}
	}
	for i := range list {
		if err := b.importTask(ctx, w, st, &list[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// recordState returns the state of a record in the store: queued if it is not terminal.
func (t *recordTask) recordState() int64 {
	if t.rec.State.Terminal() {
		return t.rec.State.number()
	}
	return stQueued
}

func (b *batch) importTask(ctx context.Context, w *recordRows, st *treeStat, t *recordTask) error {
	state, flags, r := t.recordState(), t.spec.flags(), t.rec
	if t.family.flags&sqldb.FlagFailFast != 0 {
		flags |= sqldb.FlagSiblingsFail
	}
	if t.family.flags&sqldb.FlagSequential != 0 {
		flags |= sqldb.FlagStep
	}
	if state == stCompleted && r.Partial {
		flags |= sqldb.FlagPartial
	}
	if state == stCompleted && r.Skipped {
		flags |= sqldb.FlagSkipped
	}
	if err := b.keepValues(ctx, t.tree, t.prompt, t.result, t.data); err != nil {
		return err
	}
	var started any
	if !r.StartedAt.IsZero() {
		at := r.StartedAt.UnixMicro()
		started = at
		if st.startedAt == nil || at < *st.startedAt {
			st.startedAt = &at
		}
	}
	u := &r.Usage
	cost := int64(u.CostUSD*microsPerDollar + 0.5)
	rows := &w.hots
	if *u == (Usage{}) {
		rows = &w.unusedHots
	}
	*rows = append(*rows, t.id, t.tree, t.parent, rankOf(t.spec.Priority, t.depth, t.id), state, int64(t.spec.MaxAttempts),
		flags, int64(max(r.Attempts, 1)), t.pending, r.Active.Microseconds(), started)
	if rows == &w.hots {
		*rows = append(*rows, u.InputTokens, u.OutputTokens, u.CachedTokens, cost, u.Calls, u.UnpricedCalls)
	}
	prompt := b.addCold(&t.newTask, microsOf(r.CreatedAt))
	st.add(state)
	st.spendRecord(t, cost)
	level := st.time().Level(t.depth)
	level.Total++
	b.event(t.tree, t.id, EventTaskCreated, withDigest(`{"parent_id":"`+parentText(t.parent)+`","depth":`+
		itoa(int64(t.depth))+`,"imported":"`+string(r.State)+`"`+b.importEnd(t)+`}`, prompt))
	if err := b.importCalls(ctx, t); err != nil {
		return err
	}
	if r.Output != "" {
		if err := b.importOutput(ctx, t); err != nil {
			return err
		}
	}
	if !r.State.Terminal() {
		return nil
	}
	level.Ended++
	if state == stCompleted {
		st.time().Completed(t.depth, r.Active.Microseconds())
	}
	return nil
}

// importEnd queues the row of the result of a terminal task. It returns the field of the
// event with its digest, "" if the task is not terminal.
func (b *batch) importEnd(t *recordTask) string {
	r := t.rec
	if !r.State.Terminal() {
		return ""
	}
	e := taskEnd{id: t.id, tree: t.tree, result: t.result.column, data: t.data.column, at: microsOf(r.CompletedAt)}
	if r.Error != nil {
		e.kind, e.message = r.Error.Kind, validPrefix(r.Error.Message, MaxErrorBytes)
	}
	return `,"result_digest":"` + b.end(&e) + `"`
}

func (b *batch) importOutput(ctx context.Context, t *recordTask) error {
	part := int64(0)
	for text := t.rec.Output; text != ""; part++ {
		first := clip.Prefix(text, MaxPayloadBytes)
		if _, err := b.tx.Exec(ctx, sqlAddOutput, t.id, part+1, t.tree, first); err != nil {
			return err
		}
		text = text[len(first):]
	}
	return nil
}

const (
	headRecordTree = `INSERT INTO tree (id, name, kind, title, config, root, owner, placement, idempotency, created_at, imported_at)`
	rowRecordTree  = `(?, ?, '` + KindRecord + `', ?, ?, ?, 0, '{}', ?, ?, ?)`
	headRecordHot  = `INSERT INTO task_hot (id, tree, parent, rank, state, max_attempts, successor, flags, fence, attempt, pending,
		active_us, started_at, input_tokens, output_tokens, cached_tokens, cost_micros, calls, unpriced)`
	rowRecordHot = `(?, ?, ?, ?, ?, ?, 0, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	rowUnusedHot = `(?, ?, ?, ?, ?, ?, 0, ?, 0, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0)` // of a task without usage
)

// recordRows are rows of records that are inserted together.
type recordRows struct {
	trees, hots, unusedHots []any
	unused                  *unusedIDs
}

func (w *recordRows) flush(ctx context.Context, b *batch) error {
	return errors.Join(
		sqldb.NewRowInsertion(headRecordTree, rowRecordTree, "").Exec(ctx, b.tx, w.trees),
		sqldb.NewRowInsertion(headRecordHot, rowRecordHot, "").Exec(ctx, b.tx, w.hots),
		sqldb.NewRowInsertion(headRecordHot, rowUnusedHot, "").Exec(ctx, b.tx, w.unusedHots),
		w.unused.save(ctx, b))
}

package perdure

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// ReopenSpec is how a tree continues.
type ReopenSpec struct {
	// Owner, when set, is the only session that claims the tree's tasks while it lives.
	Owner *Session
	// Limits and Config, when set, replace those of the tree. What was used of the calls,
	// tokens and costs still counts; the time limit counts anew.
	Limits *Limits
	Config json.RawMessage
	// Attempts is how often each reopened task is tried; 0 means DefaultMaxAttempts.
	Attempts int
	// Changes is a JSON object for the event, which describes what is new in Config.
	Changes json.RawMessage
}

// Reopen takes up the missing parts of a tree, in one transaction: the tasks that failed,
// were cancelled or completed with a partial result, and the tasks above them, which merge
// again. Completed tasks keep their results. The calls that [Result].KeepCalls or
// [Failure].KeepCalls kept are not made again. If the tree has not ended, its other tasks
// continue as after [Store.Recover].
//
// Reopen changes nothing if no part is missing and the spec has no changes. It fails with
// CodeConflict for a cancelled tree, for loops and records, and while another process
// owns the tree or runs its tasks.
func (s *Store) Reopen(ctx context.Context, id TreeID, spec ReopenSpec) (RecoverReport, error) {
	if err := spec.validate(); err != nil {
		return RecoverReport{}, err
	}
	tree, err := s.Tree(ctx, id)
	if err != nil {
		return RecoverReport{}, err
	}
	o := &reopenTree{tree: &tree, spec: &spec, dead: make(map[int64]bool)}
	if err := s.mayReopen(ctx, o); err != nil {
		return RecoverReport{}, err
	}
	failpoint.Hit("reopen.before")
	if err := s.w.do(ctx, opFunc(o.apply)); err != nil {
		return RecoverReport{}, err
	}
	failpoint.Hit("reopen.after")
	s.forget(tree.key)
	p, lost, err := s.progress(ctx, id)
	if err != nil {
		return RecoverReport{}, err
	}
	r := p.recovered(lost)
	r.Reopened = o.reopened
	return r, nil
}

func (spec *ReopenSpec) validate() error {
	const op = "reopen tree"
	if err := validateObject(op, "config", spec.Config, MaxConfigBytes); err != nil {
		return err
	}
	if err := validateObject(op, "changes", spec.Changes, MaxConfigBytes); err != nil {
		return err
	}
	if spec.Attempts < 0 {
		return invalidf(op, "attempts is %d, at least 1 is needed", spec.Attempts)
	}
	if spec.Limits != nil && spec.Limits.negative() {
		return invalidf(op, "a limit is negative")
	}
	return nil
}

// mayReopen returns an error if this process cannot continue the tree.
func (s *Store) mayReopen(ctx context.Context, o *reopenTree) error {
	const op = "reopen tree"
	tree, owner := o.tree, o.spec.Owner
	switch {
	case tree.Kind == KindLoop || tree.Kind == KindRecord:
		return conflictf(op, "tree %q is a %s", tree.ID, tree.Kind)
	case tree.State == Cancelled:
		return &Error{Code: CodeConflict, Op: op, Msg: "tree \"" + string(tree.ID) + "\" is cancelled, which is final",
			Hint: "start a new run"}
	}
	if err := s.ownedElsewhere(ctx, op, tree, owner); err != nil {
		return err
	}
	if lack := s.cfg.Placement.lacks(&tree.Placement); owner != nil && lack != "" {
		return conflictf(op, "tree %q requires %s, which this process does not offer", tree.ID, lack)
	}
	st, err := loadStat(ctx, s.db.QueryRow, tree.key)
	if err != nil {
		return wrap(op, ignoreNoRows(err))
	}
	for _, h := range st.holds {
		alive, err := s.alive(ctx, h.session)
		if err != nil {
			return err
		}
		if !alive {
			o.dead[h.session] = true
		}
	}
	return nil
}

// reopenTree is the transaction of [Store.Reopen].
type reopenTree struct {
	tree     *Tree
	spec     *ReopenSpec
	dead     map[int64]bool // sessions
	reopened int64
}

const sqlReopenTree = `UPDATE tree SET owner = $2, config = $3, reopened = reopened + 1, reopened_at = $4
	WHERE id = $1 AND owner = $5 AND reopened = $6`

func (o *reopenTree) apply(ctx context.Context, b *batch) error {
	const op = "reopen tree"
	t, spec := o.tree, o.spec
	st, err := b.stat(ctx, t.key)
	if err != nil {
		return err
	}
	if st.state == stCancelled {
		return conflictf(op, "tree %q is cancelled, which is final", t.ID)
	}
	for _, h := range st.holds {
		if !o.dead[h.session] {
			return &Error{Code: CodeConflict, Op: op, Msg: "tasks of tree \"" + string(t.ID) + "\" are running",
				Hint: "wait until it ends, or stop the process that runs it"}
		}
	}
	set := &reopening{b: b, st: st, attempts: int64(spec.Attempts), tasks: make(map[int64]*endedTask)}
	if set.attempts == 0 {
		set.attempts = DefaultMaxAttempts
	}
	if st.state != stCompleted || st.partial == 1 {
		if err := set.collect(ctx, int64(t.Root)); err != nil {
			return err
		}
	}
	o.reopened = int64(len(set.tasks))
	changed := spec.Limits != nil && *spec.Limits != st.limits || len(spec.Config) > 0
	if o.reopened == 0 && (!changed || stateOf(st.state).Terminal()) {
		return nil
	}
	owner, config := t.owner, string(t.Config)
	if spec.Owner != nil {
		owner = spec.Owner.key
	}
	if len(spec.Config) > 0 {
		config = string(spec.Config)
	}
	n, err := b.tx.Exec(ctx, sqlReopenTree, t.key, owner, config, b.now, t.owner, t.Reopened)
	if err == nil && n == 0 {
		return conflictf(op, "another process resumed tree %q just now", t.ID)
	}
	if err != nil {
		return err
	}
	if spec.Limits != nil {
		st.limits, st.rawLimits = *spec.Limits, ""
	}
	const raisable = 3<<(2*limitNodes) | 3<<(2*limitCalls) | 3<<(2*limitTokens) | 3<<(2*limitCost) | 3<<(2*limitWall)
	st.warned &^= raisable
	b.event(st.tree, 0, EventTreeReopened, o.eventData(st))
	return set.apply(ctx)
}

// eventData returns the data of the event: what is reopened, and what the tree has from now
// on.
func (o *reopenTree) eventData(st *treeStat) string {
	raw, _ := json.Marshal(struct { // never fails
		Reopened int64           `json:"tasks"`
		Limits   Limits          `json:"limits"`
		Changes  json.RawMessage `json:"changes,omitempty"`
	}{o.reopened, st.limits, o.spec.Changes})
	return string(raw)
}

// forget removes a tree that was changed from the cache.
func (s *Store) forget(key int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.trees, key)
}

// RetryTask allows a failed task more attempts, even if none was left, together with the
// missing parts below it and, if its failure cancelled its siblings, with them. Ancestors
// that failed or lack parts are queued again too, and the tree continues. It fails with
// CodeConflict for a task that is not failed, and when an ancestor completed without it or
// was cancelled.
func (s *Store) RetryTask(ctx context.Context, id TaskID) error {
	return s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error { return b.retryTask(ctx, int64(id)) }))
}

func (b *batch) retryTask(ctx context.Context, id int64) error {
	const op = "retry task"
	set := &reopening{b: b, attempts: 1, tasks: make(map[int64]*endedTask)}
	first, err := set.read(ctx, id)
	if err != nil {
		return orNotFound(err, noTask(op, id))
	}
	if first.state != stFailed {
		return &Error{Code: CodeConflict, Op: op, Err: &StateError{TaskID(id), stateOf(first.state), Queued},
			Hint: "only failed tasks can be retried; `perdure resume` takes up the missing parts of a tree"}
	}
	if set.st, err = b.stat(ctx, first.tree); err != nil {
		return err
	}
	if err := set.collect(ctx, id); err != nil {
		return err
	}
	for t := first; ; {
		if t.state == stFailed && t.flags&sqldb.FlagSiblingsFail != 0 {
			if err := set.siblings(ctx, t); err != nil {
				return err
			}
		}
		if t.parent == 0 {
			break
		}
		if t, err = set.read(ctx, t.parent); err != nil {
			return err
		}
		final := t.state == stCancelled || t.state == stCompleted && t.flags&sqldb.FlagPartial == 0
		if final {
			return &Error{Code: CodeConflict, Op: op, Hint: "start a new run for the missing parts",
				Msg: "ancestor \"" + TaskID(t.id).String() + "\" is " + string(stateOf(t.state)) + ", which is final"}
		}
	}
	return set.apply(ctx)
}

// endedTask is a task that is to be reopened, or above one.
type endedTask struct {
	id, tree, parent, state, rank, fence, attempt, max, pending, flags int64

	open int64 // children that are to be reopened
}

// reopening is a set of ended tasks that are to be reopened.
type reopening struct {
	b        *batch
	st       *treeStat
	attempts int64 // for each task
	tasks    map[int64]*endedTask
}

const (
	endedColumns = `h.id, h.tree, h.parent, h.state, h.rank, h.fence, h.attempt, h.max_attempts, h.pending, h.flags`
	sqlEndedOne  = `SELECT ` + endedColumns + ` FROM task_hot h JOIN tree t ON t.id = h.tree WHERE h.id = $1`
	// CROSS JOIN makes SQLite read sub first.
	sqlMissingBelow = `WITH RECURSIVE sub(id) AS (
			SELECT id FROM task WHERE tree = $1 AND parent = $2
			UNION ALL SELECT t.id FROM sub CROSS JOIN task t WHERE t.tree = $1 AND t.parent = sub.id)
		SELECT ` + endedColumns + ` FROM sub CROSS JOIN task_hot h
		WHERE h.id = sub.id AND (h.state IN (` + dbFailed + `, ` + dbCancelled + `)
			OR h.state = ` + dbCompleted + ` AND (h.flags & ` + sqldb.SQLFlagPartial + `) <> 0)`
	sqlCancelledBeside = `SELECT ` + endedColumns + ` FROM task sub CROSS JOIN task_hot h
		WHERE sub.tree = $1 AND sub.parent = $2 AND h.id = sub.id AND h.state = ` + dbCancelled
)

func (r *reopening) read(ctx context.Context, id int64) (*endedTask, error) {
	if t := r.tasks[id]; t != nil {
		return t, nil
	}
	t := &endedTask{}
	return t, r.b.tx.QueryRow(ctx, sqlEndedOne, []any{id}, t.dest()...)
}

func (t *endedTask) dest() []any {
	return []any{&t.id, &t.tree, &t.parent, &t.state, &t.rank, &t.fence, &t.attempt, &t.max, &t.pending, &t.flags}
}

// collect adds a task, if it has ended without a whole result, and all such tasks below
// it, with those between.
func (r *reopening) collect(ctx context.Context, id int64) error {
	if err := r.b.flushParents(ctx); err != nil {
		return err
	}
	top, err := r.read(ctx, id)
	if err != nil {
		return err
	}
	missing, err := r.list(ctx, sqlMissingBelow, top.tree, id)
	if err != nil {
		return err
	}
	if top.state == stFailed || top.state == stCancelled || top.flags&sqldb.FlagPartial != 0 || len(missing) > 0 ||
		top.parent == 0 && r.st.partial == 1 { // earlier schemas have no such flag
		missing = append(missing, top)
	}
	for _, t := range missing {
		for r.tasks[t.id] == nil && stateOf(t.state).Terminal() {
			r.tasks[t.id] = t
			if t.id == id || t.parent == 0 {
				break
			}
			if t, err = r.read(ctx, t.parent); err != nil {
				return err
			}
		}
	}
	return nil
}

// siblings adds the tasks that the failure of a task cancelled.
func (r *reopening) siblings(ctx context.Context, t *endedTask) error {
	cancelled, err := r.list(ctx, sqlCancelledBeside, t.tree, t.parent)
	for _, s := range cancelled {
		if err == nil {
			err = r.collect(ctx, s.id)
		}
	}
	return err
}

func (r *reopening) list(ctx context.Context, query string, args ...any) ([]*endedTask, error) {
	return sqldb.Collect(ctx, r.b.tx.Query, func(scan sqldb.Scan) (*endedTask, error) {
		t := &endedTask{}
		return t, scan(t.dest()...)
	}, query, args...)
}

// apply reopens the tasks and their ended ancestors.
func (r *reopening) apply(ctx context.Context) error {
	if len(r.tasks) == 0 {
		return nil
	}
	if err := r.addAncestors(ctx); err != nil {
		return err
	}
	ids := make([]int64, 0, len(r.tasks))
	for id := range r.tasks {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	last := make(map[int64]int64) // by parent, the last step of a sequence that is reopened
	after := make(map[int64]int64)
	for _, id := range ids {
		t := r.tasks[id]
		if p := r.tasks[t.parent]; p != nil {
			p.open++
		} else {
			r.b.addOpen(t.parent, 1)
		}
		if t.flags&sqldb.FlagStep == 0 {
			continue
		}
		if before := last[t.parent]; before != 0 {
			after[before] = id
		}
		last[t.parent] = id
	}
	first := make(map[int64]bool) // parents whose first step was reopened
	for _, id := range ids {
		t := r.tasks[id]
		step := t.flags&sqldb.FlagStep != 0
		if err := r.reopen(ctx, t, !step || !first[t.parent], after[id]); err != nil {
			return err
		}
		first[t.parent] = first[t.parent] || step
	}
	if stateOf(r.st.state).Terminal() {
		r.st.state, r.st.endedAt, r.st.partial = stRunning, nil, 0
	}
	r.b.ready[r.st.tree] = true
	return nil
}

// addAncestors adds the ancestors that have ended.
func (r *reopening) addAncestors(ctx context.Context) error {
	for _, t := range slices.Collect(maps.Values(r.tasks)) {
		for t.parent != 0 && r.tasks[t.parent] == nil {
			p, err := r.read(ctx, t.parent)
			if err != nil {
				return err
			}
			if !stateOf(p.state).Terminal() {
				break
			}
			r.tasks[p.id], t = p, p
		}
	}
	return nil
}

const (
	sqlReopen = `UPDATE task_hot SET state = $2, ready_at = $3, attempt = $4, max_attempts = $5, pending = $6, flags = $7,
		started_at = NULL, successor = CASE WHEN CAST($8 AS BIGINT) < 0 THEN successor ELSE $8 END WHERE id = $1`
	sqlDropAnswer = `DELETE FROM gate_task WHERE task = $1`
)

// reopen changes the row of a task: it waits for its reopened children, else it is queued,
// and claimable if it is ready. next is the step of the sequence after it.
func (r *reopening) reopen(ctx context.Context, t *endedTask, ready bool, next int64) error {
	b := r.b
	state, attempt, limit := int64(stQueued), t.attempt, t.max
	if t.fence > 0 { // an attempt was made
		attempt++
		limit = max(limit, attempt+r.attempts-1)
	}
	var readyAt any
	if t.open > 0 {
		state = stWaiting
	} else if ready {
		readyAt = b.now
	}
	if t.flags&sqldb.FlagStep == 0 {
		next = -1
	}
	_, err := b.tx.Exec(ctx, sqlReopen, t.id, state, readyAt, attempt, limit, t.pending+t.open,
		t.flags&^(sqldb.FlagPartial|sqldb.FlagSkipped), next)
	if err != nil {
		return err
	}
	n, err := b.tx.Exec(ctx, sqlDropAnswer, t.id)
	if err != nil {
		return err
	}
	if n > 0 {
		b.logRow(chain.Row{Tree: t.tree, Kind: chain.KindGateAnswer, Number: int(t.id)})
	}
	delete(b.families, t.id)
	r.st.move(t.state, state)
	r.st.time().Level(depthOfRank(t.rank)).Ended--
	b.event(t.tree, t.id, EventTaskRetried, `{"attempt":`+itoa(attempt)+`,"by":"request"}`)
	if state == stWaiting {
		b.event(t.tree, t.id, EventTaskWaiting, "")
	}
	return nil
}

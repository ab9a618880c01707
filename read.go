package perdure

import (
	"context"
	"database/sql"
	"encoding/json"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

const (
	treeColumns = `t.id, t.name, t.kind, t.title, t.config, t.root, t.owner, t.placement, t.created_at,
		s.state, s.partial, s.limits, s.started_at, s.ended_at`
	sqlTree      = `SELECT ` + treeColumns + ` FROM tree t JOIN tree_stat s ON s.tree = t.id WHERE t.name = $1`
	sqlTreeByNum = `SELECT ` + treeColumns + ` FROM tree t JOIN tree_stat s ON s.tree = t.id WHERE t.id = $1`
	sqlTreeNum   = `SELECT id FROM tree WHERE name = $1`
	sqlTreeRoot  = `SELECT id, root FROM tree WHERE name = $1`
	sqlTrees     = `SELECT ` + treeColumns + ` FROM tree t JOIN tree_stat s ON s.tree = t.id WHERE t.id < $1`
)

// TreeFilter selects trees.
type TreeFilter struct {
	// Kind, when set, selects one kind.
	Kind string
	// Active selects trees that are not terminal.
	Active bool
	// Before continues a listing behind this tree.
	Before TreeID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

const (
	defaultPage = 100
	maxPage     = 1000
)

func pageLimit(n, byDefault int) int {
	if n <= 0 {
		return byDefault
	}
	return min(n, maxPage)
}

// Tree returns a tree.
func (s *Store) Tree(ctx context.Context, id TreeID) (Tree, error) {
	t, err := scanTree(func(dest ...any) error { return s.db.QueryRow(ctx, sqlTree, []any{string(id)}, dest...) })
	if err != nil && ignoreNoRows(err) == nil {
		return t, noTree(id)
	}
	return t, wrap("read tree", err)
}

func scanTree(scan func(dest ...any) error) (Tree, error) {
	var t Tree
	var config, place, limits string
	var createdAt, state, partial int64
	var started, ended *int64
	err := scan(&t.key, (*string)(&t.ID), &t.Kind, &t.Name, &config, (*int64)(&t.Root), &t.owner, &place, &createdAt,
		&state, &partial, &limits, &started, &ended)
	if err != nil {
		return t, err
	}
	t.Config, t.State, t.Partial, t.CreatedAt = json.RawMessage(config), stateOf(state), partial == 1, micros(createdAt)
	t.StartedAt, t.CompletedAt = timePtr(started), timePtr(ended)
	if err := json.Unmarshal([]byte(place), &t.Placement); err != nil {
		return t, err
	}
	return t, json.Unmarshal([]byte(limits), &t.Limits)
}

// Trees lists trees, the newest first.
func (s *Store) Trees(ctx context.Context, f TreeFilter) ([]Tree, error) {
	before := int64(1) << 62
	if f.Before != "" {
		if err := s.db.QueryRow(ctx, sqlTreeNum, []any{string(f.Before)}, &before); err != nil {
			if ignoreNoRows(err) == nil {
				return nil, notFoundf("list trees", "there is no tree %q to continue behind", f.Before)
			}
			return nil, wrap("list trees", err)
		}
	}
	q, args := sqlTrees, []any{before}
	if f.Kind != "" {
		args = append(args, f.Kind)
		q += " AND t.kind = $" + itoa(int64(len(args)))
	}
	if f.Active {
		q += " AND s.state < " + dbCompleted
	}
	args = append(args, pageLimit(f.Limit, defaultPage))
	q += " ORDER BY t.id DESC LIMIT $" + itoa(int64(len(args)))
	rows, err := s.db.Query(ctx, q, args...) //nolint:sqlclosecheck // each closes them
	if err != nil {
		return nil, wrap("list trees", err)
	}
	var trees []Tree
	err = each(rows, func() error {
		t, err := scanTree(rows.Scan)
		trees = append(trees, t)
		return err
	})
	return trees, wrap("list trees", err)
}

// knownTree returns what never changes about a tree, from memory if it can.
func (s *Store) knownTree(ctx context.Context, key int64) (Tree, error) {
	s.mu.Lock()
	t, ok := s.trees[key]
	s.mu.Unlock()
	if ok {
		return t, nil
	}
	t, err := scanTree(func(dest ...any) error { return s.db.QueryRow(ctx, sqlTreeByNum, []any{key}, dest...) })
	if err != nil {
		return t, wrap("read tree", err)
	}
	s.remember(t)
	return t, nil
}

// maxKnownTrees bounds the trees whose fixed part is remembered. It is far more
// than are worked on: each claim asks for all that have something to claim, also
// for those that are left to others, ten times a second.
const maxKnownTrees = 1 << 14

func (s *Store) remember(t Tree) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.trees) >= maxKnownTrees {
		clear(s.trees)
	}
	s.trees[t.key] = t
}

const (
	taskColumns = `t.id, t.tree, tr.name, t.parent, t.depth, t.position, t.prompt, t.agent, t.strategy, t.merge, t.context,
		t.metadata, t.priority, t.created_at, h.state, COALESCE(h.ready_at, 0), COALESCE(h.session, 0), h.fence, h.attempt,
		h.max_attempts, h.pending, h.flags, COALESCE(h.started_at, 0), COALESCE(h.claimed_at, 0), h.active_us,
		h.calls, h.input_tokens, h.output_tokens, h.cached_tokens, h.cost_micros, h.unpriced,
		COALESCE(e.result, ''), COALESCE(e.data, ''), COALESCE(e.error_kind, ''), COALESCE(e.error, ''), COALESCE(e.ended_at, 0)`
	taskTables = ` FROM task t JOIN task_hot h ON h.id = t.id JOIN tree tr ON tr.id = t.tree
		LEFT JOIN task_end e ON e.id = t.id`
	sqlTask  = `SELECT ` + taskColumns + taskTables + ` WHERE t.id = $1`
	sqlTasks = `SELECT ` + taskColumns + taskTables
)

// TaskFilter selects tasks of a tree.
type TaskFilter struct {
	Tree TreeID
	// Parent, when set, selects the children of a task, by position; 0 selects
	// the root. Without it all tasks come by ID.
	Parent *TaskID
	// States, when set, selects by state.
	States []State
	// After continues a listing behind this task.
	After TaskID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
	// Brief leaves out prompts beyond 200 characters, results and data.
	Brief bool
	// Output adds what the tasks have streamed, which listings leave out else.
	Output bool
}

// rawTask is a row before the long texts are loaded.
type rawTask struct {
	Task
	tree    int64
	session int64
	columns [3]string // prompt, result, data
}

func scanTask(scan func(dest ...any) error) (rawTask, error) {
	var r rawTask
	t := &r.Task
	var context, metadata, kind, message string
	var createdAt, state, readyAt, flags, startedAt, claimedAt, active, cost, endedAt int64
	var fence int64
	err := scan((*int64)(&t.ID), &r.tree, (*string)(&t.Tree), (*int64)(&t.Parent), &t.Depth, &t.Position, &r.columns[0],
		&t.Agent, (*string)(&t.Strategy), &t.Merge, &context, &metadata, &t.Priority, &createdAt, &state, &readyAt,
		&r.session,
		&fence, &t.Attempts, &t.MaxAttempts, &t.Pending, &flags, &startedAt, &claimedAt, &active,
		&t.Usage.Calls, &t.Usage.InputTokens, &t.Usage.OutputTokens, &t.Usage.CachedTokens, &cost, &t.Usage.UnpricedCalls,
		&r.columns[1], &r.columns[2], &kind, &message, &endedAt)
	if err != nil {
		return r, err
	}
	t.Node, t.State, t.ReadyAt = t.ID.Node(), stateOf(state), micros(readyAt)
	t.CreatedAt, t.StartedAt, t.Active = micros(createdAt), micros(startedAt), time.Duration(active)*time.Microsecond
	t.Metadata, t.Policy = json.RawMessage(metadata), PolicyPartial
	if flags&flagFailFast != 0 {
		t.Policy = PolicyFail
	}
	t.Usage.CostUSD = float64(cost) / microsPerDollar
	if kind != "" && t.State != Completed {
		t.Error = &TaskError{Kind: kind, Message: message}
	}
	if t.State.Terminal() {
		t.CompletedAt = micros(endedAt)
	}
	if r.session != 0 {
		t.Lease = &LeaseInfo{Fence: fence, ClaimedAt: micros(claimedAt)}
	}
	return r, json.Unmarshal([]byte(context), &t.Context)
}

const (
	sqlOutput      = `SELECT text FROM task_output WHERE task = $1 ORDER BY part`
	sqlPredecessor = `SELECT id FROM task_hot WHERE successor = $1 AND state IN ` + dbOpen + ` AND id IN
		(SELECT id FROM task WHERE tree = $2 AND parent = $3)`
)

// Task returns everything about a task.
func (s *Store) Task(ctx context.Context, id TaskID) (Task, error) {
	r, err := scanTask(func(dest ...any) error { return s.db.QueryRow(ctx, sqlTask, []any{int64(id)}, dest...) })
	if err != nil && ignoreNoRows(err) == nil {
		return Task{}, &Error{Code: CodeNotFound, Op: "read task", Msg: "there is no task \"" + id.String() + "\"",
			Hint: "`perdure tree TREE` lists the tasks of a tree"}
	}
	if err != nil {
		return Task{}, wrap("read task", err)
	}
	if err := s.complete(ctx, &r); err != nil {
		return Task{}, err
	}
	return r.Task, s.detail(ctx, &r)
}

// detail adds what only a single task's view shows.
func (s *Store) detail(ctx context.Context, r *rawTask) error {
	rows, err := s.db.Query(ctx, sqlOutput, int64(r.ID)) //nolint:sqlclosecheck // each closes them
	if err != nil {
		return wrap("read task", err)
	}
	var out strings.Builder
	err = each(rows, func() error {
		var text string
		err := rows.Scan(&text)
		out.WriteString(text)
		return err
	})
	r.Output = out.String()
	return wrap("read task", err)
}

// complete loads the long texts of a row and who holds it.
func (s *Store) complete(ctx context.Context, r *rawTask) error {
	texts := [3]string{}
	for i, column := range r.columns {
		var err error
		if texts[i], err = s.load(ctx, r.tree, column); err != nil {
			return err
		}
	}
	r.Prompt, r.Result = texts[0], texts[1]
	if texts[2] != "" {
		r.Data = json.RawMessage(texts[2])
	}
	if r.State == Queued && r.ReadyAt.IsZero() && r.Parent != 0 {
		err := s.db.QueryRow(ctx, sqlPredecessor, []any{int64(r.ID), r.tree, int64(r.Parent)}, (*int64)(&r.WaitsFor))
		if ignoreNoRows(err) != nil {
			return wrap("read task", err)
		}
	}
	if r.Lease == nil {
		return nil
	}
	var ended, seen int64
	if err := s.db.QueryRow(ctx, sqlSessionRow, []any{r.session}, &r.Lease.Session, &ended, &seen); err != nil {
		return wrap("read task", ignoreNoRows(err))
	}
	alive, err := s.alive(ctx, r.session)
	r.Lease.Lost = err == nil && !alive
	return err
}

// Tasks lists tasks of a tree.
func (s *Store) Tasks(ctx context.Context, f TaskFilter) ([]Task, error) {
	q, args, err := s.tasksQuery(ctx, &f)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query(ctx, q, args...) //nolint:sqlclosecheck // each closes them
	if err != nil {
		return nil, wrap("list tasks", err)
	}
	var raws []rawTask
	err = each(rows, func() error {
		r, err := scanTask(rows.Scan)
		raws = append(raws, r)
		return err
	})
	if err != nil {
		return nil, wrap("list tasks", err)
	}
	tasks := make([]Task, len(raws))
	for i := range raws {
		if f.Brief {
			raws[i].columns[1], raws[i].columns[2] = "", ""
		}
		if err := s.complete(ctx, &raws[i]); err != nil {
			return nil, err
		}
		if f.Output {
			if err := s.detail(ctx, &raws[i]); err != nil {
				return nil, err
			}
		}
		tasks[i] = raws[i].Task
		if f.Brief {
			tasks[i].Prompt = validPrefix(tasks[i].Prompt, briefBytes)
		}
	}
	return tasks, nil
}

const (
	briefBytes  = 200
	sqlPosition = `SELECT position FROM task WHERE id = $1`
)

func (s *Store) tasksQuery(ctx context.Context, f *TaskFilter) (string, []any, error) {
	var tree, root int64
	if err := s.db.QueryRow(ctx, sqlTreeRoot, []any{string(f.Tree)}, &tree, &root); err != nil {
		if ignoreNoRows(err) == nil {
			return "", nil, notFoundf("list tasks", "there is no tree %q", f.Tree)
		}
		return "", nil, wrap("list tasks", err)
	}
	// The sign keeps SQLite from reading and sorting a whole tree for a page:
	// it goes along the IDs, from the root's or the page's on.
	q, args, order := sqlTasks+" WHERE +t.tree = $1", []any{tree}, "t.id"
	arg := func(v any) string {
		args = append(args, v)
		return "$" + itoa(int64(len(args)))
	}
	if f.Parent != nil {
		q = sqlTasks + " WHERE t.tree = $1 AND t.parent = " + arg(int64(*f.Parent))
		order = "t.position"
	}
	if f.After != 0 && f.Parent != nil {
		var position int64
		if err := s.db.QueryRow(ctx, sqlPosition, []any{int64(f.After)}, &position); err != nil {
			if ignoreNoRows(err) == nil {
				return "", nil, notFoundf("list tasks", "there is no task %q to continue behind", f.After)
			}
			return "", nil, wrap("list tasks", err)
		}
		q += " AND t.position > " + arg(position)
	} else if f.Parent == nil {
		q += " AND t.id > " + arg(max(int64(f.After), root-1))
	}
	if len(f.States) > 0 {
		marks := make([]string, len(f.States))
		for i, st := range f.States {
			marks[i] = arg(st.number())
		}
		q += " AND h.state IN (" + strings.Join(marks, ", ") + ")"
	}
	// In a statement of its own: the order in which a call and a variable of
	// one return statement are evaluated is not specified.
	q += " ORDER BY " + order + " LIMIT " + arg(pageLimit(f.Limit, defaultPage))
	return q, args, nil
}

const (
	eventColumns = `e.seq, e.at, COALESCE(t.name, ''), e.task, e.kind, e.data`
	sqlEvents    = `SELECT ` + eventColumns +
		` FROM event e LEFT JOIN tree t ON t.id = e.tree WHERE e.seq > $1 ORDER BY e.seq LIMIT $2 + 0`
	sqlTreeEvents = `SELECT ` + eventColumns + ` FROM event_block k
		JOIN event e ON ` + sqldb.SQLEventsOfBlock + ` LEFT JOIN tree t ON t.id = e.tree
		WHERE k.tree = $3 AND k.block >= $1 / ` + sqldb.SQLEventBlock + ` AND e.seq > $1 ORDER BY k.block, e.seq LIMIT $2 + 0`
)

// Events returns a page of the log, in order. The numbers follow each other
// without gaps but for retention, so a reader that continues after the last
// number it has seen misses nothing and sees nothing twice.
func (s *Store) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	q, args := sqlEvents, []any{f.After, pageLimit(f.Limit, maxPage)}
	if f.Tree != "" {
		var tree int64
		if err := s.db.QueryRow(ctx, sqlTreeNum, []any{string(f.Tree)}, &tree); err != nil {
			if ignoreNoRows(err) == nil {
				return nil, notFoundf("list events", "there is no tree %q", f.Tree)
			}
			return nil, wrap("list events", err)
		}
		q, args = sqlTreeEvents, append(args, tree)
	}
	rows, err := s.db.Query(ctx, q, args...)
	if err != nil {
		return nil, wrap("list events", err)
	}
	return scanEvents(rows)
}

func scanEvents(rows *sql.Rows) ([]Event, error) {
	var events []Event
	err := each(rows, func() error {
		var e Event
		var at int64
		var data string
		err := rows.Scan(&e.Seq, &at, (*string)(&e.Tree), (*int64)(&e.Task), (*string)(&e.Kind), &data)
		e.Time, e.Data = micros(at), json.RawMessage(data)
		events = append(events, e)
		return err
	})
	return events, wrap("list events", err)
}

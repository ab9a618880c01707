package perdure

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

const (
	treeColumns = `t.id, t.name, t.kind, t.title, t.config, t.root, t.owner, t.placement, t.created_at,
		t.reopened, t.reopened_at, s.state, s.partial, s.limits, s.started_at, s.ended_at`
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
	// Before continues a listing after this tree.
	Before TreeID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
}

const (
	defaultPage = 100
	maxPage     = 1000
)

func pageLimit(n int) int {
	if n <= 0 {
		return defaultPage
	}
	return min(n, maxPage)
}

// Tree returns a tree.
func (s *Store) Tree(ctx context.Context, id TreeID) (Tree, error) {
	t, err := scanTree(func(dest ...any) error { return s.db.QueryRow(ctx, sqlTree, []any{string(id)}, dest...) })
	return t, wrap("read tree", orNotFound(err, noTree("read tree", id)))
}

func scanTree(scan func(dest ...any) error) (Tree, error) {
	var t Tree
	var config, place, limits string
	var createdAt, state, partial int64
	var reopened, started, ended *int64
	err := scan(&t.key, (*string)(&t.ID), &t.Kind, &t.Name, &config, (*int64)(&t.Root), &t.owner, &place, &createdAt,
		&t.Reopened, &reopened, &state, &partial, &limits, &started, &ended)
	if err != nil {
		return t, err
	}
	t.Config, t.State, t.CreatedAt = json.RawMessage(config), treeStateOf(state, partial), micros(createdAt)
	t.Partial, t.ReopenedAt = t.State == Partial, timePtr(reopened)
	t.StartedAt, t.CompletedAt = timePtr(started), timePtr(ended)
	if err := json.Unmarshal([]byte(place), &t.Placement); err != nil {
		return t, err
	}
	return t, json.Unmarshal([]byte(limits), &t.Limits)
}

// leastPrefix is how many digits of an ID its beginning has at least.
const leastPrefix = 4

// sqlTreesLike reads one more tree than is listed.
const sqlTreesLike = `SELECT name FROM tree WHERE name >= $1 AND name < $2 ORDER BY name LIMIT 6`

// sqlTitle reads the name of a tree.
const sqlTitle = `SELECT title FROM tree WHERE name = $1`

// FindTree returns the ID of the tree that a text names: an ID, whether the tree exists or
// not, the beginning of the ID of one tree, with at least 4 digits, or the ID of a loop, which is the name
// of its tree and the digits of that tree's ID.
func (s *Store) FindTree(ctx context.Context, text string) (TreeID, error) {
	const op = "find tree"
	if of, name, ok := ParseLoopID(text); ok {
		var title string
		err := s.db.QueryRow(ctx, sqlTitle, []any{string(of)}, &title)
		switch {
		case errors.Is(err, sql.ErrNoRows), err == nil && title != name:
			return "", notFoundf(op, "no loop has the ID %q", text)
		case err != nil:
			return "", wrap(op, err)
		}
		return of, nil
	}
	id, invalid := ParseTreeID(text)
	digits, ok := strings.CutPrefix(text, treePrefix)
	if invalid == nil || !ok || len(digits) < leastPrefix || len(digits) > 8 || strings.Trim(digits, hexDigits) != "" {
		return id, invalid
	}
	found, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[string], sqlTreesLike, text, text+"g")
	switch {
	case err != nil:
		return "", wrap(op, err)
	case len(found) == 0:
		return "", notFoundf(op, "no tree's ID begins with %q", text)
	case len(found) > 1:
		return "", ambiguousError(op, text, found)
	}
	return TreeID(found[0]), nil
}

// shownMatches is how many of several matching IDs an error names.
const shownMatches = 5

// ambiguousError returns the error about a text that several IDs begin with.
func ambiguousError(op, text string, found []string) error {
	list, more := found[:min(len(found), shownMatches)], ""
	if len(found) > shownMatches {
		more = " and others"
	}
	return &Error{Code: CodeInvalid, Op: op, Msg: fmt.Sprintf("several IDs begin with %q: %s%s", text,
		strings.Join(list, ", "), more), Hint: "write more of its digits"}
}

const (
	sqlHasTask   = `SELECT COUNT(*) FROM task WHERE id = $1`
	sqlTasksLike = `SELECT id FROM task WHERE id >= $1 AND id <= $2 ORDER BY id LIMIT 6`
)

// FindTask returns the task that a number names: the task with it, or the only one whose
// number begins with it. It returns the number itself if there is none.
func (s *Store) FindTask(ctx context.Context, id TaskID) (TaskID, error) {
	const op = "find task"
	var n int64
	if err := s.db.QueryRow(ctx, sqlHasTask, []any{int64(id)}, &n); err != nil || n > 0 || id < leastTaskPrefix {
		return id, wrap(op, err)
	}
	var found []string
	var only TaskID
	for low, high := int64(id)*10, int64(id)*10+9; high < maxTaskPrefix; low, high = low*10, high*10+9 {
		ids, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[int64], sqlTasksLike, low, high)
		if err != nil {
			return 0, wrap(op, err)
		}
		for _, n := range ids {
			only = TaskID(n)
			found = append(found, only.String())
		}
	}
	switch len(found) {
	case 0:
		return id, nil
	case 1:
		return only, nil
	}
	return 0, ambiguousError(op, id.String(), found)
}

// An ID of fewer digits has zeros before them, and is no beginning of another one.
const (
	leastTaskPrefix = 1000
	maxTaskPrefix   = 1e15
)

// Trees lists trees, the newest first.
func (s *Store) Trees(ctx context.Context, f TreeFilter) ([]Tree, error) {
	const op = "list trees"
	before := int64(math.MaxInt64)
	if f.Before != "" {
		if err := s.db.QueryRow(ctx, sqlTreeNum, []any{string(f.Before)}, &before); err != nil {
			return nil, wrap(op, orNotFound(err, notFoundf(op, "there is no tree %q to continue after", f.Before)))
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
	args = append(args, pageLimit(f.Limit))
	q += " ORDER BY t.id DESC LIMIT $" + itoa(int64(len(args)))
	trees, err := sqldb.Collect(ctx, s.db.Query, scanTree, q, args...)
	return trees, wrap(op, err)
}

// knownTree returns a tree from the cache or the database. Only fields that never change,
// or only when the tree is reopened, are valid.
func (s *Store) knownTree(ctx context.Context, key int64) (Tree, error) {
	s.mu.Lock()
	t, ok := s.trees[key]
	s.mu.Unlock()
	if ok {
		return t, nil
	}
	return s.readTree(ctx, key)
}

// readTree reads a tree and caches it.
func (s *Store) readTree(ctx context.Context, key int64) (Tree, error) {
	t, err := scanTree(func(dest ...any) error { return s.db.QueryRow(ctx, sqlTreeByNum, []any{key}, dest...) })
	if err != nil {
		return t, wrap("read tree", err)
	}
	s.remember(t)
	return t, nil
}

// maxKnownTrees bounds the cached trees. It is much larger than the number of active
// trees, because each claim reads all trees with claimable tasks, also those that other
// processes execute, ten times a second.
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
		h.max_attempts, h.pending, h.flags, h.successor, COALESCE(h.started_at, 0), COALESCE(h.claimed_at, 0), h.active_us,
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
	// the root. Without it all tasks are listed by ID.
	Parent *TaskID
	// States, when set, selects by state.
	States []State
	// After continues a listing after this task.
	After TaskID
	// Limit bounds the page; 0 means 100, the most is 1,000.
	Limit int
	// Brief cuts prompts after 200 bytes and leaves out results and data.
	Brief bool
	// Output adds the output of the tasks.
	Output bool
}

// rawTask is a row whose long values are not loaded yet.
type rawTask struct {
	Task
	tree, session int64
	successor     TaskID
	columns       [3]string // prompt, result, data
}

func scanTask(scan func(dest ...any) error) (rawTask, error) {
	var r rawTask
	t := &r.Task
	var context, metadata, kind, message string
	var createdAt, state, readyAt, flags, startedAt, claimedAt, active, cost, endedAt int64
	var fence int64
	err := scan((*int64)(&t.ID), &r.tree, (*string)(&t.Tree), (*int64)(&t.Parent), &t.Depth, &t.Position, &r.columns[0],
		&t.Agent, (*string)(&t.Strategy), &t.Merge, &context, &metadata, &t.Priority, &createdAt, &state, &readyAt,
		&r.session, &fence, &t.Attempts, &t.MaxAttempts, &t.Pending, &flags, (*int64)(&r.successor), &startedAt,
		&claimedAt, &active, &t.Usage.Calls, &t.Usage.InputTokens, &t.Usage.OutputTokens, &t.Usage.CachedTokens, &cost,
		&t.Usage.UnpricedCalls, &r.columns[1], &r.columns[2], &kind, &message, &endedAt)
	if err != nil {
		return r, err
	}
	t.Node, t.State, t.ReadyAt = t.ID.Node(), stateOf(state), micros(readyAt)
	t.CreatedAt, t.StartedAt, t.Active = micros(createdAt), micros(startedAt), time.Duration(active)*time.Microsecond
	t.Metadata, t.Policy = json.RawMessage(metadata), PolicyPartial
	if flags&sqldb.FlagFailFast != 0 {
		t.Policy = PolicyFail
	}
	t.Partial, t.Skipped = flags&sqldb.FlagPartial != 0, flags&sqldb.FlagSkipped != 0
	t.Usage.CostUSD = float64(cost) / microsPerDollar
	if kind != "" && t.State != Completed {
		t.Error = &TaskError{Kind: kind, Message: message}
	}
	if t.State.Terminal() {
		t.CompletedAt = micros(endedAt)
	} else {
		r.columns[1], r.columns[2] = "", "" // from the time when it had ended
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
	if err != nil {
		return Task{}, wrap(opReadTask, orNotFound(err, noTask(opReadTask, int64(id))))
	}
	if err := s.complete(ctx, &r); err != nil {
		return Task{}, err
	}
	r.Output, err = s.output(ctx, id)
	return r.Task, err
}

const opReadTask = "read task"

// output returns what a task has streamed so far.
func (s *Store) output(ctx context.Context, id TaskID) (string, error) {
	parts, err := sqldb.Collect(ctx, s.db.Query, sqldb.Column[string], sqlOutput, int64(id))
	return strings.Join(parts, ""), wrap(opReadTask, err)
}

// complete loads the long values of a task, the task it waits for, and its lease.
func (s *Store) complete(ctx context.Context, r *rawTask) error {
	values := [3]string{}
	for i, column := range r.columns {
		var err error
		if values[i], err = s.load(ctx, r.tree, column); err != nil {
			return err
		}
	}
	r.Prompt, r.Result = values[0], values[1]
	if values[2] != "" {
		r.Data = json.RawMessage(values[2])
	}
	if r.State == Queued && r.ReadyAt.IsZero() && r.Parent != 0 && r.WaitsFor == 0 {
		err := s.db.QueryRow(ctx, sqlPredecessor, []any{int64(r.ID), r.tree, int64(r.Parent)}, (*int64)(&r.WaitsFor))
		if ignoreNoRows(err) != nil {
			return wrap(opReadTask, err)
		}
	}
	if r.Lease == nil {
		return nil
	}
	var ended, seen int64
	if err := s.db.QueryRow(ctx, sqlSessionRow, []any{r.session}, &r.Lease.Session, &ended, &seen); err != nil {
		return wrap(opReadTask, ignoreNoRows(err))
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
	raws, err := sqldb.Collect(ctx, s.db.Query, scanTask, q, args...)
	if err != nil {
		return nil, wrap(opTasks, err)
	}
	// A step that waits usually follows the task it waits for, so that complete need not
	// search all siblings for that task.
	waits := make(map[TaskID]TaskID)
	for i := range raws {
		if r := &raws[i]; r.successor != 0 && !r.State.Terminal() {
			waits[r.successor] = r.ID
		}
	}
	tasks := make([]Task, len(raws))
	for i := range raws {
		r := &raws[i]
		if r.State == Queued && r.ReadyAt.IsZero() {
			r.WaitsFor = waits[r.ID]
		}
		if f.Brief {
			r.columns[1], r.columns[2] = "", ""
		}
		if err := s.complete(ctx, r); err != nil {
			return nil, err
		}
		if f.Output {
			if r.Output, err = s.output(ctx, r.ID); err != nil {
				return nil, err
			}
		}
		if f.Brief {
			r.Prompt = validPrefix(r.Prompt, briefBytes)
		}
		tasks[i] = r.Task
	}
	return tasks, nil
}

const opTasks = "list tasks"

const (
	briefBytes  = 200
	sqlPosition = `SELECT position FROM task WHERE id = $1`
)

func (s *Store) tasksQuery(ctx context.Context, f *TaskFilter) (string, []any, error) {
	var tree, root int64
	if err := s.db.QueryRow(ctx, sqlTreeRoot, []any{string(f.Tree)}, &tree, &root); err != nil {
		return "", nil, wrap(opTasks, orNotFound(err, noTree(opTasks, f.Tree)))
	}
	// The sign makes SQLite read the tasks in the order of IDs, from the root or the last
	// page on, instead of reading and sorting the whole tree for each page.
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
			return "", nil, wrap(opTasks, orNotFound(err, notFoundf(opTasks, "there is no task %q to continue after", f.After)))
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
	q += " ORDER BY " + order + " LIMIT " + arg(pageLimit(f.Limit))
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

// Events returns a page of the log, in order. A reader that continues after the last
// number it has read misses no event and reads none twice.
func (s *Store) Events(ctx context.Context, f EventFilter) ([]Event, error) {
	const op = "list events"
	q, args := sqlEvents, []any{f.After, pageLimit(cmp.Or(max(f.Limit, 0), maxPage))}
	if f.Tree != "" {
		var tree int64
		if err := s.db.QueryRow(ctx, sqlTreeNum, []any{string(f.Tree)}, &tree); err != nil {
			return nil, wrap(op, orNotFound(err, noTree(op, f.Tree)))
		}
		q, args = sqlTreeEvents, append(args, tree)
	}
	events, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (e Event, err error) {
		var at int64
		var data string
		err = scan(&e.Seq, &at, (*string)(&e.Tree), (*int64)(&e.Task), (*string)(&e.Kind), &data)
		e.Time, e.Data = micros(at), json.RawMessage(data)
		return e, err
	}, q, args...)
	return events, wrap(op, err)
}

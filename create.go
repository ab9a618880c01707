package perdure

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// The rank orders claimable tasks: higher priority, then deeper, then older.
// Woken parents have a negative rank and come first.
const (
	rankDepthShift    = 48
	rankPriorityShift = 55
	maxRankDepth      = 127
)

func rankOf(priority, depth int, id int64) int64 {
	return int64(MaxPriority-priority)<<rankPriorityShift |
		int64(maxRankDepth-min(depth, maxRankDepth))<<rankDepthShift | id
}

func depthOfRank(rank int64) int { return maxRankDepth - int(rank>>rankDepthShift&maxRankDepth) }

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// newTask is a task about to be inserted.
type newTask struct {
	spec             TaskSpec
	prompt           stored
	context          string
	id, tree, parent int64
	depth, position  int
	flags            int64 // from the parent
	blocked          bool  // waits for the previous sibling
	leased           bool  // is claimed in the same transaction
	successor        int64
}

func (s *Store) prepareTask(ctx context.Context, spec *TaskSpec) (newTask, error) {
	if err := spec.validate(); err != nil {
		return newTask{}, err
	}
	t := newTask{spec: spec.withDefaults()}
	raw, err := json.Marshal(&t.spec.Context)
	if err != nil {
		return newTask{}, wrap("create task", err)
	}
	t.context = string(raw)
	t.prompt, err = s.store(ctx, t.spec.Prompt)
	return t, err
}

// add queues the rows of a task for insertion; flushTasks writes them.
func (b *batch) add(ctx context.Context, t *newTask) error {
	if err := b.keepValue(ctx, t.tree, t.prompt); err != nil {
		return err
	}
	var readyAt any
	if !t.blocked && !t.leased {
		readyAt = b.now
		b.ready[t.tree] = true
	}
	b.hots = append(b.hots, t.id, t.tree, t.parent, rankOf(t.spec.Priority, t.depth, t.id), readyAt,
		t.spec.MaxAttempts, t.successor, t.flags|t.spec.flags())
	digest := b.addCold(t, b.now)
	b.fresh[t.id] = &cold{position: t.position, depth: t.depth, priority: t.spec.Priority, prompt: t.spec.Prompt,
		agent: t.spec.Agent, merge: t.spec.Merge, metadata: string(t.spec.Metadata), strategy: t.spec.Strategy,
		context: t.spec.Context, createdAt: b.now}
	b.event(t.tree, t.id, EventTaskCreated, `{"parent_id":"`+parentText(t.parent)+`","depth":`+itoa(int64(t.depth))+
		`,"digest":"`+digest+`"}`)
	return nil
}

// addCold queues the row of what does not change of a task, and returns its digest.
func (b *batch) addCold(t *newTask, createdAt int64) (digest string) {
	b.colds = append(b.colds, t.id, t.tree, t.parent, int64(t.depth), int64(t.position), t.prompt.column, t.spec.Agent,
		string(t.spec.Strategy), t.spec.Merge, t.context, string(t.spec.Metadata), int64(t.spec.Priority), createdAt)
	return b.in.hasher.Digest(t.prompt.column, string(t.spec.Strategy), t.spec.Merge, t.context)
}

// flags returns the flags of a task by its own strategy and policy.
func (s *TaskSpec) flags() (flags int64) {
	if s.Strategy == Sequential {
		flags |= sqldb.FlagSequential
	}
	if s.Policy == PolicyFail {
		flags |= sqldb.FlagFailFast
	}
	return flags
}

func parentText(parent int64) string {
	if parent == 0 {
		return ""
	}
	return TaskID(parent).String()
}

func (b *batch) flushTasks(ctx context.Context) error {
	if err := b.in.hots.Exec(ctx, b.tx, b.hots); err != nil {
		return err
	}
	b.hots = emptied(b.hots)
	err := b.in.colds.Exec(ctx, b.tx, b.colds)
	b.colds = emptied(b.colds)
	return err
}

// CreateTree creates a tree with its root task, queued. With an idempotency key
// that was used before, it returns the tree created then, or fails with CodeConflict if
// another tree was requested then, see [TreeSpec].
func (s *Store) CreateTree(ctx context.Context, spec TreeSpec) (Tree, error) {
	if err := spec.validate(); err != nil {
		return Tree{}, err
	}
	root, err := s.prepareTask(ctx, &spec.Root)
	if err != nil {
		return Tree{}, err
	}
	c := &createTree{spec: &spec, root: root, id: s.treeID()}
	var change op = c
	if c.vars, err = s.prepareVars(ctx, spec.Vars); err != nil {
		return Tree{}, err
	}
	if spec.InTx != nil || len(c.vars) > 0 {
		change = opFunc(c.apply)
	}
	for {
		err = s.w.do(ctx, change)
		if !c.collided {
			break
		}
		c.id, c.collided = s.treeID(), false
	}
	if err != nil {
		return Tree{}, err
	}
	if c.found {
		return s.Tree(ctx, c.id)
	}
	s.remember(c.tree)
	return c.tree, nil
}

type createTree struct {
	spec     *TreeSpec
	root     newTask
	vars     []*varChange
	id       TreeID
	tree     Tree // as created
	found    bool // a tree with the idempotency key exists
	collided bool // a tree with the ID exists
}

const sqlTreeByKey = `SELECT name, request FROM tree WHERE idempotency = $1`

func (c *createTree) apply(ctx context.Context, b *batch) error {
	exists := c.exists
	if !b.alone { // a random ID is rarely taken: then the insertion fails, and each operation is applied alone
		exists = c.repeated
	}
	if done, err := exists(ctx, b); done || err != nil {
		return err
	}
	args, err := c.args(b)
	if err != nil {
		return err
	}
	tree := b.cache.seq.tree + 1
	for _, id := range c.spec.Contexts {
		if err := b.refContext(ctx, tree, id); err != nil {
			return &undo{err}
		}
	}
	b.cache.seq.tree++
	b.cache.seq.task++
	c.root.tree, c.root.id = tree, b.cache.seq.task
	st := newStat(tree, c.spec.Limits)
	st.add(stQueued)
	st.time().Level(0).Total = 1
	st.plan(0, c.spec.Root.Work)
	b.addTree(c, args, st)
	c.tree = c.created(tree, b.now)
	state := ""
	if !c.spec.LateState {
		state = b.makeTreeState(c.id, tree, c.root.id)
	}
	b.event(tree, 0, EventTreeCreated, `{"kind":`+quote(c.spec.Kind)+state+`}`)
	if err := b.add(ctx, &c.root); err != nil || c.spec.InTx == nil && len(c.vars) == 0 {
		return err
	}
	if err := b.flushTrees(ctx); err != nil {
		return err
	}
	if err := c.setVars(ctx, b); err != nil || c.spec.InTx == nil {
		return undoing(err)
	}
	return undoing(c.spec.InTx(ctx, &WriteTx{b}, &c.tree))
}

// prepareVars checks the variables of a tree that is to be created, and stores large values.
func (s *Store) prepareVars(ctx context.Context, specs []VarSpec) ([]*varChange, error) {
	var all []*varChange
	for _, spec := range specs {
		v := &varChange{spec: spec, kind: changeSet}
		if spec.Name == VarFinal || spec.Name == VarPrompt {
			return nil, invalidf("create tree", "variable %q is not for this", spec.Name)
		}
		v.ref = StateRef{Scope: ScopeTree, Tree: "tree-00000000"}
		if err := v.check("create tree"); err != nil {
			return nil, err
		}
		var err error
		if v.stored, err = s.store(ctx, v.value); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// setVars sets the variables with which the tree begins.
func (c *createTree) setVars(ctx context.Context, b *batch) error {
	ref := StateRef{Scope: ScopeTree, Tree: c.id}
	key, err := ref.key("create tree")
	if err != nil {
		return err
	}
	for _, v := range c.vars {
		v.ref, v.key = ref, key
		if err := v.apply(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (c *createTree) created(key, now int64) Tree {
	t := Tree{ID: c.id, Name: c.spec.Name, Kind: c.spec.Kind, Root: TaskID(c.root.id), Config: c.config(),
		Limits: c.spec.Limits, Placement: c.spec.Placement, State: Queued, CreatedAt: micros(now), key: key}
	t.Placement.Tags = slices.Clone(t.Placement.Tags)
	t.owner = c.owner()
	return t
}

func (c *createTree) owner() int64 {
	if c.spec.Owner == nil {
		return 0
	}
	return c.spec.Owner.key
}

func (c *createTree) config() json.RawMessage {
	if len(c.spec.Config) == 0 {
		return json.RawMessage("{}")
	}
	return slices.Clone(c.spec.Config)
}

// exists reports whether a tree with the same idempotency key exists, or one with the
// same random ID.
func (c *createTree) exists(ctx context.Context, b *batch) (bool, error) {
	if repeated, err := c.repeated(ctx, b); repeated || err != nil {
		return repeated, err
	}
	var taken int64
	err := b.tx.QueryRow(ctx, sqlTreeNum, []any{string(c.id)}, &taken)
	c.collided = err == nil
	return c.collided, ignoreNoRows(err)
}

// repeated reports whether a tree with the same idempotency key exists.
func (c *createTree) repeated(ctx context.Context, b *batch) (bool, error) {
	c.found, c.collided = false, false
	if c.spec.IdempotencyKey == "" {
		return false, nil
	}
	if b.born.keys[c.spec.IdempotencyKey] {
		if err := b.flushTrees(ctx); err != nil {
			return false, err
		}
	}
	var request string
	err := b.tx.QueryRow(ctx, sqlTreeByKey, []any{c.spec.IdempotencyKey}, (*string)(&c.id), &request)
	if err != nil {
		return false, ignoreNoRows(err)
	}
	c.found = true
	return true, c.sameRequest(request)
}

// sameRequest returns an error if the tree with the same key was created for another request.
func (c *createTree) sameRequest(request string) error {
	if request == "" || c.spec.Request == "" || request == c.spec.Request {
		return nil
	}
	return &Error{Code: CodeConflict, Op: "create tree",
		Msg:  "the idempotency key was used for tree \"" + string(c.id) + "\" with another request",
		Hint: "use a new key for another request"}
}

func (c *createTree) args(b *batch) ([]any, error) {
	place, err := json.Marshal(c.spec.Placement)
	if err != nil {
		return nil, err
	}
	var key any
	if c.spec.IdempotencyKey != "" {
		key = c.spec.IdempotencyKey
	}
	return []any{b.cache.seq.tree + 1, string(c.id), c.spec.Kind, c.spec.Name, string(c.config()), b.cache.seq.task + 1,
		c.owner(), string(place), key, c.spec.Request, b.now}, nil
}

// Submit creates children of a task that is not terminal, without its lease. Either all
// are created or none. They become claimable at once, or one after another when the parent
// is sequential.
func (s *Store) Submit(ctx context.Context, parent TaskID, specs ...TaskSpec) ([]TaskID, error) {
	c, err := s.prepareChildren(ctx, specs)
	if err != nil || len(specs) == 0 {
		return nil, err
	}
	c.parent = int64(parent)
	if err := s.w.do(ctx, c); err != nil {
		return nil, err
	}
	return c.ids, nil
}

func (s *Store) prepareChildren(ctx context.Context, specs []TaskSpec) (*createChildren, error) {
	c := &createChildren{tasks: make([]newTask, len(specs))}
	for i := range specs {
		t, err := s.prepareTask(ctx, &specs[i])
		if err != nil {
			return nil, err
		}
		c.tasks[i] = t
	}
	return c, nil
}

type createChildren struct {
	parent int64
	tasks  []newTask
	ids    []TaskID
}

const (
	sqlParent = `SELECT h.tree, h.state, h.flags, t.depth FROM task_hot h JOIN task t ON t.id = h.id WHERE h.id = $1`
	sqlLast   = `SELECT position FROM task WHERE tree = $1 AND parent = $2 ORDER BY position DESC LIMIT 1`
	sqlLiveOf = `SELECT t.id FROM task t JOIN task_hot h ON h.id = t.id
		WHERE t.tree = $1 AND t.parent = $2 AND h.state IN ` + dbOpen + ` ORDER BY t.position DESC LIMIT 1`
	sqlSucceed = `UPDATE task_hot SET successor = $2 WHERE id = $1`
)

func (c *createChildren) apply(ctx context.Context, b *batch) error {
	if b.parents[c.parent] < 0 { // the last child may have ended: wake the parent first
		if err := b.flushParent(ctx, c.parent); err != nil {
			return err
		}
	}
	f, err := b.family(ctx, c.parent)
	if err != nil {
		return err
	}
	if stateOf(f.state).Terminal() {
		return conflictf("create task", "parent %q is %s", TaskID(c.parent), stateOf(f.state))
	}
	st, err := b.stat(ctx, f.tree)
	if err != nil {
		return err
	}
	if err := b.admitNodes(st, int64(len(c.tasks))); err != nil {
		return err
	}
	return c.insert(ctx, b, st, f)
}

// family is the part of a parent's row that creating children needs.
type family struct {
	tree, state, flags int64
	depth, position    int
	last               int64 // the last step of a sequence that is not terminal
}

// family reads a parent, once in a transaction. A sequential parent is read each time,
// because new children wait for its last child that is not terminal.
func (b *batch) family(ctx context.Context, parent int64) (*family, error) {
	if f := b.families[parent]; f != nil {
		return f, nil
	}
	if err := b.flushTasks(ctx); err != nil {
		return nil, err
	}
	f := &family{position: -1}
	err := b.tx.QueryRow(ctx, sqlParent, []any{parent}, &f.tree, &f.state, &f.flags, &f.depth)
	if err != nil {
		return nil, orNotFound(err, noTask("create task", parent))
	}
	err = b.tx.QueryRow(ctx, sqlLast, []any{f.tree, parent}, &f.position)
	if ignoreNoRows(err) != nil {
		return nil, err
	}
	if f.flags&sqldb.FlagSequential != 0 {
		err := b.tx.QueryRow(ctx, sqlLiveOf, []any{f.tree, parent}, &f.last)
		return f, ignoreNoRows(err)
	}
	if !stateOf(f.state).Terminal() { // a retry may change a terminal one
		b.families[parent] = f
	}
	return f, nil
}

func (c *createChildren) insert(ctx context.Context, b *batch, st *treeStat, f *family) error {
	sequential := f.flags&sqldb.FlagSequential != 0
	blocked := f.last != 0
	c.ids = make([]TaskID, len(c.tasks))
	for i := range c.tasks {
		t := &c.tasks[i]
		b.cache.seq.task++
		f.position++
		t.id, t.tree, t.parent, t.depth, t.position = b.cache.seq.task, st.tree, c.parent, f.depth+1, f.position
		t.blocked = blocked || sequential && i > 0
		if f.flags&sqldb.FlagFailFast != 0 {
			t.flags |= sqldb.FlagSiblingsFail
		}
		if sequential {
			t.flags |= sqldb.FlagStep
		}
		if sequential && i+1 < len(c.tasks) {
			t.successor = t.id + 1
		}
		if err := b.add(ctx, t); err != nil {
			return err
		}
		st.add(stQueued)
		st.time().Level(t.depth).Total++
		st.plan(t.depth, t.spec.Work)
		c.ids[i] = TaskID(t.id)
	}
	b.addOpen(c.parent, int64(len(c.tasks)))
	if blocked && len(c.tasks) > 0 {
		_, err := b.tx.Exec(ctx, sqlSucceed, f.last, c.tasks[0].id)
		return err
	}
	return nil
}

func quote(s string) string {
	raw, _ := json.Marshal(s) // never fails for a string
	return string(raw)
}

package perdure

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// PreparedTrees are trees to import that were checked, with their large values in the store.
type PreparedTrees struct {
	list  []*importTree
	tasks int
}

// ImportTrees imports trees. Either all are imported or none.
func (s *Store) ImportTrees(ctx context.Context, trees []TreeRecord) ([]ImportedTree, error) {
	p, err := s.PrepareTrees(ctx, trees)
	if err != nil {
		return nil, err
	}
	return s.ImportPrepared(ctx, p)
}

// PrepareTrees does what [Store.ImportTrees] does before its transaction, so that a caller
// with many trees can do it while the previous ones are imported. The records must not change
// before they are imported.
func (s *Store) PrepareTrees(ctx context.Context, trees []TreeRecord) (*PreparedTrees, error) {
	const op = "import trees"
	list := make([]*importTree, len(trees))
	n := 0
	for i := range trees {
		t := &trees[i]
		spec := TreeSpec{Kind: KindRecord, Name: t.Name, Config: t.Config, Limits: t.Limits, IdempotencyKey: t.Key}
		n += len(t.Tasks)
		if len(t.Tasks) == 0 || t.Key == "" || n > MaxImport {
			return nil, invalidf(op, "record %d has no task or no key, or there are more than %d tasks", i, MaxImport)
		}
		spec.Root = TaskSpec{Prompt: t.Tasks[0].Prompt}
		if err := spec.validate(); err != nil {
			return nil, err
		}
		tasks, err := s.prepareRecords(ctx, t.Tasks, true)
		if err != nil {
			return nil, err
		}
		list[i] = &importTree{rec: t, spec: &spec, tasks: tasks}
		if err := encode(&list[i].limits, &t.Limits); err != nil {
			return nil, wrap(op, err)
		}
	}
	return &PreparedTrees{list, n}, nil
}

// ImportPrepared imports trees. Either all are imported or none.
func (s *Store) ImportPrepared(ctx context.Context, p *PreparedTrees) ([]ImportedTree, error) {
	list := p.list
	var out []ImportedTree
	err := s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		out = make([]ImportedTree, len(list))
		if err := b.nameTrees(ctx, list); err != nil {
			return err
		}
		w := &recordRows{trees: make([]any, 0, 8*len(list))}
		b.growFor(len(list), p.tasks)
		var err error
		if w.unused, err = b.unused(ctx, allTasks(list)); err != nil {
			return err
		}
		for i, t := range list {
			if out[i] = (ImportedTree{ID: t.id, Found: t.found}); t.found {
				continue
			}
			if err := t.apply(ctx, b, w, &out[i]); err != nil {
				return undoing(err)
			}
		}
		return w.flush(ctx, b)
	}))
	return out, err
}

// growFor makes room for the rows of imported trees.
func (b *batch) growFor(trees, tasks int) {
	b.events = slices.Grow(b.events, eventValues*(trees+tasks))
	b.blocks = slices.Grow(b.blocks, 2*trees)
	b.ends = slices.Grow(b.ends, 7*tasks)
	b.colds = slices.Grow(b.colds, 13*tasks)
}

// importTree is a tree about to be imported.
type importTree struct {
	rec   *TreeRecord
	spec  *TreeSpec
	tasks []recordTask
	// limits are those of the record as a column.
	limits string
	id     TreeID
	found  bool // a tree with the key exists
}

// nameTrees finds the trees that exist, and gives the others IDs that are free.
func (b *batch) nameTrees(ctx context.Context, list []*importTree) error {
	keys := make([]string, len(list))
	for i, t := range list {
		keys[i] = t.rec.Key
	}
	found, err := lookUpTrees(ctx, b.tx.Query, sqlTreesByKey, keys)
	if err != nil {
		return err
	}
	used := make(map[string]bool, len(list))
	var fresh []*importTree
	for _, t := range list {
		t.id, t.found = found[t.rec.Key], found[t.rec.Key] != ""
		if t.found {
			continue
		}
		if used[t.rec.Key] {
			return invalidf("import trees", "two records have the key %q", t.rec.Key)
		}
		used[t.rec.Key] = true
		t.id = t.rec.ID
		fresh = append(fresh, t)
	}
	return b.freeNames(ctx, fresh)
}

// freeNames gives trees a new ID that have none, or one that another tree has. The new IDs are
// consecutive from a random one, so that their rows in the index of IDs are together.
func (b *batch) freeNames(ctx context.Context, list []*importTree) error {
	taken := make(map[TreeID]bool)
	var names []string
	for _, t := range list {
		if t.id != "" && !taken[t.id] {
			taken[t.id] = true
			names = append(names, string(t.id))
		} else {
			t.id = ""
		}
	}
	found, err := lookUpTrees(ctx, b.tx.Query, sqlTreesByName, names)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(t *importTree) bool { return t.id != "" && found[string(t.id)] == "" })
	if len(list) == 0 {
		return nil
	}
	next, err := b.freeTrees(ctx, uint32(len(list)), taken) //nolint:gosec // at most MaxImport
	for i, t := range list {
		t.id = treeIDOf(next + uint32(i)) //nolint:gosec // at most MaxImport
	}
	return err
}

const sqlTreeBetween = `SELECT name FROM tree WHERE name >= $1 AND name <= $2 LIMIT 1`

// freeTrees returns the first of n consecutive numbers of trees which no tree has, and none
// of the taken ones.
func (b *batch) freeTrees(ctx context.Context, n uint32, taken map[TreeID]bool) (uint32, error) {
	for {
		first := randomTree()
		low, high := treeIDOf(first), treeIDOf(first+n-1)
		among := func(id TreeID) bool { return low <= id && id <= high }
		if low > high || slices.ContainsFunc(slices.Collect(maps.Keys(taken)), among) {
			continue
		}
		var name string
		err := b.tx.QueryRow(ctx, sqlTreeBetween, []any{string(low), string(high)}, &name)
		if err != nil {
			return first, ignoreNoRows(err)
		}
	}
}

func (t *importTree) apply(ctx context.Context, b *batch, w *recordRows, out *ImportedTree) error {
	b.cache.seq.tree++
	tree := b.cache.seq.tree
	for _, ref := range t.rec.Blobs {
		if err := b.refBlob(ctx, tree, ref); err != nil {
			return err
		}
	}
	for _, id := range t.rec.Contexts {
		if err := b.refContext(ctx, tree, id); err != nil {
			return err
		}
	}
	st := newStat(tree, t.rec.Limits)
	st.rawLimits = t.limits
	root := &t.tasks[0]
	b.event(tree, 0, EventTreeCreated, `{"kind":"`+KindRecord+`","state":"`+string(root.rec.State)+`"}`)
	var err error
	if out.Tasks, err = b.importTasks(ctx, w, st, t.tasks); err != nil {
		return err
	}
	out.Root = out.Tasks[0]
	if root.rec.State.Terminal() {
		st.state, st.endedAt = root.rec.State.number(), new(microsOf(root.rec.CompletedAt))
		st.partial = int64(boolInt(t.rec.Partial))
	}
	b.addStat(st)
	config := json.RawMessage("{}")
	if len(t.spec.Config) > 0 {
		config = t.spec.Config
	}
	w.trees = append(w.trees, tree, string(t.id), t.spec.Name, string(config), int64(out.Root), t.rec.Key,
		microsOf(root.rec.CreatedAt), b.now)
	return nil
}

// lookedUp is the number of trees that one statement looks up.
const lookedUp = 32

const (
	inLookedUp = ` IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
		$23, $24, $25, $26, $27, $28, $29, $30, $31, $32)`
	sqlTreesByKey  = `SELECT idempotency, name FROM tree WHERE idempotency` + inLookedUp
	sqlTreesByNum  = `SELECT id, name FROM tree WHERE id` + inLookedUp
	sqlTreesByName = `SELECT name, name FROM tree WHERE name` + inLookedUp
)

// lookUpTrees returns the trees with one of the values, by it.
func lookUpTrees[V comparable](ctx context.Context, query sqldb.QueryFunc, q string, values []V) (map[V]TreeID,
	error) {
	found := make(map[V]TreeID)
	args := make([]any, lookedUp)
	for part := range slices.Chunk(values, lookedUp) {
		for i := range args {
			args[i] = part[min(i, len(part)-1)]
		}
		err := sqldb.Each(ctx, query, func(scan sqldb.Scan) error {
			var value V
			var id string
			err := scan(&value, &id)
			found[value] = TreeID(id)
			return err
		}, q, args...)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// ImportedKeys returns the trees of this store that have one of the keys, by their key.
func (s *Store) ImportedKeys(ctx context.Context, keys []string) (map[string]TreeID, error) {
	found, err := lookUpTrees(ctx, s.db.Query, sqlTreesByKey, keys)
	return found, wrap("read trees", err)
}

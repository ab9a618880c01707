package perdure

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// A claim needs two kinds of data that this process usually wrote a moment ago, and caches
// here: the tasks it created and the trees in which it made tasks ready. The writer adds to
// the caches only after the commit.

// cold is the part of a task that does not change, except by [Store.AmendTask].
type cold struct {
	position, depth, priority      int
	prompt, agent, merge, metadata string
	strategy                       Strategy
	context                        ContextRef
	createdAt                      int64
}

func (c *cold) bytes() int {
	const fixed = 256
	return fixed + len(c.prompt) + len(c.agent) + len(c.merge) + len(c.metadata) + len(c.context.Source) +
		len(c.context.Hash)
}

// maxRecentBytes bounds the size of the cached tasks.
const maxRecentBytes = 4 << 20

// recent caches the tasks that this process created last.
type recent struct {
	mu    sync.Mutex // guards the fields below
	tasks map[int64]*cold
	order []int64 // the oldest first
	bytes int
}

func (r *recent) put(tasks map[int64]*cold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, c := range tasks {
		r.tasks[id] = c
		r.order = append(r.order, id)
		r.bytes += c.bytes()
	}
	for r.bytes > maxRecentBytes {
		r.remove(r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent) remove(id int64) {
	if c := r.tasks[id]; c != nil {
		r.bytes -= c.bytes()
		delete(r.tasks, id)
	}
}

func (r *recent) get(id int64) *cold {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tasks[id]
}

// drop removes a task that was changed. Its place in the order stays.
func (r *recent) drop(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(id)
}

const sqlCold = `SELECT position, depth, prompt, agent, strategy, merge, context, metadata, priority, created_at
	FROM task WHERE id = $1`

func (s *Store) cold(ctx context.Context, tree, id int64) (*cold, error) {
	if c := s.recent.get(id); c != nil {
		return c, nil
	}
	c := &cold{}
	var column, text string
	err := s.db.QueryRow(ctx, sqlCold, []any{id}, &c.position, &c.depth, &column, &c.agent, (*string)(&c.strategy),
		&c.merge, &text, &c.metadata, &c.priority, &c.createdAt)
	if err != nil {
		return nil, wrap("claim task", err)
	}
	if c.prompt, err = s.load(ctx, tree, column); err != nil {
		return nil, err
	}
	return c, wrap("claim task", json.Unmarshal([]byte(text), &c.context))
}

// fill sets the fields of a lease's task that the claim did not return.
func (s *Store) fill(ctx context.Context, l *Lease) error {
	t := &l.Task
	c, err := s.cold(ctx, l.Tree.key, int64(t.ID))
	if err != nil {
		return err
	}
	t.Node, t.Tree, t.Parent, t.State = t.ID.Node(), l.Tree.ID, TaskID(l.parent), Running
	t.Position, t.Depth, t.Prompt, t.Agent, t.Strategy, t.Merge = c.position, c.depth, c.prompt, c.agent, c.strategy,
		c.merge
	t.Context, t.Priority = c.context, c.priority
	t.Metadata, t.CreatedAt, t.Policy = json.RawMessage(c.metadata), micros(c.createdAt), PolicyPartial
	if l.flags&sqldb.FlagFailFast != 0 {
		t.Policy = PolicyFail
	}
	t.Lease = &LeaseInfo{Session: l.session.name, Fence: l.fence, ClaimedAt: micros(l.claimedAt)}
	return nil
}

// readyTrees are trees in which this process made tasks claimable and has not claimed them
// since. For other trees, and tasks that become ready with time, a claim reads the
// database every [Config.PollInterval].
type readyTrees struct {
	mu   sync.Mutex // guards keys
	keys map[int64]bool
}

// update removes the trees of which a claim took all ready tasks, then adds those in which
// the same transaction made tasks claimable.
func (r *readyTrees) update(emptied, added map[int64]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range emptied {
		delete(r.keys, key)
	}
	if r.keys == nil || len(r.keys)+len(added) > maxCachedTrees {
		r.keys = make(map[int64]bool, len(added))
	}
	for key := range added {
		r.keys[key] = true
	}
}

func (r *readyTrees) list() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.keys))
}

package perdure

import (
	"context"
	"encoding/json"
	"sync"
)

// Two things that a claim would have to read are mostly known to the process
// that claims, since it wrote them a moment ago. What is remembered here is
// only ever entered after its transaction was committed, by the one goroutine
// that writes, so a rolled back transaction leaves nothing.

// cold is what is written once about a task.
type cold struct {
	position, depth, priority      int
	prompt, agent, merge, metadata string
	strategy                       Strategy
	context                        ContextRef
	createdAt                      int64
	dropped                        bool // it was changed since
}

func (c *cold) bytes() int {
	const fixed = 256
	return fixed + len(c.prompt) + len(c.agent) + len(c.merge) + len(c.metadata) + len(c.context.Source) +
		len(c.context.Hash)
}

// maxRecentBytes bounds the memory of the tasks created last.
const maxRecentBytes = 4 << 20

// recent holds the tasks that this process created last.
type recent struct {
	mu    sync.Mutex // guards the fields below
	tasks map[int64]*cold
	order []int64 // the oldest first
	bytes int
}

func (r *recent) put(tasks map[int64]*cold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		r.tasks = make(map[int64]*cold)
	}
	for id, c := range tasks {
		r.tasks[id] = c
		r.order = append(r.order, id)
		r.bytes += c.bytes()
	}
	for r.bytes > maxRecentBytes {
		r.bytes -= r.tasks[r.order[0]].bytes()
		delete(r.tasks, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recent) get(id int64) *cold {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.tasks[id]; c != nil && !c.dropped {
		return c
	}
	return nil
}

// drop forgets a task that was changed. Its place stays, for the order.
func (r *recent) drop(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.tasks[id]; c != nil {
		r.bytes -= c.bytes()
		r.tasks[id] = &cold{dropped: true}
		r.bytes += r.tasks[id].bytes()
	}
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
		&c.merge,
		&text, &c.metadata, &c.priority, &c.createdAt)
	if err != nil {
		return nil, wrap("claim task", err)
	}
	if c.prompt, err = s.load(ctx, tree, column); err != nil {
		return nil, err
	}
	return c, wrap("claim task", json.Unmarshal([]byte(text), &c.context))
}

// fill completes what a lease tells about its task beside what the claim
// returned.
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
	if l.flags&flagFailFast != 0 {
		t.Policy = PolicyFail
	}
	t.Lease = &LeaseInfo{Session: l.session.name, Fence: l.fence, ClaimedAt: micros(l.claimedAt)}
	return nil
}

// readyTrees are trees in which this process made tasks claimable that it has
// not claimed since. Others' trees and tasks that become due are not here; a
// claim looks for those in the database, at least every [Config.LookEvery].
type readyTrees struct {
	mu   sync.Mutex // guards keys
	keys map[int64]bool
}

// update takes the trees out that a claim left empty, then adds those with
// tasks that the same transaction made claimable, which the claim did not see.
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
	keys := make([]int64, 0, len(r.keys))
	for key := range r.keys {
		keys = append(keys, key)
	}
	return keys
}

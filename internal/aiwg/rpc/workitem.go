package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// workItem is a task and the lease under which a client works on it. The client's
// connection owns it. After the connection ends, the lease is kept for a while: the
// client can continue on a new connection, another client can take the task over at
// once, and without a request it is queued again.
type workItem struct {
	mu sync.Mutex // held during a request about the task; guards lease and fence

	lease *perdure.Lease
	// fence is the worker's token: that of the lease, or of an older lease if the task
	// was claimed again for the same worker.
	fence int64
	// worker is the process of the worker, 0 if it did not say.
	worker int64

	// The other fields are guarded by workItems.mu, and so is worker.
	refs  int   // the number of requests that hold mu or wait for it
	conn  *conn // nil after the connection ended
	heard time.Time
}

// workItems are the work items of a server.
type workItems struct {
	mu     sync.Mutex // guards byTask
	byTask map[perdure.TaskID]*workItem
	// freed is signaled when a connection has no more work.
	freed chan struct{}
}

// acquire locks the work item of a task.
func (d *workItems) acquire(id perdure.TaskID) *workItem {
	d.mu.Lock()
	if d.byTask == nil {
		d.byTask = make(map[perdure.TaskID]*workItem)
	}
	k := d.byTask[id]
	if k == nil {
		k = &workItem{}
		d.byTask[id] = k
	}
	k.refs++
	d.mu.Unlock()
	k.mu.Lock()
	return k
}

// release unlocks a work item.
func (d *workItems) release(id perdure.TaskID, k *workItem) {
	empty := k.lease == nil
	k.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.refs--; k.refs == 0 && empty { // else the last request deletes it
		delete(d.byTask, id)
	}
}

// pid returns the process of a task's worker, 0 if it is not known.
func (d *workItems) pid(id perdure.TaskID) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.byTask[id]; k != nil {
		return k.worker
	}
	return 0
}

// setPID sets the process of the worker of a locked work item.
func (d *workItems) setPID(k *workItem, pid int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	k.worker = pid
}

// assign makes a connection the owner of a locked work item.
func (d *workItems) assign(k *workItem, c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.conn != nil && k.conn != c {
		delete(k.conn.tasks, k.lease.Task.ID)
	}
	k.conn, k.heard = c, time.Now()
	c.tasks[k.lease.Task.ID] = true
}

// other returns the connection that owns a task, nil if that is c.
func (d *workItems) other(id perdure.TaskID, c *conn) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.byTask[id]; k != nil && k.conn != c {
		return k.conn
	}
	return nil
}

// owner returns the connection that owns a work item, nil if it has ended.
func (d *workItems) owner(k *workItem) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return k.conn
}

// clear removes the lease, which has ended, from a locked work item.
func (d *workItems) clear(k *workItem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.lease != nil && k.conn != nil {
		delete(k.conn.tasks, k.lease.Task.ID)
	}
	k.lease, k.conn = nil, nil
	d.wake()
}

// wake wakes [Server.drain]. The caller holds mu.
func (d *workItems) wake() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// disconnect removes the owner of the work items of a connection that has ended.
func (d *workItems) disconnect(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range c.tasks {
		if k := d.byTask[id]; k != nil && k.conn == c {
			k.conn, k.heard = nil, time.Now()
		}
	}
	clear(c.tasks)
	d.wake()
}

// connected reports whether a connection works on a task.
func (d *workItems) connected() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.byTask {
		if k.conn != nil {
			return true
		}
	}
	return false
}

// silent returns the tasks without a connection and without a request since.
func (d *workItems) silent(since time.Time) []perdure.TaskID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var ids []perdure.TaskID
	for id, k := range d.byTask {
		if k.silent(since) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (k *workItem) silent(since time.Time) bool {
	return k.conn == nil && !k.heard.IsZero() && k.heard.Before(since)
}

// checks is the number of checks for silent workers in [Config].Silence.
const checks = 8

// watch queues the tasks of silent workers and of dead servers again, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	tick := time.Tick(max(s.cfg.Silence/checks, time.Millisecond))
	for n := 0; ; n++ {
		if n%checks == 0 {
			s.requeue(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		s.releaseSilent(ctx, time.Now().Add(-s.cfg.Silence))
	}
}

func (s *Server) releaseSilent(ctx context.Context, since time.Time) {
	for _, id := range s.items.silent(since) {
		k := s.items.acquire(id)
		s.items.mu.Lock()
		silent := k.silent(since)
		s.items.mu.Unlock()
		if k.lease != nil && silent {
			s.log.Info("task queued again: its worker is disconnected", "task_id", id.String())
			s.releaseLease(ctx, k)
		}
		s.items.release(id, k)
	}
}

// releaseAll releases the leases of all tasks.
func (s *Server) releaseAll(ctx context.Context) { s.releaseSilent(ctx, time.Now().Add(time.Hour)) }

// releaseLease releases the lease of a locked work item. If that fails, the lease ends
// with the session.
func (s *Server) releaseLease(ctx context.Context, k *workItem) {
	if err := k.lease.Release(ctx); err != nil && !errors.Is(err, perdure.ErrLeaseLost) {
		s.log.Warn("release task", "task_id", k.lease.Task.ID.String(), "error", err)
		return
	}
	s.items.clear(k)
}

// requeue queues tasks again whose workers were connected to a dead server: clients
// would not find them among the queued ones.
func (s *Server) requeue(ctx context.Context) {
	err := s.eachTree(ctx, perdure.TreeFilter{Kind: Kind, Active: true, Limit: MaxList},
		func(t *perdure.Tree) (bool, error) {
			if t.State != perdure.Running || Executes(t) {
				return true, nil
			}
			return true, ignoreNotFound(s.requeueLost(ctx, t))
		})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("queue lost tasks", "error", err)
	}
}

func (s *Server) requeueLost(ctx context.Context, t *perdure.Tree) error {
	k := s.items.acquire(t.Root) // its worker could be reconnecting
	defer s.items.release(t.Root, k)
	task, err := s.store.Task(ctx, t.Root)
	if err != nil || task.Lease == nil || !task.Lease.Lost {
		return err
	}
	l, err := s.claim(ctx, t.ID)
	if err == nil && l != nil {
		err = l.Release(ctx)
	}
	return err
}

// claim leases the task of a tree, nil if it cannot be claimed.
func (s *Server) claim(ctx context.Context, tree perdure.TreeID) (*perdure.Lease, error) {
	leases, err := s.session.Claim(ctx, perdure.ClaimRequest{Max: 1, Trees: []perdure.TreeID{tree}})
	if len(leases) == 0 {
		return nil, err
	}
	return leases[0], nil
}

package rpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// desk is where a task lies that somebody outside works on. It stays theirs
// while their connection lives. After that it is kept for a while: clients that
// open a connection for each request go on with it, somebody else may take it
// over at once, and when nothing is heard it goes back to the queue.
type desk struct {
	mu sync.Mutex // held while something is done with the task; guards the next two

	lease *perdure.Lease
	// fence is the token that the worker knows: that of the lease, or of an older
	// one when the task had to be claimed again for the same worker.
	fence int64

	// The rest is guarded by desks.mu.
	refs  int   // those who hold or want mu
	conn  *conn // nil when the connection ended
	heard time.Time
}

// desks are those of a server.
type desks struct {
	mu     sync.Mutex // guards the fields below
	byTask map[perdure.TaskID]*desk
	// freed tells the end of a connection's work.
	freed chan struct{}
}

// sit locks the desk of a task.
func (d *desks) sit(id perdure.TaskID) *desk {
	d.mu.Lock()
	if d.byTask == nil {
		d.byTask = make(map[perdure.TaskID]*desk)
	}
	k := d.byTask[id]
	if k == nil {
		k = &desk{}
		d.byTask[id] = k
	}
	k.refs++
	d.mu.Unlock()
	k.mu.Lock()
	return k
}

// rise unlocks it.
func (d *desks) rise(id perdure.TaskID, k *desk) {
	empty := k.lease == nil
	k.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.refs--; k.refs == 0 && empty { // else somebody else rises later
		delete(d.byTask, id)
	}
}

// give makes the task on a locked desk a connection's.
func (d *desks) give(k *desk, c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.conn != nil && k.conn != c {
		delete(k.conn.tasks, k.lease.Task.ID)
	}
	k.conn, k.heard = c, time.Now()
	c.tasks[k.lease.Task.ID] = true
}

// other returns the connection that works on a task if it is another one.
func (d *desks) other(id perdure.TaskID, c *conn) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.byTask[id]; k != nil && k.conn != c {
		return k.conn
	}
	return nil
}

// owner is the connection that works on a task, nil when that ended.
func (d *desks) owner(k *desk) *conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return k.conn
}

// clear takes the task off a locked desk: the lease has ended.
func (d *desks) clear(k *desk) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k.lease != nil && k.conn != nil {
		delete(k.conn.tasks, k.lease.Task.ID)
	}
	k.lease, k.conn = nil, nil
	d.tell()
}

// tell wakes who waits for the end of work. The caller holds mu.
func (d *desks) tell() {
	select {
	case d.freed <- struct{}{}:
	default:
	}
}

// leftBy notes that a connection has ended.
func (d *desks) leftBy(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range c.tasks {
		if k := d.byTask[id]; k != nil && k.conn == c {
			k.conn, k.heard = nil, time.Now()
		}
	}
	clear(c.tasks)
	d.tell()
}

// attended tells whether a connection works on a task.
func (d *desks) attended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, k := range d.byTask {
		if k.conn != nil {
			return true
		}
	}
	return false
}

// silent lists the tasks nobody was heard of about since.
func (d *desks) silent(since time.Time) []perdure.TaskID {
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

func (k *desk) silent(since time.Time) bool {
	return k.conn == nil && !k.heard.IsZero() && k.heard.Before(since)
}

// looks is how often in the time of silence it is looked who was silent.
const looks = 8

// watch gives tasks back whose workers are silent, those of servers that died
// too, until ctx ends.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(max(s.cfg.Silence/looks, time.Millisecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		if n%looks == 0 {
			s.requeue(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.giveBackSilent(ctx, time.Now().Add(-s.cfg.Silence))
	}
}

func (s *Server) giveBackSilent(ctx context.Context, since time.Time) {
	for _, id := range s.desks.silent(since) {
		k := s.desks.sit(id)
		s.desks.mu.Lock()
		silent := k.silent(since)
		s.desks.mu.Unlock()
		if k.lease != nil && silent {
			s.log.Info("task is queued again, its worker is gone", "task_id", id.String())
			s.release(ctx, k)
		}
		s.desks.rise(id, k)
	}
}

// giveBack gives all tasks back.
func (s *Server) giveBack(ctx context.Context) { s.giveBackSilent(ctx, time.Now().Add(time.Hour)) }

// release ends the lease of a locked desk. What the store refuses to write is a
// lease that ends with the session.
func (s *Server) release(ctx context.Context, k *desk) {
	if err := k.lease.Release(ctx); err != nil && !errors.Is(err, perdure.ErrLeaseLost) {
		s.log.Warn("give task back", "task_id", k.lease.Task.ID.String(), "error", err)
		return
	}
	s.desks.clear(k)
}

// requeue queues the tasks of workers again that were connected to a server
// that died: nobody would find them in the list of those that wait.
func (s *Server) requeue(ctx context.Context) {
	err := s.eachTree(ctx, perdure.TreeFilter{Kind: Kind, Active: true, Limit: MaxList},
		func(t *perdure.Tree) (bool, error) {
			if t.State != perdure.Running || executes(t) {
				return true, nil
			}
			return true, ignoreGone(s.requeueLost(ctx, t))
		})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("queue lost tasks again", "error", err)
	}
}

func (s *Server) requeueLost(ctx context.Context, t *perdure.Tree) error {
	k := s.desks.sit(t.Root) // its worker may be about to go on
	defer s.desks.rise(t.Root, k)
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

// claim leases the task of a tree; nil when it is not to be had.
func (s *Server) claim(ctx context.Context, tree perdure.TreeID) (*perdure.Lease, error) {
	leases, err := s.session.Claim(ctx, perdure.ClaimRequest{Max: 1, Trees: []perdure.TreeID{tree}})
	if len(leases) == 0 {
		return nil, err
	}
	return leases[0], nil
}

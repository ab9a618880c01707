package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
)

// stateOf returns the state of a tree's task for clients.
func (s *Server) stateOf(ctx context.Context, t *perdure.Tree) (perdure.State, error) {
	if t.State != perdure.Running {
		return t.State, nil // the root's
	}
	root := perdure.TaskID(0)
	tasks, err := s.store.Tasks(ctx, perdure.TaskFilter{Tree: t.ID, Parent: &root, Limit: 1, Brief: true})
	if err != nil || len(tasks) == 0 {
		return "", ignoreNotFound(err)
	}
	if tasks[0].State == perdure.Waiting {
		return perdure.Running, nil
	}
	return tasks[0].State, nil
}

// list lists tasks, the newest first.
func (s *Server) list(ctx context.Context, _ *conn, p *params) (any, error) {
	q, err := s.readList(ctx, p)
	if err != nil {
		return nil, err
	}
	records, size := []json.RawMessage{}, 0
	err = s.eachTask(ctx, q, func(tree *perdure.Tree, id perdure.TaskID) (bool, error) {
		task, err := s.store.Task(ctx, id)
		if err != nil {
			return true, ignoreNotFound(err) // it was just removed
		}
		record, err := s.recordOf(ctx, tree, &task)
		if err != nil {
			return true, ignoreNotFound(err)
		}
		if size += len(record); size > MaxAnswerBytes {
			return false, &Error{Code: CodeAnswerTooLong,
				Message: fmt.Sprintf("the first %d tasks have more than %d bytes", len(records)+1, MaxAnswerBytes),
				Data:    &ErrorData{Hint: "request fewer tasks with limit, and the next ones with before: the last task's ID"}}
		}
		records = append(records, record)
		return len(records) < q.limit, nil
	})
	return records, err
}

// eachTask calls do for the tasks of a listing, the newest first, until it returns false.
func (s *Server) eachTask(ctx context.Context, q listing, do func(*perdure.Tree, perdure.TaskID) (bool, error)) error {
	goOn := true
	visit := func(tree *perdure.Tree) (bool, error) {
		list, err := s.tasksOf(ctx, tree)
		if err != nil {
			return true, ignoreNotFound(err)
		}
		for _, t := range slices.Backward(list) {
			if !q.has(&t) {
				continue
			}
			if goOn, err = do(tree, t.ID); !goOn || err != nil {
				return false, err
			}
		}
		return true, nil
	}
	f := perdure.TreeFilter{Limit: 100}
	if q.before.ID != 0 {
		f.Before = q.before.Tree
		tree, err := s.store.Tree(ctx, f.Before)
		if err == nil {
			_, err = visit(&tree)
		}
		if err != nil || !goOn {
			return err
		}
	}
	return s.eachShown(ctx, f, visit)
}

// has reports whether a task belongs to the listing.
func (q *listing) has(t *perdure.Task) bool {
	state := t.State
	if state == perdure.Waiting {
		state = perdure.Running
	}
	return (q.state == "" || state == q.state) && (!q.byAgent || t.Agent == q.agent) &&
		(q.before.ID == 0 || t.Tree != q.before.Tree || t.ID < q.before.ID)
}

// eachShown calls do for each tree that clients see, the newest first, until it returns
// false.
func (s *Server) eachShown(ctx context.Context, f perdure.TreeFilter, do func(*perdure.Tree) (bool, error)) error {
	for {
		page, err := s.store.Trees(ctx, f)
		if err != nil {
			return err
		}
		for i := range page {
			if !aiwgtree.Shown(&page[i]) {
				continue
			}
			if goOn, err := do(&page[i]); !goOn || err != nil {
				return err
			}
		}
		if len(page) < f.Limit {
			return nil
		}
		f.Before = page[len(page)-1].ID
	}
}

// tasksOf returns the tasks of a tree by ID, without their long members. A submitted tree
// has only its root for clients.
func (s *Server) tasksOf(ctx context.Context, tree *perdure.Tree) ([]perdure.Task, error) {
	if tree.Kind == Kind {
		root := perdure.TaskID(0)
		return s.store.Tasks(ctx, perdure.TaskFilter{Tree: tree.ID, Parent: &root, Limit: 1, Brief: true})
	}
	return aiwgtree.Tasks(ctx, s.store, tree.ID)
}

// listing is the parameters of task.list.
type listing struct {
	state   perdure.State
	agent   string
	byAgent bool
	limit   int
	before  perdure.Task // the list continues after it
}

func (s *Server) readList(ctx context.Context, p *params) (q listing, err error) {
	name, _ := p.text("state", "status")
	q.state = perdure.State(name)
	if name != "" {
		p.checkState(q.state)
	}
	q.agent, q.byAgent = p.text("agent")
	n, _ := p.whole(0, math.MaxInt32, "limit")
	q.limit = min(cmp.Or(int(n), DefaultList), MaxList)
	before, there := p.text("before")
	if p.err != nil || !there {
		return q, p.err
	}
	q.before, err = s.find(ctx, before)
	return q, err
}

// checkState checks that clients know a state.
func (p *params) checkState(state perdure.State) {
	states := []perdure.State{perdure.Queued, perdure.Running, perdure.Completed, perdure.Failed, perdure.Cancelled}
	if !slices.Contains(states, state) {
		p.fail("Invalid state: %s", state)
	}
}

// counts are the numbers of tasks by state.
type counts struct {
	Total     int `json:"total"`
	Queued    int `json:"queued"`
	Running   int `json:"running"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
}

func (c *counts) add(state perdure.State) {
	field := map[perdure.State]*int{perdure.Queued: &c.Queued, perdure.Running: &c.Running, perdure.Waiting: &c.Running,
		perdure.Completed: &c.Completed, perdure.Failed: &c.Failed, perdure.Cancelled: &c.Cancelled}[state]
	if field != nil {
		*field++
		c.Total++
	}
}

func (s *Server) stats(ctx context.Context, _ *conn, _ *params) (any, error) {
	return s.counts(ctx)
}

func (s *Server) counts(ctx context.Context) (*counts, error) {
	var c counts
	err := s.eachShown(ctx, perdure.TreeFilter{Limit: MaxList}, func(t *perdure.Tree) (bool, error) {
		if t.Kind == Kind {
			state, err := s.stateOf(ctx, t)
			c.add(state)
			return true, err
		}
		p, err := s.store.Progress(ctx, t.ID)
		if err != nil {
			return true, ignoreNotFound(err)
		}
		c.Total += int(p.Total)
		c.Queued += int(p.Queued)
		c.Running += int(p.Running + p.Waiting)
		c.Completed += int(p.Completed)
		c.Failed += int(p.Failed)
		c.Cancelled += int(p.Cancelled)
		return true, nil
	})
	return &c, err
}

// recentTasks is the number of tasks in a summary.
const recentTasks = 5

// summaryDoc is the result of task.summary.
type summaryDoc struct {
	Stats   *counts      `json:"stats"`
	Running []shortTask  `json:"running"`
	Recent  []recentTask `json:"recent"`
}

// recentTask is one of the newest tasks in a summary.
type recentTask struct {
	ID          perdure.TaskID `json:"id"`
	Prompt      string         `json:"prompt"`
	State       perdure.State  `json:"state"`
	CompletedAt *time.Time     `json:"completedAt"`
}

// summary returns the numbers of tasks, and the running and the newest ones.
func (s *Server) summary(ctx context.Context, _ *conn, _ *params) (any, error) {
	d := &summaryDoc{Running: []shortTask{}, Recent: []recentTask{}}
	var err error
	if d.Stats, err = s.counts(ctx); err != nil {
		return nil, err
	}
	err = s.eachTask(ctx, listing{}, func(_ *perdure.Tree, id perdure.TaskID) (bool, error) {
		t, err := s.store.Task(ctx, id)
		if err != nil {
			return true, ignoreNotFound(err)
		}
		r := recentTask{ID: id, Prompt: shortPrompt(&t), State: t.State}
		if t.State == perdure.Waiting {
			r.State = perdure.Running
		}
		if !t.CompletedAt.IsZero() {
			r.CompletedAt = &t.CompletedAt
		}
		d.Recent = append(d.Recent, r)
		return len(d.Recent) < recentTasks, nil
	})
	if err != nil || d.Stats.Running == 0 {
		return d, err
	}
	running := listing{state: perdure.Running}
	return d, s.eachTask(ctx, running, func(_ *perdure.Tree, id perdure.TaskID) (bool, error) {
		t, err := s.store.Task(ctx, id)
		if err == nil {
			d.Running = append(d.Running, s.shortOf(&t))
		}
		return len(d.Running) < MaxList, ignoreNotFound(err)
	})
}

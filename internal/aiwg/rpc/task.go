package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
)

// keyPrefix begins the idempotency keys of submissions that have an ID.
const keyPrefix = "ipc:"

// ownKeys are members of metadata that a client may not set: they are the
// store's, or an executor's.
const (
	importKey = "perdure_import"
	planKey   = "rlm"
)

// Kind is the kind of the trees of this package: of one task each.
const Kind = aiwgtree.KindIPC

// executes tells whether the daemon itself does the task of a tree.
func executes(t *perdure.Tree) bool { return Executes(*t) }

// Executes tells whether a tree of [Kind] is to be done by the daemon;
// else it waits for a worker.
func Executes(t perdure.Tree) bool {
	if t.Kind != Kind || len(t.Config) <= len("{}") { // it is asked often
		return false
	}
	var config struct {
		Model string `json:"model"`
	}
	return json.Unmarshal(t.Config, &config) == nil && config.Model != ""
}

func byteCount(n int) string { return strconv.Itoa(n) + " bytes" }

// find returns the task of an ID: the store's own, or the one a client gave its
// submission.
func (s *Server) find(ctx context.Context, name string) (perdure.Task, error) {
	gone := &perdure.Error{Code: perdure.CodeNotFound, Op: "find task", Msg: "Task not found: " + name,
		Hint: "task.list lists the tasks"}
	id, err := perdure.ParseTaskID(name)
	if err != nil {
		tree, there, err := s.submitted(ctx, name)
		if err == nil && !there {
			err = gone
		}
		if err != nil {
			return perdure.Task{}, err
		}
		id = tree.Root
	}
	task, err := s.store.Task(ctx, id)
	if errors.Is(err, perdure.ErrNotFound) {
		return task, gone
	}
	if err != nil {
		return task, err
	}
	tree, err := s.store.Tree(ctx, task.Tree)
	switch {
	case errors.Is(err, perdure.ErrNotFound):
		return task, gone
	case err == nil && (tree.Kind != Kind || task.Parent != 0):
		gone.Hint = "it is a task of " + string(tree.ID) + ", which was not submitted here; `perdure show` shows it"
		return task, gone
	}
	return task, err
}

// submitted looks for a submission by the ID that the client gave it.
func (s *Server) submitted(ctx context.Context, name string) (perdure.Tree, bool, error) {
	if name == "" || len(name) > MaxIDBytes {
		return perdure.Tree{}, false, nil
	}
	found, err := s.store.ImportedKeys(ctx, []string{keyPrefix + name})
	id, there := found[keyPrefix+name]
	if err != nil || !there {
		return perdure.Tree{}, false, err
	}
	tree, err := s.store.Tree(ctx, id)
	return tree, err == nil, ignoreGone(err)
}

func ignoreGone(err error) error {
	if errors.Is(err, perdure.ErrNotFound) {
		return nil
	}
	return err
}

// record is the record of a task as files of tasks have it.
func (s *Server) record(ctx context.Context, id perdure.TreeID) (json.RawMessage, error) {
	tree, err := s.store.Tree(ctx, id)
	if err != nil {
		return nil, err
	}
	return aiwgtree.Record(ctx, s.store, &tree)
}

// submission is what task.submit asks for.
type submission struct {
	id      string
	root    perdure.TaskSpec
	execute *bool
	meta    map[string]json.RawMessage
}

func readSubmission(p params) (*submission, error) {
	sub := &submission{}
	var err error
	if sub.root.Prompt, _, err = p.text("prompt"); err == nil && sub.root.Prompt == "" {
		err = invalidParams("Missing required parameter: prompt")
	}
	if err != nil {
		return nil, err
	}
	if sub.id, _, err = p.text("id", "taskId", "task_id"); err != nil {
		return nil, err
	}
	if len(sub.id) > MaxIDBytes {
		return nil, invalidParams(fmt.Sprintf("id has %d bytes, the limit is %d", len(sub.id), MaxIDBytes))
	}
	if sub.root.Agent, _, err = p.text("agent"); err != nil {
		return nil, err
	}
	priority, _, err := p.whole(-perdure.MaxPriority, perdure.MaxPriority, "priority")
	if err != nil {
		return nil, err
	}
	attempts, _, err := p.whole(1, math.MaxInt32, "max_attempts", "maxAttempts")
	if err != nil {
		return nil, err
	}
	sub.root.Priority, sub.root.MaxAttempts = int(priority), int(attempts)
	execute, told, err := p.flag("execute")
	if told {
		sub.execute = &execute
	}
	if err != nil {
		return nil, err
	}
	if sub.meta, err = p.object("metadata"); err != nil {
		return nil, err
	}
	sub.meta = p.rest(sub.meta)
	sub.root.Metadata, err = packMetadata(sub.meta)
	return sub, err
}

// packMetadata checks and encodes metadata.
func packMetadata(meta map[string]json.RawMessage) (json.RawMessage, error) {
	if _, taken := meta[importKey]; taken {
		return nil, invalidParams("metadata." + importKey + " is a name of perdure's own")
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	return encode(meta)
}

// outside tells whether a task belongs to an executor at the client's end: one
// that builds trees from tasks, or says so.
func (sub *submission) outside() bool {
	for _, key := range []string{"tree_id", "parent_id", "node_id", planKey} {
		if v, there := sub.meta[key]; there && string(v) != "null" {
			return true
		}
	}
	return false
}

// execution decides who does a task.
func (s *Server) execution(sub *submission) (Execution, error) {
	if sub.execute != nil && !*sub.execute || sub.execute == nil && sub.outside() {
		return Execution{}, nil
	}
	x, can := s.cfg.Execute(sub.root.Agent)
	_, plan := sub.meta[planKey]
	switch {
	case can && !plan:
		return x, nil
	case sub.execute == nil:
		return Execution{}, nil
	case plan:
		return x, invalidParams("metadata." + planKey + " is a name of the executor's own")
	}
	return x, &Error{Code: CodeConflict, Message: "this daemon cannot execute the task: no model is configured for it",
		Data: &ErrorData{Code: perdure.CodeConflict, Hint: "set `model` in .perdure/config.yaml, or a profile of the " +
			"agent's name under `agents`"}}
}

// submit makes a task.
func (s *Server) submit(ctx context.Context, _ *conn, p params) (any, error) {
	sub, err := readSubmission(p)
	if err != nil {
		return nil, err
	}
	if s.stopping() {
		return nil, errStopping()
	}
	if known, err := s.known(ctx, sub); known != nil || err != nil {
		return known, err
	}
	x, err := s.execution(sub)
	if err != nil {
		return nil, err
	}
	spec := perdure.TreeSpec{Kind: Kind, Root: sub.root, Config: x.Config, Limits: x.Limits}
	if sub.id != "" {
		spec.IdempotencyKey = keyPrefix + sub.id
	}
	tree, err := s.store.CreateTree(ctx, spec)
	if err != nil {
		return nil, err
	}
	return s.again(ctx, sub, tree.Root)
}

// known returns the answer for a task that was submitted before: under the ID
// of this submission, or as the task that has this ID.
func (s *Server) known(ctx context.Context, sub *submission) (any, error) {
	if sub.id == "" {
		return nil, nil
	}
	tree, there, err := s.submitted(ctx, sub.id)
	if err != nil {
		return nil, err
	}
	if there {
		return s.again(ctx, sub, tree.Root)
	}
	id, err := perdure.ParseTaskID(sub.id)
	if err != nil {
		return nil, nil //nolint:nilerr // a name of the client's own
	}
	if _, err := s.find(ctx, sub.id); err != nil {
		return nil, ignoreGone(err)
	}
	return s.again(ctx, sub, id)
}

// again answers with a task that is there, if it is the one submitted.
func (s *Server) again(ctx context.Context, sub *submission, id perdure.TaskID) (any, error) {
	task, err := s.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if task.Prompt != sub.root.Prompt {
		return nil, &Error{Code: CodeConflict, Message: fmt.Sprintf("the id %q was given to another task, %s", sub.id, id),
			Data: &ErrorData{Code: perdure.CodeConflict, TaskID: id, Hint: "each task has an ID of its own; without one it " +
				"gets a new one"}}
	}
	return s.changed(ctx, id, 0)
}

func (s *Server) get(ctx context.Context, _ *conn, p params) (any, error) {
	name, err := p.taskID()
	if err != nil {
		return nil, err
	}
	task, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	return s.record(ctx, task.Tree)
}

// cancel ends a task that has not ended, whoever does it.
func (s *Server) cancel(ctx context.Context, _ *conn, p params) (any, error) {
	reason, _, err := p.text("reason")
	if err != nil {
		return nil, err
	}
	if reason == "" {
		reason = "cancelled by a client"
	}
	name, err := p.taskID()
	if err != nil {
		return nil, err
	}
	task, err := s.find(ctx, name)
	if err != nil && !errors.Is(err, perdure.ErrNotFound) {
		return nil, err
	}
	cancelled := false
	if err == nil {
		if cancelled, err = s.cancelTask(ctx, task.ID, reason); err != nil {
			return nil, err
		}
	}
	return map[string]bool{"cancelled": cancelled}, nil
}

func (s *Server) cancelTask(ctx context.Context, id perdure.TaskID, reason string) (bool, error) {
	_, err := s.store.CancelTask(ctx, id, reason)
	if errors.Is(err, perdure.ErrConflict) || errors.Is(err, perdure.ErrNotFound) {
		return false, nil // it has ended
	}
	if err != nil {
		return false, err
	}
	k := s.desks.sit(id)
	defer s.desks.rise(id, k)
	return true, (&turn{s: s, k: k, id: id}).dropLost(ctx)
}

// eachTree calls do for each tree, the newest first, until it returns false.
func (s *Server) eachTree(ctx context.Context, f perdure.TreeFilter, do func(*perdure.Tree) (bool, error)) error {
	f.Kind = Kind
	for {
		page, err := s.store.Trees(ctx, f)
		if err != nil {
			return err
		}
		for i := range page {
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

// stateOf is the state of a tree's task as clients know it.
func (s *Server) stateOf(ctx context.Context, t *perdure.Tree) (perdure.State, error) {
	if t.State != perdure.Running {
		return t.State, nil // the root's
	}
	root := perdure.TaskID(0)
	tasks, err := s.store.Tasks(ctx, perdure.TaskFilter{Tree: t.ID, Parent: &root, Limit: 1, Brief: true})
	if err != nil || len(tasks) == 0 {
		return "", ignoreGone(err)
	}
	if tasks[0].State == perdure.Waiting {
		return perdure.Running, nil
	}
	return tasks[0].State, nil
}

// list lists tasks, the newest first.
func (s *Server) list(ctx context.Context, _ *conn, p params) (any, error) {
	q, err := s.readList(ctx, p)
	if err != nil {
		return nil, err
	}
	records, size := []json.RawMessage{}, 0
	err = s.eachTree(ctx, q.trees, func(t *perdure.Tree) (bool, error) {
		if q.state != "" {
			if is, err := s.stateOf(ctx, t); err != nil || is != q.state {
				return true, err
			}
		}
		record, err := aiwgtree.Record(ctx, s.store, t)
		if err != nil {
			return true, ignoreGone(err) // it was removed just now
		}
		if q.byAgent {
			var of struct {
				Agent string `json:"agent"`
			}
			if err := json.Unmarshal(record, &of); err != nil || of.Agent != q.agent {
				return true, err
			}
		}
		if size += len(record); size > MaxAnswerBytes {
			return false, &Error{Code: CodeAnswerTooLong, Message: fmt.Sprintf("the first %d tasks have more than %s",
				len(records)+1, byteCount(MaxAnswerBytes)),
				Data: &ErrorData{Hint: "ask for fewer with limit, and for the rest with before: the last task's ID"}}
		}
		records = append(records, record)
		return len(records) < q.limit, nil
	})
	return records, err
}

// listing is what task.list asks for.
type listing struct {
	state   perdure.State
	agent   string
	byAgent bool
	limit   int
	trees   perdure.TreeFilter
}

func (s *Server) readList(ctx context.Context, p params) (q listing, err error) {
	name, _, err := p.text("state", "status")
	if err != nil {
		return q, err
	}
	states := []perdure.State{"", perdure.Queued, perdure.Running, perdure.Completed, perdure.Failed, perdure.Cancelled}
	if q.state = perdure.State(name); !slices.Contains(states, q.state) {
		return q, invalidParams(fmt.Sprintf("state %q is not one of queued, running, completed, failed, cancelled", name))
	}
	q.trees = perdure.TreeFilter{Limit: 100, Active: q.state == perdure.Queued || q.state == perdure.Running}
	if q.agent, q.byAgent, err = p.text("agent"); err != nil {
		return q, err
	}
	n, _, err := p.whole(0, math.MaxInt32, "limit")
	if q.limit = min(int(n), MaxList); n == 0 {
		q.limit = DefaultList
	}
	if err != nil {
		return q, err
	}
	before, there, err := p.text("before")
	if err == nil && there {
		var task perdure.Task
		task, err = s.find(ctx, before)
		q.trees.Before = task.Tree
	}
	return q, err
}

// counts are the tasks by state.
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

func (s *Server) stats(ctx context.Context, _ *conn, _ params) (any, error) {
	var c counts
	err := s.eachTree(ctx, perdure.TreeFilter{Limit: MaxList}, func(t *perdure.Tree) (bool, error) {
		state, err := s.stateOf(ctx, t)
		c.add(state)
		return true, err
	})
	return &c, err
}

// cleanup removes tasks that ended long ago: those that failed only when asked.
func (s *Server) cleanup(ctx context.Context, _ *conn, p params) (any, error) {
	age := int64(DefaultAge / time.Millisecond)
	given, there, err := p.whole(0, math.MaxInt64/int64(time.Millisecond), "maxAge", "max_age", "max_age_ms", "maxAgeMs")
	if err != nil {
		return nil, err
	}
	if there {
		age = given
	}
	failed, _, err := p.flag("includeFailed", "include_failed")
	if err != nil {
		return nil, err
	}
	before := time.Now().Add(-time.Duration(age) * time.Millisecond)
	var old []perdure.TreeID
	err = s.eachTree(ctx, perdure.TreeFilter{Limit: MaxList}, func(t *perdure.Tree) (bool, error) {
		due := t.State.Terminal() && (t.State != perdure.Failed || failed)
		if due && t.CompletedAt != nil && !t.CompletedAt.After(before) {
			old = append(old, t.ID)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	removed := 0
	for _, id := range old {
		switch err := s.store.RemoveTree(ctx, id); {
		case err == nil:
			removed++
		case !errors.Is(err, perdure.ErrNotFound) && !errors.Is(err, perdure.ErrConflict):
			return nil, err
		}
	}
	return map[string]int{"removed": removed}, nil
}

// sameValue tells whether two JSON values are the same.
func sameValue(a, b json.RawMessage) bool {
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	p, err := encode(x)
	q, err2 := encode(y)
	return err == nil && err2 == nil && string(p) == string(q)
}

// kept is the metadata to store for metadata that a client wants a task to have:
// what the record says by itself is left out.
func kept(want, shown, given map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(want)
	for key, value := range out {
		if is, there := shown[key]; there && given[key] == nil && sameValue(is, value) {
			delete(out, key)
		}
	}
	return out
}

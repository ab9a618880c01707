package rpc

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/perdure/perdure"
	aiwgtree "github.com/perdure/perdure/internal/aiwg/tree"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// keyPrefix is the prefix of the idempotency keys of submissions with an ID.
const keyPrefix = "ipc:"

// Members of metadata that a client cannot set: those of the store and of the executor.
const (
	importKey = "perdure_import"
	planKey   = "rlm"
)

// Kind is the kind of the trees of this package, which have one task each.
const Kind = aiwgtree.KindIPC

// Executes reports whether the daemon executes a tree of [Kind]; other trees wait for a
// worker.
func Executes(t *perdure.Tree) bool {
	if t.Kind != Kind || len(t.Config) <= len("{}") { // fast, because it is called often
		return false
	}
	var config struct {
		Model string `json:"model"`
	}
	return json.Unmarshal(t.Config, &config) == nil && config.Model != ""
}

// findTask returns the task that the parameters name, which are all read then.
func (s *Server) findTask(ctx context.Context, p *params) (perdure.Task, error) {
	name := p.taskID()
	if p.err != nil {
		return perdure.Task{}, p.err
	}
	return s.find(ctx, name)
}

// find returns the task of an ID: that of the store, or that of a submission.
func (s *Server) find(ctx context.Context, name string) (perdure.Task, error) {
	notFound := &perdure.Error{Code: perdure.CodeNotFound, Op: "find task", Msg: "Task not found: " + name,
		Hint: "task.list lists the tasks"}
	id, err := perdure.ParseTaskID(name)
	if err != nil {
		tree, there, err := s.submitted(ctx, name)
		if err == nil && !there {
			err = notFound
		}
		if err != nil {
			return perdure.Task{}, err
		}
		id = tree.Root
	}
	var tree perdure.Tree
	task, err := s.store.Task(ctx, id)
	if err == nil {
		tree, err = s.store.Tree(ctx, task.Tree)
	}
	switch {
	case errors.Is(err, perdure.ErrNotFound):
		return task, notFound
	case err == nil && (!aiwgtree.Shown(&tree) || tree.Kind == Kind && task.Parent != 0):
		notFound.Hint = "it is a task of " + string(tree.ID) + ", which was neither submitted here nor imported; " +
			"`perdure show` shows it"
		return task, notFound
	}
	return task, err
}

// submitted returns the tree of a submission by the client's ID.
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
	return tree, err == nil, ignoreNotFound(err)
}

func ignoreNotFound(err error) error {
	if errors.Is(err, perdure.ErrNotFound) {
		return nil
	}
	return err
}

// record returns the record of a task as in daemon/tasks.json.
func (s *Server) record(ctx context.Context, id perdure.TaskID) (json.RawMessage, error) {
	task, err := s.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	tree, err := s.store.Tree(ctx, task.Tree)
	if err != nil {
		return nil, err
	}
	return s.recordOf(ctx, &tree, &task)
}

// recordOf returns the record of a task, with the process of its worker.
func (s *Server) recordOf(ctx context.Context, tree *perdure.Tree, task *perdure.Task) (json.RawMessage, error) {
	raw, err := aiwgtree.Record(ctx, s.store, tree, task)
	pid := s.items.pid(task.ID)
	if err != nil || pid == 0 || task.State != perdure.Running {
		return raw, err
	}
	return bytes.Replace(raw, []byte(`,"pid":null,`), fmt.Appendf(nil, `,"pid":%d,`, pid), 1), nil
}

// submission is the parameters of task.submit.
type submission struct {
	id      string
	root    perdure.TaskSpec
	execute *bool
	meta    map[string]json.RawMessage
}

func readSubmission(p *params) (*submission, error) {
	sub := &submission{}
	if sub.root.Prompt, _ = p.text("prompt"); sub.root.Prompt == "" {
		p.fail("Missing required parameter: prompt")
	}
	if sub.id, _ = p.text("id", "taskId", "task_id"); len(sub.id) > MaxIDBytes {
		p.fail("id has %d bytes, the limit is %d", len(sub.id), MaxIDBytes)
	}
	sub.root.Agent, _ = p.text("agent")
	priority, _ := p.whole(-perdure.MaxPriority, perdure.MaxPriority, "priority")
	attempts, _ := p.whole(1, math.MaxInt32, "max_attempts", "maxAttempts")
	sub.root.Priority, sub.root.MaxAttempts = int(priority), int(attempts)
	if execute, ok := p.flag("execute"); ok {
		sub.execute = &execute
	}
	sub.meta = p.object("metadata")
	sub.meta = p.rest(sub.meta)
	sub.root.Metadata = p.packMetadata(sub.meta)
	return sub, p.err
}

// packMetadata checks and encodes metadata.
func (p *params) packMetadata(meta map[string]json.RawMessage) json.RawMessage {
	if _, taken := meta[importKey]; taken {
		p.fail("metadata.%s is reserved for perdure", importKey)
	}
	if meta == nil {
		return json.RawMessage("{}")
	}
	return jsontree.MustMarshal(meta)
}

// forClient reports whether the metadata of a task is that of an executor of the client.
func (sub *submission) forClient() bool {
	return slices.ContainsFunc([]string{"tree_id", "parent_id", "node_id", planKey},
		func(key string) bool { return given(sub.meta[key]) })
}

// execution returns how the daemon executes a task; it is empty if a worker does.
func (s *Server) execution(sub *submission) (Execution, error) {
	if sub.execute != nil && !*sub.execute || sub.execute == nil && sub.forClient() {
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
		return x, invalidParams("metadata." + planKey + " is reserved for the executor")
	}
	return x, &Error{Code: CodeConflict, Message: "this daemon cannot execute the task: no model is configured for it",
		Data: &ErrorData{Code: perdure.CodeConflict, Hint: "set `model` in .perdure/config.yaml, or a profile of the " +
			"agent's name under `agents`"}}
}

// submit creates a task.
func (s *Server) submit(ctx context.Context, _ *conn, p *params) (any, error) {
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
	spec := perdure.TreeSpec{Kind: Kind, Root: sub.root, Config: x.Config, Limits: x.Limits,
		LateState: true}
	if sub.id != "" {
		spec.IdempotencyKey = keyPrefix + sub.id
	}
	tree, err := s.store.CreateTree(ctx, spec)
	if err != nil {
		return nil, err
	}
	return s.existing(ctx, sub, tree.Root)
}

// known returns the answer for a task that exists already: one that was submitted with
// this ID, or has this ID in the store. It returns nil for a new task.
func (s *Server) known(ctx context.Context, sub *submission) (any, error) {
	if sub.id == "" {
		return nil, nil
	}
	tree, there, err := s.submitted(ctx, sub.id)
	if err != nil {
		return nil, err
	}
	if there {
		return s.existing(ctx, sub, tree.Root)
	}
	id, err := perdure.ParseTaskID(sub.id)
	if err != nil {
		return nil, nil //nolint:nilerr // another ID of the client
	}
	if _, err := s.find(ctx, sub.id); err != nil {
		return nil, ignoreNotFound(err)
	}
	return s.existing(ctx, sub, id)
}

// existing returns the answer with a task of the store if it is the submitted one.
func (s *Server) existing(ctx context.Context, sub *submission, id perdure.TaskID) (any, error) {
	task, err := s.store.Task(ctx, id)
	if err != nil {
		return nil, err
	}
	if task.Prompt != sub.root.Prompt {
		return nil, &Error{Code: CodeConflict, Message: fmt.Sprintf("another task, %s, has the id %q", id, sub.id),
			Data: &ErrorData{Code: perdure.CodeConflict, TaskID: id, Hint: "submit it with another id or without one"}}
	}
	return s.changed(ctx, id, 0)
}

func (s *Server) get(ctx context.Context, _ *conn, p *params) (any, error) {
	task, err := s.findTask(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.record(ctx, task.ID)
}

// cancel cancels a task that has not ended.
func (s *Server) cancel(ctx context.Context, _ *conn, p *params) (any, error) {
	reason, _ := p.text("reason")
	task, err := s.findTask(ctx, p)
	cancelled := false
	if err == nil {
		cancelled, err = s.cancelTask(ctx, task.ID, cmp.Or(reason, cancelReason))
	}
	if ignoreNotFound(err) != nil {
		return nil, err
	}
	return map[string]bool{"cancelled": cancelled}, nil
}

const cancelReason = "cancelled by a client"

func (s *Server) cancelTask(ctx context.Context, id perdure.TaskID, reason string) (bool, error) {
	_, err := s.store.CancelTask(ctx, id, reason)
	if errors.Is(err, perdure.ErrConflict) || errors.Is(err, perdure.ErrNotFound) {
		return false, nil // the task has ended
	}
	if err != nil {
		return false, err
	}
	k := s.items.acquire(id)
	defer s.items.release(id, k)
	return true, (&operation{s: s, k: k, id: id}).dropLost(ctx)
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

// cleanup removes tasks that ended long ago, failed ones only on request.
func (s *Server) cleanup(ctx context.Context, _ *conn, p *params) (any, error) {
	age, there := p.whole(0, math.MaxInt64/int64(time.Millisecond), "maxAge", "max_age", "max_age_ms", "maxAgeMs")
	if !there {
		age = DefaultAge.Milliseconds()
	}
	failed, _ := p.flag("includeFailed", "include_failed")
	if p.err != nil {
		return nil, p.err
	}
	before := time.Now().Add(-time.Duration(age) * time.Millisecond)
	var old []perdure.TreeID
	err := s.eachTree(ctx, perdure.TreeFilter{Limit: MaxList}, func(t *perdure.Tree) (bool, error) {
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

// sameValue reports whether two JSON values are equal.
func sameValue(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

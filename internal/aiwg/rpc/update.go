package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/perdure/perdure"
)

// update changes members of a record: the state and its result or error, the metadata,
// and before the task is started agent and priority. Members that have not changed are
// ignored, so that a client can send a whole record. Times are always those of the store.
func (s *Server) update(ctx context.Context, c *conn, p *params) (any, error) {
	_, nested := p.values["updates"]
	inner := p.object("updates")
	return s.work(ctx, c, p, func(t *operation) error {
		u := &updating{operation: t, p: p}
		if nested {
			u.p = &params{values: inner}
		}
		return u.do(ctx)
	})
}

// updating is one update.
type updating struct {
	*operation
	p      *params
	now    perdure.Task
	shown  map[string]json.RawMessage // the record
	meta   map[string]json.RawMessage // the metadata of the record
	stored map[string]json.RawMessage // the metadata of the store
}

// do checks the parameters before it changes anything. It changes the metadata last, so
// that an update that is sent again after a lost answer completes.
func (u *updating) do(ctx context.Context) error {
	if err := u.read(ctx); err != nil {
		return err
	}
	move := u.transition()
	a := u.amendment()
	if u.p.err != nil {
		return u.p.err
	}
	if err := u.keepPlan(ctx, &a); err != nil {
		return err
	}
	if a.Agent != nil || a.Priority != nil { // refused after the task was started
		if err := u.s.store.AmendTask(ctx, u.id, perdure.Amendment{Agent: a.Agent, Priority: a.Priority}); err != nil {
			return err
		}
	}
	if move != nil {
		if err := move(ctx); err != nil {
			return err
		}
	}
	if a.Metadata == nil {
		return nil
	}
	return u.s.store.AmendTask(ctx, u.id, perdure.Amendment{Metadata: a.Metadata})
}

// read reads the task, and removes parameters that do not change it.
func (u *updating) read(ctx context.Context) (err error) {
	if u.now, err = u.s.store.Task(ctx, u.id); err != nil {
		return err
	}
	record, err := u.s.record(ctx, u.id)
	if err != nil {
		return err
	}
	err = errors.Join(json.Unmarshal(record, &u.shown), json.Unmarshal(u.now.Metadata, &u.stored))
	if err == nil {
		err = json.Unmarshal(u.shown["metadata"], &u.meta)
	}
	if err != nil {
		return fmt.Errorf("read record of task %q: %w", u.id, err)
	}
	ignored := []string{"createdAt", "startedAt", "completedAt", "active_ms", "attempts", "taskId", "treeId",
		"fence"}
	maps.DeleteFunc(u.p.values, func(key string, value json.RawMessage) bool {
		return slices.Contains(ignored, key) || sameValue(u.shown[key], value)
	})
	return nil
}

// keepPlan refuses metadata with a plan, which the executor would use.
func (u *updating) keepPlan(ctx context.Context, a *perdure.Amendment) error {
	var plan struct {
		Plan json.RawMessage `json:"rlm"`
	}
	if a.Metadata == nil || json.Unmarshal(a.Metadata, &plan) == nil && plan.Plan == nil {
		return nil
	}
	tree, err := u.s.store.Tree(ctx, u.now.Tree)
	if err != nil || !Executes(&tree) {
		return err
	}
	return invalidParams("metadata." + planKey + " is reserved for the executor")
}

// amendment reads the parameters that do not belong to a state.
func (u *updating) amendment() (a perdure.Amendment) {
	for _, key := range []string{"id", "prompt", "data", "max_attempts"} {
		if _, there := u.p.values[key]; there {
			u.p.fail("%s cannot be changed", key)
		}
	}
	if agent, ok := u.p.text("agent"); ok {
		a.Agent = &agent
	}
	if n, ok := u.p.whole(-perdure.MaxPriority, perdure.MaxPriority, "priority"); ok {
		a.Priority = new(int(n))
	}
	meta := u.p.object("metadata")
	switch {
	case meta != nil: // without the members that only the record has
		maps.DeleteFunc(meta, func(key string, value json.RawMessage) bool {
			return u.stored[key] == nil && sameValue(u.meta[key], value)
		})
	case len(u.p.values) > 0:
		meta = maps.Clone(u.stored)
	default:
		return a
	}
	maps.Copy(meta, u.p.values) // members that records do not have
	a.Metadata = u.p.packMetadata(meta)
	return a
}

// transition reads the state with its result or error, and returns the function that
// changes it, nil for no change.
func (u *updating) transition() func(context.Context) error {
	result, failed := given(u.p.values["result"]), given(u.p.values["error"])
	state, there := u.p.text("state", "status")
	want := perdure.State(state)
	if there {
		u.p.checkState(want)
	} else {
		want = u.now.State
	}
	if result && want != perdure.Completed || failed && want != perdure.Failed {
		u.p.fail("a result needs the state completed, an error the state failed")
	}
	r := u.p.outcome()
	e := &params{values: map[string]json.RawMessage{"error": u.p.take("error")}}
	f := e.failure()
	u.p.err = cmp.Or(u.p.err, e.err)
	output := u.output()
	pid, _ := u.p.whole(0, math.MaxInt32, "pid")
	end := map[perdure.State]func(context.Context) error{
		perdure.Running:   func(ctx context.Context) error { return u.begin(ctx, pid) },
		perdure.Completed: func(ctx context.Context) error { return u.complete(ctx, r) },
		perdure.Failed:    func(ctx context.Context) error { return u.fail(ctx, f) },
		perdure.Cancelled: u.cancel,
		perdure.Queued:    u.requeue,
	}[want]
	if want == u.now.State && !result && !failed {
		end = nil
	}
	if output == "" {
		return end
	}
	return func(ctx context.Context) error {
		if want == perdure.Running && end != nil {
			if err := end(ctx); err != nil {
				return err
			}
			end = nil
		}
		if err := u.append(ctx, output); err != nil || end == nil {
			return err
		}
		return end(ctx)
	}
}

// output returns the new end of the output.
func (u *updating) output() string {
	text, there := u.p.text("output")
	more, appended := strings.CutPrefix(text, u.now.Output)
	if there && !appended {
		u.p.fail("output can only be appended to, as task.append_output does")
	}
	return more
}

// cancel cancels the task, also if another worker holds it.
func (t *operation) cancel(ctx context.Context) error {
	if _, err := t.s.store.CancelTask(ctx, t.id, cancelReason); err != nil {
		return err
	}
	return t.dropLost(ctx)
}

// requeue releases the task, or retries a failed one.
func (u *updating) requeue(ctx context.Context) error {
	if u.now.State == perdure.Failed {
		return u.s.store.RetryTask(ctx, u.id)
	}
	return u.settle(ctx, perdure.Queued, func(l *perdure.Lease) error { return l.Release(ctx) })
}

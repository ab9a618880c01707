package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/perdure/perdure"
)

// update changes members of a record, as assigning them would: the state, what
// comes with it, the metadata, and before the task is begun agent and priority.
// Members that are as they were change nothing, so that a whole record may come
// back. The store's own times count, whatever comes.
func (s *Server) update(ctx context.Context, c *conn, p params) (any, error) {
	_, nested := p["updates"]
	inner, err := p.object("updates")
	if err != nil {
		return nil, err
	}
	return s.work(ctx, c, p, func(t *turn) error {
		u := &updating{turn: t, p: p}
		if nested {
			u.p = maps.Clone(inner)
		}
		return u.do(ctx)
	})
}

// updating is an update under way.
type updating struct {
	*turn
	p      params
	now    perdure.Task
	shown  map[string]json.RawMessage // the record
	meta   map[string]json.RawMessage // that of the record
	stored map[string]json.RawMessage // that of the store
}

// do checks everything that it can before it changes anything. The metadata come
// last: sent again after an answer that was lost, an update completes.
func (u *updating) do(ctx context.Context) error {
	if err := u.read(ctx); err != nil {
		return err
	}
	move, err := u.transition()
	if err != nil {
		return err
	}
	a, err := u.amendment()
	if err != nil {
		return err
	}
	if err := u.keepPlan(ctx, &a); err != nil {
		return err
	}
	if a.Agent != nil || a.Priority != nil { // which is refused once it is begun
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

// read looks at the task, and leaves out what is as it was.
func (u *updating) read(ctx context.Context) (err error) {
	if u.now, err = u.s.store.Task(ctx, u.id); err != nil {
		return err
	}
	record, err := u.s.record(ctx, u.now.Tree)
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
	for key, value := range u.p {
		if is, there := u.shown[key]; there && sameValue(is, value) {
			delete(u.p, key)
		}
	}
	for _, key := range []string{"pid", "createdAt", "startedAt", "completedAt", "active_ms", "attempts", "taskId",
		"treeId", "fence"} {
		delete(u.p, key)
	}
	return nil
}

// keepPlan refuses metadata that the executor would take for a plan.
func (u *updating) keepPlan(ctx context.Context, a *perdure.Amendment) error {
	var plan struct {
		Plan json.RawMessage `json:"rlm"`
	}
	if a.Metadata == nil || json.Unmarshal(a.Metadata, &plan) == nil && plan.Plan == nil {
		return nil
	}
	tree, err := u.s.store.Tree(ctx, u.now.Tree)
	if err != nil || !Executes(tree) {
		return err
	}
	return invalidParams("metadata." + planKey + " is a name of the executor's own")
}

// amendment reads what is said of the task beside its state.
func (u *updating) amendment() (a perdure.Amendment, err error) {
	for _, key := range []string{"id", "prompt", "data", "max_attempts"} {
		if _, there := u.p[key]; there {
			return a, invalidParams(key + " does not change")
		}
	}
	agent, there, err := u.p.text("agent")
	if there {
		a.Agent = &agent
	}
	if err != nil {
		return a, err
	}
	n, there, err := u.p.whole(-perdure.MaxPriority, perdure.MaxPriority, "priority")
	if priority := int(n); there {
		a.Priority = &priority
	}
	if err != nil {
		return a, err
	}
	meta, err := u.p.object("metadata")
	if err != nil {
		return a, err
	}
	switch {
	case meta != nil:
		meta = kept(meta, u.meta, u.stored)
	case len(u.p) > 0:
		meta = maps.Clone(u.stored)
	default:
		return a, nil
	}
	maps.Copy(meta, u.p) // members that records do not have
	a.Metadata, err = packMetadata(meta)
	return a, err
}

// transition reads the state, and what only comes with one, and returns what is
// to be done about it, nil for nothing.
func (u *updating) transition() (func(context.Context) error, error) {
	says := given(u.p["result"]) || given(u.p["error"])
	state, there, err := u.p.text("state", "status")
	want := perdure.State(state)
	if !there {
		want = u.now.State
	}
	if err == nil && (given(u.p["result"]) && want != perdure.Completed || given(u.p["error"]) && want != perdure.Failed) {
		err = invalidParams("a result comes with the state completed, an error with failed")
	}
	if err != nil {
		return nil, err
	}
	r, err := u.p.outcome()
	if err != nil {
		return nil, err
	}
	f, err := params{"error": u.p.take("error")}.failure()
	if err != nil {
		return nil, err
	}
	output, err := u.output()
	if err != nil {
		return nil, err
	}
	end, known := map[perdure.State]func(context.Context) error{
		perdure.Running:   func(ctx context.Context) error { return u.begin(ctx, 0) },
		perdure.Completed: func(ctx context.Context) error { return u.complete(ctx, r) },
		perdure.Failed:    func(ctx context.Context) error { return u.fail(ctx, f) },
		perdure.Cancelled: u.cancel,
		perdure.Queued:    u.requeue,
	}[want]
	if !known && there {
		return nil, invalidParams(fmt.Sprintf("state %q is not one of queued, running, completed, failed, cancelled", want))
	}
	if want == u.now.State && !says {
		end = nil
	}
	if output == "" {
		return end, nil
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
	}, nil
}

func given(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }

// output reads what is new of an output, which only grows.
func (u *updating) output() (string, error) {
	text, there, err := u.p.text("output")
	if err != nil || !there {
		return "", err
	}
	more, grows := strings.CutPrefix(text, u.now.Output)
	if !grows {
		return "", invalidParams("output only grows; task.append_output adds to it")
	}
	return more, nil
}

// cancel ends the task, whoever works on it.
func (t *turn) cancel(ctx context.Context) error {
	if _, err := t.s.store.CancelTask(ctx, t.id, "cancelled by a client"); err != nil {
		return err
	}
	return t.dropLost(ctx)
}

// requeue gives the task back, or a failed one another attempt.
func (u *updating) requeue(ctx context.Context) error {
	if u.now.State == perdure.Failed {
		return u.s.store.RetryTask(ctx, u.id)
	}
	return u.settle(ctx, perdure.Queued, func(l *perdure.Lease) error { return l.Release(ctx) })
}

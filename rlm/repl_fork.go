package rlm

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// Fork is the tree that a run with a REPL goes on from.
type Fork struct {
	// Tree is the tree, and At the last of its turns that is taken over, at least 1.
	Tree perdure.TreeID `json:"tree"`
	At   int            `json:"at"`
	// Questions are those that were asked before, of a run that asks a further one.
	Questions []Question `json:"questions,omitempty"`
}

// checkFork reports what is wrong with a fork.
func (c *Config) checkFork(bad func(field, format string, args ...any)) {
	if c.Fork == nil {
		return
	}
	if _, err := perdure.ParseTreeID(string(c.Fork.Tree)); err != nil {
		bad("fork", "%q is not the ID of a tree", c.Fork.Tree)
	}
	if c.Planner != PlannerRepl {
		bad("fork", "only runs with planner repl go on from another one")
	}
	if c.Fork.At < 1 || c.Fork.At > MaxReplTurns {
		bad("fork", "turn %d is not between 1 and %d", c.Fork.At, MaxReplTurns)
	}
}

// origin is what a run takes over from the tree that it goes on from.
type origin struct {
	replies []perdure.Call
	calls   map[place]knownCall
	// failed are the sub-calls that failed, and blocks the blocks, if a further question is asked.
	failed map[place]knownCall
	blocks map[[2]int]*record.Block
}

// originOf is loadOrigin for a run that exists. A tree that was removed since has no turns: the
// run has its own records of those that it took over.
func (e *Executor) originOf(ctx context.Context, f *Fork) (*origin, error) {
	o, err := e.loadOrigin(ctx, f)
	switch perdure.CodeOf(err) {
	case perdure.CodeNotFound:
		return &origin{}, nil
	case perdure.CodeInvalid:
		return nil, &attemptError{kind: KindPlan, err: err}
	}
	return o, err
}

// loadOrigin reads the turns of the tree that the run goes on from.
func (e *Executor) loadOrigin(ctx context.Context, f *Fork) (*origin, error) {
	tree, err := e.cfg.Store.Tree(ctx, f.Tree)
	if err != nil {
		return nil, err
	}
	calls, err := e.cfg.Store.Calls(ctx, tree.Root)
	if err != nil {
		return nil, err
	}
	o := &origin{replies: replies(calls), calls: make(map[place]knownCall)}
	if len(o.replies) < f.At {
		return nil, invalid(fmt.Sprintf("fork: the last turn of tree %q is %d, not %d", f.Tree, len(o.replies), f.At),
			"`perdure show TASK` of its root lists the turns")
	}
	filter := perdure.TaskFilter{Tree: f.Tree, Parent: &tree.Root, States: []perdure.State{perdure.Completed}}
	err = eachSubCall(ctx, e.cfg.Store, filter, func(t *perdure.Task, n *node) {
		o.calls[n.Call.place] = knownCall{t.ID, n.Call.Hash}
	})
	if err != nil || len(f.Questions) == 0 {
		return o, err
	}
	o.failed, o.blocks = make(map[place]knownCall), make(map[[2]int]*record.Block)
	filter.States = []perdure.State{perdure.Failed}
	err = eachSubCall(ctx, e.cfg.Store, filter, func(t *perdure.Task, n *node) {
		o.failed[n.Call.place] = knownCall{t.ID, n.Call.Hash}
	})
	if err != nil {
		return o, err
	}
	blocks, err := e.blocks.Blocks(ctx, f.Tree, tree.Root)
	for i := range blocks {
		o.blocks[[2]int{blocks[i].Turn, blocks[i].Index}] = &blocks[i]
	}
	return o, err
}

// takenOver returns the reply of a turn that is taken over from another tree, and records it as
// a call that was not sent.
func (a *attempt) takenOver(ctx context.Context, c *console) (text string, ok bool, err error) {
	o := a.run.origin
	if o == nil || a.l.Task.Parent != 0 || c.number >= a.run.cfg.Fork.At {
		return "", false, nil
	}
	t, err := a.termsBefore(ctx, c)
	if err != nil {
		return "", false, err
	}
	c.shown.take(t.Shown)
	m, req := a.run.model(&a.l.Task), a.turnRequest(c)
	spec := perdure.CallSpec{Position: c.number, Model: m.name, RequestHash: model.Hash(m.name, req)}
	call, replayed, err := a.l.BeginCall(ctx, spec)
	if err != nil || replayed {
		return call.Response, err == nil, err
	}
	r := perdure.CallResult{NotSent: true, CostMicros: new(int64)}
	if c.number >= len(o.replies) {
		gone := failf(KindPlan, "turn %d was not taken over before tree %q was removed", c.number+1, a.run.cfg.Fork.Tree)
		r.Err = &perdure.TaskError{Kind: gone.kind, Message: gone.Error()}
		return "", false, cmp.Or(a.l.SettleCall(ctx, call.ID, r), error(gone))
	}
	r.Response = o.replies[c.number].Response
	if r.Data, err = encode("terms", t); err != nil {
		return "", false, err
	}
	if r.Data, err = encode("call", journaled{Limits: r.Data}); err != nil {
		return "", false, err
	}
	err = a.l.SettleCall(ctx, call.ID, r)
	return r.Response, err == nil, err
}

// termsBefore returns the terms of a reply that is taken over: those that this tree has recorded, else
// those of the other tree.
func (a *attempt) termsBefore(ctx context.Context, c *console) (turnTerms, error) {
	j, err := a.readTurns(ctx, c)
	if err != nil || j.answered[c.number] != nil {
		return j.terms[c.number], err
	}
	if o := a.run.origin; c.number < len(o.replies) {
		_, t := termsOf(&o.replies[c.number])
		return t, nil
	}
	return turnTerms{}, nil
}

// answeredBefore completes the task of a sub-call with the result of one that it takes over: of a
// block that was lost, or of the tree that the run goes on from, if it was made in a turn that is
// taken over.
func (a *attempt) answeredBefore(ctx context.Context) (done bool, err error) {
	o, n := a.run.origin, a.node.Call
	from := n.From
	if f := a.run.cfg.Fork; o != nil && a.l.Task.Depth == 1 && o.failed[n.place].hash == n.Hash && n.Turn <= f.At {
		return false, a.failAsBefore(ctx, o.failed[n.place].task)
	}
	if from == 0 && o != nil && a.l.Task.Depth == 1 && n.Turn <= a.run.cfg.Fork.At && o.calls[n.place].hash == n.Hash {
		from = o.calls[n.place].task
	}
	if from == 0 {
		return false, nil
	}
	t, err := a.e.cfg.Store.Task(ctx, from)
	if err != nil {
		return false, err
	}
	d, err := dataOf(&t)
	if err != nil {
		return false, err
	}
	note := fmt.Sprintf("taken over from task %q", t.ID)
	if !slices.Contains(d.Notes, note) {
		d.addNotes([]string{note})
	}
	return true, a.complete(ctx, t.Result, &d)
}

// failAsBefore returns the failure of a sub-call of the other tree: the code received it there.
func (a *attempt) failAsBefore(ctx context.Context, id perdure.TaskID) error {
	t, err := a.e.cfg.Store.Task(ctx, id)
	if err != nil || t.Error == nil {
		return err
	}
	return failf(t.Error.Kind, "%s", t.Error.Message)
}

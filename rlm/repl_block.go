package rlm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// runBlock runs the block at an index of the turn's reply, or goes on with it. A nil result
// means that its task waits for sub-calls, and the lease has ended.
func (a *attempt) runBlock(ctx context.Context, c *console, turn, index int, code string) (*record.Result, error) {
	ev := engine.Event{Request: c.request}
	if c.block == nil {
		if err := c.begin(ctx, a, turn, index, code); err != nil {
			return nil, err
		}
		if r := c.block.Result; r != nil && r.Lost {
			c.passLost(c.block)
			c.block = nil
			return r, nil
		}
		if err := c.takeEdits(ctx); err != nil {
			return nil, err
		}
		var err error
		ev, err = a.runCode(ctx, func(ctx context.Context) (engine.Event, error) {
			return c.engine.Exec(ctx, engine.Block{Code: code, Clock: c.block.StartedAt, Seed: c.block.Seed,
				History: c.newHistory()})
		})
		if err != nil {
			return nil, err
		}
	}
	for ev.Request != nil {
		c.request = ev.Request // the console can be taken by another goroutine when its task waits
		reply, ready, err := a.serve(ctx, c, ev.Request)
		if err != nil || !ready {
			return nil, err
		}
		ev, err = a.runCode(ctx, func(ctx context.Context) (engine.Event, error) { return c.engine.Reply(ctx, reply) })
		if err != nil {
			return nil, err
		}
	}
	return a.endBlock(ctx, c, resultOf(ev.Done))
}

// runCode lets the code of a block run until it ends or requests something. A worker that is
// stopping ends it at once: the next one runs the block again with what is recorded.
func (a *attempt) runCode(ctx context.Context, run func(context.Context) (engine.Event, error)) (engine.Event, error) {
	ctx, stop := a.e.untilStopping(ctx)
	defer stop()
	return run(ctx)
}

// serve answers a request of the code. ready is false if its task waits for sub-calls, and
// the lease has ended.
func (a *attempt) serve(ctx context.Context, c *console, r *engine.Request) (reply engine.Reply, ready bool,
	err error) {
	q, isQuery, problem := a.parseQuery(r)
	switch {
	case problem != "" && q.tool != "":
		c.ordinal++
		return q.reply([]string{errorText(problem)}, c.block.StartedAt), true, nil
	case problem != "":
		return engine.Reply{Err: problem}, true, nil
	case isQuery:
		reply, ready, err = a.answers(ctx, c, &q)
	case r.Function == "budget":
		ready = true
		reply.Value, err = a.tellBudget(ctx, c)
	default:
		reading, stop := a.e.untilStopping(ctx)
		defer stop()
		reply, err = a.tool(reading, c, r)
		return reply, true, err
	}
	if ready {
		c.ordinal++
	}
	return reply, ready, err
}

// resultOf returns the record of the end of a block. Text is made storable: what the model is
// shown is what is recorded.
func resultOf(d *engine.Done) *record.Result {
	r := &record.Result{Output: clip.Storable(d.Output), OutputBytes: d.OutputBytes, OutputSHA256: d.OutputSHA256,
		Failure: d.Failure, Final: d.Final, Draft: clip.Storable(d.Draft), Vars: d.Vars, Gone: d.Gone}
	if f := r.Failure; f != nil {
		f.Type, f.Message, f.Traceback = clip.Storable(f.Type), clip.Storable(f.Message), clip.Storable(f.Traceback)
	}
	if f := r.Final; f != nil {
		f.Text = clip.Storable(f.Text)
	}
	for i := range r.Vars {
		r.Vars[i].Repr, r.Vars[i].Type = clip.Storable(r.Vars[i].Repr), clip.Storable(r.Vars[i].Type)
	}
	return r
}

// endBlock records what a block did. If that was recorded before, the record counts.
func (a *attempt) endBlock(ctx context.Context, c *console, r *record.Result) (*record.Result, error) {
	b := c.block
	if old := b.Result; old != nil {
		if what := difference(old, r); what != "" {
			if err := a.diverged(ctx, c, fmt.Sprintf("turn %d, block %d: %s", b.Turn, b.Index+1, what)); err != nil {
				return nil, err
			}
		}
		c.keep(r.Vars, r.Gone)
		c.block, c.request = nil, nil
		return old, nil
	}
	last, done := lastWrite(ctx)
	defer done()
	changes := c.changes(r)
	if f := a.furthers(); f != nil && b.Turn <= f.At {
		changes = record.Changes{} // the state begins with what the other tree had at its end
	}
	if err := a.e.blocks.End(last, a.l, b, r, changes); err != nil {
		return nil, err
	}
	c.keep(r.Vars, r.Gone)
	c.block, c.request = nil, nil
	return r, nil
}

// maxRestarts is how often a block is run again whose engine ended: something else on the
// machine can have killed it.
const maxRestarts = 1

// lose records that the engine ended in a block, and reports whether it did. The lease has
// ended then. The next one runs the block again with another engine; if that was done before,
// the model reads why the block is lost.
func (a *attempt) lose(ctx context.Context, c *console, cause error) (lost bool, err error) {
	e, ok := isEngine(cause)
	if !ok || c.block == nil || c.block.Result != nil || e.Kind == engine.KindMissing || e.Kind == engine.KindUnsandboxed {
		return false, nil
	}
	last, done := lastWrite(ctx)
	defer done()
	if e.Kind == engine.KindKilled && c.block.Restarts < maxRestarts {
		if err := a.e.blocks.Restart(last, a.l, c.block); err != nil {
			return false, err
		}
		return true, a.l.Release(last)
	}
	err = a.e.blocks.End(last, a.l, c.block, &record.Result{Lost: true, OutputSHA256: hashOf(""),
		Failure: &engine.Failure{Type: "EngineEnded", Message: e.Error() + "; what the block did is lost, " +
			"but its answered sub-calls are not: the same calls return the same answers"}}, record.Changes{})
	if err != nil {
		return false, err
	}
	return true, a.l.Release(last)
}

// difference returns how a repeated block differs from its record, "" if it does not.
func difference(old, now *record.Result) string {
	final := func(r *record.Result) string {
		if r.Final == nil {
			return ""
		}
		return r.Final.By + " " + r.Final.Text
	}
	failure := func(r *record.Result) string {
		if r.Failure == nil {
			return ""
		}
		return r.Failure.Type + ": " + r.Failure.Message
	}
	switch {
	case old.OutputSHA256 != now.OutputSHA256:
		return "the output differs from the recorded one"
	case failure(old) != failure(now):
		return "the exception differs from the recorded one"
	case final(old) != final(now):
		return "the final answer differs from the recorded one"
	case !slices.Equal(old.Gone, now.Gone):
		return "the deleted variables differ from the recorded ones"
	}
	recorded := make(map[string]string, len(old.Vars))
	for _, v := range old.Vars {
		recorded[v.Name] = v.SHA256
	}
	for _, v := range now.Vars {
		if recorded[v.Name] != v.SHA256 {
			return fmt.Sprintf("variable %q differs from the recorded one", v.Name)
		}
		delete(recorded, v.Name)
	}
	for name := range recorded {
		return fmt.Sprintf("variable %q was not set again", name)
	}
	return ""
}

// Limits of the variables of a REPL in the state of its task.
const (
	// maxReplVars leaves room for those of others.
	maxReplVars  = perdure.MaxVariables - 100
	maxReprBytes = 2000
)

// keep remembers the variables of the engine, to tell changes by others.
func (c *console) keep(vars []engine.Var, gone []string) {
	for _, v := range vars {
		c.vars[v.Name] = v
	}
	for _, name := range gone {
		delete(c.vars, name)
	}
}

// changes returns the variables of the task's state that a block changed. Those that JSON cannot
// hold are there as text, for people.
func (c *console) changes(r *record.Result) (out record.Changes) {
	for _, name := range r.Gone {
		if keptInState(name) {
			out.Gone = append(out.Gone, name)
		}
	}
	count := len(c.vars)
	for _, v := range r.Vars {
		if _, known := c.vars[v.Name]; !known {
			count++
		}
		if !keptInState(v.Name) || count > maxReplVars {
			continue
		}
		spec := perdure.VarSpec{Name: v.Name, Value: v.Value}
		if v.Value == nil {
			raw, err := json.Marshal(v.Repr[:min(len(v.Repr), maxReprBytes)])
			if err != nil {
				continue
			}
			spec.Value, spec.Description = raw, fmt.Sprintf("a %s of %d bytes, which is not kept here", v.Type, v.Bytes)
		}
		out.Set = append(out.Set, spec)
	}
	return out
}

// keptInState reports whether a variable of the code is one of the task's state too.
func keptInState(name string) bool {
	return perdure.ValidName(name) && name != perdure.VarFinal && name != perdure.VarPrompt
}

// takeEdits sets variables in the engine that others changed before the block began. They are
// part of its record: a block that is run again has those of its first run.
func (c *console) takeEdits(ctx context.Context) error {
	b := c.block
	if len(b.Edits) == 0 {
		return nil
	}
	c.keep(b.Edits, nil)
	return c.engine.Set(ctx, b.Edits)
}

// edits returns the variables of the task's state whose values the engine does not have.
func (c *console) edits(ctx context.Context, a *attempt) ([]engine.Var, error) {
	const page = 1000
	list, err := a.e.cfg.Store.Vars(ctx, a.l.Var(), perdure.VarFilter{Limit: page})
	if err != nil {
		return nil, err
	}
	var out []engine.Var
	for _, v := range list {
		if !keptInState(v.Name) || c.versions[v.Name] == v.Version {
			continue
		}
		c.versions[v.Name] = v.Version
		known, there := c.vars[v.Name]
		if v.Source == a.l.Task.ID.String() || a.furthers() != nil && there && known.Value == nil { // by a block
			continue
		}
		if v.Value == nil {
			if v, err = a.e.cfg.Store.Var(ctx, a.l.Var(), v.Name); err != nil {
				return nil, err
			}
		}
		if len(v.Value) <= engine.MaxVarBytes && !bytes.Equal(known.Value, v.Value) {
			out = append(out, engine.Var{Name: v.Name, Value: v.Value, Type: string(v.Type), SHA256: hashOf(string(v.Value)),
				Bytes: v.Size})
		}
	}
	return out, nil
}

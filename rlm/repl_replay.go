package rlm

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// Replay is what came of running the code of a tree's REPLs again.
type Replay struct {
	Tree perdure.TreeID `json:"tree_id"`
	// Tasks counts the tasks with a REPL, Blocks the blocks that were run again.
	Tasks  int `json:"tasks"`
	Blocks int `json:"blocks"`
	// Differences are the blocks that did something else than what is recorded.
	Differences []Difference `json:"differences"`
}

// Difference is a block that did something else when it was run again.
type Difference struct {
	Task  perdure.TaskID `json:"task_id"`
	Turn  int            `json:"turn"`
	Block int            `json:"block"` // of the turn, from 0
	What  string         `json:"what"`
}

// Replay runs the code of all REPLs of a tree again with the recorded replies and answers, and
// compares the output, exceptions, answers and variables of each block with the record. It
// asks no model and changes nothing. Blocks that have not ended are left out. It fails with
// CodeInvalid for a tree without a REPL.
func (e *Executor) Replay(ctx context.Context, id perdure.TreeID) (Replay, error) {
	report := Replay{Tree: id, Differences: []Difference{}}
	tree, err := e.cfg.Store.Tree(ctx, id)
	if err != nil {
		return report, err
	}
	root, err := e.cfg.Store.Task(ctx, tree.Root)
	if err != nil {
		return report, err
	}
	if ref := logOf(&tree, &root); ref != nil {
		err := e.replayLog(ctx, ref, &report, root.ID)
		return report, err
	}
	if tree.Kind == perdure.KindRecord {
		return report, &perdure.Error{Code: perdure.CodeInvalid, Op: "replay tree",
			Msg:  fmt.Sprintf("tree %q was imported from an export, which has no code and output of a REPL", id),
			Hint: "replay it in the store that it was exported from"}
	}
	if n, err := nodeOf(&root); tree.Kind != KindRun || err != nil || n.Repl == nil {
		return report, &perdure.Error{Code: perdure.CodeInvalid, Op: "replay tree",
			Msg: fmt.Sprintf("tree %q has no REPL", id), Hint: "runs with --planner repl can be replayed"}
	}
	entry, err := e.runs.Get(ctx, runKey{tree.ID, tree.Reopened},
		func(ctx context.Context) (*run, error) { return e.load(ctx, &tree) })
	if err != nil {
		return report, err
	}
	defer func() { _ = e.runs.Put(entry) }() // it closes a context that was only read
	const page = 1000
	f := perdure.TaskFilter{Tree: id, Limit: page, Brief: true}
	for {
		list, err := e.cfg.Store.Tasks(ctx, f)
		if err != nil {
			return report, err
		}
		for i := range list {
			if err := e.replayTask(ctx, entry.Value, &tree, list[i].ID, &report); err != nil {
				return report, err
			}
		}
		if len(list) < page {
			return report, nil
		}
		f.After = list[len(list)-1].ID
	}
}

// replayTask replays the REPL of a task, if it has one.
func (e *Executor) replayTask(ctx context.Context, r *run, tree *perdure.Tree, id perdure.TaskID,
	report *Replay) error {
	task, err := e.cfg.Store.Task(ctx, id)
	if err != nil {
		return err
	}
	n, err := nodeOf(&task)
	if err != nil || n.Repl == nil {
		return err
	}
	calls, err := e.cfg.Store.Calls(ctx, id)
	if err != nil {
		return err
	}
	// A lease that was never claimed names the task and its tree; nothing is written with it.
	a := &attempt{e: e, run: r, l: &perdure.Lease{Task: task, Tree: *tree}, node: n}
	c, err := a.newConsole(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }() // what it ran is of no use any more
	if err := c.readRecords(ctx, a, true); err != nil {
		return err
	}
	report.Tasks++
	for _, reply := range replies(calls) {
		code := codeOf(&c.profile, reply.Response)
		a.replayReply(c, &reply)
		for i := range c.recorded {
			b := &c.recorded[i]
			if b.Turn != reply.Position+1 || b.Index >= len(code) || b.Result == nil || b.Result.Lost {
				continue
			}
			what, err := a.replayBlock(ctx, c, b, code[b.Index])
			if err != nil {
				return a.engineFailure(err)
			}
			report.Blocks++
			if what != "" {
				report.Differences = append(report.Differences, Difference{id, b.Turn, b.Index, what})
			}
			if b.Index == len(c.outcomes) && b.Index < len(c.blocks) {
				c.ran(b.Result)
			}
			c.keep(b.Result.Vars, b.Result.Gone)
		}
		a.endTurn(c)
	}
	return nil
}

// replayReply takes a recorded reply, with how the conversation was shown for it: what code reads of the
// conversation is the same as it was.
func (a *attempt) replayReply(c *console, reply *perdure.Call) {
	_, t := termsOf(reply)
	c.shown.take(t.Shown)
	c.number = reply.Position + 1
	c.messages = append(c.messages, model.Message{Reply: true, Text: reply.Response})
	c.takeReply(reply.Response)
}

// replayBlock runs a recorded block again and returns how it differs.
func (a *attempt) replayBlock(ctx context.Context, c *console, b *record.Block, code string) (string, error) {
	if b.CodeSHA256 != hashOf(code) {
		return "the code of the reply is not the code that was run", nil
	}
	copied := *b
	c.block, c.ordinal, c.used = &copied, 0, make(map[perdure.TaskID]bool)
	if len(b.Edits) > 0 {
		if err := c.engine.Set(ctx, b.Edits); err != nil {
			return "", err
		}
	}
	ev, err := c.engine.Exec(ctx, engine.Block{Code: code, Clock: b.StartedAt, Seed: b.Seed,
		History: c.newHistory()})
	for err == nil && ev.Request != nil {
		var reply engine.Reply
		if reply, err = a.recordedReply(ctx, c, ev.Request); err == nil {
			ev, err = c.engine.Reply(ctx, reply)
		}
	}
	if err != nil {
		return "", err
	}
	return difference(b.Result, resultOf(ev.Done)), nil
}

// recordedReply answers a request of the code from the records. What they do not have is an
// exception of the code, which shows as a difference.
func (a *attempt) recordedReply(ctx context.Context, c *console, r *engine.Request) (engine.Reply, error) {
	q, isQuery, problem := a.parseQuery(r)
	switch {
	case problem != "" && q.tool != "":
		c.ordinal++
		return q.reply([]string{errorText(problem)}, c.block.StartedAt), nil
	case problem != "":
		return engine.Reply{Err: problem}, nil
	case r.Function == "budget":
		value, known := c.toldValue(0)
		c.ordinal++
		if !known {
			return engine.Reply{Err: "replay: the answer is not recorded"}, nil
		}
		return engine.Reply{Value: value}, nil
	case !isQuery:
		return a.tool(ctx, c, r)
	}
	defer func() { c.ordinal++ }()
	if why := a.refusedModel(q.model); why != "" {
		return q.reply(slices.Repeat([]string{errorText(why)}, len(q.prompts)), c.block.StartedAt), nil
	}
	answers, clock := make([]string, len(q.prompts)), c.block.StartedAt
	for slot, prompt := range q.prompts {
		known, there := c.calls[c.place(slot)]
		if !there || known.hash != q.hash(prompt) {
			return engine.Reply{Err: fmt.Sprintf("replay: %s is not recorded", c.place(slot))}, nil
		}
		t, err := a.e.cfg.Store.Task(ctx, known.task)
		if err != nil {
			return engine.Reply{}, err
		}
		if t.CompletedAt.After(clock) {
			clock = t.CompletedAt
		}
		if answers[slot] = t.Result; t.State != perdure.Completed {
			answers[slot] = errorText(lastError(&t))
		}
		if text, told := c.toldText(slot); told {
			answers[slot] = text
		}
	}
	return q.reply(answers, clock), nil
}

package rlm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/record"
	"github.com/perdure/perdure/rlm/internal/repl/trajectory"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

// maxLoggedContext is the longest context that a log has.
const maxLoggedContext = 64 << 20

// Log says what [Log.Write] writes.
type Log struct {
	// Store has the tree.
	Store *perdure.Store
	Tree  perdure.TreeID
	// WithoutContext leaves out the text of the context.
	WithoutContext bool
}

// logging is a log that is being written.
type logging struct {
	*attempt
	c      *console
	cfg    *Log
	blocks []record.Block
	calls  map[[2]int][]loggedCall
	// shown counts the messages that were written.
	shown int
}

// loggedCall is the task of a sub-call.
type loggedCall struct {
	at   place
	task perdure.TaskID
}

// Write writes the REPL of a tree's root as JSON Lines in the form of the reference
// implementation of recursive language models, whose viewer opens it. Each message, the
// context and each value are written once. A sub-call with a REPL of its own is one call. It
// fails with CodeInvalid for a tree without a REPL. The log of a record is the imported one.
func (l *Log) Write(ctx context.Context, w io.Writer) (err error) {
	tree, err := l.Store.Tree(ctx, l.Tree)
	if err != nil {
		return err
	}
	root, err := l.Store.Task(ctx, tree.Root)
	if err != nil {
		return err
	}
	if ref := logOf(&tree, &root); ref != nil {
		return l.copyLog(ctx, ref, w)
	}
	x, closing, err := l.open(ctx, &tree, &root)
	if err != nil {
		return err
	}
	defer func() { _ = closing() }() // it was only read
	made, err := l.Store.Calls(ctx, x.l.Task.ID)
	if err != nil {
		return err
	}
	name, depth := x.run.cfg.Model, *x.run.cfg.MaxDepth
	backend, _, _ := strings.Cut(name, ":")
	environment := "perdure"
	out, err := trajectory.NewWriter(w, &trajectory.Metadata{Timestamp: trajectory.Time{Time: x.l.Tree.CreatedAt},
		RootModel: &name, MaxDepth: &depth, MaxIterations: &x.node.Repl.Turns, Backend: &backend,
		BackendKwargs: map[string]any{"model_name": name}, EnvironmentType: &environment,
		EnvironmentKwargs: map[string]any{"tree_id": l.Tree, "engine": x.node.Repl.Engine, "profile": x.node.Repl.Profile,
			"prompt": x.l.Task.Prompt}})
	if err != nil {
		return err
	}
	all := replies(made)
	for i := range all {
		it, err := x.iteration(ctx, &all[i])
		if err != nil {
			return err
		}
		if t := &x.l.Task; i == len(all)-1 && t.State.Terminal() && t.Result != "" {
			it.FinalAnswer = &trajectory.Answer{Text: t.Result}
		}
		if err := out.Write(it); err != nil {
			return err
		}
	}
	return nil
}

// open reads the plan of the tree, its records and what its model was shown first.
func (l *Log) open(ctx context.Context, tree *perdure.Tree, root *perdure.Task) (*logging, func() error, error) {
	r := &run{root: *root}
	var err error
	r.plan, err = nodeOf(&r.root)
	if tree.Kind != KindRun || err != nil || r.plan.Repl == nil {
		return nil, nil, &perdure.Error{Code: perdure.CodeInvalid, Op: "write log",
			Msg: fmt.Sprintf("tree %q has no REPL", l.Tree), Hint: "runs with --planner repl have such a log"}
	}
	if r.cfg, err = ParseConfig(tree.Config); err != nil {
		return nil, nil, err
	}
	e := &Executor{cfg: ExecutorConfig{Store: l.Store}, blocks: record.New(l.Store)}
	closing := func() error { return nil }
	if r.root.Context.Hash != "" {
		var blob io.Closer
		if r.reader, blob, err = e.openPack(ctx, r.root.Context.Hash, r.plan.Manifest); err != nil {
			return nil, nil, err
		}
		closing = blob.Close
	}
	// A lease that was never claimed names the task and its tree; nothing is written with it.
	x := &logging{cfg: l, c: &console{vars: make(map[string]engine.Var)},
		attempt: &attempt{e: e, run: r, l: &perdure.Lease{Task: r.root, Tree: *tree}, node: r.plan}}
	if err := x.read(ctx); err != nil {
		_ = closing() // the first error counts
		return nil, nil, err
	}
	return x, closing, nil
}

// read reads what the model was shown first, the blocks and the sub-calls.
func (x *logging) read(ctx context.Context) error {
	profile, ok := turn.Find(x.node.Repl.Profile)
	if !ok {
		return invalid(fmt.Sprintf("profile %q of the REPL is not known to this version", x.node.Repl.Profile), "")
	}
	x.c.profile = profile
	contents, err := x.openContents(x.c)
	if err != nil {
		return err
	}
	if err := x.describe(x.c, &contents); err != nil {
		return err
	}
	if x.blocks, err = x.e.blocks.Blocks(ctx, x.l.Tree.ID, x.l.Task.ID); err != nil {
		return err
	}
	x.calls = make(map[[2]int][]loggedCall)
	filter := perdure.TaskFilter{Tree: x.l.Tree.ID, Parent: &x.l.Task.ID}
	return eachSubCall(ctx, x.e.cfg.Store, filter, func(t *perdure.Task, n *node) {
		at := [2]int{n.Call.Turn, n.Call.Block}
		x.calls[at] = append(x.calls[at], loggedCall{n.Call.place, t.ID})
	})
}

// iteration is the line of a reply.
func (x *logging) iteration(ctx context.Context, reply *perdure.Call) (*trajectory.Iteration, error) {
	c := x.c
	x.endTurn(c)
	it := &trajectory.Iteration{Timestamp: trajectory.Time{Time: reply.StartedAt}, Response: reply.Response}
	if c.number == 0 {
		it.Prompt = []trajectory.Message{{Role: "system", Content: c.system}, {Role: "user", Content: c.first}}
	}
	for _, m := range c.messages[x.shown:] {
		it.Prompt = append(it.Prompt, trajectory.Message{Role: "user", Content: m.Text})
	}
	x.shown = len(c.messages)
	c.number = reply.Position + 1
	end := reply.StartedAt
	if reply.EndedAt != nil {
		end = *reply.EndedAt
	}
	code := codeOf(&c.profile, reply.Response)
	for i := range x.blocks {
		b := &x.blocks[i]
		if b.Turn != c.number || b.Index >= len(code) || b.Result == nil {
			continue
		}
		block, err := x.block(ctx, b, code[b.Index])
		if err != nil {
			return nil, err
		}
		it.CodeBlocks = append(it.CodeBlocks, block)
		if b.EndedAt != nil && b.EndedAt.After(end) {
			end = *b.EndedAt
		}
	}
	it.IterationTime = seconds(reply.StartedAt, &end)
	return it, nil
}

// block is a block of code with its result, and notes it for the next message.
func (x *logging) block(ctx context.Context, b *record.Block, code string) (trajectory.CodeBlock, error) {
	r, c := b.Result, x.c
	out := trajectory.CodeBlock{Code: code, Result: trajectory.Result{Stdout: r.Output,
		ExecutionTime: seconds(b.StartedAt, b.EndedAt), Locals: make(map[string]json.RawMessage)}}
	res := &out.Result
	if f := r.Failure; f != nil {
		if res.Stderr = f.Traceback; res.Stderr == "" {
			res.Stderr = f.Type + ": " + f.Message
		}
	}
	if r.Final != nil {
		res.FinalAnswer = &trajectory.Answer{Text: r.Final.Text}
	}
	if b.Number == 0 && !x.cfg.WithoutContext {
		if err := x.addContext(res.Locals); err != nil {
			return out, err
		}
	}
	if err := x.addLocals(ctx, res.Locals, r); err != nil {
		return out, err
	}
	made := x.calls[[2]int{b.Turn, b.Index}]
	slices.SortFunc(made, func(a, b loggedCall) int {
		if a.at.Ordinal != b.at.Ordinal {
			return a.at.Ordinal - b.at.Ordinal
		}
		return a.at.Slot - b.at.Slot
	})
	for i := range made {
		call, err := x.call(ctx, made[i].task)
		if err != nil {
			return out, err
		}
		res.Calls = append(res.Calls, call)
	}
	if c.delivered = len(made); r.Lost { // it received none in the end, so the model read of none
		c.delivered = 0
	}
	c.keep(b.Edits, nil)
	c.keep(r.Vars, r.Gone)
	c.blocks = append(c.blocks, code)
	c.ran(r)
	return out, nil
}

// addContext adds the variable context.
func (x *logging) addContext(locals map[string]json.RawMessage) (err error) {
	if x.run.reader == nil {
		return nil
	}
	files := x.run.reader.Manifest().Files
	total := int64(0)
	for _, f := range files {
		total += f.Length
	}
	if total > maxLoggedContext {
		locals["context"], err = json.Marshal(fmt.Sprintf("<a context of %d bytes, which is not in this log>", total))
		return err
	}
	text := make(map[string]string, len(files))
	for _, f := range files {
		buf := make([]byte, f.Length)
		if err := x.run.reader.ReadFull(buf, f.Offset); err != nil {
			return damaged(err)
		}
		text[f.Name] = string(buf)
	}
	if len(files) == 1 {
		locals["context"], err = json.Marshal(text[files[0].Name])
		return err
	}
	locals["context"], err = json.Marshal(text)
	return err
}

// addLocals adds the variables that a block changed. The state has the last value of each;
// others are there as text.
func (x *logging) addLocals(ctx context.Context, locals map[string]json.RawMessage, r *record.Result) error {
	for _, v := range r.Vars {
		text := v.Repr
		if text == "" {
			text = fmt.Sprintf("<%s of %d bytes>", v.Type, v.Bytes)
		}
		raw, err := json.Marshal(text)
		if err != nil {
			return err
		}
		locals[v.Name] = raw
		if v.Repr != "" || !keptInState(v.Name) {
			continue
		}
		kept, err := x.e.cfg.Store.Var(ctx, x.l.Var(), v.Name)
		switch {
		case perdure.CodeOf(err) == perdure.CodeNotFound:
		case err != nil:
			return err
		case hashOf(string(kept.Value)) == v.SHA256:
			locals[v.Name] = kept.Value
		}
	}
	return nil
}

// call is a sub-call with its answer, and what all its tasks took.
func (x *logging) call(ctx context.Context, id perdure.TaskID) (out trajectory.Call, err error) {
	t, err := x.e.cfg.Store.Task(ctx, id)
	if err != nil {
		return out, err
	}
	made, err := x.e.cfg.Store.Calls(ctx, id)
	if err != nil {
		return out, err
	}
	if out.Prompt, err = json.Marshal(t.Prompt); err != nil {
		return out, err
	}
	out.Response, out.Usage = t.Result, &trajectory.Usage{Models: make(map[string]trajectory.ModelUsage)}
	for i := range made {
		c := &made[i]
		u := out.Usage.Models[c.Model]
		u.Calls, u.InputTokens, u.OutputTokens = u.Calls+1, u.InputTokens+c.InputTokens, u.OutputTokens+c.OutputTokens
		if c.CostUSD != nil {
			if u.Cost == nil {
				u.Cost = new(float64)
			}
			*u.Cost += *c.CostUSD
		}
		out.Usage.Models[c.Model], out.RootModel = u, c.Model
		out.PromptTokens += c.InputTokens
		out.CompletionTokens += c.OutputTokens
	}
	if t.State != perdure.Completed {
		text := lastError(&t)
		out.Response, out.Error = "", &text
	}
	if len(made) > 0 {
		out.ExecutionTime = seconds(made[0].StartedAt, &t.CompletedAt)
	}
	return out, nil
}

// seconds returns the time between two instants, 0 if it is not known.
func seconds(from time.Time, to *time.Time) *float64 {
	s := 0.0
	if to != nil && to.After(from) {
		s = to.Sub(from).Seconds()
	}
	return &s
}

package rlm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/engine"
	"github.com/perdure/perdure/rlm/internal/repl/record"
)

// MaxBatch is the most prompts of one call of llm_query_batched or rlm_query_batched.
const MaxBatch = 10_000

// subCall, in the plan of a task, is the call of a REPL's code that it answers. The place
// identifies the call when the code is run again.
type subCall struct {
	place
	// Hash is that of the function, the model and the prompt.
	Hash string `json:"hash"`
	// Tool is the name of the tool that the task runs, empty if it asks a model.
	Tool string `json:"tool,omitempty"`
	// From is a completed sub-call with this hash, of a block that was lost, whose answer is taken
	// over.
	From perdure.TaskID `json:"from,omitempty"`
}

// place is the place of a prompt in a run of a REPL.
type place struct {
	Turn    int `json:"turn"`           // from 1
	Block   int `json:"block"`          // of the reply, from 0
	Ordinal int `json:"ordinal"`        // of the requests of the block, from 0
	Slot    int `json:"slot,omitempty"` // of the prompts of a batch, from 0
}

func (p place) String() string {
	return fmt.Sprintf("turn %d, block %d, call %d, prompt %d", p.Turn, p.Block+1, p.Ordinal+1, p.Slot+1)
}

// query is a request of the code for answers of a model.
type query struct {
	function string
	prompts  []string
	model    string
	batch    bool
	tool     string // the name of the tool that is called, with its arguments as the prompt
}

// parseQuery is [parseQuery] of the package, and reads calls of tools.
func (a *attempt) parseQuery(r *engine.Request) (q query, ok bool, problem string) {
	if r.Function != engine.ToolFunction {
		return parseQuery(r)
	}
	q, problem = a.run.toolQuery(r)
	return q, true, problem
}

// parseQuery reads the arguments of a sub-call; ok is false for other functions. problem is
// what is wrong with them, for the code.
func parseQuery(r *engine.Request) (q query, ok bool, problem string) {
	switch r.Function {
	case "llm_query", "rlm_query":
	case "llm_query_batched", "rlm_query_batched":
		q.batch = true
	default:
		return q, false, ""
	}
	var args struct {
		Prompt  *string  `json:"prompt"`
		Prompts []string `json:"prompts"`
		Model   *string  `json:"model"`
	}
	q.function = r.Function
	if err := json.Unmarshal(r.Args, &args); err != nil {
		return q, true, fmt.Sprintf("%s: the prompt has to be text: %v", r.Function, err)
	}
	if q.prompts = args.Prompts; args.Prompt != nil {
		q.prompts = []string{*args.Prompt}
	}
	if args.Model != nil {
		q.model = *args.Model
	}
	if !q.batch && args.Prompt == nil {
		return q, true, r.Function + ": the prompt is missing"
	}
	if len(q.prompts) > MaxBatch {
		return q, true, fmt.Sprintf("%s: %d prompts, at most %d in one call", r.Function, len(q.prompts), MaxBatch)
	}
	for i, prompt := range q.prompts {
		q.prompts[i] = clip.Storable(prompt)
	}
	return q, true, ""
}

// recursive reports whether the tasks of the query have a REPL of their own.
func (q *query) recursive() bool {
	return q.function == "rlm_query" || q.function == "rlm_query_batched"
}

// hash identifies what is asked with a prompt.
func (q *query) hash(prompt string) string {
	h := sha256.New()
	for _, s := range []string{q.function, q.model, prompt} {
		fmt.Fprintf(h, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reply is the answer for the code: a string, or a list of strings.
func (q *query) reply(answers []string, clock time.Time) engine.Reply {
	var value any = answers
	switch {
	case q.tool != "":
		value = toolValue(answers[0])
	case !q.batch:
		value = answers[0]
	}
	raw, err := json.Marshal(value)
	if err != nil { // strings are always JSON
		return engine.Reply{Err: err.Error(), Clock: clock}
	}
	return engine.Reply{Value: raw, Clock: clock}
}

// errorText is a sub-call's failure as the code receives it.
func errorText(why string) string { return "Error: " + why }

// refusedModel returns why a model that the code names is not asked, "" if it is: only those
// that the run was given.
func (a *attempt) refusedModel(name string) string {
	cfg := &a.run.cfg
	if name == "" || name == cfg.SubModel || cfg.Agents[name].Model != "" {
		return ""
	}
	if names := sortedNames(cfg.SubModels); len(names) > 0 {
		return fmt.Sprintf("model %q is not one of this run: name %s, or leave model out", name, strings.Join(names, ", "))
	}
	return fmt.Sprintf("model %q is not one of this run; leave model out", name)
}

// answers returns the answers to a query, if the tasks that give them have ended; else these
// have been created, and the lease ended.
func (a *attempt) answers(ctx context.Context, c *console, q *query) (r engine.Reply, ready bool, err error) {
	if why := a.refusedModel(q.model); why != "" {
		refused := slices.Repeat([]string{errorText(why)}, len(q.prompts))
		return q.reply(refused, c.block.StartedAt), true, nil
	}
	calls, missing, err := a.callsOf(ctx, c, q)
	if errors.Is(err, errTriedAgain) {
		return r, false, a.leave(c, func() error { return a.l.Wait(ctx) })
	}
	if err != nil {
		return r, false, err
	}
	if len(missing) > 0 {
		specs := make([]perdure.TaskSpec, len(missing))
		for i, slot := range missing {
			if specs[i], err = a.callSpec(ctx, c, q, slot); err != nil {
				return r, false, err
			}
		}
		if len(q.prompts) == 1 && !q.recursive() && a.e.cfg.Do != nil {
			return a.answerHere(ctx, c, q, specs[0])
		}
		return r, false, a.spawnCalls(ctx, c, q, missing, specs)
	}
	return a.delivered(ctx, c, q, calls)
}

// spawnCalls creates the tasks for slots of a query, and ends the lease.
func (a *attempt) spawnCalls(ctx context.Context, c *console, q *query, slots []int, specs []perdure.TaskSpec) error {
	return a.leave(c, func() error {
		ids, err := a.l.Spawn(ctx, specs)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", q.function, human.Count(len(q.prompts), "prompt"), err)
		}
		c.spawned(q, slots, ids)
		return nil
	})
}

// answerHere does the work of the only sub-call of a query at once, in the place of the task.
// If it cannot, or if it is not answered then, because it is tried again later or waits at a gate,
// the task waits for it, and its lease has ended.
func (a *attempt) answerHere(ctx context.Context, c *console, q *query, spec perdure.TaskSpec) (r engine.Reply,
	ready bool, err error) {
	child, err := a.l.SpawnLeased(ctx, spec)
	if errors.Is(err, perdure.ErrConflict) { // the tree was reopened: the next lease has its configuration
		return r, false, a.spawnCalls(ctx, c, q, []int{0}, []perdure.TaskSpec{spec})
	}
	if err != nil {
		return r, false, err
	}
	id := child.Task.ID
	c.spawned(q, []int{0}, []perdure.TaskID{id})
	a.e.cfg.Do(a.l, child)
	last, done := lastWrite(ctx) // the task cannot end before its sub-call, even if its time is over
	defer done()
	t, err := a.e.cfg.Store.Task(last, id)
	if err != nil {
		return r, false, err
	}
	if t.State.Terminal() {
		return a.delivered(ctx, c, q, []*perdure.Task{&t})
	}
	return r, false, a.leave(c, func() error { return a.l.Wait(last) })
}

// leave parks the console while the lease ends: the task can be claimed again as soon as the
// sub-calls that it waits for have ended.
func (a *attempt) leave(c *console, end func() error) error {
	entry := a.e.consoles.park(a.l, c)
	if err := end(); err != nil {
		a.e.consoles.withdraw(entry)
		return err
	}
	a.e.consoles.leave(entry)
	return nil
}

// callsOf returns the tasks for the prompts of a query by slot, and the slots that have none.
// A task whose prompt is another one than that of the code now is a divergence.
func (a *attempt) callsOf(ctx context.Context, c *console, q *query) (calls []*perdure.Task, missing []int, err error) {
	calls = make([]*perdure.Task, len(q.prompts))
	used := maps.Clone(c.used)
	for slot, prompt := range q.prompts {
		if known, there := c.calls[c.place(slot)]; there && known.hash == q.hash(prompt) {
			used[known.task] = true
		}
	}
	for slot, prompt := range q.prompts {
		at, hash := c.place(slot), q.hash(prompt)
		known, there := c.calls[at]
		if there && known.hash == hash {
			if calls[slot], err = c.ended(ctx, a, known.task); err != nil {
				return nil, nil, err
			}
			continue
		}
		if there {
			if err := a.diverged(ctx, c, fmt.Sprintf("%s asks for something else than what is recorded", at)); err != nil {
				return nil, nil, err
			}
		}
		if again, ok := c.reuse(hash, used); ok { // the code makes its calls in another order
			used[again] = true
			if calls[slot], err = c.ended(ctx, a, again); err != nil {
				return nil, nil, err
			}
			continue
		}
		missing = append(missing, slot)
	}
	return calls, missing, nil
}

// delivered returns the answers of ended tasks. Failures become text, which are recorded
// before the code reads them: the task can be tried again later.
func (a *attempt) delivered(ctx context.Context, c *console, q *query, calls []*perdure.Task) (r engine.Reply,
	ready bool, err error) {
	answers := make([]string, len(calls))
	clock := c.block.StartedAt
	var told []record.Told
	for slot, t := range calls {
		if t.CompletedAt.After(clock) {
			clock = t.CompletedAt
		}
		text, known := c.toldText(slot)
		switch {
		case known && t.State == perdure.Completed:
			c.notes = append(c.notes, fmt.Sprintf("sub-call %q was retried after the code had received its error, and the "+
				"answer does not use its result", t.ID))
		case known:
		case t.State == perdure.Completed:
			if text, err = c.wholeText(t); err != nil {
				return engine.Reply{}, false, err
			}
		case t.Error != nil && (t.Error.Kind == KindBudget || t.Error.Kind == KindFault):
			return engine.Reply{}, false, &attemptError{kind: t.Error.Kind,
				err: fmt.Errorf("%s: task %q: %s", c.place(slot), t.ID, t.Error.Message)}
		default:
			text = errorText(lastError(t))
			told = append(told, c.told(slot, text))
		}
		answers[slot] = text
		c.used[t.ID] = true
	}
	c.delivered += len(calls)
	if err := c.tell(ctx, a, told); err != nil {
		return engine.Reply{}, false, err
	}
	return q.reply(answers, clock), true, nil
}

// wholeText returns the answer of a sub-call as the code reads it. One that is not whole says so.
func (c *console) wholeText(t *perdure.Task) (string, error) {
	d, err := dataOf(t)
	if err != nil || !d.Cut {
		return t.Result, err
	}
	note := fmt.Sprintf("the answer of sub-call %q ends at the limit for answers (see --max-output-tokens)", t.ID)
	c.notes = append(c.notes, note)
	return t.Result + "\n[cut: the answer ends at the limit for answers]", nil
}

// subCall does the work of a task that answers a call of a REPL's code.
func (a *attempt) subCall(ctx context.Context) error {
	switch done, err := a.answeredBefore(ctx); {
	case done || err != nil:
		return err
	case a.node.Repl != nil:
		return a.repl(ctx)
	case a.node.Call.Tool != "":
		return a.answerTool(ctx)
	}
	return a.answerCall(ctx)
}

// answerCall answers a prompt of a sub-call: one request, whose answer is the result.
func (a *attempt) answerCall(ctx context.Context) error {
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return over
	}
	m := a.run.model(&a.l.Task)
	req := &model.Request{System: a.profile().System, Prompt: a.l.Task.Prompt, Temperature: a.temperature(),
		Seed: a.run.cfg.Seed, MaxOutputTokens: a.answerLimit()}
	x, err := a.send(timed, 0, m, req)
	if err != nil {
		return err
	}
	if x.known {
		return a.complete(ctx, x.text, &x.data)
	}
	call, data, err := a.settlement(timed, x.sending, req, x.resp)
	if err != nil {
		return err
	}
	raw, err := encode("result", &data)
	if err != nil {
		return err
	}
	last, done := lastWrite(ctx)
	defer done()
	return a.l.CompleteCall(last, x.sending.call.ID, call, perdure.Result{Text: x.resp.Text, Data: raw, KeepCalls: true})
}

// answerTool runs the tool that the code of a REPL called: its output is the result.
func (a *attempt) answerTool(ctx context.Context) error {
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return over
	}
	name, arguments, _ := strings.Cut(a.l.Task.Prompt, " ")
	text, data, err := a.runTool(timed, 0, name, arguments)
	if err != nil {
		return a.interrupted(timed, err)
	}
	return a.complete(ctx, text, &data)
}

// callSpec is the record of the task that answers a prompt of a query.
func (a *attempt) callSpec(ctx context.Context, c *console, q *query, slot int) (perdure.TaskSpec, error) {
	prompt := q.prompts[slot]
	hash := q.hash(prompt)
	from, err := a.lostAnswer(ctx, c, hash)
	if err != nil {
		return perdure.TaskSpec{}, err
	}
	n := &node{Version: planVersion, Total: 1, Call: &subCall{place: c.place(slot), Hash: hash, From: from, Tool: q.tool}}
	if q.recursive() && a.l.Task.Depth+1 < *a.run.cfg.MaxDepth {
		n.Repl = a.node.Repl
	}
	raw, err := encode("plan", metadata{n})
	if err != nil {
		return perdure.TaskSpec{}, err
	}
	agent := a.l.Task.Agent
	if q.tool != "" {
		agent = ""
	}
	if q.model != "" && q.model != a.run.cfg.SubModel {
		agent = q.model
	}
	return perdure.TaskSpec{Prompt: prompt, MaxAttempts: a.run.cfg.MaxAttempts, Priority: a.l.Task.Priority,
		Policy: perdure.PolicyPartial, Metadata: raw, Agent: agent}, nil
}

// lostAnswer returns a completed sub-call of a block that was lost, which asked the same and whose
// answer no other sub-call has taken over; 0 if there is none.
func (a *attempt) lostAnswer(ctx context.Context, c *console, hash string) (perdure.TaskID, error) {
	for _, id := range c.lost[hash] {
		if c.taken[id] {
			continue
		}
		t, err := a.e.cfg.Store.Task(ctx, id)
		if err != nil {
			return 0, err
		}
		if t.State == perdure.Completed {
			c.taken[id] = true
			return id, nil
		}
	}
	return 0, nil
}

// diverged records that the code did something else than before; in mode strict it ends the
// attempt.
func (a *attempt) diverged(ctx context.Context, c *console, what string) error {
	if a.run.cfg.Mode == ModeStrict {
		return failf(KindDiverged, "%s, and mode strict allows no divergence", what)
	}
	return c.noteDivergence(ctx, a, what)
}

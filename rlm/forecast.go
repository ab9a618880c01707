package rlm

import (
	"context"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
	"github.com/perdure/perdure/rlm/internal/retrieve"
)

// forecast walks through the tasks of a plan without executing them. It makes their
// requests by the code that execution uses, and counts instead of sending them.
type forecast struct {
	e    *Executor
	run  *run
	last perdure.TaskID // of the tasks that were made up
	// tasks and parts count, answers those before a part of an ordered run.
	tasks, parts int64
	answers      int
	// sections are the sizes of sections with earlier results, by the number of those that
	// are shown and left out.
	sections map[[2]int]int
	// unknown is set if the calls depend on a plan of the model.
	unknown bool
	// sum is that of uses, by model in order.
	sum   use
	uses  map[string]*use
	order []string
	// reserved is what the requests about parts reserve.
	reserved []amount
	filler   string
}

// use is what calls take: at most, and at least.
type use struct {
	calls, input, output, micros, reserved, reservedMicros int64
	leastCalls, leastInput, leastMicros                    int64
	unpriced                                               bool
}

func (u *use) add(o *use) {
	u.calls, u.input, u.output, u.micros = u.calls+o.calls, u.input+o.input, u.output+o.output, u.micros+o.micros
	u.reserved, u.reservedMicros = u.reserved+o.reserved, u.reservedMicros+o.reservedMicros
	u.leastCalls, u.leastInput = u.leastCalls+o.leastCalls, u.leastInput+o.leastInput
	u.leastMicros = u.leastMicros + o.leastMicros
	u.unpriced = u.unpriced || o.unpriced
}

// reply is the result of a task at its largest.
type reply struct {
	bytes int
	// scored is set if a judge scored it, structured if it is one.
	scored, structured bool
	// chain counts the calls that are made one after another until it is there.
	chain int64
}

// inquiry is a request, made several times.
type inquiry struct {
	m   *asked
	req *model.Request
	// more is how many bytes other results may add to it.
	more  int
	times int64
	// sure is set if it is made in any case.
	sure bool
}

// rankedReply bounds the text of a reply of builtin:extract, in bytes.
const rankedReply = 16 << 10

func (f *forecast) attempt(t perdure.Task, n *node) *attempt {
	f.tasks++
	return &attempt{e: f.e, run: f.run, l: &perdure.Lease{Task: t}, node: n, cuts: make(map[int64]chunks)}
}

// child makes up the task of a node.
func (f *forecast) child(parent *attempt, n *node) (child, error) {
	spec, err := parent.spec(n)
	if err != nil {
		return child{}, err
	}
	f.last++
	return child{&perdure.Task{ID: f.last, Parent: parent.l.Task.ID, Depth: parent.l.Task.Depth + 1,
		State: perdure.Completed, Prompt: spec.Prompt, Context: spec.Context, Agent: spec.Agent, Merge: spec.Merge}, n}, nil
}

// visit counts the calls of a task and of those below it.
func (f *forecast) visit(ctx context.Context, a *attempt) (reply, error) {
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	switch n := a.node; {
	case n.Plans:
		f.unknown = true
		f.count(a, &inquiry{m: a.run.model(&a.l.Task), req: &model.Request{System: a.system(), Prompt: a.prompt()},
			times: 2, sure: true}) // the plan, and at least one answer
		return reply{}, nil
	case n.Search > 0:
		return f.search(a), nil
	case n.Repl != nil:
		f.unknown = true
		f.count(a, &inquiry{m: a.run.model(&a.l.Task), req: &model.Request{System: a.system(), Prompt: a.prompt()},
			times: 2, sure: true}) // one reply with code, and one that ends
		return reply{}, nil
	case n.leaf():
		return f.leaf(a)
	}
	var family []child
	replies := make(map[perdure.TaskID]reply)
	all := reply{}
	for _, n := range a.below() {
		c, err := f.child(a, n)
		if err != nil {
			return reply{}, err
		}
		r, err := f.visit(ctx, f.attempt(*c.Task, n))
		if err != nil {
			return reply{}, err
		}
		family, replies[c.ID] = append(family, c), r
		if a.run.cfg.ordered() {
			all.chain += r.chain
		} else {
			all.chain = max(all.chain, r.chain)
		}
	}
	merged, err := f.merge(a, family, replies)
	merged.chain += all.chain
	return merged, err
}

// count adds the calls of an inquiry.
func (f *forecast) count(a *attempt, q *inquiry) {
	if q.times == 0 {
		return
	}
	u := f.uses[q.m.name]
	if u == nil {
		u = &use{}
		f.uses[q.m.name] = u
		f.order = append(f.order, q.m.name)
	}
	one := f.useOf(a, q)
	many := use{calls: q.times, input: q.times * one.input, output: q.times * one.output, micros: q.times * one.micros,
		reserved: q.times * one.reserved, reservedMicros: q.times * one.reservedMicros, unpriced: one.unpriced}
	if q.sure && !a.run.cfg.Cache {
		many.leastCalls, many.leastInput, many.leastMicros = q.times, q.times*one.leastInput, q.times*one.leastMicros
	}
	u.add(&many)
	f.sum.add(&many)
}

// useOf returns what one request takes.
func (f *forecast) useOf(a *attempt, q *inquiry) use {
	if q.m.ranked {
		return use{}
	}
	size := len(model.RenderAll(q.req))
	output := int64(q.req.MaxOutputTokens)
	if output == 0 {
		output = a.run.plan.Answer
	}
	u := use{input: model.EstimateTokens(size + q.more), output: output, leastInput: model.EstimateTokens(size)}
	keep := a.reserveBytes(q.m, size+q.more, len(q.req.Shared) > 0)
	u.reserved, u.reservedMicros = keep.tokens, keep.micros
	most, known := f.e.price(q.m, model.Usage{InputTokens: u.input, OutputTokens: u.output})
	least, _ := f.e.price(q.m, model.Usage{InputTokens: u.leastInput})
	u.micros, u.leastMicros, u.unpriced = most, least, !known
	return u
}

// text is a text of so many bytes.
func (f *forecast) text(bytes int) string {
	if len(f.filler) < bytes {
		f.filler = strings.Repeat("x", bytes)
	}
	return f.filler[:bytes]
}

// answerBytes is the size of an answer at its limit.
func answerBytes(a *attempt, req *model.Request) int {
	tokens := int64(req.MaxOutputTokens)
	if tokens == 0 {
		tokens = a.run.plan.Answer
	}
	return bytesPerToken * int(tokens)
}

// leaf counts the calls of a task that asks about its text.
func (f *forecast) leaf(a *attempt) (reply, error) {
	f.parts++
	if a.emptyFile() {
		return reply{bytes: len(emptyFileAnswer)}, nil
	}
	m := a.run.model(&a.l.Task)
	req, err := a.firstRequest(m)
	if err != nil {
		return reply{}, err
	}
	q := &inquiry{m: m, req: req, times: 1, sure: a.run.cfg.Strategy != StrategyConditional}
	if m.ranked {
		f.count(a, q)
		r := reply{bytes: rankedReply, chain: 1}
		return f.form(a, r), nil
	}
	if a.run.cfg.ordered() && a.l.Task.Parent != 0 {
		q.more = f.earlier(a, answerBytes(a, req))
		f.answers++
	}
	r := f.gated(a, &writing{by: m, prompt: a.prompt(), documents: req.Documents}, q, true)
	f.reserved = append(f.reserved, a.reserve(m, req))
	if a.mergesAlone() {
		merged := f.program(a, a.merger(a.run.cfg.Merge), r.bytes)
		r.chain, r.structured = r.chain+merged.chain, false
	}
	return f.form(a, r), nil
}

// earlier returns the size of the section with the results before a part.
func (f *forecast) earlier(a *attempt, each int) int {
	room := a.earlierRoom()
	shown := min(f.answers, room/(each+resultHeader))
	key := [2]int{shown, f.answers - shown}
	if size, known := f.sections[key]; known {
		return size
	}
	size := len(dedupe.Earlier(slices.Repeat([]string{f.text(each)}, shown), f.answers-shown))
	if left := f.answers - shown; left > 0 { // shorter ones may fill the room
		size = max(size, room+len(dedupe.Earlier(nil, left)))
	}
	f.sections[key] = size
	return size
}

// search counts the calls of a search: as many replies as there may be.
func (f *forecast) search(a *attempt) reply {
	cfg := &a.run.cfg
	replies := int64(cfg.SearchReplies)
	if cfg.BudgetCalls > 0 {
		replies = min(replies, cfg.BudgetCalls)
	}
	schema := ""
	if a.run.shape != nil {
		schema = a.run.shape.Text
	}
	limits := retrieve.DefaultLimits()
	limits.Custom = a.run.modelTools()
	req := &model.Request{System: strings.TrimSpace(a.system() + "\n\n" + limits.Instruction(schema)),
		Prompt: a.prompt(), MaxOutputTokens: a.answerLimit(), Shared: []int{0}}
	const state = 1000 // bytes that a request has in addition
	q := &inquiry{m: a.run.model(&a.l.Task), req: req, more: bytesPerToken*int(a.node.Search) + state, times: 1,
		sure: true}
	f.count(a, q)
	q.times, q.sure = replies-1, false
	f.count(a, q)
	return f.form(a, reply{bytes: answerBytes(a, req), chain: replies})
}

// gated counts the calls for an answer: with a quality gate its tries and their scores.
// whole is set if a structured answer is asked for where the task has one.
func (f *forecast) gated(a *attempt, w *writing, q *inquiry, whole bool) reply {
	own := *q.req
	r := reply{bytes: answerBytes(a, &own), chain: 1}
	if whole && a.run.shape != nil && a.node.Whole && !q.m.ranked {
		a.run.shaped(&own)
		r.structured = true
	}
	first := *q
	first.req = &own
	f.count(a, &first)
	if !a.gateStands(q.m) {
		return r
	}
	cfg := &a.run.cfg
	again := first
	again.sure, again.times = false, int64(cfg.GateRounds-1)
	again.more += bytesPerToken * int(cfg.feedbackTokens(a.run.plan.Window))
	f.count(a, &again)
	judged := int64(cfg.GateRounds)
	if stronger := a.stronger(q.m); cfg.GateFallback == GateEscalate && stronger != nil {
		again.m, again.times = stronger, 1
		f.count(a, &again)
		judged++
	}
	scores := f.judge(a, &candidate{part: &part{text: f.text(r.bytes)}, prompt: w.prompt,
		documents: func() ([]model.Document, error) { return w.documents, nil }}, judged)
	r.scored, r.chain = true, judged+scores
	return r
}

// judge counts the calls that score answers, and returns their number.
func (f *forecast) judge(a *attempt, c *candidate, times int64) int64 {
	j := a.run.judge
	if j.rule != nil {
		return 0
	}
	req := &model.Request{Prompt: c.text}
	if !j.program {
		asks, _, err := a.judgeRequest(c)
		if err != nil {
			return 0 // damaged documents, which the run reports
		}
		req = asks
	}
	f.count(a, &inquiry{m: j.model, req: req, times: times})
	return times
}

package rlm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/model"
)

// leastPart is the least text, in tokens, that is asked about by itself because a
// model found more of it too long.
const leastPart = 250

// EventDivided records that the text of a task is read in smaller parts, because its
// model found the request too long: its data has model, tokens (of the request,
// estimated) and parts.
const EventDivided perdure.EventKind = "task.divided"

// tooLong reports whether a request was longer than its model reads.
func tooLong(err error) bool {
	return failedAs(err, KindTooLong)
}

func failedAs(err error, kind string) bool {
	f, ok := errors.AsType[*attemptError](err)
	return ok && f.kind == kind
}

// read does the work of a leaf: it asks about its text or, where that was divided,
// puts the answers about its parts together.
func (a *attempt) read(ctx context.Context) error {
	if a.l.Fence() == 1 && a.node.Replaces == 0 { // no attempt was made before
		return a.answer(ctx, 0, nil)
	}
	own, err := a.children(ctx, a.l.Task.ID)
	if err != nil {
		return err
	}
	family, err := a.family(ctx, own, a.node)
	if err != nil {
		return err
	}
	if len(family) == 0 {
		return a.answer(ctx, 0, nil)
	}
	return a.merge(ctx, family)
}

// lostOf returns the children without a result.
func lostOf(family []child) []child {
	return slices.DeleteFunc(slices.Clone(family), func(c child) bool { return c.State == perdure.Completed })
}

// divided reports whether the children are parts of a text that was too long for
// this task's model.
func (a *attempt) divided(family []child) bool {
	return len(family) > 0 && family[0].node.Divided > a.node.Divided
}

// division is what a request about the task's text comes to when its model finds
// it too long.
type division struct {
	m *asked
	// request, text and frame are the tokens of the request, of its text and of
	// what is asked about it, estimated.
	request, text, frame int64
}

func (a *attempt) divisionOf(m *asked, req *model.Request) *division {
	return &division{m: m, request: model.EstimateTokens(len(model.RenderAll(req))),
		text:  a.planning().tokensOf(a.reads()),
		frame: model.EstimateTokens(len(req.System) + len(a.prompt()))}
}

// least is the smallest part that is worth a request: one about less text than
// half of what is asked about it would hardly be shorter.
func (d *division) least() int64 { return max(leastPart, d.frame/2) }

// possible reports whether the text can be divided.
func (d *division) possible(n *node) bool {
	return !d.m.ranked && (n.leaf() || n.Plans) && d.text >= 2*d.least()
}

// refused notes that a model finds requests of a size too long.
func (r *run) refused(m *asked, tokens int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.tooLong[m.name]; known == 0 || tokens < known {
		r.tooLong[m.name] = tokens
	}
}

// learnLimit notes how much a model reads, if it named its limit and its count of the tokens of a
// request, whose tokens are estimated.
func (r *run) learnLimit(m *asked, err error, tokens int64) {
	e, ok := errors.AsType[*model.Error](err)
	if !ok || e.Limit.Most <= 0 || e.Limit.Counted <= e.Limit.Most {
		return
	}
	fits := int64(float64(tokens) * float64(e.Limit.Most) / float64(e.Limit.Counted) * limitMargin)
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.fits[m.name]; known == 0 || fits < known {
		r.fits[m.name] = fits
	}
}

// limitMargin is the part of a limit that requests use: text differs in tokens for a byte.
const limitMargin = 0.85

// learnedLimit returns the length of requests, in estimated tokens, that a model reads as it said
// itself; 0 if it did not.
func (r *run) learnedLimit(m *asked) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fits[m.name]
}

// shortestRefused is the shortest request that a model found too long here; 0 when
// it did not.
func (r *run) shortestRefused(m *asked) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tooLong[m.name]
}

// refusals returns notes about the models that refused shorter requests than expected.
func (r *run) refusals() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var notes []string
	for _, name := range slices.Sorted(maps.Keys(r.tooLong)) {
		notes = append(notes, fmt.Sprintf("model %q found requests of about %d tokens too long, and read their text in "+
			"smaller parts; "+
			"a smaller --context-window saves these requests", name, r.tooLong[name]))
	}
	return notes
}

// divide has the text of the task read in parts by as many children: in halves, or
// smaller when the model is known to read less than that.
func (a *attempt) divide(ctx context.Context, d *division) error {
	size := d.text / 2
	if known := a.run.shortestRefused(d.m); known > 0 {
		size = min(size, (known-d.frame)/2)
	}
	if fits := a.run.learnedLimit(d.m); fits > 0 {
		size = min(size, fits-d.frame-min(int64(a.answerLimit()), fits/4)) // a long answer is limited to the rest
	}
	p := a.planning()
	var parts chunks
	for i, c := range a.reads() {
		if i == 0 && a.run.cfg.hasMarkedParts() {
			c = a.node.ownRange(c)
		}
		cut, err := p.cut(max(size, d.least()), c)
		if err != nil {
			return err
		}
		parts = append(parts, cut...)
	}
	whole := &node{Total: len(parts), File: a.node.File, Divided: a.node.Divided + 1, Head: max(p.head, a.node.Head),
		Draw:  a.draw(),
		merge: a.partsMerge(a.l.Task.Merge)}
	nodes := whole.spread(parts, 0, a.run.cfg.MaxChildren)
	if err := a.l.AppendEvent(ctx, EventDivided,
		map[string]any{"model": d.m.name, "tokens": d.request, "parts": len(parts)}); err != nil {
		return err
	}
	return a.spawn(ctx, nodes, a.dividedWork(nodes))
}

// partsMerge is how the answers about the parts of this task's text become its
// result.
func (a *attempt) partsMerge(merge string) string {
	if a.node.Whole || a.node.Step != nil {
		return a.run.cfg.stepMerge(merge)
	}
	return merge
}

// refusedBefore returns the failure of a call whose request was too long, when the
// journal has one: it is not sent again to be refused again.
func (a *attempt) refusedBefore(ctx context.Context, position int, hash string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refusals == nil {
		a.refusals = make(map[request]string)
		if a.l.Fence() > 1 { // else there is no journal
			calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
			if err != nil {
				return err
			}
			for _, c := range calls {
				if a.l.Replays(c.Attempt) && c.Error != nil && c.Error.Kind == KindTooLong {
					a.refusals[request{c.Position, c.RequestHash}] = c.Error.Message
				}
			}
		}
	}
	if why, there := a.refusals[request{position, hash}]; there {
		return &attemptError{kind: KindTooLong, err: errors.New(why)}
	}
	return nil
}

// request identifies a request in the journal.
type request struct {
	position int
	hash     string
}

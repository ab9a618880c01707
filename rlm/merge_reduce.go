package rlm

import (
	"context"
	"fmt"
	"strings"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm/internal/parallel"
)

// reducePosition is where in the journal the calls of a merge begin: before it
// are those that an attempt made before its children existed.
const reducePosition = 1 << 20

// reduceWidth is how many calls of one merge are under way at once, at most.
const reduceWidth = 4

// exchangeCalls is how many calls one exchange may make.
const exchangeCalls = 1 + maxRepairs

// positions returns the first of the next n places in the journal of the
// attempt. The order in which they are taken has to follow from what the
// journal and the store hold, so that an interrupted attempt finds each call at
// its place again. One goroutine takes them.
func (a *attempt) positions(n int) int {
	a.next += n
	return a.next - n
}

// reduce makes one result of the results of several tasks, which are in their
// order and at least one. Merges that need no model cannot fail. A merge whose
// budget ends keeps the finished parts, marked as incomplete.
func (a *attempt) reduce(ctx context.Context, m *merger, parts []part) (string, Data, error) {
	a.next = max(a.next, reducePosition)
	timed, stop := a.timed(ctx)
	defer stop()
	switch {
	case strings.HasPrefix(m.merge, MergeProgram):
		return a.mergeByProgram(timed, m, parts)
	case m.ranked && (m.level || a.run.model(&a.l.Task).ranked):
		// Passages are ranked together; what is written of them is for a model
		// that writes.
	case m.merge == MergeSummarize:
		return a.summarize(timed, m, parts)
	case m.merge == MergeVote:
		return a.vote(timed, m, parts)
	case m.merge == MergeBest:
		return a.best(timed, m, parts)
	}
	text, data := m.run(parts)
	return text, data, nil
}

// outOfBudget reports whether an error is that the tree may not spend more, or that its model
// answers nothing more.
func outOfBudget(err error) bool { return failedAs(err, KindBudget) || failedAs(err, KindFault) }

// whatEnded names what [outOfBudget] reports.
func whatEnded(err error) string {
	if failedAs(err, KindFault) {
		return "the model failed for good"
	}
	return "the budget ended"
}

// sideBySide calls do for each number below n, a few at once; see parallel.Do.
func (a *attempt) sideBySide(n int, do func(i int) error) error {
	width := reduceWidth
	if own := a.run.cfg.Concurrency; own > 0 {
		width = min(width, own)
	}
	return parallel.Do(width, n, do)
}

// collect collects what the parts carry in addition to their text.
func (m *merger) gather(parts []part) Data {
	var data Data
	lists := make([][]model.Citation, len(parts))
	for i, p := range parts {
		lists[i] = p.data.Citations
		data.addMissing(p.data.Missing, p.data.MoreMissing)
		data.addNotes(p.data.Notes)
		data.MoreCitations += p.data.MoreCitations
		data.QuotesDropped += p.data.QuotesDropped
		data.Incomplete = data.Incomplete || p.data.Incomplete
		data.Cut = data.Cut || p.data.Cut
	}
	switch {
	case !m.ranked || m.merge == MergeConcatenate:
		data.Citations = unionCitations(lists)
	case m.whole:
		data.Citations = extract.Merge(lists, rankedShown)
	default:
		data.Citations = extract.Merge(lists, rankedKept)
	}
	data.limitCitations()
	return data
}

// checkReduction refuses, before the first call, a merge that could not be done
// with these models.
func (p *planning) checkReduction() error {
	top := p.models[0]
	switch {
	case p.cfg.summarizes() && top.ranked:
		return invalid(fmt.Sprintf("merge: summarize needs a model that writes text, and %s only quotes", top.name),
			"choose one with --model; --sub-model builtin:extract may still find the passages")
	case (p.cfg.Merge == MergeVote || p.cfg.Merge == MergeBest) && p.models[1].ranked:
		return invalid(fmt.Sprintf("merge: %s compares answers, and %s only quotes passages", p.cfg.Merge, p.models[1].name),
			"choose another --model, or --merge merge")
	case !p.cfg.summarizes():
		return nil
	}
	for _, m := range p.models {
		if room := p.cfg.reductionRoom(m, p.req.Prompt); !m.ranked && room < leastReductionRoom {
			return invalid(fmt.Sprintf("merge: to summarize, model %q has room for about %d tokens of results in its window "+
				"of %d, next to "+
				"prompt and answer; it needs %d", m.name, max(0, room), p.cfg.windowOf(m), leastReductionRoom),
				"shorten the prompt or lower --max-output-tokens, raise --context-window, or use --merge concatenate")
		}
	}
	return nil
}

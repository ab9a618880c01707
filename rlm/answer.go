package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/corpus/chunk"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/dedupe"
	"github.com/perdure/perdure/rlm/internal/fanout"
	"github.com/perdure/perdure/rlm/internal/quote"
)

// answer does the work of a leaf: one call to its model, the one of this number,
// and corrections. notes go into the result.
func (a *attempt) answer(ctx context.Context, position int, notes []string) error {
	if a.emptyFile() {
		return a.complete(ctx, emptyFileAnswer, &Data{})
	}
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return over
	}
	m := a.run.model(&a.l.Task)
	if m.ranked && a.run.reader != nil {
		own := *m
		own.Model, m = &ranker{a}, &own
	}
	req, err := a.request(timed, m)
	if err != nil {
		return a.interrupted(timed, err)
	}
	a.next = max(a.next, position)
	d := a.divisionOf(m, req)
	req.Divisible = d.possible(a.node)
	if known := a.run.shortestRefused(m); req.Divisible && known > 0 && d.request >= known && a.l.Fence() == 1 {
		return a.divide(ctx, d) // a request that was not sent before
	}
	text, data, err := a.gated(timed, &writing{by: m, prompt: a.prompt(), documents: req.Documents,
		write: func(ctx context.Context, by *asked, position int, feedback string) (string, Data, error) {
			again := *req
			again.Prompt += feedback
			text, data, err := a.askWhole(ctx, position, by, &again)
			if err == nil {
				text = a.cited(by, req, text, &data)
			}
			return text, data, err
		}})
	if req.Divisible && tooLong(err) {
		a.run.refused(m, d.request)
		a.run.learnLimit(m, err, d.request)
		return a.divide(ctx, d)
	}
	if err != nil {
		return err
	}
	if m.ranked && a.node.Whole {
		merger := merger{prompt: a.query(), merge: MergeUnion, ranked: true, whole: true}
		text, data = merger.run([]part{{text: text, data: data}})
	}
	if a.mergesAlone() {
		m := a.merger(a.run.cfg.Merge)
		if text, data, err = a.reduce(timed, m, []part{{text: text, data: data}}); err != nil {
			return a.interrupted(timed, err)
		}
	}
	data.addNotes(notes)
	if text, err = a.form(ctx, text, &data); err != nil {
		return err
	}
	return a.complete(ctx, text, &data)
}

// mergesAlone reports whether a program merges the answer of a task without parts, so that the result
// has the same form however many parts there are.
func (a *attempt) mergesAlone() bool { return a.run.merger != nil && a.l.Task.Parent == 0 }

// emptyFileAnswer is the answer about a file of a batch without text.
const emptyFileAnswer = "(the file is empty)"

// emptyFile reports a file of a batch without text.
func (a *attempt) emptyFile() bool {
	return a.node.File != "" && a.l.Task.Context.Length == 0
}

// documents are what a model reads of a part, with the header of a table first. overlap is how many
// bytes at its beginning the part before has too.
func (a *attempt) documents(c fanout.Chunk, overlap int64, m *asked) ([]model.Document, error) {
	if m.ranked { // the index has the text
		return a.places(c)
	}
	r, marked := a.run.reader, a.run.cfg.hasMarkedParts()
	if !marked {
		overlap = 0
	}
	docs, err := r.Documents(c.Off+overlap, c.Length-overlap)
	if err != nil || a.readsText(m) {
		return docs, err
	}
	before, err := r.Documents(c.Off, overlap)
	if err != nil {
		return nil, err
	}
	docs = append(before, docs...)
	all, err := chunk.WithHeader(r, docs, max(a.run.plan.Head, a.node.Head))
	repeated := len(before) + len(all) - len(docs)
	for i := range repeated {
		all[i].Repeated = marked
	}
	return all, err
}

// ownRange returns the part of a range of the context that the part before does not have.
func (n *node) ownRange(c fanout.Chunk) fanout.Chunk {
	overlap := min(n.Overlap, c.Length)
	return fanout.Chunk{Off: c.Off + overlap, Length: c.Length - overlap}
}

// readsText reports whether a model is a program that reads the text alone.
func (a *attempt) readsText(m *asked) bool { return a.run.cfg.readsText() && isProgram(m.name) }

// request is what a leaf asks its model.
func (a *attempt) request(ctx context.Context, m *asked) (*model.Request, error) {
	req, err := a.firstRequest(m)
	if err != nil {
		return nil, err
	}
	if m.ranked {
		return req, nil
	}
	var earlier string
	switch {
	case a.node.Step != nil:
		earlier, err = a.seen(ctx)
	case a.run.cfg.ordered() && a.l.Task.Parent != 0:
		earlier, err = a.earlier(ctx)
	}
	req.Prompt += earlier
	return req, err
}

// share marks the documents for providers that keep the beginning of prompts only when asked to:
// where this run asks about them again, and where one request has the whole context, so that
// further questions are likely.
func (a *attempt) share(req *model.Request) {
	again := a.l.Task.Parent == 0 || a.draw() > 0 || a.run.cfg.MinScore != nil
	if len(req.Documents) > 0 && again {
		req.Shared = []int{len(model.Render(req)) - len(req.Prompt)}
	}
}

// firstRequest is the request of a leaf without what other tasks add to it. It reads only
// the context.
func (a *attempt) firstRequest(m *asked) (*model.Request, error) {
	req := &model.Request{System: a.system(), Prompt: a.prompt(), Temperature: a.temperature(), Seed: a.run.cfg.Seed,
		MaxOutputTokens: a.answerLimit()}
	a.sampled(req)
	for i, c := range a.reads() {
		var overlap int64
		if i == 0 {
			overlap = min(a.node.Overlap, c.Length)
		}
		docs, err := a.documents(c, overlap, m)
		if err != nil {
			return nil, damaged(err)
		}
		req.Documents = append(req.Documents, docs...)
	}
	if m.ranked {
		req.System, req.Prompt = "", a.query()
		return req, nil
	}
	if a.run.cfg.hasMarkedParts() {
		a.askLast(m, req)
		return req, nil
	}
	if a.node.Total > 1 && !a.node.Sample {
		req.System = strings.TrimSpace(req.System + "\n\n" + partInstruction(a.node.First+1, a.node.Total))
		if a.run.shape != nil {
			req.System += "\n\n" + a.run.shape.Hint()
		}
	}
	if a.asksForQuotes(m, req.Documents) {
		req.System = strings.TrimSpace(req.System + "\n\n" + quote.Instruction)
	}
	return req, nil
}

// askLast gives a request the form of version 2: what is the same for all parts is before the
// documents, the question is last.
func (a *attempt) askLast(m *asked, req *model.Request) {
	req.Layout = model.DocumentsFirst
	if a.readsText(m) {
		req.Layout = model.TextOnly
		return
	}
	var before strings.Builder
	if a.node.Total > 1 && !a.node.Sample {
		req.System = strings.TrimSpace(req.System + "\n\n" + markedPartInstruction)
		fmt.Fprintf(&before, partNumber, a.node.First+1, a.node.Total)
		if a.run.shape != nil {
			before.WriteString(a.run.shape.Hint() + "\n\n")
		}
	}
	if a.asksForQuotes(m, req.Documents) {
		before.WriteString(quote.Instruction + "\n\n")
	}
	req.Prompt = before.String() + req.Prompt
	a.share(req)
}

// partNumber says which part the documents are.
const partNumber = "The documents are part %d of %d of a larger text.\n\n"

// markedPartInstruction is for a model that sees only a part of the context, in version 2.
const markedPartInstruction = "The documents are a part of a larger text; the other parts are read separately, each " +
	"once, and the answers are put together: counts and sums are added. The task is behind the documents. Answer it for " +
	"this part alone. Text under a heading with \"repeated for context, already counted\" belongs to the part before: " +
	"use it to understand the rest, and do not count, add or list anything in it. If nothing in this " +
	"part helps, reply with " +
	"exactly: " + nothingHere

// partInstruction returns the text for a model that sees only a part of the context.
func partInstruction(number, total int) string {
	return fmt.Sprintf("The documents are part %d of %d of a larger text; the other parts are read separately and the "+
		"answers are put together. Answer from this part alone. If nothing in it helps, reply with exactly: %s",
		number, total, nothingHere)
}

// earlierShare of the window is kept for the results of earlier parts in a
// sequential tree.
const earlierShare = 4

// earlier is the section of the prompt with the results of the parts before
// this one. When they are too long, the oldest are left out.
func (a *attempt) earlier(ctx context.Context) (string, error) {
	before, err := a.allBefore(ctx)
	if err != nil {
		return "", err
	}
	room := a.earlierRoom()
	var found []string
	left := 0
	for _, b := range slices.Backward(before) {
		s := b.Result
		if b.State != perdure.Completed || strings.TrimSpace(s) == "" {
			continue
		}
		if room -= len(s) + resultHeader; room < 0 {
			left++
			continue
		}
		found = append(found, s)
	}
	return dedupe.Earlier(found, left), nil
}

// earlierRoom is how many bytes of earlier results a request has.
func (a *attempt) earlierRoom() int {
	return bytesPerToken * int(a.run.plan.Window) / earlierShare >> a.node.Divided
}

// resultHeader is about how many bytes precede each earlier result.
const resultHeader = 40

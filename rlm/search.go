package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/quote"
	"github.com/perdure/perdure/rlm/internal/retrieve"
)

// maxSearchTokens bounds what a request of planner search shows, whatever the window:
// each reply sends all of it again.
const maxSearchTokens = 48_000

// search answers the prompt by retrieval: the model reads the best passages, may ask for
// more in a bounded number of replies, and answers with quotes. Each reply is a call of
// the journal; an interrupted search is repeated from its replies.
func (a *attempt) search(ctx context.Context) error {
	timed, stop := a.timed(ctx)
	defer stop()
	if over := a.outOfTime(timed); over != nil {
		return over
	}
	limits := retrieve.DefaultLimits()
	limits.Custom = a.run.modelTools()
	schema := ""
	if a.run.shape != nil {
		schema = a.run.shape.Text
	}
	m := *a.run.model(&a.l.Task)
	m.quiet = true // most replies are requests
	h := &hunt{a: a, m: &m, limits: limits, schema: schema}
	var err error
	h.s, err = retrieve.Open(timed, retrieve.Config{Limits: limits, Question: a.prompt(), Reader: a.run.reader,
		Find: a.find, Call: h.runTool, Room: 4 * int(a.node.Search), Schema: schema})
	if err != nil {
		return a.interrupted(timed, err)
	}
	text, data, err := h.run(timed)
	if errors.Is(err, errStopping) {
		return a.release(ctx)
	}
	if err != nil {
		return a.interrupted(timed, err)
	}
	if h.unanswered {
		return a.complete(ctx, text, &data)
	}
	if text, err = a.form(ctx, text, &data); err != nil {
		return err
	}
	return a.complete(ctx, text, &data)
}

// hunt is one search with its replies.
type hunt struct {
	a      *attempt
	m      *asked
	s      *retrieve.Session
	limits retrieve.Limits
	schema string
	data   Data
	// recorded are the requests that the journal has.
	recorded []recordedTerms
	// refused counts the requests that the model found too long.
	refused int
	// corrected is set after the model was asked for better quotes, plain after a reply
	// without a line of the protocol.
	corrected, plain bool
	// made are the requests of earlier replies. repeated is set if the last reply had no other.
	made     map[string]bool
	repeated bool
	// unanswered is set if the search ended without an answer, cut if the last reply is not whole.
	unanswered, cut bool
}

// run asks until there is an answer.
func (h *hunt) run(ctx context.Context) (text string, data Data, err error) {
	if h.recorded, err = h.recordedTerms(ctx); err != nil {
		return "", Data{}, err
	}
	for reply := 1; ; reply++ {
		if err := h.a.e.stopping(); err != nil {
			return "", Data{}, err
		}
		text, t, err := h.ask(ctx, reply)
		if err != nil {
			return "", Data{}, err
		}
		if t.Last {
			answer, ok := h.limits.LastAnswer(text)
			if !ok {
				return "", Data{}, failf(KindNoAnswer, "search: reply %d, the last one, has no answer (see --planner split)", reply)
			}
			return h.answer(answer, reply)
		}
		r := h.parse(text)
		if r.Answered && (h.corrected || !h.s.Unsupported(reply, r.Answer)) {
			return h.answer(r.Answer, reply)
		}
		if h.corrected = h.corrected || r.Answered; r.Answered {
			continue
		}
		if h.plain && r.Plain { // the model does not use the protocol
			return h.answer(strings.TrimSpace(text), reply)
		}
		h.plain = r.Plain
		switch h.repeated = h.repeats(text, &r); {
		case h.repeated && r.Early:
			return h.answer(r.Answer, reply)
		case h.repeated && t.Repeated:
			return h.endRepeating(&r, reply)
		}
		if err := h.s.Follow(ctx, reply, r); err != nil {
			return "", Data{}, err
		}
	}
}

// parse parses a reply. With a schema, one that is the value of the answer is an answer also
// without the word.
func (h *hunt) parse(text string) retrieve.Reply {
	r := h.limits.Parse(text)
	if h.schema == "" || !r.Plain {
		return r
	}
	if _, problems := h.a.run.shape.CheckWhole(text); len(problems) > 0 {
		return r
	}
	return retrieve.Reply{Answered: true, Answer: strings.TrimSpace(text)}
}

// ask makes the calls for a reply: one, unless the model finds the request too long, or it fails
// so often that the rest of the budget is needed for an answer. It returns the terms of the call.
func (h *hunt) ask(ctx context.Context, reply int) (text string, t searchTerms, err error) {
	for {
		if t, err = h.terms(ctx, reply); err != nil {
			return "", t, err
		}
		text, err = h.call(ctx, reply, t)
		if errors.Is(err, errLastPaid) {
			t.Last, t.Budget = true, true
			text, err = h.call(ctx, reply, t)
		}
		if tooLong(err) && h.s.Shorten() {
			h.refused++
			h.made = nil // results of earlier requests can be left out
			continue
		}
		if t.Budget && err == nil {
			h.data.addNotes([]string{fmt.Sprintf("the budget ended the search: reply %d had to be the answer", reply)})
		}
		return text, t, err
	}
}

// call makes one call with these terms.
func (h *hunt) call(ctx context.Context, reply int, t searchTerms) (text string, err error) {
	a, m := h.a, *h.m
	if !t.Last {
		m.again = func(ctx context.Context) error { return h.again(ctx, reply, t) }
	}
	if a.limits, err = encode("terms", t); err != nil {
		return "", err
	}
	defer func() { a.limits = nil }()
	text, data, err := a.ask(ctx, reply-1, &m, h.request(reply, t))
	h.data.addNotes(data.Notes)
	h.cut = data.Cut
	return text, err
}

func (h *hunt) request(reply int, t searchTerms) *model.Request {
	a := h.a
	req := &model.Request{System: strings.TrimSpace(a.system() + "\n\n" + h.limits.Instruction(h.schema)),
		Prompt: h.s.Prompt(reply, t.Replies, t.Last), Shared: h.s.Shared(t.Last), Temperature: a.temperature(),
		Seed: a.run.cfg.Seed, MaxOutputTokens: a.answerLimit(), Divisible: h.s.CanShorten()}
	if t.Repeated {
		req.Prompt += repeatedNote
	}
	if !t.Last { // a call would not be carried out
		req.Tools = h.limits.Tools()
	}
	return req
}

// toolPosition is where the calls of tools in a search begin in the journal.
const toolPosition = 1 << 10

// runTool runs a tool that a reply requested. Where the budget pays for no call but that of the
// answer, it is not run, which is recorded: a repeated search reads the same.
func (h *hunt) runTool(ctx context.Context, reply, number int, r retrieve.Request) (string, error) {
	a := h.a
	t := a.run.tools[r.Kind]
	object, problem := t.checkArguments(json.RawMessage(r.Text))
	if problem != "" {
		return errorText(problem), nil
	}
	position := toolPosition + reply*h.limits.Requests + number
	req := &model.Request{Prompt: string(object)}
	spec := perdure.CallSpec{Position: position, Model: t.by.name, RequestHash: model.Hash(t.by.name, req)}
	call, known, err := a.l.FindCall(ctx, spec)
	if err != nil || known {
		return call.Response, a.interrupted(ctx, err)
	}
	rest, err := h.rest(ctx)
	if err != nil {
		return "", err
	}
	if rest.calls <= 1 {
		return h.refuseTool(ctx, spec)
	}
	text, data, err := a.runTool(ctx, position, r.Kind, string(object))
	h.data.addNotes(data.Notes)
	return text, err
}

// refuseTool records that a tool was not run.
func (h *hunt) refuseTool(ctx context.Context, spec perdure.CallSpec) (string, error) {
	call, _, err := h.a.l.BeginCall(ctx, spec)
	if err != nil {
		return "", err
	}
	text := errorText("the budget pays for no further call but that of the answer")
	return text, h.a.l.SettleCall(ctx, call.ID, perdure.CallResult{Response: text, NotSent: true, CostMicros: new(int64)})
}

// answer checks the quotes of the answer and says what it rests on.
func (h *hunt) answer(text string, replies int) (string, Data, error) {
	shown := h.s.Shown()
	d := &h.data
	if d.Cut = h.cut && !h.unanswered; d.Cut {
		d.noteCut(h.a, h.m)
	}
	text, d.Citations, d.QuotesDropped = quote.Apply(text, h.a.prompt(), shown)
	if h.schema != "" { // marks have no place in JSON
		text = quote.Strip(text, d.Citations)
	}
	d.Citations = append(d.Citations, readPlaces(shown)...)
	d.limitCitations()
	files := make(map[string]bool)
	for _, doc := range shown {
		files[doc.File] = true
	}
	d.addNotes([]string{fmt.Sprintf("found by retrieval: text of %s among %d was shown in %s; --planner split reads "+
		"everything", human.Count(len(files), "file"), len(h.a.run.reader.Manifest().Files),
		human.Count(replies, "request"))})
	if h.refused > 0 {
		d.addNotes([]string{fmt.Sprintf("model %q found %s too long: passages and listings that were left out of later "+
			"ones: %d; a smaller --context-window saves such requests", h.m.name, human.Count(h.refused, "request"),
			h.s.LeftOut)})
	}
	if d.shownCitations() == 0 {
		d.addNotes([]string{noteNoQuote})
	}
	return text, *d, nil
}

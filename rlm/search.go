package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	limits := retrieve.DefaultLimits(a.node.Replies)
	s, err := retrieve.Open(timed, retrieve.Config{Limits: limits, Question: a.prompt(), Reader: a.run.reader,
		Find: a.find, Room: 4 * int(a.node.Search)})
	if err != nil {
		return a.interrupted(timed, err)
	}
	h := &hunt{a: a, s: s, limits: limits}
	text, data, err := h.run(timed)
	if err != nil {
		return a.interrupted(timed, err)
	}
	if text, err = a.form(ctx, text, &data); err != nil {
		return err
	}
	return a.complete(ctx, text, &data)
}

// find returns the best passages of the whole context.
func (a *attempt) find(ctx context.Context, query string, n int) ([]model.Citation, error) {
	found, err := a.e.finder.Find(ctx, query, a.run.reader.All(), n)
	if err != nil && ctx.Err() == nil {
		return nil, damaged(err)
	}
	return found, err
}

// hunt is one search with its replies.
type hunt struct {
	a      *attempt
	s      *retrieve.Session
	limits retrieve.Limits
	data   Data
	// spent is what the replies took, estimated from their text: the same each time.
	spent model.Usage
	// corrected is set after the model was asked for better quotes, plain after a reply
	// without a line of the protocol.
	corrected, plain bool
}

// run asks until there is an answer.
func (h *hunt) run(ctx context.Context) (string, Data, error) {
	for reply := 1; ; reply++ {
		last := reply >= h.limits.Replies || h.s.Full() || h.lastPaid(reply)
		text, err := h.ask(ctx, reply, last)
		if err != nil {
			return "", Data{}, err
		}
		if last {
			answer, ok := h.limits.LastAnswer(text)
			if !ok {
				return "", Data{}, failf(KindNoAnswer, "search: the last of %d replies has no answer (see --planner split)", reply)
			}
			return h.answer(answer, reply)
		}
		r := h.limits.Parse(text)
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
		if err := h.s.Follow(ctx, reply, r); err != nil {
			return "", Data{}, err
		}
	}
}

// ask makes the call for a reply.
func (h *hunt) ask(ctx context.Context, reply int, last bool) (string, error) {
	a := h.a
	m := *a.run.model(&a.l.Task)
	m.quiet = true // most replies are requests
	req := h.request(reply, last)
	text, data, err := a.ask(ctx, reply-1, &m, req)
	if err != nil {
		return "", err
	}
	h.data.addNotes(data.Notes)
	h.spent.InputTokens += reservedTokens(len(model.RenderAll(req)))
	h.spent.OutputTokens += model.EstimateTokens(len(text))
	return text, nil
}

func (h *hunt) request(reply int, last bool) *model.Request {
	a := h.a
	return &model.Request{System: strings.TrimSpace(a.system() + "\n\n" + h.limits.Instruction()),
		Prompt: h.s.Prompt(reply, last), Shared: h.s.Shared(last), Temperature: a.temperature(), Seed: a.run.cfg.Seed,
		MaxOutputTokens: a.answerLimit()}
}

// lastPaid reports whether the budget hardly pays for a reply after this one, which then
// has to be the answer.
func (h *hunt) lastPaid(reply int) bool {
	a := h.a
	limits := a.run.cfg.limits()
	if limits.Tokens == 0 && limits.CostMicros == 0 {
		return false
	}
	size := len(model.RenderAll(h.request(reply, false)))
	one := model.Usage{InputTokens: reservedTokens(size), OutputTokens: a.run.plan.Answer}
	u := h.spent
	u.InputTokens += 2*one.InputTokens + reservedTokens(h.limits.RangeBytes)
	u.OutputTokens += 2 * one.OutputTokens
	if limits.Tokens > 0 && u.InputTokens+u.OutputTokens > limits.Tokens {
		return true
	}
	micros, known := a.e.price(a.run.model(&a.l.Task), u)
	return limits.CostMicros > 0 && known && micros > limits.CostMicros
}

// answer checks the quotes of the answer and says what it rests on.
func (h *hunt) answer(text string, replies int) (string, Data, error) {
	shown := h.s.Shown()
	d := &h.data
	text, d.Citations, d.QuotesDropped = quote.Apply(text, h.a.prompt(), shown)
	d.Citations = append(d.Citations, readPlaces(shown)...)
	d.limitCitations()
	files := make(map[string]bool)
	for _, doc := range shown {
		files[doc.File] = true
	}
	d.addNotes([]string{fmt.Sprintf("found by retrieval: text of %s among %d was shown in %s; --planner split reads "+
		"everything", human.Count(len(files), "file"), len(h.a.run.reader.Manifest().Files),
		human.Count(replies, "request"))})
	if !slices.ContainsFunc(d.Citations, func(c model.Citation) bool { return c.Kind == model.CitedQuote }) {
		d.addNotes([]string{"no quote supports the answer"})
	}
	return text, *d, nil
}

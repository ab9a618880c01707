package rlm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/rlm/internal/repl/turn"
)

const (
	// summaryPosition is where in the journal the summaries of conversations begin, one for a turn.
	summaryPosition = 2 * formPosition
	// leastSummarized is how many turns a summary is worth a call.
	leastSummarized = 2
	// afterFailure is how many turns later a model is asked again that wrote no summary.
	afterFailure = 8
	// maxRefusals is how often a conversation is shortened in a turn because it was refused.
	maxRefusals = 6
)

// turnTerms are recorded with a request for a reply: a repeated conversation is shortened as it was,
// whatever the window is then.
type turnTerms struct {
	// Window is that of the model, in tokens, when the request was made. Learned is how many tokens a
	// request could have as a refusal had shown; 0 if none had.
	Window  int64 `json:"window"`
	Learned int64 `json:"learned,omitempty"`
	// Answer is the limit for the answer in the request, if it is not that of the plan.
	Answer int `json:"answer,omitempty"`
	// Shown is how the conversation is shown; nil for one that is not shortened. Its summary is recorded
	// with the first request that has it.
	Shown *shown `json:"shown,omitempty"`
}

// turnJournal is what the journal has of the requests for replies.
type turnJournal struct {
	answered map[int]*perdure.Call // the last one, by position
	terms    map[int]turnTerms     // of these
	refused  map[request]refusal
	failed   map[request]bool // summaries that are done without
	// learned is how many tokens a request to a model with a window can have, as a refusal has shown;
	// 0 if none has.
	learned int64
	by      string
	window  int64
}

// refusal is a request that was too long.
type refusal struct {
	why    string
	limit  model.TokenLimit
	window int64
}

// readTurns reads the journal once.
func (a *attempt) readTurns(ctx context.Context, c *console) (*turnJournal, error) {
	if c.journal != nil {
		return c.journal, nil
	}
	j := &turnJournal{answered: make(map[int]*perdure.Call), terms: make(map[int]turnTerms),
		refused: make(map[request]refusal), failed: make(map[request]bool)}
	c.journal = j
	if a.l.Fence() <= 1 {
		return j, nil
	}
	calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
	for i := range calls {
		if a.l.Replays(calls[i].Attempt) {
			j.take(&calls[i])
		}
	}
	return j, err
}

// take takes a call of the journal.
func (j *turnJournal) take(call *perdure.Call) {
	data, t := termsOf(call)
	at := request{call.Position, call.RequestHash}
	switch {
	case call.State == perdure.CallCompleted && call.Position < formPosition:
		j.answered[call.Position], j.terms[call.Position] = call, t
	case call.Error == nil:
		return
	case call.Position >= summaryPosition:
		j.failed[at] = isUnusableSummary(call.Error.Kind)
		return
	case call.Error.Kind == KindTooLong:
		r := refusal{why: call.Error.Message, window: t.Window}
		if data.Refused != nil {
			r.limit = *data.Refused
		}
		j.refused[at] = r
	}
	if t.Learned > 0 {
		j.learned, j.by, j.window = t.Learned, call.Model, t.Window
	}
}

// termsOf returns the terms of a call; they are empty if it has none.
func termsOf(call *perdure.Call) (data journaled, t turnTerms) {
	if json.Unmarshal(call.Data, &data) == nil && data.Limits != nil {
		_ = json.Unmarshal(data.Limits, &t) // those of another version shorten nothing
	}
	return data, t
}

// askTurn asks for the next reply of a conversation. One that is longer than its model reads is
// shortened, also after the model has refused it.
func (a *attempt) askTurn(ctx context.Context, c *console) (string, error) {
	j, err := a.readTurns(ctx, c)
	if err != nil {
		return "", err
	}
	m := a.run.model(&a.l.Task)
	f := &fitting{a: a, c: c, m: m, window: a.run.cfg.windowOf(m), summary: c.shown.Summary}
	if text, ok := f.repeat(j.answered[c.number]); ok {
		return text, nil
	}
	return f.ask(ctx)
}

// fitting is a request for a reply that is made to fit.
type fitting struct {
	a      *attempt
	c      *console
	m      *asked
	window int64
	// refused is the shortest request that was refused in this turn, in tokens.
	refused int64
	// summary is that of the turns before.
	summary string
}

// repeat returns the recorded reply of a turn, and shows the conversation as it was shown then. The reply
// of another model counts, too: the tree was resumed with this one. ok is false if the request is not
// the recorded one.
func (f *fitting) repeat(known *perdure.Call) (text string, ok bool) {
	if known == nil {
		return "", false
	}
	a, c := f.a, f.c
	before := c.shown.clone()
	c.shown.take(c.journal.terms[c.number].Shown)
	c.noteShortened()
	names := append(model.ChainNames(f.m.name), f.m.name)
	switch {
	case known.RequestHash == model.Hash(f.m.name, f.requestBefore(known)):
		return known.Response, true
	case !slices.Contains(names, known.Model) && a.run.cfg.Mode != ModeStrict:
		return known.Response, true
	}
	c.shown = before
	return "", false
}

// requestBefore returns the request for a reply that is recorded, with the limit for answers that it had.
// One that was cut is asked for again with another limit.
func (f *fitting) requestBefore(known *perdure.Call) *model.Request {
	req := f.a.turnRequest(f.c)
	if data, t := termsOf(known); !data.Cut && req.MaxOutputTokens > 0 && f.a.profile().MaxOutputTokens == 0 {
		req.MaxOutputTokens = cmp.Or(t.Answer, int(f.a.run.planned))
	}
	return req
}

// room returns how many tokens a request can have, and whether a refusal has shown it; 0 for a tree of a
// version before, which is shortened only then.
func (f *fitting) room() (room int64, learned bool) {
	j := f.c.journal
	if f.a.node.Repl.Fits {
		room = max(f.window-f.a.run.cfg.answerOf(f.window), 0) * 9 / 10
	}
	if j.learned > 0 && j.by == f.m.name && j.window == f.window && (room == 0 || j.learned < room) {
		return j.learned, true
	}
	return room, false
}

// ask sends the request, shorter after each refusal.
func (f *fitting) ask(ctx context.Context) (text string, err error) {
	a, c := f.a, f.c
	for range maxRefusals {
		room, learned := f.room()
		if room > 0 {
			fits, failed := f.fit(ctx, room)
			if failed != nil {
				return "", failed
			}
			if tokens := a.turnTokens(c); !fits && !f.canTry(tokens, learned) {
				return "", f.tooLong(tokens, err)
			}
		}
		text, err = f.send(ctx, f.terms(room, learned))
		e, ok := errors.AsType[*refusedError](err)
		if !ok {
			return text, err
		}
		tokens := a.turnTokens(c)
		if f.refused > 0 && tokens >= f.refused {
			break
		}
		f.refused = tokens
		c.journal.learn(f, e.limit)
	}
	return "", f.tooLong(f.refused, err)
}

// terms returns what is recorded with the request.
func (f *fitting) terms(room int64, learned bool) turnTerms {
	t := turnTerms{Window: f.window}
	if n := f.a.answerLimit(); int64(n) != f.a.run.planned {
		t.Answer = n
	}
	if learned {
		t.Learned = room
	}
	if s := f.c.shown.clone(); !s.isWhole() {
		if s.Summary == f.summary {
			s.Summary = ""
		}
		t.Shown = &s
	}
	return t
}

// canTry reports whether a request that does not fit is sent: if it is shorter than what was refused, or
// uses only what is kept because the tokens are an estimate.
func (f *fitting) canTry(tokens int64, learned bool) bool {
	if learned {
		return f.refused > 0 && tokens < f.refused
	}
	return tokens <= f.window-f.a.run.cfg.answerOf(f.window)
}

// refusedError is a request that the model finds too long.
type refusedError struct {
	limit model.TokenLimit
	err   error
}

func (e *refusedError) Error() string { return e.err.Error() }

func (e *refusedError) Unwrap() error { return e.err }

// send sends the request, unless the journal has that it was refused before with this window.
func (f *fitting) send(ctx context.Context, t turnTerms) (text string, err error) {
	a, c := f.a, f.c
	req := a.turnRequest(c)
	r, there := c.journal.refused[request{c.number, model.Hash(f.m.name, req)}]
	if there && (r.window == 0 || r.window == f.window) {
		return "", &refusedError{r.limit, &attemptError{kind: KindTooLong, err: errors.New(r.why)}}
	}
	if a.limits, err = encode("terms", t); err != nil {
		return "", err
	}
	defer func() { a.limits = nil }()
	text, _, err = a.ask(ctx, c.number, f.m, req)
	if tooLong(err) {
		e, _ := errors.AsType[*model.Error](err)
		return "", &refusedError{limitOf(e), err}
	}
	return text, err
}

// limitOf returns the limit that a server named.
func limitOf(e *model.Error) model.TokenLimit {
	if e == nil {
		return model.TokenLimit{}
	}
	return e.Limit
}

// learn notes how much the model reads: what it named, or half of what it refused.
func (j *turnJournal) learn(f *fitting, l model.TokenLimit) {
	room := f.refused / 2
	if l.Most > 0 {
		counted := float64(f.refused)
		if l.Counted > 0 {
			counted = float64(l.Counted)
		}
		fits := int64(float64(f.refused) / counted * float64(l.Most) * limitMargin)
		room = fits - min(f.a.run.cfg.answerOf(f.window), fits/4)
	}
	j.learned, j.by, j.window = max(min(room, f.refused*9/10), 1), f.m.name, f.window
}

// tooLong returns the error of a conversation that cannot be made to fit. err is the last refusal, if there
// was one.
func (f *fitting) tooLong(tokens int64, err error) error {
	first := model.EstimateTokens(len(f.c.system) + len(f.c.first))
	length := fmt.Sprintf("about %s tokens although it is shortened, %s of them instructions and question",
		human.Compact(tokens), human.Compact(first))
	if err == nil {
		return failf(KindTooLong, "model %q reads %s tokens with its answer (--context-window), and the conversation has %s",
			f.m.name, human.Compact(f.window), length)
	}
	return failf(KindTooLong, "model %q refuses the conversation, which has %s: %w", f.m.name, length, err)
}

// fit shortens the conversation until it has room, and reports whether it has: outputs first, then the turns
// before the last one are replaced by a summary.
func (f *fitting) fit(ctx context.Context, room int64) (bool, error) {
	a, c := f.a, f.c
	if c.number == 0 {
		return a.turnTokens(c) <= room, nil
	}
	fits := a.shrink(c, room, wellShown)
	if to := c.number - 1; !fits && to > c.shown.From {
		if err := f.leaveOut(ctx, to, room); err != nil {
			return false, err
		}
		c.shown.shorten(c.number, 0)
		fits = a.shrink(c, room, turn.Brief)
	} else if !fits {
		fits = a.shrink(c, room, turn.Brief)
	}
	if c.shown.isWhole() {
		return fits, nil
	}
	c.shown.Where = c.historyName()
	c.noteShortened()
	return fits, nil
}

// leaveOut leaves out the turns up to one. The model summarises them, if they are worth a call.
func (f *fitting) leaveOut(ctx context.Context, to int, room int64) error {
	a, c := f.a, f.c
	c.shown.From = to
	failed := c.shown.Unsummarized
	if to-c.shown.Summarized < leastSummarized || failed > 0 && to-failed < afterFailure {
		return nil
	}
	tokens := min(max(room/8, 150), 2000)
	s := turn.Summary{Question: c.questionNow(a), Earlier: c.shown.Summary, First: c.shown.Summarized + 1,
		Words: int(tokens) * 6 / 10}
	for number := s.First; number <= to; number++ {
		s.Replies = append(s.Replies, c.messages[2*number-2].Text)
		s.Outputs = append(s.Outputs, func(most int) string { return c.outputShown(number, most) })
	}
	const bytesPerToken = 4
	req := &model.Request{System: turn.SummarySystem, Prompt: s.Prompt(int(room-tokens) * bytesPerToken),
		Temperature: a.temperature(), Seed: a.run.cfg.Seed, MaxOutputTokens: int(tokens)}
	text, err := f.summarize(ctx, req)
	if err != nil {
		return err
	}
	if text = strings.TrimSpace(text); text != "" {
		c.shown.Unsummarized = 0
		c.shown.Summary, c.shown.Summarized = clip.Bytes(text, 2*bytesPerToken*int(tokens)), to
	} else {
		c.shown.Unsummarized = to
		c.notes = append(c.notes, fmt.Sprintf("turns up to %d are left out of the conversation, because the model wrote no "+
			"summary of them", to))
	}
	return nil
}

// summarize asks for a summary. It returns an empty one if the model does not give one: the
// conversation goes on without it, also when it is repeated.
func (f *fitting) summarize(ctx context.Context, req *model.Request) (string, error) {
	a, position := f.a, summaryPosition+f.c.number
	m := *f.m
	m.quiet = true
	if f.c.journal.failed[request{position, model.Hash(m.name, req)}] {
		return "", nil
	}
	text, _, err := a.ask(ctx, position, &m, req)
	if failed, ok := errors.AsType[*attemptError](err); ok && isUnusableSummary(failed.kind) {
		return "", nil
	}
	return text, err
}

// isUnusableSummary reports whether a summary that failed in this way is done without. Other failures
// are those of the model or a limit, which end the attempt.
func isUnusableSummary(kind string) bool { return kind == KindModel || kind == KindTooLong }

// questionNow returns the question that is asked now.
func (c *console) questionNow(a *attempt) string {
	if a.node.Call != nil {
		return "(the variable context says what is asked)"
	}
	return a.prompt()
}

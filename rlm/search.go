package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
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
	limits := retrieve.DefaultLimits(a.run.cfg.SearchReplies)
	s, err := retrieve.Open(timed, retrieve.Config{Limits: limits, Question: a.prompt(), Reader: a.run.reader,
		Find: a.find, Room: a.run.plan.searchRoom()})
	if err != nil {
		return a.interrupted(timed, err)
	}
	h := &hunt{a: a, s: s, limits: limits}
	if h.earlier, err = a.earlierReplies(timed); err != nil {
		return a.interrupted(timed, err)
	}
	text, data, err := h.run(timed)
	if err != nil {
		return a.interrupted(timed, err)
	}
	if text, err = a.form(ctx, text, &data); err != nil {
		return err
	}
	return a.complete(ctx, text, &data)
}

// searchRoom is how many bytes a search may show.
func (n *node) searchRoom() int { return 4 * int(min(n.Search, maxSearchTokens)) }

// find returns the best passages of the whole context.
func (a *attempt) find(ctx context.Context, query string, n int) ([]model.Citation, error) {
	found, err := a.e.finder.Find(ctx, query, a.run.reader.All(), n)
	if err != nil && ctx.Err() == nil {
		return nil, damaged(err)
	}
	return found, err
}

// earlierReplies returns the replies of earlier attempts of this task by the hash of
// their requests: they are not paid for again.
func (a *attempt) earlierReplies(ctx context.Context) (map[string]string, error) {
	replies := make(map[string]string)
	if a.l.Task.Attempts <= 1 {
		return replies, nil
	}
	calls, err := a.e.cfg.Store.Calls(ctx, a.l.Task.ID)
	if err != nil {
		return nil, err
	}
	for _, c := range calls {
		if c.Attempt < a.l.Task.Attempts && c.State == perdure.CallCompleted {
			replies[c.RequestHash] = c.Response
		}
	}
	return replies, nil
}

// hunt is one search with its replies.
type hunt struct {
	a       *attempt
	s       *retrieve.Session
	limits  retrieve.Limits
	earlier map[string]string
	data    Data
	// corrected is set after the model was asked for better quotes.
	corrected bool
}

// run asks until there is an answer.
func (h *hunt) run(ctx context.Context) (string, Data, error) {
	for reply := 1; ; reply++ {
		last := reply == h.limits.Replies || h.s.Full()
		text, err := h.ask(ctx, reply, last)
		if err != nil {
			return "", Data{}, err
		}
		if last {
			answer, ok := h.limits.LastAnswer(text)
			if !ok {
				return "", Data{}, failf(KindModel, "search: the last of %d replies has no answer (see --planner split)", reply)
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
	req := &model.Request{System: strings.TrimSpace(a.system() + "\n\n" + h.limits.Instruction()),
		Prompt: h.s.Prompt(reply, last), Temperature: a.temperature(), Seed: a.run.cfg.Seed, MaxOutputTokens: a.answerLimit()}
	if text, there := h.earlier[model.Hash(m.name, req)]; there {
		return text, nil
	}
	text, data, err := a.ask(ctx, reply-1, &m, req)
	h.data.addNotes(data.Notes)
	return text, err
}

// answer checks the quotes of the answer and says what it rests on.
func (h *hunt) answer(text string, replies int) (string, Data, error) {
	shown := h.s.Shown()
	d := &h.data
	text, d.Citations, d.QuotesDropped = quote.Apply(text, shown)
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

// checkSearch says what planner search does not do.
func (c *Config) checkSearch(bad func(field, format string, args ...any)) {
	if c.SearchAbove < NeverSearch {
		bad("search_above", "%d is not a number of calls, or -1 for never", c.SearchAbove)
	}
	if c.Planner != PlannerSearch {
		return
	}
	switch {
	case c.Batch:
		bad("planner", "a batch reads each file; planner search answers one question about all of them")
	case c.writesNothing():
		bad("planner", "model %q ranks passages without a search; choose another with --model", c.Model)
	case c.Samples > 1 || c.Merge == MergeVote || c.Merge == MergeBest:
		bad("planner", "planner search gives one answer, so there is nothing to merge by %s", c.Merge)
	case c.MinScore != nil:
		bad("min_score", "answers of planner search are not judged; leave out --min-score, or --planner search")
	case c.When != "" || c.Strategy != perdure.Parallel:
		bad("strategy", "planner search has no parts to run in a strategy")
	}
}

// writesNothing reports whether the root's model only ranks passages.
func (c *Config) writesNothing() bool { return c.Model == extract.Name }

// useSearch makes the root a search.
func (p *planning) useSearch(root *node) error {
	if p.reader == nil {
		return invalid("planner search: there is no context to search", "name files with --context, or leave out --planner")
	}
	direct, err := p.roomOf(p.models[0], false)
	if err != nil {
		return err
	}
	root.Window, root.Answer = direct.window, direct.answer
	root.Search = direct.text - model.EstimateTokens(len(retrieve.DefaultLimits(p.cfg.SearchReplies).Instruction()))
	if root.Search < leastSearchTokens {
		return invalid(fmt.Sprintf("planner search: there is room for %d tokens of text in the %d of model %q; it needs %d",
			max(root.Search, 0), direct.window, p.models[0].name, leastSearchTokens),
			"raise --context-window, or use --planner split")
	}
	return nil
}

// leastSearchTokens is the least room for passages and results.
const leastSearchTokens = 1500

// preferSearch returns why a search is better than reading all parts; "" if it is not, or
// if the configuration asks for something that only parts have.
func (p *planning) preferSearch(parts chunks, tokens int64) string {
	c := &p.cfg
	switch {
	case c.Planner != "" || c.Batch || p.models[0].ranked || p.models[0].name != p.models[1].name,
		c.Strategy != perdure.Parallel || c.Merge != MergeUnion || c.Policy != perdure.PolicyPartial,
		c.ChunkTokens > 0 || c.Samples > 1 || c.MinScore != nil || c.FanIn > 0 || c.SearchAbove == NeverSearch:
		return ""
	}
	calls := int64(len(parts))
	all := fmt.Sprintf("to read everything takes %d calls and about %s tokens", calls, human.Compact(tokens))
	micros, known := p.e.price(p.models[0], model.Usage{InputTokens: tokens})
	switch {
	case calls > int64(c.SearchAbove):
		return fmt.Sprintf("%s, more than %d calls (see --search-above)", all, c.SearchAbove)
	case c.BudgetCalls > 0 && calls > c.BudgetCalls:
		return fmt.Sprintf("%s, more than the budget of %d calls", all, c.BudgetCalls)
	case c.BudgetTokens > 0 && tokens > c.BudgetTokens:
		return fmt.Sprintf("%s, more than the budget of %d tokens", all, c.BudgetTokens)
	case known && c.BudgetUSD > 0 && float64(micros)/microsPerDollar > c.BudgetUSD:
		return fmt.Sprintf("%s, which costs at least $%.2f, more than the budget of $%g", all,
			float64(micros)/microsPerDollar, c.BudgetUSD)
	}
	return ""
}

package rlm

import (
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/extract"
	"github.com/perdure/perdure/rlm/internal/retrieve"
)

// checkSearch reports what planner search does not support.
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
	case c.Samples > 1:
		bad("samples", "planner search gives one answer; leave out --samples, or --planner search")
	case c.Merge == MergeVote || c.Merge == MergeBest:
		bad("planner", "planner search gives one answer, so there is nothing to merge by %s", c.Merge)
	case c.MinScore != nil:
		bad("min_score", "answers of planner search are not judged; leave out --min-score, or --planner search")
	case c.When != "" || c.Strategy != perdure.Parallel:
		bad("strategy", "planner search has no parts to run in a strategy")
	}
}

// writesNothing reports whether the root's model only ranks passages.
func (c *Config) writesNothing() bool { return onlyRanks(c.Model) }

// onlyRanks reports whether a model only ranks passages.
func onlyRanks(name string) bool { return name == extract.Name }

// useSearch makes the root a search.
func (p *planning) useSearch(root *node) error {
	if p.reader == nil {
		return invalid("planner search: there is no context to search", "name files with --context, or leave out --planner")
	}
	direct, err := p.roomOf(p.models[0], false)
	if err != nil {
		return err
	}
	limits := retrieve.DefaultLimits()
	limits.Custom = p.modelTools()
	room := min(direct.text-model.EstimateTokens(len(limits.Instruction(""))), maxSearchTokens)
	if room < leastSearchTokens {
		return invalid(fmt.Sprintf("planner search: there is room for %d tokens of text in the %d of model %q; it needs %d",
			max(room, 0), direct.window, p.models[0].name, leastSearchTokens),
			"raise --context-window, or use --planner split")
	}
	if paid := p.paidTokens(); paid > 0 {
		if room = min(room, paid/searchBudgetShare); room < leastSearchTokens {
			return invalid(fmt.Sprintf("planner search: the budget pays for %d tokens; a search needs at least %d", paid,
				leastSearchTokens*searchBudgetShare), "raise the budget")
		}
	}
	root.Window, root.Answer, root.Search = direct.window, direct.answer, room
	return nil
}

// paidTokens is how many tokens of requests the budgets pay for; 0 without.
func (p *planning) paidTokens() int64 {
	paid := p.cfg.BudgetTokens
	const many = 1_000_000
	micros, known := p.e.price(p.models[0], model.Usage{InputTokens: many})
	if limit := p.cfg.limits().CostMicros; limit > 0 && known && micros > 0 {
		if tokens := limit * many / micros; paid == 0 || tokens < paid {
			paid = tokens
		}
	}
	return paid
}

const (
	// leastSearchTokens is the least room for passages and results.
	leastSearchTokens = 1500
	// searchBudgetShare of the tokens that a budget pays for is the most that one request
	// shows.
	searchBudgetShare = 4
)

// preferSearch returns why a search is better than reading all parts; "" if it is not, or
// if the configuration asks for something that only parts have.
func (p *planning) preferSearch(parts chunks, tokens int64) string {
	c := &p.cfg
	switch {
	case c.Planner != "" || c.Batch || p.models[0].ranked || p.models[0].name != p.models[1].name,
		c.Strategy != perdure.Parallel || p.mergeGiven || c.Policy != perdure.PolicyPartial,
		c.ChunkTokens > 0 || c.Samples > 1 || c.MinScore != nil || c.FanIn > 0 || c.SearchAbove == NeverSearch:
		return ""
	}
	calls := int64(len(parts))
	all := fmt.Sprintf("to read everything takes %s and about %s tokens", human.Count(calls, "call"),
		human.Compact(tokens))
	micros, known := p.e.price(p.models[0], model.Usage{InputTokens: tokens})
	switch {
	case calls > int64(c.SearchAbove):
		return fmt.Sprintf("%s, more than %d calls (see --search-above)", all, c.SearchAbove)
	case c.BudgetCalls > 0 && calls > c.BudgetCalls:
		return fmt.Sprintf("%s, more than the budget of %s", all, human.Count(c.BudgetCalls, "call"))
	case c.BudgetTokens > 0 && tokens > c.BudgetTokens:
		return fmt.Sprintf("%s, more than the budget of %d tokens", all, c.BudgetTokens)
	case known && c.BudgetUSD > 0 && float64(micros)/microsPerDollar > c.BudgetUSD:
		return fmt.Sprintf("%s, which costs at least $%.2f, more than the budget of %s", all,
			float64(micros)/microsPerDollar, usd(c.limits().CostMicros))
	}
	return ""
}

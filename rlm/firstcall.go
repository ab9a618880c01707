package rlm

import (
	"fmt"

	"github.com/perdure/perdure/model"
)

// checkBudget refuses a budget that pays for no call at all, with the arithmetic.
func (p *planning) checkBudget(root *node) error {
	m := p.models[0]
	if len(root.Chunks) > 0 {
		m = p.models[1]
	}
	if m.ranked || p.cfg.BudgetTokens == 0 && p.cfg.BudgetUSD == 0 {
		return nil
	}
	smallest := p.smallestPart(root)
	prompt, part := reservedTokens(len(p.cfg.System)+len(p.req.Prompt)), reservedTokens(int(smallest))
	u := p.leastRequest(root, smallest)
	need := u.InputTokens + u.OutputTokens
	parts := fmt.Sprintf("a request takes up to %d tokens (%d for the prompt, %d for the smallest part of the context) "+
		"and its answer up to %d", u.InputTokens, prompt, part, u.OutputTokens)
	const hint = "raise the budget, or lower --max-output-tokens"
	if p.cfg.BudgetTokens > 0 && p.cfg.BudgetTokens < need {
		return invalid(fmt.Sprintf("budget_tokens: %d tokens pay for no call: %s, %d together", p.cfg.BudgetTokens, parts,
			need), hint)
	}
	micros, known := p.e.price(m, u)
	if limit := p.cfg.limits().CostMicros; known && limit > 0 && limit < micros {
		return invalid(fmt.Sprintf("budget_usd: %s pays for no call: %s, %s together", usd(limit), parts,
			usd(micros)), hint)
	}
	return nil
}

// smallestPart returns the bytes of context in the smallest request of a plan.
func (p *planning) smallestPart(root *node) int64 {
	if p.reader == nil || p.cfg.Planner == PlannerModel || p.cfg.Planner == PlannerSearch { // may need none
		return 0
	}
	smallest := p.reader.Manifest().Bytes
	for _, c := range root.Chunks {
		smallest = min(smallest, c.Length)
	}
	return smallest
}

// leastRequest returns what a request about so many bytes of context reserves at least.
func (p *planning) leastRequest(root *node, bytes int64) model.Usage {
	return model.Usage{OutputTokens: root.Answer,
		InputTokens: reservedTokens(len(p.cfg.System)+len(p.req.Prompt)) + reservedTokens(int(bytes))}
}

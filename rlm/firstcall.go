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
	prompt := reservedTokens(len(p.cfg.System) + len(p.req.Prompt))
	part := reservedTokens(p.smallestPart(root))
	u := model.Usage{InputTokens: prompt + part, OutputTokens: root.Answer}
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
		return invalid(fmt.Sprintf("budget_usd: $%g pays for no call: %s, $%g together", p.cfg.BudgetUSD, parts,
			float64(micros)/microsPerDollar), hint)
	}
	return nil
}

// smallestPart returns the bytes of context in the smallest request of a plan.
func (p *planning) smallestPart(root *node) int {
	if p.reader == nil || p.cfg.Planner == PlannerModel || p.cfg.Planner == PlannerSearch { // may need none
		return 0
	}
	smallest := p.reader.Manifest().Bytes
	for _, c := range root.Chunks {
		smallest = min(smallest, c.Length)
	}
	return int(smallest)
}

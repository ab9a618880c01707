package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/config"
	"github.com/perdure/perdure/loop/hook"
	"github.com/perdure/perdure/loop/record"
)

// warnPercent is the share of a budget at which handlers are called.
const warnPercent = 80

// Limits of trees that a loop sets, as [perdure.LimitUse] names them.
const (
	limitTokens = "tokens"
	limitCost   = "cost_micros"
)

// budget opens a gate when a budget of the loop is exhausted, before it starts an
// iteration that could do nothing, and calls the handlers when most of one is used. An
// unattended loop ends instead. The step is empty if the loop can continue.
func (r *run) budget(ctx context.Context) (string, error) {
	if r.state.Unpriced && r.cfg.BudgetUSD > 0 {
		r.state.Unpriced = false
		r.pause("the last turn of %s did not report what it cost, and the price of its model is not known: the budget of "+
			"%s cannot be kept; resume with --budget-usd 0 and --budget-tokens N, or add the price to the price file",
			r.agentName(), human.Dollars(r.cfg.BudgetUSD))
		return stepNext, nil
	}
	if why := r.state.Uncounted; why != "" && r.state.Counts && r.cfg.MustCount() {
		r.state.Uncounted = ""
		r.pause("%s; the budget cannot be kept: resume with --budget-unmetered to count only what is reported, or with "+
			"--budget-usd 0 --budget-tokens 0", why)
		return stepNext, nil
	}
	p, err := r.e.cfg.Store.Progress(ctx, r.l.Tree.ID)
	if err != nil {
		return "", err
	}
	for _, l := range p.Limits {
		percent, used := int(l.Used*100/l.Value), spent(&l)
		if percent >= 100 {
			return r.exhaustedBudget(&l)
		}
		if percent >= warnPercent && r.state.Warned < percent {
			r.state.Warned = percent
			if _, err := r.ask(ctx, hook.BudgetWarning, fmt.Sprintf("%d %% of the budget is used: %s", percent, used),
				map[string]any{"resource": l.Limit, "used": l.Used, "limit": l.Value, "percent": percent}); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// exhaustedBudget ends an unattended loop with its best iteration, and asks otherwise.
func (r *run) exhaustedBudget(l *perdure.LimitUse) (string, error) {
	if r.cfg.Unattended {
		r.state.Verdict = string(record.Failed)
		r.state.Reason = fmt.Sprintf("budget exhausted: %s, after %s; `perdure loop resume %s %s N` continues with more",
			spent(l), human.Count(int64(r.loop.Iteration), "iteration"), ID(&r.l.Tree), l.Flag)
		return stepSelect, nil
	}
	return r.openGate(perdure.GateBudget, perdure.GateQuestion{
		Title: "budget exhausted: " + spent(l),
		Text:  fmt.Sprintf("%s were done.", human.Count(int64(r.loop.Iteration), "iteration")),
		Options: []perdure.GateOption{
			{Answer: answerRaise, Effect: "the budget is increased by its original amount"},
			{Answer: answerFinish, Effect: "the loop ends with its best iteration"},
			{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
		}})
}

// spent returns a text for users about how much of a limit is used.
func spent(l *perdure.LimitUse) string {
	if l.Limit == limitCost {
		return human.Dollars(float64(l.Used)/microsPerDollar) + " of " + human.Dollars(float64(l.Value)/microsPerDollar)
	}
	return humanize.Comma(l.Used) + " of " + human.Count(l.Value, strings.TrimSuffix(l.Limit, "s"))
}

const microsPerDollar = 1_000_000.0

// checkPrices returns an error if the loop has a budget in dollars that could not be kept,
// because neither an agent reports what its turns cost, nor is the price of its model known.
func (e *Engine) checkPrices(cfg *config.Config) error {
	if cfg.BudgetUSD == 0 {
		return nil
	}
	for i, name := range cfg.Agents() {
		a, err := e.cfg.Agents.Agent(e.agentSpec(cfg, i))
		if err != nil { // it is not there, which is no reason to refuse the others
			continue
		}
		reports, model := priced(a)
		if reports {
			continue
		}
		if _, known := e.price(name, model, agent.Usage{InputTokens: 1}); !known {
			hint := "use --budget-tokens, or name a model with a price by --model"
			if strings.HasPrefix(name, "exec:") { // a program has no model, and its requests are not seen
				hint = "use --budget-tokens with --meter or --budget-unmetered"
			}
			return &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop", Msg: "budget_usd: " + unpriced(name, model),
				Hint: hint}
		}
	}
	return nil
}

// checkCounts returns an error if the loop has a budget that could not be kept, because the requests
// of an agent cannot be counted.
func (e *Engine) checkCounts(cfg *config.Config) error {
	if !cfg.MustCount() || cfg.Meter {
		return nil
	}
	for i, name := range cfg.Agents() {
		a, err := e.cfg.Agents.Agent(e.agentSpec(cfg, i))
		if err != nil { // it is not there, which is no reason to refuse the others
			continue
		}
		m, ok := a.(agent.Metered)
		if !ok {
			continue
		}
		if _, err := m.Endpoints(cfg.Workspace, cfg.Env); err != nil {
			return &perdure.Error{Code: perdure.CodeInvalid, Op: "configure loop",
				Msg: fmt.Sprintf("the budget cannot be kept with agent %q: %s", name, err),
				Hint: "--budget-unmetered counts only what the agent reports; --meter counts the requests to the addresses " +
					"in ANTHROPIC_BASE_URL, OPENAI_BASE_URL and GOOGLE_GEMINI_BASE_URL, for an agent that uses them"}
		}
	}
	return nil
}

// checkCountsAgain is [Engine.checkCounts] for a loop that is resumed with other budgets or agents.
func (e *Engine) checkCountsAgain(row *record.Loop, old, next *config.Config) error {
	s, err := state.Read(row.State)
	same := next.MustCount() == old.MustCount() && slices.Equal(old.Agents(), next.Agents())
	if err != nil || !s.Counts || same {
		return err
	}
	return e.checkCounts(next)
}

// priced returns what is known of the cost of an agent; see [agent.Priced].
func priced(a agent.Agent) (reports bool, model string) {
	if p, ok := a.(agent.Priced); ok {
		return p.Priced()
	}
	return false, ""
}

func unpriced(name, model string) string {
	if model == "" {
		return fmt.Sprintf("agent %q does not report what it costs, and no model is named by which it could be priced", name)
	}
	return fmt.Sprintf("agent %q does not report what it costs, and the price of its model %q is unknown", name, model)
}

// price returns what a usage of an agent costs.
func (e *Engine) price(name, model string, u agent.Usage) (micros int64, known bool) {
	if e.cfg.Price == nil {
		return 0, false
	}
	return e.cfg.Price(name, model, u)
}

// raise lets the loop spend as much again as it was given in the beginning.
func (r *run) raise() {
	now, more := r.l.Tree.Limits, r.cfg.Limits()
	now.Tokens += more.Tokens
	now.CostMicros += more.CostMicros
	r.change.Limits, r.l.Tree.Limits, r.state.Warned = &now, now, 0
}

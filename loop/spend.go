package loop

import (
	"context"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/human"
	"github.com/perdure/perdure/loop/hook"
)

// warnPercent is the share of a budget at which handlers are called.
const warnPercent = 80

// budget opens a gate when a budget of the loop is exhausted, before it starts an
// iteration that could do nothing, and calls the handlers when most of one is used.
// The step is empty if the loop can continue.
func (r *run) budget(ctx context.Context) (string, error) {
	p, err := r.e.cfg.Store.Progress(ctx, r.l.Tree.ID)
	if err != nil {
		return "", err
	}
	for _, l := range p.Limits {
		percent, used := int(l.Used*100/l.Value), spent(&l)
		if percent >= 100 {
			return r.openGate(perdure.GateBudget, perdure.GateQuestion{
				Title: "budget exhausted: " + used,
				Text:  fmt.Sprintf("%s were done.", human.Count(int64(r.loop.Iteration), "iteration")),
				Options: []perdure.GateOption{
					{Answer: answerRaise, Effect: "the budget is increased by its original amount"},
					{Answer: answerFinish, Effect: "the loop ends with its best iteration"},
					{Answer: answerAbort, Effect: "the loop ends; the files are not changed"},
				}})
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

// spent returns a text for users about how much of a limit is used.
func spent(l *perdure.LimitUse) string {
	if l.Limit == "cost" {
		const micros = 1_000_000.0
		return fmt.Sprintf("%.2f of %.2f USD", float64(l.Used)/micros, float64(l.Value)/micros)
	}
	return fmt.Sprintf("%d of %d %s", l.Used, l.Value, l.Limit)
}

// raise lets the loop spend as much again as it was given in the beginning.
func (r *run) raise() {
	now, more := r.l.Tree.Limits, r.cfg.Limits()
	now.Tokens += more.Tokens
	now.CostMicros += more.CostMicros
	r.change.Limits, r.l.Tree.Limits, r.state.Warned = &now, now, 0
}

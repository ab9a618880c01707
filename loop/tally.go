package loop

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
)

// tally counts what a turn has used while the agent works, as far as the agent reports it,
// and finds the budget that it exceeds.
type tally struct {
	// limits are those of the tree, with what was used before the turn.
	limits []perdure.LimitUse
	// price returns the cost of a usage of the agent, if the price is known.
	price func(model string, u agent.Usage) (micros int64, known bool)

	usage agent.Usage
	cost  *int64
	model string
	// answers are the tokens of answers of which only the context was reported. spoke is
	// set if the agent has said or called something since the last of them.
	answers int64
	spoke   bool
}

// newTally returns the tally of a turn that begins.
func (r *run) newTally(ctx context.Context, a agent.Agent) (*tally, error) {
	p, err := r.e.cfg.Store.Progress(ctx, r.l.Tree.ID)
	if err != nil {
		return nil, err
	}
	name := r.agentName()
	_, model := priced(a)
	return &tally{limits: p.Limits, model: model, price: func(model string, u agent.Usage) (int64, bool) {
		return r.e.price(name, model, u)
	}}, nil
}

// hear counts an event.
func (t *tally) hear(e *agent.Event) {
	switch e.Kind {
	case agent.EventMessage, agent.EventThought, agent.EventToolCall:
		t.spoke = true
	case agent.EventUsage:
		t.used(e)
	default:
	}
}

func (t *tally) used(e *agent.Event) {
	if e.Model != "" {
		t.model = e.Model
	}
	switch {
	case e.Usage != nil: // of the agent's and the meter's, the larger
		if u := e.Usage; !t.usage.Reported || u.InputTokens+u.OutputTokens >= t.usage.InputTokens+t.usage.OutputTokens {
			t.usage = *u
		}
	case e.Context != nil && e.Context.Source == agent.SourceReported && t.spoke:
		t.answers += e.Context.Used // of one answer; agents report it again before the next
	}
	if e.CostMicros != nil && (t.cost == nil || *e.CostMicros > *t.cost) { // of the agent's and the meter's, the larger
		t.cost = e.CostMicros
	}
	t.spoke = false
}

// total returns the usage until now. Without a report it is the sum of the known answers,
// which is less than the truth.
func (t *tally) total() agent.Usage {
	if t.usage.Reported || t.answers == 0 {
		return t.usage
	}
	return agent.Usage{InputTokens: t.answers}
}

// micros returns the cost until now in millionths of a US dollar; nil if it is not known.
func (t *tally) micros() *int64 {
	if t.cost != nil {
		return t.cost
	}
	if u := t.total(); u != (agent.Usage{}) {
		if micros, known := t.price(t.model, u); known {
			return &micros
		}
	}
	return nil
}

// exceeded returns a text about the budget that the turn has exceeded, or "".
func (t *tally) exceeded() string {
	for _, l := range t.limits {
		switch u := t.total(); l.Limit {
		case limitTokens:
			l.Used += u.InputTokens + u.OutputTokens
		case limitCost:
			if micros := t.micros(); micros != nil {
				l.Used += *micros
			}
		default:
			continue // the other limits hold between turns
		}
		if l.Used > l.Value {
			return spent(&l)
		}
	}
	return ""
}

// complete adds to the result of a turn what the agent reported only while it worked.
func (t *tally) complete(result *agent.Result) *agent.Result {
	u := t.total()
	if result == nil {
		if u == (agent.Usage{}) {
			return nil
		}
		result = &agent.Result{}
	}
	if !result.Usage.Reported {
		result.Usage = u
	}
	t.usage = result.Usage
	if result.Model != "" {
		t.model = result.Model
	}
	if result.CostMicros == nil {
		result.CostMicros = t.micros()
	}
	return result
}

// spentError is the cause of a turn that was stopped because a budget is exhausted.
type spentError struct{ text string }

// Error names the budget and what was used of it.
func (e *spentError) Error() string { return "budget exhausted: " + e.text }

package rlm

import (
	"context"
	"fmt"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/plan"
)

// neverRan is the result of a task of which no part ran, because no condition
// held.
const neverRan = "(nothing was done: no condition was true)"

// condition is the predicate that decides whether this task runs; nil when it
// runs anyway.
func (a *attempt) condition() (*plan.Predicate, error) {
	source, ids := "", []string(nil)
	switch {
	case a.node.Step != nil:
		source, ids = a.node.Step.When, a.node.Step.After
	case a.run.cfg.Strategy == StrategyConditional && a.run.cfg.Planner != PlannerModel && a.node.leaf() &&
		a.l.Task.Parent != 0:
		source = a.run.cfg.When
	}
	if source == "" {
		return nil, nil
	}
	p, err := plan.Compile(source, ids)
	if err != nil {
		return nil, failf(KindPlan, "condition %q: %w", source, err)
	}
	return p, nil
}

// skipped ends a task whose condition does not hold. It is completed, without a
// result and without a call.
func (a *attempt) skipped(ctx context.Context) (bool, error) {
	p, err := a.condition()
	if p == nil || err != nil {
		return false, err
	}
	earlier, err := a.outcomes(ctx)
	if err != nil {
		return false, err
	}
	yes, err := p.Holds(earlier)
	if err != nil {
		return false, &attemptError{kind: KindPlan, err: err}
	}
	if yes {
		return false, nil
	}
	note := fmt.Sprintf("task %q did not run: its condition %q does not hold", a.l.Task.ID, p)
	return true, a.complete(ctx, "", &Data{Skipped: true, Notes: []string{note}})
}

// nothingRan ends a task below which no condition held.
func (a *attempt) nothingRan(ctx context.Context) error {
	if a.node.Whole {
		return a.complete(ctx, neverRan, &Data{Notes: []string{"no task ran: no condition was true"}})
	}
	return a.complete(ctx, "", &Data{Skipped: true})
}

// outcomes returns the outcomes of the tasks that a condition may read, in their
// order.
func (a *attempt) outcomes(ctx context.Context) ([]plan.Outcome, error) {
	var earlier []child
	var err error
	if s := a.node.Step; s != nil {
		if earlier, err = a.siblings(ctx); err != nil {
			return nil, err
		}
		earlier = slices.DeleteFunc(earlier,
			func(c child) bool { return c.node.Step == nil || !slices.Contains(s.After, c.node.Step.ID) })
	} else if earlier, err = a.allBefore(ctx); err != nil {
		return nil, err
	}
	out := make([]plan.Outcome, 0, len(earlier))
	for i := range earlier {
		o, err := outcomeOf(&earlier[i])
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// allBefore returns the tasks before this one in a tree whose parts run one
// after another: its siblings, and the siblings of each ancestor.
func (a *attempt) allBefore(ctx context.Context) ([]child, error) {
	var levels [][]child
	for at, id := a.node, a.l.Task.Parent; id != 0; {
		parent, err := a.task(ctx, id)
		if err != nil {
			return nil, err
		}
		family, err := a.familyOf(ctx, parent)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(family, func(c child) bool { return c.node.key() == at.key() })
		levels = append(levels, family[:max(i, 0)])
		at, id = parent.node, parent.Parent
	}
	slices.Reverse(levels)
	return slices.Concat(levels...), nil
}

// ordered reports whether the parts of the tree run one after another, each with
// the results before it.
func (c *Config) ordered() bool {
	return c.Planner != PlannerModel && (c.Strategy == perdure.Sequential || c.Strategy == StrategyConditional)
}

// storeStrategy is how the store runs the children of a task: where a plan
// orders them, they are created when their time has come.
func (c *Config) storeStrategy() perdure.Strategy {
	if c.ordered() {
		return perdure.Sequential
	}
	return perdure.Parallel
}

// outcomeOf returns the outcome of a terminal task.
func outcomeOf(c *child) (plan.Outcome, error) {
	o := plan.Outcome{State: string(c.State)}
	if c.node.Step != nil {
		o.ID = c.node.Step.ID
	}
	if c.State != perdure.Completed {
		o.Error = lastError(c.Task)
		return o, nil
	}
	data, err := dataOf(c.Task)
	if data.Skipped {
		o.State = plan.StateSkipped
	} else {
		o.Text = c.Result
	}
	return o, err
}

package rlm

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/perdure/perdure"
)

// reduction is a task of a reduction tree: it merges results of others below the
// same parent.
type reduction struct {
	// Inputs are the tasks whose results it merges, in their order; Level is
	// one more than the highest level among them.
	Inputs []perdure.TaskID `json:"inputs"`
	Level  int              `json:"level"`
}

// tops returns the children whose results the task itself has to merge: those
// that no reduction has taken up. What a reduction lost counts by itself.
func tops(family []child) []child {
	taken := make(map[perdure.TaskID]bool)
	for _, c := range family {
		if c.node.Reduce != nil && c.State == perdure.Completed {
			for _, id := range c.node.Reduce.Inputs {
				taken[id] = true
			}
		}
	}
	rank := make(map[perdure.TaskID]int, len(family))
	for i, c := range family {
		rank[c.ID] = i
	}
	var out []child
	for _, c := range family {
		lostReduction := c.node.Reduce != nil && c.State != perdure.Completed
		if !taken[c.ID] && !lostReduction {
			out = append(out, c)
		}
	}
	// A reduction takes the place of its first input.
	first := func(c child) int { return rank[c.ID] }
	for _, c := range family { // those of a level come after all of the level below
		if c.node.Reduce != nil && len(c.node.Reduce.Inputs) > 0 {
			rank[c.ID] = rank[c.node.Reduce.Inputs[0]]
		}
	}
	slices.SortStableFunc(out, func(x, y child) int { return cmp.Compare(first(x), first(y)) })
	return out
}

// mapReduces reports whether the results of this task's children are merged in a
// reduction tree.
func (a *attempt) mapReduces(family []child) bool {
	if a.node.Reduce != nil {
		return false
	}
	if p := planOf(family); p != nil {
		return p.Strategy == string(StrategyMapReduce)
	}
	return a.run.cfg.Strategy == StrategyMapReduce
}

// fanIn returns how many results a task of a reduction tree merges.
func (a *attempt) fanIn() int { return cmp.Or(a.run.cfg.FanIn, min(a.run.cfg.MaxChildren, maxFanIn)) }

// reductions returns the tasks of the next level of the reduction tree; none
// when what is left can be merged at once, or when a reduction failed and the
// task has to use the finished parts.
func (a *attempt) reductions(family, left []child) []*node {
	fanIn := a.fanIn()
	failed := slices.ContainsFunc(family,
		func(c child) bool { return c.node.Reduce != nil && c.State != perdure.Completed })
	left = slices.DeleteFunc(slices.Clone(left), func(c child) bool { return c.State != perdure.Completed })
	if failed || len(left) <= fanIn {
		return nil
	}
	made := make(map[int]int) // by level; there are some if parts were missing before
	for _, c := range family {
		if c.node.Reduce != nil {
			made[c.node.Reduce.Level]++
		}
	}
	groups := (len(left) + fanIn - 1) / fanIn
	nodes := make([]*node, 0, groups)
	at := 0
	for i := range groups {
		size := len(left) / groups
		if i < len(left)%groups {
			size++
		}
		group := left[at : at+size]
		at += size
		r := &reduction{Inputs: make([]perdure.TaskID, len(group))}
		for k, c := range group {
			r.Inputs[k] = c.ID
			if c.node.Reduce != nil {
				r.Level = max(r.Level, c.node.Reduce.Level)
			}
		}
		r.Level++
		if len(group) > 1 {
			nodes = append(nodes, &node{Version: planVersion, First: r.Level*MaxChildrenCeiling + made[r.Level] + i,
				Total: 1, Reduce: r,
				merge: a.mergeOf(family)})
		}
	}
	return nodes
}

// reduceFurther creates the next level of the reduction tree. begun is false when
// there is none: the task merges what is left.
func (a *attempt) reduceFurther(ctx context.Context, family, left []child) (begun bool, err error) {
	if !a.mapReduces(family) {
		return false, nil
	}
	nodes := a.reductions(family, left)
	if len(nodes) == 0 {
		return false, nil
	}
	err = a.spawn(ctx, nodes, nil)
	if errors.Is(err, perdure.ErrBudgetExceeded) {
		return false, nil // no room for more tasks: merge all at once
	}
	return true, err
}

// reduceInputs does the work of a task of a reduction tree.
func (a *attempt) reduceInputs(ctx context.Context) error {
	var inputs []child
	for _, id := range a.node.Reduce.Inputs {
		c, err := a.task(ctx, id)
		if err != nil {
			return err
		}
		if c.State != perdure.Completed {
			return failf(KindPlan, "read result of task %q: it is %s", c.ID, c.State)
		}
		inputs = append(inputs, c)
	}
	parts, err := partsOf(inputs)
	if err != nil {
		return err
	}
	parent, err := a.task(ctx, a.l.Task.Parent)
	if err != nil {
		return err
	}
	m := a.merger(a.mergeOf(nil))
	m.level, m.whole, m.files = true, false, len(parent.node.Files) > 0
	m.kind = a.kindOf(parent.node, false)
	if err := a.nameParts(parts, inputs); err != nil {
		return err
	}
	text, data, err := a.reduce(ctx, m, parts)
	if err != nil {
		return err
	}
	if m.files && a.run.shape != nil {
		if data.Structured, err = structuredFiles(parts); err != nil {
			return err
		}
	}
	return a.complete(ctx, text, &data)
}

// partsOf are the results of children that have one, in their order; those that
// were skipped have none.
func partsOf(children []child) ([]part, error) {
	var parts []part
	for _, c := range children {
		data, err := dataOf(c.Task)
		if err != nil {
			return nil, err
		}
		if c.State == perdure.Completed && !data.Skipped {
			parts = append(parts, part{task: c.ID, context: c.Context, file: c.node.File, text: c.Result, data: data})
		}
	}
	return parts, nil
}

package rlm

import (
	"cmp"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/rlm/internal/plan"
)

// workload counts planned tasks and calls, by depth below the first one.
type workload struct {
	levels []perdure.WorkLevel
	open   int
}

func (w *workload) add(depth int, tasks, calls int64) {
	for len(w.levels) <= depth {
		w.levels = append(w.levels, perdure.WorkLevel{})
	}
	w.levels[depth].Tasks += tasks
	w.levels[depth].Calls += calls
}

func (w *workload) work() *perdure.Work { return &perdure.Work{Levels: w.levels, Open: w.open} }

// plannedWork returns the planned work of a task and of those below it.
func (a *attempt) plannedWork() *perdure.Work {
	w := &workload{}
	a.addWork(w, 0)
	return w.work()
}

// addWork counts the task, which is at a depth, and those below it.
func (a *attempt) addWork(w *workload, depth int) {
	switch n := a.node; {
	case n.Search > 0 || n.Repl != nil:
		w.add(depth, 1, 1)
		w.open++
		return
	case n.Plans:
		w.add(depth, 1, a.mergeCalls(2, 2)) // the plan is there before a forecast
		w.open++
		return
	case n.leaf():
		w.add(depth, 1, a.answerCalls())
		return
	}
	nodes := a.below()
	unscored := int64(0)
	for _, n := range nodes {
		c := a.childOf(n)
		c.addWork(w, depth+1)
		if c.node.leaf() && c.scoreCalls() == 0 {
			unscored++
		}
	}
	left := len(nodes)
	if a.mapReduces(nil) {
		left = a.addReductions(w, depth+1, left)
	}
	w.add(depth, 1, a.mergeCalls(unscored, left))
}

// childOf returns an attempt of a child that is not created yet.
func (a *attempt) childOf(n *node) *attempt {
	own := *n
	t := perdure.Task{Parent: a.l.Task.ID, Depth: a.l.Task.Depth + 1, Agent: cmp.Or(n.agent, a.l.Task.Agent),
		Merge: cmp.Or(n.merge, a.l.Task.Merge)}
	if len(n.Chunks) > 0 {
		t.Context.Offset = n.Chunks[0].Off
		t.Context.Length = n.Chunks[len(n.Chunks)-1].End() - t.Context.Offset
	}
	if len(n.Chunks) == 1 {
		own.Chunks = nil
	}
	return &attempt{e: a.e, run: a.run, l: &perdure.Lease{Task: t}, node: &own, cuts: a.cuts}
}

// answerCalls returns the number of calls of a leaf.
func (a *attempt) answerCalls() int64 {
	if a.emptyFile() {
		return 0
	}
	return 1 + a.scoreCalls() + a.formCalls(true)
}

// scoreCalls returns how many calls score an answer.
func (a *attempt) scoreCalls() int64 {
	if !a.gateStands(a.run.model(&a.l.Task)) || a.run.judge == nil || a.run.judge.rule != nil {
		return 0
	}
	return 1
}

// formCalls returns how many calls make a result structured. isAnswer is set for a result that
// a model was asked for in that form.
func (a *attempt) formCalls(isAnswer bool) int64 {
	structured := isAnswer && !a.run.model(&a.l.Task).ranked
	if a.run.shape == nil || !a.node.Whole || len(a.node.Files) > 0 || structured {
		return 0
	}
	return 1
}

// mergeCalls returns the number of calls that make one result of those of left children.
// unscored is how many children have no score yet.
func (a *attempt) mergeCalls(unscored int64, left int) int64 {
	if left < 2 {
		return 0
	}
	switch a.mergeOf(nil) {
	case MergeSummarize:
		return 1 + a.scoreCalls()
	case MergeBest:
		if j := a.run.judge; j != nil && j.rule == nil {
			return unscored
		}
		return 0
	}
	return a.formCalls(false)
}

// addReductions counts the tasks of a reduction tree, and returns how many results are left.
func (a *attempt) addReductions(w *workload, depth, left int) int {
	fanIn := a.fanIn()
	for left > fanIn {
		groups := (left + fanIn - 1) / fanIn
		var calls int64
		if a.mergeOf(nil) == MergeSummarize {
			calls = 1
		}
		single := max(2*groups-left, 0) // a group of one needs no task
		w.add(depth, int64(groups-single), calls*int64(groups-single))
		left = groups
	}
	return left
}

// planWork returns the work of all tasks of a plan, which is then no longer open.
func (a *attempt) planWork(p *plan.Plan) (*perdure.Work, error) {
	w := &workload{}
	for i := range p.Tasks {
		n, err := a.stepNode(p, i)
		if err != nil {
			return nil, err
		}
		a.childOf(n).addWork(w, 0)
	}
	if p.Strategy == string(StrategyMapReduce) {
		a.addReductions(w, 0, len(p.Tasks))
	}
	w.open--
	return w.work(), nil
}

// dividedWork returns the work of the parts of a text that was too long for the task's model.
func (a *attempt) dividedWork(nodes []*node) *perdure.Work {
	w := &workload{}
	for _, n := range nodes {
		a.childOf(n).addWork(w, 0)
	}
	return w.work()
}

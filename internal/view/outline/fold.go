package outline

import (
	"context"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
)

// A run of siblings longer than foldOver that are alike is folded: its first
// foldHead and its last foldTail tasks are shown, as perdure tree does.
const (
	foldOver = 8
	foldHead = 3
	foldTail = 1
)

// part is a row of the outline before its task is read.
type part struct {
	level int
	// tasks are siblings; with what is below them when whole is set.
	tasks []*task
	whole bool
}

// outline adds the rows of the tree to the report: fewer levels of a large tree, and of a
// very wide one only the first children.
func (v *view) outline(ctx context.Context) error {
	var roots []*task
	for _, t := range v.tasks {
		if v.byID[t.parent] == nil {
			roots = append(roots, t)
			t.markEven()
		}
	}
	f := folder{levels: len(v.report.Depths)}
	for ; ; f.levels-- {
		if f.parts = f.parts[:0]; f.draw(roots, 0) || f.levels <= 1 {
			break
		}
	}
	for _, p := range f.parts {
		row, err := v.outlineRow(ctx, p)
		if err != nil {
			return err
		}
		v.report.Outline = append(v.report.Outline, row)
	}
	return nil
}

// markEven finds out whether a task and all below it are in the same state, and none
// failed.
func (t *task) markEven() {
	t.even = t.state != perdure.Failed
	for _, c := range t.children {
		c.markEven()
		t.even = t.even && c.even && t.looksLike(c)
	}
}

func (v *view) outlineRow(ctx context.Context, p part) (client.ReportRow, error) {
	first := p.tasks[0]
	row := client.ReportRow{Level: p.level}
	if len(p.tasks) == 1 {
		rows, err := v.rows(ctx, sqlOutlineTask, v.tree, first.id)
		if err != nil || len(rows) == 0 || !p.whole {
			return client.ReportRow{OutlineRow: append(rows, client.OutlineRow{})[0], Level: p.level}, err
		}
		row.OutlineRow = rows[0]
	} else {
		row.Task, row.Parent, row.Depth, row.Position = perdure.TaskID(first.id), perdure.TaskID(first.parent),
			first.depth, -1
		row.To = perdure.TaskID(p.tasks[len(p.tasks)-1].id)
		row.Partial, row.Skipped, row.Error = shared(p.tasks)
	}
	var sum sumUp
	for _, t := range p.tasks {
		sum.add(t)
	}
	row.ActiveMS, row.Usage = float64(sum.active)/1000, sum.usage
	row.StartedAt, row.CompletedAt = instant(sum.from), instant(sum.to)
	if len(p.tasks) == 1 {
		row.Below = sum.tasks - 1
		return row, nil
	}
	row.State, row.Folded, row.Below = sum.state, int64(len(p.tasks)), sum.tasks-int64(len(p.tasks))
	return row, nil
}

// shared returns the marks and the error that all tasks of a row have.
func shared(tasks []*task) (partial, skipped bool, why *perdure.TaskError) {
	partial, skipped, why = tasks[0].partial, tasks[0].skipped, tasks[0].why
	for _, t := range tasks[1:] {
		partial, skipped = partial && t.partial, skipped && t.skipped
		if why != nil && (t.why == nil || *t.why != *why) {
			why = nil
		}
	}
	return partial, skipped, why
}

// sumUp adds tasks, with what is below them, to a row that stands for them.
type sumUp struct {
	tasks    int64
	state    perdure.State // empty when they differ
	active   int64
	usage    perdure.Usage
	from, to int64
}

func (s *sumUp) add(t *task) {
	if s.tasks == 0 {
		s.state = t.state
	} else if s.state != t.state {
		s.state = ""
	}
	s.tasks++
	s.active += t.active
	s.usage = plus(s.usage, t.usage)
	if t.started != 0 && (s.from == 0 || t.started < s.from) {
		s.from = t.started
	}
	s.to = max(s.to, t.ended)
	for _, c := range t.children {
		s.add(c)
	}
}

// folder selects the tasks that have a row of their own.
type folder struct {
	levels int // that are drawn below the root
	parts  []part
}

// draw adds siblings with the tasks below them. It returns false when there is no room
// for all; the last level then ends with a row for the rest.
func (f *folder) draw(siblings []*task, level int) bool {
	shown := 0
	for _, run := range runs(siblings) {
		if len(f.parts) >= maxOutline {
			if level > 0 {
				f.parts = append(f.parts, part{level: level, tasks: siblings[shown:], whole: true})
			}
			return false
		}
		shown += len(run)
		whole := len(run) > 1 || level >= f.levels
		f.parts = append(f.parts, part{level: level, tasks: run, whole: whole})
		if !whole && !f.draw(run[0].children, level+1) {
			return false
		}
	}
	return true
}

// runs splits siblings into rows.
func runs(siblings []*task) [][]*task {
	var out [][]*task
	single := func(list []*task) {
		for i := range list {
			out = append(out, list[i:i+1])
		}
	}
	for start := 0; start < len(siblings); {
		end := start + 1
		for end < len(siblings) && alike(siblings[start], siblings[end]) {
			end++
		}
		run := siblings[start:end]
		if len(run) <= foldOver {
			single(run)
		} else {
			single(run[:foldHead])
			out = append(out, run[foldHead:len(run)-foldTail])
			single(run[len(run)-foldTail:])
		}
		start = end
	}
	return out
}

// alike reports whether siblings may be folded into one row: nothing differs in them, and
// nothing failed, or they failed with the same error.
func alike(a, b *task) bool {
	if a.why != nil && b.why != nil {
		return *a.why == *b.why && len(a.children) == 0 && len(b.children) == 0
	}
	return a.looksLike(b) && a.even && b.even
}

// looksLike reports whether views show the same state.
func (t *task) looksLike(o *task) bool {
	return t.state == o.state && t.partial == o.partial && t.skipped == o.skipped
}

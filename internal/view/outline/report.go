package outline

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/text/clip"
)

// Bounds of what a report lists by name. Everything is counted.
const (
	maxSlowest  = 10
	maxFailures = 100
	maxModels   = 100
	maxOutline  = 400
	maxBuckets  = 120
)

const (
	sqlOutlineAll = `SELECT t.id, t.parent, t.depth, h.state, h.flags, COALESCE(h.session, 0), COALESCE(h.started_at, 0),
			COALESCE(h.claimed_at, 0), h.active_us, h.calls, h.input_tokens, h.output_tokens, h.cached_tokens,
			h.cost_micros, h.unpriced, COALESCE(e.ended_at, 0), COALESCE(e.error_kind, ''),
			SUBSTR(COALESCE(e.error, ''), 1, 400)
		FROM task t JOIN task_hot h ON h.id = t.id LEFT JOIN task_end e ON e.id = t.id
		WHERE t.tree = $1 ORDER BY t.parent, t.position`
	sqlOutlineCalls = `SELECT c.model, c.state, c.tries, c.started_at, COALESCE(c.ended_at, 0),
			EXISTS (SELECT 1 FROM call f WHERE f.task = c.task AND f.attempt = c.attempt AND f.position = c.position
				AND f.id < c.id AND f.request_hash = c.request_hash AND f.state = ` + sqldb.SQLCallFailed + `)
		FROM task t JOIN call c ON c.task = t.id WHERE t.tree = $1`
)

// task is what is kept in memory of each task of a tree.
type task struct {
	id, parent int64
	depth      int
	state      perdure.State
	// partial and skipped are those of a row; why is the error of a failed task.
	partial, skipped bool
	why              *perdure.TaskError
	started, ended   int64
	active           int64
	usage            perdure.Usage
	children         []*task
	// even: all below is in the same state, and nothing failed.
	even bool
}

// ReadReport reads the whole tree. It takes about 200 bytes of memory a task.
func ReadReport(ctx context.Context, tx *perdure.ReadTx, tree perdure.TreeID) (*client.Report, error) {
	r, err := newReader(ctx, tx, tree)
	if err != nil {
		return nil, err
	}
	v := &view{reader: r, byID: make(map[int64]*task), kinds: make(map[string]int64),
		models: make(map[string]*client.ReportModel)}
	v.report = &client.Report{Tree: tree, At: tx.Now(), Failures: []client.OutlineRow{}, Slowest: []client.OutlineRow{},
		Depths: []client.ReportDepth{}, Models: []client.ReportModel{}, ErrorKinds: []client.ReportErrorKind{},
		Outline: []client.ReportRow{}}
	for _, step := range []func(context.Context) error{v.readTasks, v.readCalls, v.readCosts, v.listTasks,
		v.outline} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	v.sortModels()
	v.report.Timeline = v.timeline()
	return v.report, nil
}

// view is what was read of a tree for its report.
type view struct {
	*reader
	report *client.Report
	tasks  []*task
	byID   map[int64]*task
	kinds  map[string]int64
	models map[string]*client.ReportModel
	calls  []span
}

func (v *view) readTasks(ctx context.Context) error {
	err := perdure.EachRow(ctx, v, func(row perdure.Row) error {
		t := new(task)
		u := &t.usage
		var state, flags, session, claimed, cost int64
		var kind, message string
		err := row.Scan(&t.id, &t.parent, &t.depth, &state, &flags, &session, &t.started, &claimed, &t.active, &u.Calls,
			&u.InputTokens,
			&u.OutputTokens, &u.CachedTokens, &cost, &u.UnpricedCalls, &t.ended, &kind, &message)
		t.state, u.CostUSD = stateOf(state), dollars(cost)
		if !t.state.Terminal() {
			t.ended = 0
			if session != 0 {
				t.active += max(v.now-claimed, 0)
			}
		}
		t.partial, t.skipped = lacking(t.state, flags)
		if t.state == perdure.Failed {
			v.kinds[kind]++
			t.why = &perdure.TaskError{Kind: kind, Message: clip.Runes(message, messageRunes)}
		}
		v.tasks, v.byID[t.id] = append(v.tasks, t), t
		v.count(t)
		return err
	}, sqlOutlineAll, v.tree)
	for _, t := range v.tasks { // in the order of positions
		if parent := v.byID[t.parent]; parent != nil {
			parent.children = append(parent.children, t)
		}
	}
	return err
}

func (v *view) count(t *task) {
	for len(v.report.Depths) <= t.depth {
		v.report.Depths = append(v.report.Depths, client.ReportDepth{Depth: len(v.report.Depths)})
	}
	d := &v.report.Depths[t.depth]
	d.Total++
	switch t.state {
	case perdure.Completed:
		d.Completed++
	case perdure.Failed:
		d.Failed++
	case perdure.Cancelled:
		d.Cancelled++
	case perdure.Queued, perdure.Running, perdure.Waiting: // only in the total
	}
	d.ActiveMS += float64(t.active) / 1000
}

// readCosts adds the usage by depth and by model, from the counters of the tree: all views
// show the same sums.
func (v *view) readCosts(ctx context.Context) error {
	lines, err := v.Costs(ctx, v.tree)
	for i := range lines {
		l := &lines[i]
		if l.Depth < len(v.report.Depths) {
			d := &v.report.Depths[l.Depth]
			d.Usage = plus(d.Usage, l.Usage)
		}
		m := v.model(l.Model)
		m.Usage = plus(m.Usage, l.Usage)
	}
	return err
}

func (v *view) model(name string) *client.ReportModel {
	m := v.models[name]
	if m == nil {
		m = &client.ReportModel{Model: name}
		v.models[name] = m
	}
	return m
}

func plus(a, b perdure.Usage) perdure.Usage {
	a.Calls += b.Calls
	a.InputTokens += b.InputTokens
	a.OutputTokens += b.OutputTokens
	a.CachedTokens += b.CachedTokens
	a.CostUSD += b.CostUSD
	a.UnpricedCalls += b.UnpricedCalls
	a.UncertainCalls += b.UncertainCalls
	a.UncertainTokens += b.UncertainTokens
	a.UncertainCostUSD += b.UncertainCostUSD
	return a
}

func (v *view) readCalls(ctx context.Context) error {
	return perdure.EachRow(ctx, v, func(row perdure.Row) error {
		var name string
		var state, tries, started, ended int64
		var again bool
		err := row.Scan(&name, &state, &tries, &started, &ended, &again)
		m := v.model(name)
		switch state {
		case sqldb.CallStarted:
			m.Open++
		case sqldb.CallFailed:
			m.Failed++
		case sqldb.CallUncertain:
			m.Uncertain++
		}
		m.Retries += max(tries-1, 0)
		if again {
			m.Retries++
		}
		if ended == 0 {
			ended = v.now
		} else {
			took := float64(ended-started) / 1000
			m.BusyMS, m.MaxMS = m.BusyMS+took, max(m.MaxMS, took)
		}
		v.calls = append(v.calls, span{started, ended})
		return err
	}, sqlOutlineCalls, v.tree)
}

func (v *view) sortModels() {
	r := v.report
	for _, m := range v.models {
		r.Models = append(r.Models, *m)
	}
	slices.SortFunc(r.Models, func(a, b client.ReportModel) int {
		return cmp.Or(cmp.Compare(b.Usage.CostUSD, a.Usage.CostUSD), cmp.Compare(b.Usage.Calls, a.Usage.Calls),
			cmp.Compare(a.Model, b.Model))
	})
	if n := len(r.Models); n > maxModels {
		r.Models, r.MoreModels = r.Models[:maxModels], n-maxModels
	}
	for kind, n := range v.kinds {
		r.ErrorKinds = append(r.ErrorKinds, client.ReportErrorKind{Kind: kind, Tasks: n})
	}
	slices.SortFunc(r.ErrorKinds, func(a, b client.ReportErrorKind) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), strings.Compare(a.Kind, b.Kind))
	})
}

// listTasks names the slowest tasks and the failed ones.
func (v *view) listTasks(ctx context.Context) error {
	slow := slices.Clone(v.tasks)
	slices.SortFunc(slow, func(a, b *task) int { return cmp.Or(cmp.Compare(b.active, a.active), cmp.Compare(a.id, b.id)) })
	for _, t := range slow[:min(len(slow), maxSlowest)] {
		if t.active == 0 {
			break
		}
		rows, err := v.rows(ctx, sqlOutlineTask, v.tree, t.id)
		if err != nil {
			return err
		}
		v.report.Slowest = append(v.report.Slowest, rows...)
	}
	slices.SortFunc(slow, func(a, b *task) int { return cmp.Compare(a.id, b.id) })
	for _, t := range slow {
		if t.state != perdure.Failed {
			continue
		}
		v.report.FailuresTotal++
		if len(v.report.Failures) == maxFailures {
			continue
		}
		rows, err := v.rows(ctx, sqlOutlineTask, v.tree, t.id)
		if err != nil {
			return err
		}
		v.report.Failures = append(v.report.Failures, rows...)
	}
	return nil
}

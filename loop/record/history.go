package record

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure"
)

// History sums up all iterations of a loop except the baseline. Reading it costs the
// same for ten iterations and for ten thousand.
type History struct {
	// Iterations is their number; Kept, Reverted, Failed and Running count them by
	// status.
	Iterations int `json:"iterations"`
	Kept       int `json:"kept"`
	Reverted   int `json:"reverted"`
	Failed     int `json:"failed"`
	Running    int `json:"running"`
	// TookMicros is the time of those that are over: WorkMS of agents, checks and
	// metrics, AddedMS of snapshots, hooks and the engine.
	TookMicros int64 `json:"took_us"`
	WorkMS     int64 `json:"work_ms"`
	AddedMS    int64 `json:"added_ms"`
	// Regressions are counted by type and severity, in the order of the first ones.
	Regressions []Tally `json:"regressions"`
	Recoveries  int     `json:"recoveries"`
	// AgentErrors and Warnings are counts, LastError and LastWarning the last
	// iterations that have any, 0 for none. Errors after which a turn was retried count.
	AgentErrors int `json:"agent_errors"`
	LastError   int `json:"last_error,omitempty"`
	Warnings    int `json:"warnings"`
	LastWarning int `json:"last_warning,omitempty"`
	// LastSealed is the last iteration that was checked in a clean copy, 0 for none.
	LastSealed int `json:"last_sealed,omitempty"`
	// Candidates are those of [Records.Candidates].
	Candidates []Iteration `json:"candidates"`
	// Columns sum up the iterations in groups, see [HistoryRequest].
	Columns []Column `json:"columns"`
}

// Tally counts regressions of a type and severity.
type Tally struct {
	Type     string `json:"regression_type"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
	// First and Last are the first and the last iteration that has one.
	First int `json:"first,omitempty"`
	Last  int `json:"last,omitempty"`
}

// Column sums up consecutive iterations.
type Column struct {
	// From and To are the first and the last one.
	From int `json:"from"`
	To   int `json:"to"`
	// Measured counts those with a quality; Lowest, Highest and Sum are of their
	// qualities. HighestAt is the first iteration with the highest one.
	Measured  int   `json:"measured"`
	Lowest    int   `json:"lowest"`
	Highest   int   `json:"highest"`
	HighestAt int   `json:"highest_at"`
	Sum       int64 `json:"sum"`
	// Regressed counts those with regressions, Reverted those that were reverted.
	Regressed int `json:"regressed"`
	Reverted  int `json:"reverted"`
}

// HistoryRequest selects parts of a history.
type HistoryRequest struct {
	// Threshold is that of [Records.Candidates].
	Threshold int
	// Each is the number of iterations of a column, 0 for no columns; only iterations
	// below Below are in columns.
	Each, Below int
	// Best requests only the candidates, without any sums.
	Best bool
}

// A sum of PostgreSQL has another type than its parts, hence the casts.
const (
	sqlLoopHistory = `SELECT COUNT(*), COUNT(CASE b.status WHEN ` + dbKept + ` THEN 1 END),
		COUNT(CASE b.status WHEN ` + dbReverted + ` THEN 1 END),
			COUNT(CASE b.status WHEN ` + dbFailed + ` THEN 1 END), COUNT(CASE b.status WHEN ` + dbRunning + ` THEN 1 END),
			CAST(COALESCE(SUM(CASE WHEN b.status <> ` + dbRunning + ` THEN b.ended_at - b.started_at END), 0) AS BIGINT),
			CAST(COALESCE(SUM(b.work_ms), 0) AS BIGINT), CAST(COALESCE(SUM(b.added_ms), 0) AS BIGINT),
			COALESCE(SUM(b.recoveries), 0), COALESCE(SUM(b.agent_errors), 0),
			COALESCE(MAX(CASE WHEN b.agent_errors > 0 THEN b.number END), 0),
			COALESCE(SUM(b.warnings), 0), COALESCE(MAX(CASE WHEN b.warnings > 0 THEN b.number END), 0),
			COALESCE(MAX(CASE WHEN b.sealed > 0 THEN b.number END), 0)
		FROM brief b WHERE b.tree = $1 AND b.number > 0`
	sqlKinds = `SELECT b.kinds, COUNT(*), MIN(b.number), MAX(b.number) FROM brief b WHERE b.tree = $1 AND b.number > 0
		AND b.regressions > 0 GROUP BY b.kinds ORDER BY MIN(b.number)`
	// The highest quality and the first iteration that has it are one number.
	sqlColumns = `SELECT MIN(b.number), MAX(b.number), COUNT(b.quality), COALESCE(MIN(b.quality), 0),
			COALESCE(MAX(CAST(b.quality AS BIGINT) * 4294967296 - b.number), 0), COALESCE(SUM(b.quality), 0),
			COUNT(CASE WHEN b.regressions > 0 THEN 1 END), COUNT(CASE b.status WHEN ` + dbReverted + ` THEN 1 END)
		FROM brief b WHERE b.tree = $1 AND b.number > 0 AND b.number < $2
		GROUP BY (b.number - 1) / $3 ORDER BY MIN(b.number)`
)

// LoopHistory sums up the iterations of a loop, on one snapshot of the store.
func (r *Records) LoopHistory(ctx context.Context, tree perdure.TreeID, req HistoryRequest) (History, error) {
	h := History{Regressions: []Tally{}, Candidates: []Iteration{}, Columns: []Column{}}
	if err := r.fill(ctx, tree); err != nil {
		return h, err
	}
	err := r.store.ReadTx(ctx, func(ctx context.Context, tx *perdure.ReadTx) error {
		key, err := tx.TreeKey(ctx, tree)
		if err != nil {
			return err
		}
		return h.read(ctx, tx, key, req)
	})
	return h, err
}

func (h *History) read(ctx context.Context, tx *perdure.ReadTx, key int64, req HistoryRequest) (err error) {
	if h.Candidates, err = candidates(ctx, tx, key, req.Threshold); err != nil || req.Best {
		return err
	}
	err = tx.QueryRow(ctx, sqlLoopHistory, key).Scan(&h.Iterations, &h.Kept, &h.Reverted, &h.Failed, &h.Running,
		&h.TookMicros, &h.WorkMS, &h.AddedMS,
		&h.Recoveries, &h.AgentErrors, &h.LastError, &h.Warnings, &h.LastWarning, &h.LastSealed)
	if err != nil {
		return err
	}
	err = perdure.EachRow(ctx, tx, func(row perdure.Row) error {
		var kinds string
		var n, first, last int
		if err := row.Scan(&kinds, &n, &first, &last); err != nil {
			return err
		}
		var list []Tally
		if err := json.Unmarshal([]byte(kinds), &list); err != nil {
			return err
		}
		for _, t := range list {
			h.Tally(Tally{t.Type, t.Severity, n * t.Count, first, last})
		}
		return nil
	}, sqlKinds, key)
	if err != nil {
		return err
	}
	if req.Each == 0 {
		return nil
	}
	return perdure.EachRow(ctx, tx, func(row perdure.Row) error {
		var c Column
		var highest int64
		if err := row.Scan(&c.From, &c.To, &c.Measured, &c.Lowest, &highest, &c.Sum, &c.Regressed, &c.Reverted); err != nil {
			return err
		}
		if c.Measured > 0 {
			const whole = 1 << 32
			quality := (highest + whole - 1) >> 32
			c.Highest, c.HighestAt = int(quality), int(quality*whole-highest)
		}
		h.Columns = append(h.Columns, c)
		return nil
	}, sqlColumns, key, req.Below, req.Each)
}

// tallied adds to counts and keeps their order.
func tallied(list []Tally, t Tally) []Tally {
	i := slices.IndexFunc(list, func(o Tally) bool { return o.Type == t.Type && o.Severity == t.Severity })
	if i < 0 {
		return append(list, t)
	}
	o := &list[i]
	o.Count, o.First, o.Last = o.Count+t.Count, min(o.First, t.First), max(o.Last, t.Last)
	return list
}

// Tally adds regressions of a type and severity.
func (h *History) Tally(t Tally) { h.Regressions = tallied(h.Regressions, t) }

// Total returns the number of regressions.
func (h *History) Total() (n int) {
	for _, t := range h.Regressions {
		n += t.Count
	}
	return n
}

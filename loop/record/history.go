package record

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/perdure/perdure"
)

// History is what all iterations of a loop came to, the baseline aside. It costs
// the same to look at for a loop of ten iterations and for one of ten thousand.
type History struct {
	// Iterations is how many there are, Kept, Reverted, Failed and Running what
	// became of them.
	Iterations int `json:"iterations"`
	Kept       int `json:"kept"`
	Reverted   int `json:"reverted"`
	Failed     int `json:"failed"`
	Running    int `json:"running"`
	// TookMicros is the time of those that are over; WorkMS what agents, checks and
	// measures took of it, AddedMS what snapshots, hooks and the engine did.
	TookMicros int64 `json:"took_us"`
	WorkMS     int64 `json:"work_ms"`
	AddedMS    int64 `json:"added_ms"`
	// Regressions are counted by type and severity, in the order in which they came
	// up first.
	Regressions []Tally `json:"regressions"`
	Recoveries  int     `json:"recoveries"`
	// AgentErrors and Warnings are how many there were, LastError and LastWarning the
	// last iterations that have some, 0 for none.
	AgentErrors int `json:"agent_errors"`
	LastError   int `json:"last_error,omitempty"`
	Warnings    int `json:"warnings"`
	LastWarning int `json:"last_warning,omitempty"`
	// LastSealed is the last iteration that was checked in a clean copy, 0 for none.
	LastSealed int `json:"last_sealed,omitempty"`
	// Candidates are the iterations among which the best one is, see
	// [Records.Candidates].
	Candidates []Iteration `json:"candidates"`
	// Columns sum up the iterations that were asked for.
	Columns []Column `json:"columns"`
}

// Tally counts regressions of a type and severity.
type Tally struct {
	Type     string `json:"regression_type"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
	// First and Last are iterations.
	First int `json:"first,omitempty"`
	Last  int `json:"last,omitempty"`
}

// Column sums up iterations that follow each other.
type Column struct {
	// From and To are the first and the last one.
	From int `json:"from"`
	To   int `json:"to"`
	// Measured is how many have a quality; the lowest, the highest and the sum are
	// theirs. HighestAt is the first that has the highest.
	Measured  int   `json:"measured"`
	Lowest    int   `json:"lowest"`
	Highest   int   `json:"highest"`
	HighestAt int   `json:"highest_at"`
	Sum       int64 `json:"sum"`
	// Regressed and Reverted are how many made something worse, and were taken back.
	Regressed int `json:"regressed"`
	Reverted  int `json:"reverted"`
}

// HistoryRequest says what is wanted of a history.
type HistoryRequest struct {
	// Threshold is the quality that a candidate should have.
	Threshold int
	// Each is how many iterations share a column, 0 for no columns; the columns are
	// those of iterations below Below.
	Each, Below int
	// Best asks for nothing but the candidates: their number does not grow with the
	// loop, and nothing is summed up for them.
	Best bool
}

// sqlLoopHistory sums up. A sum of PostgreSQL has another type than its parts.
const (
	sqlLoopHistory = `SELECT COUNT(*), COUNT(CASE b.status WHEN ` + dbKept + ` THEN 1 END), COUNT(CASE b.status WHEN ` + dbReverted + ` THEN 1 END),
			COUNT(CASE b.status WHEN ` + dbFailed + ` THEN 1 END), COUNT(CASE b.status WHEN ` + dbRunning + ` THEN 1 END),
			CAST(COALESCE(SUM(CASE WHEN b.status <> ` + dbRunning + ` THEN b.ended_at - b.started_at END), 0) AS BIGINT),
			CAST(COALESCE(SUM(b.work_ms), 0) AS BIGINT), CAST(COALESCE(SUM(b.added_ms), 0) AS BIGINT),
			COALESCE(SUM(b.recoveries), 0), COALESCE(SUM(b.agent_errors), 0), COALESCE(MAX(CASE WHEN b.agent_errors > 0 THEN b.number END), 0),
			COALESCE(SUM(b.warnings), 0), COALESCE(MAX(CASE WHEN b.warnings > 0 THEN b.number END), 0), COALESCE(MAX(CASE WHEN b.sealed > 0 THEN b.number END), 0)
		FROM brief b WHERE b.tree = $1 AND b.number > 0`
	sqlKinds = `SELECT b.kinds, COUNT(*), MIN(b.number), MAX(b.number) FROM brief b WHERE b.tree = $1 AND b.number > 0 AND b.regressions > 0 GROUP BY b.kinds ORDER BY MIN(b.number)`
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
	err = tx.QueryRow(ctx, sqlLoopHistory, key).Scan(&h.Iterations, &h.Kept, &h.Reverted, &h.Failed, &h.Running, &h.TookMicros, &h.WorkMS, &h.AddedMS,
		&h.Recoveries, &h.AgentErrors, &h.LastError, &h.Warnings, &h.LastWarning, &h.LastSealed)
	if err != nil {
		return err
	}
	err = each(ctx, tx, func(scan scanFunc) error {
		var kinds string
		var n, first, last int
		if err := scan(&kinds, &n, &first, &last); err != nil {
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
	return each(ctx, tx, func(scan scanFunc) error {
		var c Column
		var highest int64
		if err := scan(&c.From, &c.To, &c.Measured, &c.Lowest, &highest, &c.Sum, &c.Regressed, &c.Reverted); err != nil {
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

// tallied adds to counts, which stay in the order in which they came up.
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

// Total is how many regressions there are.
func (h *History) Total() (n int) {
	for _, t := range h.Regressions {
		n += t.Count
	}
	return n
}

package perdure

import (
	"context"
	"encoding/json"
	"math/bits"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// treeStat is the row of counters of a tree.
type treeStat struct {
	tree    int64
	state   int64 // of the root: queued and running until it is terminal
	partial int64
	counts  [7]int64 // by state; 0 is the total

	calls, uncertain                int64
	input, output, cached           int64
	cost, unpriced                  int64
	openCalls, openTokens, openCost int64

	limits    Limits
	rawLimits string
	warned    int64 // bits, by kind of limit
	timing    timing
	startedAt *int64
	endedAt   *int64
}

const statColumns = `tree, state, partial, total, queued, running, waiting, completed, failed, cancelled,
	calls, uncertain_calls, input_tokens, output_tokens, cached_tokens, cost_micros, unpriced_calls,
	open_calls, open_tokens, open_cost_micros, limits, warned, timing, started_at, ended_at`

const (
	sqlStat     = `SELECT ` + statColumns + ` FROM tree_stat WHERE tree = $1`
	sqlSaveStat = `UPDATE tree_stat SET state = $2, partial = $3, total = $4, queued = $5, running = $6, waiting = $7,
		completed = $8, failed = $9, cancelled = $10, calls = $11, uncertain_calls = $12, input_tokens = $13,
		output_tokens = $14, cached_tokens = $15, cost_micros = $16, unpriced_calls = $17, open_calls = $18,
		open_tokens = $19, open_cost_micros = $20, limits = $21, warned = $22, timing = $23, started_at = $24, ended_at = $25
		WHERE tree = $1`
	sqlInsertStat = `INSERT INTO tree_stat (` + statColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
		$13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`
)

// queryRow is the reading method of both a transaction and the pool.
type queryRow func(ctx context.Context, q string, args []any, dest ...any) error

func loadStat(ctx context.Context, query queryRow, tree int64) (*treeStat, error) {
	st := &treeStat{}
	var rawTiming string
	err := query(ctx, sqlStat, []any{tree}, st.dest(&rawTiming)...)
	if err != nil {
		return nil, err
	}
	return st, st.decode(rawTiming)
}

func (st *treeStat) dest(rawTiming *string) []any {
	return []any{&st.tree, &st.state, &st.partial, &st.counts[0], &st.counts[1], &st.counts[2], &st.counts[3],
		&st.counts[4], &st.counts[5], &st.counts[6], &st.calls, &st.uncertain, &st.input, &st.output, &st.cached,
		&st.cost, &st.unpriced, &st.openCalls, &st.openTokens, &st.openCost, &st.rawLimits, &st.warned, rawTiming,
		&st.startedAt, &st.endedAt}
}

func (st *treeStat) decode(rawTiming string) error {
	if err := json.Unmarshal([]byte(st.rawLimits), &st.limits); err != nil {
		return err
	}
	return json.Unmarshal([]byte(rawTiming), &st.timing)
}

func (st *treeStat) args() ([]any, error) {
	raw, err := json.Marshal(&st.timing)
	if err != nil {
		return nil, err
	}
	return []any{st.tree, st.state, st.partial, st.counts[0], st.counts[1], st.counts[2], st.counts[3],
		st.counts[4], st.counts[5], st.counts[6], st.calls, st.uncertain, st.input, st.output, st.cached,
		st.cost, st.unpriced, st.openCalls, st.openTokens, st.openCost, st.rawLimits, st.warned, string(raw),
		st.startedAt, st.endedAt}, nil
}

func (st *treeStat) save(ctx context.Context, tx *sqldb.Tx) error {
	args, err := st.args()
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, sqlSaveStat, args...)
	return err
}

// move counts a task out of one state and into another.
func (st *treeStat) move(from, to int64) {
	st.counts[from]--
	st.counts[to]++
}

func (st *treeStat) add(state int64) {
	st.counts[0]++
	st.counts[state]++
}

// timing keeps what the progress of a tree is estimated from.
type timing struct {
	// Depths holds one entry a level.
	Depths []depthTiming `json:"d,omitempty"`
	// Sum is the active time of the completed tasks in microseconds.
	Sum int64 `json:"s,omitempty"`
	// Hist counts completed tasks by the binary logarithm of their active
	// microseconds, in half steps.
	Hist []int64 `json:"h,omitempty"`
}

type depthTiming struct {
	Total int64 `json:"t"`
	Ended int64 `json:"e"`
	// Recent is the mean active time, recent tasks weighing more, in
	// microseconds; 0 until one completed.
	Recent int64 `json:"r,omitempty"`
}

// recentWeight is how much one more task moves the mean of its level.
const recentWeight = 0.1

func (t *timing) depth(d int) *depthTiming {
	for len(t.Depths) <= d {
		t.Depths = append(t.Depths, depthTiming{})
	}
	return &t.Depths[d]
}

func (t *timing) completed(depth int, active int64) {
	active = max(active, 1)
	d := t.depth(depth)
	if d.Recent == 0 {
		d.Recent = active
	} else {
		d.Recent += int64(recentWeight * float64(active-d.Recent))
	}
	t.Sum += active
	slot := bucket(active)
	for len(t.Hist) <= slot {
		t.Hist = append(t.Hist, 0)
	}
	t.Hist[slot]++
}

// bucket returns 2*log2(us), the half step being decided by the second bit.
func bucket(us int64) int {
	n := bits.Len64(uint64(us)) //nolint:gosec // active time is positive
	slot := 2 * (n - 1)
	if n > 1 && us&(1<<(n-2)) != 0 {
		slot++
	}
	return slot
}

// quantile returns the time below which the share q of the tasks stayed, by
// the middle of its bucket.
func (t *timing) quantile(q float64) time.Duration {
	var total int64
	for _, n := range t.Hist {
		total += n
	}
	if total == 0 {
		return 0
	}
	rank := int64(q * float64(total))
	for slot, n := range t.Hist {
		if rank < n {
			low := int64(1) << (slot / 2)
			return time.Duration(low+low/4+int64(slot%2)*low/2) * time.Microsecond
		}
		rank -= n
	}
	return 0
}

// remaining is the estimated work left, in microseconds of one worker.
func (t *timing) remaining(completed int64) (us float64, known bool) {
	if completed == 0 {
		return 0, false
	}
	mean := float64(t.Sum) / float64(completed)
	for _, d := range t.Depths {
		each := mean
		if d.Recent > 0 {
			each = float64(d.Recent)
		}
		us += each * float64(max(d.Total-d.Ended, 0))
	}
	return us, true
}

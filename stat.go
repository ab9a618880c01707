package perdure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/storage/chain"
	"github.com/perdure/perdure/internal/storage/eta"
	"github.com/perdure/perdure/internal/storage/sqldb"
)

// treeStat is the row of counters of a tree.
type treeStat struct {
	tree    int64
	state   int64 // of the root: queued and running until it is terminal
	partial int64
	counts  [7]int64 // by state; 0 is the total

	used                            costLine // by all calls
	openCalls, openTokens, openCost int64

	// The raw fields are the columns, "" when the decoded value changed.

	holds     []hold // changed by hold
	rawHeld   string
	limits    Limits
	rawLimits string
	warned    int64      // bits, by kind of limit
	costs     []costLine // changed by spent
	rawCosts  string
	timing    eta.Timing // changed by time
	rawTiming string
	startedAt *int64
	endedAt   *int64
	chain     chain.State
	rawHead   string
}

func newStat(tree int64, limits Limits) *treeStat {
	return &treeStat{tree: tree, state: stQueued, limits: limits, costs: []costLine{}, rawCosts: "[]"}
}

const statColumns = `tree, state, partial, total, queued, running, waiting, completed, failed, cancelled,
	calls, uncertain_calls, input_tokens, output_tokens, cached_tokens, cost_micros, unpriced_calls,
	open_calls, open_tokens, open_cost_micros, limits, warned, costs, timing, held, started_at, ended_at, events, head`

const (
	sqlStat     = `SELECT ` + statColumns + ` FROM tree_stat WHERE tree = $1`
	sqlSaveStat = `UPDATE tree_stat SET state = $2, partial = $3, total = $4, queued = $5, running = $6, waiting = $7,
		completed = $8, failed = $9, cancelled = $10, calls = $11, uncertain_calls = $12, input_tokens = $13,
		output_tokens = $14, cached_tokens = $15, cost_micros = $16, unpriced_calls = $17, open_calls = $18,
		open_tokens = $19, open_cost_micros = $20, limits = $21, warned = $22, costs = $23, timing = $24, held = $25,
		started_at = $26, ended_at = $27, events = $28, head = $29
		WHERE tree = $1`
)

// queryRow is the QueryRow method of a transaction or of the database.
type queryRow func(ctx context.Context, q string, args []any, dest ...any) error

func loadStat(ctx context.Context, query queryRow, tree int64) (*treeStat, error) {
	st := &treeStat{}
	if err := query(ctx, sqlStat, []any{tree}, st.dest()...); err != nil {
		return nil, err
	}
	return st, st.decode()
}

func (st *treeStat) dest() []any {
	return []any{&st.tree, &st.state, &st.partial, &st.counts[0], &st.counts[1], &st.counts[2], &st.counts[3],
		&st.counts[4], &st.counts[5], &st.counts[6], &st.used.Calls, &st.used.Uncertain, &st.used.Input,
		&st.used.Output, &st.used.Cached, &st.used.Micros, &st.used.Unpriced, &st.openCalls, &st.openTokens,
		&st.openCost, &st.rawLimits, &st.warned, &st.rawCosts, &st.rawTiming, &st.rawHeld, &st.startedAt, &st.endedAt,
		&st.chain.Events, &st.rawHead}
}

func (st *treeStat) decode() error {
	err := errors.Join(
		json.Unmarshal([]byte(st.rawLimits), &st.limits),
		json.Unmarshal([]byte(st.rawTiming), &st.timing),
		json.Unmarshal([]byte(st.rawCosts), &st.costs),
		st.chain.Head.Parse(st.rawHead),
		st.decodeHolds())
	for i := range st.costs { // the sums of the others have columns
		l := &st.costs[i]
		st.used.LostTokens, st.used.LostMicros = st.used.LostTokens+l.LostTokens, st.used.LostMicros+l.LostMicros
	}
	return err
}

// time returns the timing to change.
func (st *treeStat) time() *eta.Timing {
	st.rawTiming = ""
	return &st.timing
}

// encode sets the raw fields of the columns that args returns.
func (st *treeStat) encode() error {
	if st.rawTiming == "" {
		st.rawTiming = string(st.timing.AppendJSON(nil))
	}
	return errors.Join(encode(&st.rawLimits, &st.limits), encode(&st.rawCosts, st.costs))
}

func (st *treeStat) args() []any {
	return []any{st.tree, st.state, st.partial, st.counts[0], st.counts[1], st.counts[2], st.counts[3],
		st.counts[4], st.counts[5], st.counts[6], st.used.Calls, st.used.Uncertain, st.used.Input,
		st.used.Output, st.used.Cached, st.used.Micros, st.used.Unpriced, st.openCalls, st.openTokens,
		st.openCost, st.rawLimits, st.warned, st.rawCosts, st.rawTiming, st.held(), st.startedAt, st.endedAt,
		st.chain.Events, st.head()}
}

// encode sets the text of a column to v as JSON if it is empty.
func encode(column *string, v any) error {
	if *column != "" {
		return nil
	}
	raw, err := json.Marshal(v)
	*column = string(raw)
	return err
}

func (st *treeStat) save(ctx context.Context, tx *sqldb.Tx) error {
	if err := st.encode(); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, sqlSaveStat, st.args()...)
	return err
}

// tick accounts for the time since the last change.
func (st *treeStat) tick(now int64) {
	var running int64
	for _, h := range st.holds {
		running += h.n
	}
	st.time().Tick(now, running)
}

// plan counts planned work of a task at a depth.
func (st *treeStat) plan(depth int, w *Work) {
	if w == nil {
		return
	}
	t := st.time()
	for i, l := range w.Levels {
		t.Plan(depth+i, max(l.Tasks, 0), max(l.Calls, 0))
	}
	t.Open = max(t.Open+int64(w.Open), 0)
}

// start marks the tree as running when a task is claimed.
func (st *treeStat) start(now int64) {
	if st.startedAt == nil {
		st.startedAt = &now
	}
	if st.state == stQueued {
		st.state = stRunning
	}
}

// chained returns the chain to continue.
func (st *treeStat) chained() *chain.State {
	st.rawHead = ""
	return &st.chain
}

// head returns the column.
func (st *treeStat) head() string {
	if st.rawHead == "" && st.chain.Events > 0 {
		st.rawHead = st.chain.Head.String()
	}
	return st.rawHead
}

// move counts a task that changes its state.
func (st *treeStat) move(from, to int64) {
	st.counts[from]--
	st.counts[to]++
}

func (st *treeStat) add(state int64) {
	st.counts[0]++
	st.counts[state]++
}

// hold is the number of tasks of a tree that a session runs.
type hold struct{ session, n int64 }

// hold changes the number of tasks that a session runs.
func (st *treeStat) hold(now, session, n int64) {
	st.tick(now)
	st.rawHeld = ""
	at, found := slices.BinarySearchFunc(st.holds, session,
		func(h hold, key int64) int { return cmp.Compare(h.session, key) })
	if !found {
		st.holds = slices.Insert(st.holds, at, hold{session: session})
	}
	if st.holds[at].n += n; st.holds[at].n == 0 {
		st.holds = slices.Delete(st.holds, at, at+1)
	}
}

// held returns the column: "session=tasks,session=tasks", sorted by session.
func (st *treeStat) held() string {
	if st.rawHeld == "" && len(st.holds) > 0 {
		list := make([]string, len(st.holds))
		for i, h := range st.holds {
			list[i] = itoa(h.session) + "=" + itoa(h.n)
		}
		st.rawHeld = strings.Join(list, ",")
	}
	return st.rawHeld
}

func (st *treeStat) decodeHolds() error {
	if st.rawHeld == "" {
		return nil
	}
	for part := range strings.SplitSeq(st.rawHeld, ",") {
		var h hold
		if _, err := fmt.Sscanf(part, "%d=%d", &h.session, &h.n); err != nil {
			return err
		}
		st.holds = append(st.holds, h)
	}
	return nil
}

package perdure

import (
	"fmt"
	"strconv"
	"time"
)

// warnShare is the share of a limit from which on a warning event is appended.
const warnShare = 0.8

// Bits of tree_stat.warned: a pair for each limit, warned and exceeded.
const (
	limitNodes = iota
	limitSoftNodes
	limitCalls
	limitTokens
	limitCost
	limitWall
	numLimits
)

// overran is the bit of tree_stat.warned that is set once a call of the tree took more than
// openCounts times what was reserved.
const overran = 1 << (2 * numLimits)

// How often what is reserved for the calls in flight counts for the next call. A server can
// take twice what was reserved before its answer is cut. One that sends its answer whole
// and ignores the limit of answers takes more: until the first answer shows that it does not, and
// once it did, the whole of a call's overrun has to fit.
const (
	openCounts    = 2
	overranCounts = 64
)

type limitCheck struct {
	bit   int
	name  string
	flag  string
	limit int64
	// used is spent or reserved before the request for want more; open is the reserved
	// part of it.
	used, want, open int64
}

// errReserved refuses a call that fits into the limits once calls in flight have been
// settled.
var errReserved = &Error{Code: CodeBudgetExceeded, Op: "check limits", Msg: "the rest of the budget is reserved"}

// callLimits are the limits of calls, with what is used or reserved of each.
type callLimits struct{ wall, calls, tokens, cost limitCheck }

func (c *callLimits) all() []*limitCheck { return []*limitCheck{&c.wall, &c.calls, &c.tokens, &c.cost} }

// fitsLater reports whether no limit refuses the request for good, and one of them does
// with what is reserved now. Tokens and cost that are reserved count more than once: then a
// tree exceeds its limits at most by what one call takes too much. Parts of the limit that
// are spent in no other way are not lost, because the call waits.
func (c *callLimits) fitsLater(counts int64) bool {
	later := false
	for _, c := range c.all() {
		total := c.used + c.want
		if c.bit == limitTokens || c.bit == limitCost {
			total += (counts - 1) * c.open
		}
		switch {
		case c.limit <= 0 || total <= c.limit:
		case c.used-c.open+c.want > c.limit:
			return false
		default:
			later = true
		}
	}
	return later
}

// admitNodes refuses tasks that would exceed the tree's node limit.
func (b *batch) admitNodes(st *treeStat, n int64) error {
	if soft := st.limits.SoftNodes; soft > 0 && st.counts[0]+n > soft && st.warned&(1<<(2*limitSoftNodes)) == 0 {
		st.warned |= 1 << (2 * limitSoftNodes)
		b.event(st.tree, 0, EventBudgetWarning, fmt.Sprintf(`{"limit":"soft_nodes","value":%d,"used":%d}`, soft, st.counts[0]+n))
	}
	return b.admit(st, limitCheck{limitNodes, "nodes", "--max-nodes", st.limits.MaxNodes, st.counts[0], n, 0})
}

// reserve reserves the expected usage of a call within the limits of the tree, or refuses
// the call: with errReserved if it fits once the calls in flight have been settled.
// Transactions run one after another, so calls of parallel tasks cannot exceed a limit
// together.
func (b *batch) reserve(st *treeStat, l *Lease, spec *CallSpec) error {
	lim := st.callLimits(b.now - l.Tree.limitsFrom().UnixMicro())
	lim.calls.want, lim.tokens.want, lim.cost.want = 1, spec.ReserveTokens, spec.ReserveCostMicros
	if err := b.admitCall(st, &lim); err != nil {
		return err
	}
	st.openCalls++
	st.openTokens += spec.ReserveTokens
	st.openCost += spec.ReserveCostMicros
	return nil
}

// admitCall checks a request against each limit of calls.
func (b *batch) admitCall(st *treeStat, lim *callLimits) error {
	counts := int64(openCounts)
	if st.used.Output == 0 || st.warned&overran != 0 {
		counts = overranCounts
	}
	if lim.fitsLater(counts) {
		return errReserved
	}
	for _, c := range lim.all() {
		if err := b.admit(st, *c); err != nil {
			return err
		}
	}
	return nil
}

// callLimits returns the limits of calls. elapsed is the age of the tree in microseconds.
func (st *treeStat) callLimits(elapsed int64) callLimits {
	lim := &st.limits
	return callLimits{
		wall:  limitCheck{limitWall, "wall_time_ms", "--timeout", wallLimit(lim.WallTime), elapsed / 1000, 0, 0},
		calls: limitCheck{limitCalls, "calls", "--budget-calls", lim.Calls, st.used.Calls + st.openCalls, 0, st.openCalls},
		tokens: limitCheck{limitTokens, "tokens", "--budget-tokens", lim.Tokens,
			st.used.Input + st.used.Output + st.used.LostTokens + st.openTokens, 0, st.openTokens},
		cost: limitCheck{limitCost, "cost_micros", "--budget-usd", lim.CostMicros,
			st.used.Micros + st.used.LostMicros + st.openCost, 0, st.openCost},
	}
}

// took records whether the requests of a call took more than counts for them while they are
// in flight. A call that reserves nothing promises nothing.
func (st *treeStat) took(used *costLine, reserved *settledCall) {
	more := func(used, reserved, requests int64) bool { return reserved > 0 && used > openCounts*requests*reserved }
	if more(used.Input+used.Output, reserved.openTokens, used.Calls) || more(used.Micros, reserved.openCost, used.Calls) {
		st.warned |= overran
	}
}

// overspent appends the events of limits that a call reached or exceeded because it used
// more than was reserved for it. Later calls are refused.
func (b *batch) overspent(st *treeStat, l *Lease) {
	lim := st.callLimits(b.now - l.Tree.limitsFrom().UnixMicro())
	for _, c := range lim.all() {
		_ = b.admit(st, *c) // the call is paid already; only the event matters
	}
}

// LimitUse is the usage of a limit of a tree.
type LimitUse struct {
	// Limit is "nodes", "calls", "tokens", "cost_micros" (millionths of a US
	// dollar) or "wall_time_ms".
	Limit string `json:"limit"`
	Value int64  `json:"value"`
	// Used is the usage so far, with what is reserved for open calls.
	Used int64 `json:"used"`
	// Warned is set from 80 % on, Exceeded when the limit refused a request or a
	// call used more than was left; a time limit is exceeded when it has passed.
	Warned   bool `json:"warned"`
	Exceeded bool `json:"exceeded"`
	// Flag is the option that raises the limit.
	Flag string `json:"flag"`
}

// limitUses returns the usage of the limits that are set.
func (st *treeStat) limitUses(elapsed int64) []LimitUse {
	nodes := limitCheck{limitNodes, "nodes", "--max-nodes", st.limits.MaxNodes, st.counts[0], 0, 0}
	calls := st.callLimits(elapsed)
	uses := []LimitUse{}
	for _, c := range append(calls.all(), &nodes) {
		if c.limit > 0 {
			uses = append(uses, LimitUse{Limit: c.name, Value: c.limit, Used: c.used, Flag: c.flag,
				Warned:   st.warned&(1<<(2*c.bit)) != 0,
				Exceeded: st.warned&(1<<(2*c.bit+1)) != 0 || c.bit == limitWall && c.used >= c.limit})
		}
	}
	return uses
}

// wallLimit returns a limit in milliseconds, at least one.
func wallLimit(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return max(d.Milliseconds(), 1)
}

// text describes why the limit refuses a request.
func (c *limitCheck) text() string {
	switch c.bit {
	case limitNodes:
		return fmt.Sprintf("task limit reached: %d tasks requested, %d of %d left; %s %d is enough for them",
			c.want, max(c.limit-c.used, 0), c.limit, c.flag, c.used+c.want)
	case limitCost:
		return fmt.Sprintf("budget exhausted: $%s of $%s used or reserved, up to $%s requested",
			usd(c.used), usd(c.limit), usd(c.want))
	case limitWall:
		const ms = time.Millisecond
		return fmt.Sprintf("time limit exceeded: %s of %s used", time.Duration(c.used)*ms, time.Duration(c.limit)*ms)
	}
	return fmt.Sprintf("budget exhausted: %d of %d %s used or reserved, %d requested", c.used, c.limit, c.name, c.want)
}

// usd formats millionths of a dollar as dollars.
func usd(micros int64) string {
	return strconv.FormatFloat(float64(micros)/microsPerDollar, 'f', -1, 64)
}

// admit appends a warning event once at 80 % of a limit, and refuses a request that would
// exceed it.
func (b *batch) admit(st *treeStat, c limitCheck) error {
	if c.limit <= 0 {
		return nil
	}
	total := c.used + c.want
	data := func() string {
		return fmt.Sprintf(`{"limit":%q,"value":%d,"used":%d,"requested":%d}`, c.name, c.limit, c.used, c.want)
	}
	if total > c.limit {
		if bit := int64(1) << (2*c.bit + 1); st.warned&bit == 0 {
			st.warned |= bit
			b.event(st.tree, 0, EventBudgetExceeded, data())
		}
		return &Error{Code: CodeBudgetExceeded, Op: "check limits", Msg: c.text(),
			Hint: "`perdure resume` with a higher " + c.flag + " takes up the missing parts"}
	}
	if bit := int64(1) << (2 * c.bit); float64(total) >= warnShare*float64(c.limit) && st.warned&bit == 0 {
		st.warned |= bit
		b.event(st.tree, 0, EventBudgetWarning, data())
	}
	return nil
}

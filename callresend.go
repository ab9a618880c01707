package perdure

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// ResendCall records that the request of an open call is about to be sent again, because
// the last one failed with r: what this one took counts as spent, and the reservation
// stays for the next. When it returns nil, the request can be sent. ResendCall waits, and
// fails with CodeBudgetExceeded, as [Lease.BeginCall] does; the call is open then and has
// to be settled with r.
func (l *Lease) ResendCall(ctx context.Context, id CallID, r CallResult) error {
	if err := r.validateUsage(opResendCall); err != nil {
		return err
	}
	return l.waitReserved(ctx, &resendCall{l: l, id: int64(id), r: r})
}

const opResendCall = "resend call"

type resendCall struct {
	l  *Lease
	id int64
	r  CallResult
}

const (
	sqlOpenCall = `SELECT open_tokens, open_cost_micros, model FROM call
		WHERE id = $1 AND state = ` + sqldb.SQLCallStarted + ` AND task = $2 AND fence = $3`
	sqlResendCall = `UPDATE call SET tries = tries + $2, input_tokens = input_tokens + $3, output_tokens = output_tokens + $4,
		cached_tokens = cached_tokens + $5, estimated = CASE WHEN CAST($6 AS INTEGER) = 1 THEN 1 ELSE estimated END,
		cost_micros = CASE WHEN CAST($7 AS BIGINT) < 0 THEN cost_micros
			ELSE COALESCE(cost_micros, 0) + CAST($7 AS BIGINT) END WHERE id = $1`
)

func (c *resendCall) apply(ctx context.Context, b *batch) error {
	l, task := c.l, int64(c.l.Task.ID)
	if err := b.held(ctx, l, opResendCall); err != nil {
		return err
	}
	var openTokens, openCost int64
	var model string
	err := b.tx.QueryRow(ctx, sqlOpenCall, []any{c.id, task, l.fence}, &openTokens, &openCost, &model)
	if err != nil {
		return orNotFound(err, conflictf(opResendCall, "call %q of task %q is not open", CallID(c.id), l.Task.ID))
	}
	st, err := b.stat(ctx, l.Tree.key)
	if err != nil {
		return err
	}
	if c.r.Model != "" {
		model = c.r.Model
	}
	line := c.r.line(l.Task.Depth, model)
	if err := b.admitAgain(st, l, &line, openTokens, openCost); err != nil {
		return err
	}
	st.spent(line)
	b.event(st.tree, task, EventCallResent, fmt.Sprintf(
		`{"call_id":%q,"model":%s,"input_tokens":%d,"output_tokens":%d,"cost_micros":%s}`, CallID(c.id), quote(model),
		c.r.InputTokens, c.r.OutputTokens, microsText(c.r.CostMicros)))
	_, err = b.tx.Exec(ctx, sqlResendCall, c.id, line.Calls, line.Input, line.Output, line.Cached, boolInt(c.r.Estimated),
		knownMicros(c.r.CostMicros))
	if err != nil {
		return err
	}
	return b.addUsage(ctx, task, &line)
}

// admitAgain checks the limits for one more request, added to what the last one took. The
// reservation of the call is kept: for the limits it is what the request needs.
func (b *batch) admitAgain(st *treeStat, l *Lease, last *costLine, openTokens, openCost int64) error {
	lim := st.callLimits(b.now - l.Tree.limitsFrom().UnixMicro())
	lim.calls.again(last.Calls, 1)
	lim.tokens.again(last.Input+last.Output, openTokens)
	lim.cost.again(last.Micros, openCost)
	return b.admitCall(st, &lim)
}

// again makes the check one for a request that follows one which took spent, with the
// same reservation.
func (c *limitCheck) again(spent, reserved int64) {
	c.used, c.want, c.open = c.used+spent-reserved, reserved, c.open-reserved
}

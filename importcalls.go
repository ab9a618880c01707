package perdure

import (
	"context"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// recordCall is a call about to be inserted with the record of its task.
type recordCall struct {
	*Call
	response, data stored
}

// prepareCalls checks the calls of a record and stores their long values.
func (s *Store) prepareCalls(ctx context.Context, calls []Call) ([]recordCall, error) {
	const op = "import call"
	list := make([]recordCall, len(calls))
	for i := range calls {
		c := &calls[i]
		spec := CallSpec{Position: c.Position, Model: c.Model, RequestHash: c.RequestHash,
			ReserveTokens: c.UncertainTokens, ReserveCostMicros: microsOfUSD(&c.UncertainCostUSD)}
		r := CallResult{InputTokens: c.InputTokens, OutputTokens: c.OutputTokens, CachedTokens: c.CachedTokens}
		if c.CostUSD != nil {
			r.CostMicros = new(microsOfUSD(c.CostUSD))
		}
		if err := spec.validate(); err != nil {
			return nil, err
		}
		if err := r.validateUsage(op); err != nil {
			return nil, err
		}
		if !storable(c.Response) || !storable(c.Thoughts) || c.number() == 0 || c.Tries < 0 || c.Attempt < 0 {
			return nil, invalidf(op, "call %d has no known state, a negative number, or text that is not UTF-8", i)
		}
		if err := validateObject(op, "data", c.Data, MaxResultBytes); err != nil {
			return nil, err
		}
		kept, err := withThoughts(c.Data, c.Thoughts)
		if err != nil {
			return nil, err
		}
		list[i].Call = c
		if list[i].response, list[i].data, err = s.storeBoth(ctx, c.Response, kept); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// microsOfUSD returns a number of dollars in millionths.
func microsOfUSD(usd *float64) int64 {
	if *usd < 0 {
		return -1
	}
	return int64(*usd*microsPerDollar + 0.5)
}

// number returns the number of the state in the database. A call that was open is one with unknown
// outcome: no process of this store settles it.
func (c *Call) number() int64 {
	switch c.State {
	case CallCompleted:
		return sqldb.CallCompleted
	case CallFailed:
		return sqldb.CallFailed
	case CallStarted, CallUncertain:
		return sqldb.CallUncertain
	}
	return 0
}

// line returns the usage of the requests of a call, as it was counted when the call was settled.
func (c *Call) line(depth int) costLine {
	l := costLine{Depth: depth, Model: c.Model}
	if c.number() == sqldb.CallUncertain {
		l.Calls, l.Uncertain = 1, 1
		l.LostTokens, l.LostMicros = c.UncertainTokens, microsOfUSD(&c.UncertainCostUSD)
		return l
	}
	l.Calls, l.Input, l.Output, l.Cached = int64(c.Tries), c.InputTokens, c.OutputTokens, c.CachedTokens
	switch {
	case c.CostUSD != nil:
		l.Micros = microsOfUSD(c.CostUSD)
	case c.Error == nil || c.InputTokens > 0 || c.OutputTokens > 0:
		l.Unpriced = 1
	}
	return l
}

// without returns a line less another one.
func (l costLine) without(less *costLine) costLine {
	l.Calls, l.Input, l.Output = l.Calls-less.Calls, l.Input-less.Input, l.Output-less.Output
	l.Cached, l.Micros, l.Unpriced = l.Cached-less.Cached, l.Micros-less.Micros, l.Unpriced-less.Unpriced
	return l
}

// spendRecord counts the usage of a record: that of its calls by their models, and the rest.
func (st *treeStat) spendRecord(t *recordTask, cost int64) {
	u := &t.rec.Usage
	var sum costLine
	for i := range t.calls {
		l := t.calls[i].line(t.depth)
		st.spent(l)
		sum.add(&l)
	}
	rest := costLine{Depth: t.depth, Calls: u.Calls, Input: u.InputTokens, Output: u.OutputTokens, Cached: u.CachedTokens,
		Micros: cost, Unpriced: u.UnpricedCalls}.without(&sum)
	if rest != (costLine{Depth: t.depth}) {
		st.spent(rest)
	}
}

const sqlImportCall = `INSERT INTO call (id, tree, task, attempt, position, fence, state, model, request_hash,
		open_tokens, open_cost_micros, started_at, response, data, error_kind, error, tries, input_tokens, output_tokens, cached_tokens,
		estimated, cost_micros, ended_at)
	VALUES ($1, $2, $3, $4, $5, 0, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`

// importCalls inserts the calls of a record, with an event for each that has the digest of its row.
func (b *batch) importCalls(ctx context.Context, t *recordTask) error {
	for i := range t.calls {
		c := &t.calls[i]
		if err := b.keepValues(ctx, t.tree, c.response, c.data); err != nil {
			return err
		}
		b.cache.seq.call++
		id, state, failure := b.cache.seq.call, c.number(), TaskError{}
		if c.Error != nil {
			failure = *c.Error
		}
		message := validPrefix(failure.Message, MaxErrorBytes)
		var cost, ended *int64
		if c.CostUSD != nil {
			cost = new(microsOfUSD(c.CostUSD))
		}
		if ended = microsPtr(c.EndedAt); ended == nil {
			ended = new(microsOf(c.StartedAt))
		}
		_, err := b.tx.Exec(ctx, sqlImportCall, id, t.tree, t.id, c.Attempt, c.Position, state, c.Model, c.RequestHash,
			c.UncertainTokens, microsOfUSD(&c.UncertainCostUSD), microsOf(c.StartedAt), c.response.column, c.data.column,
			failure.Kind, message, c.Tries, c.InputTokens, c.OutputTokens, c.CachedTokens, boolInt(c.Estimated), cost, ended)
		if err != nil {
			return err
		}
		kind := EventCallCompleted
		switch state {
		case sqldb.CallUncertain:
			b.event(t.tree, t.id, EventCallUncertain, `{"call_id":"`+CallID(id).String()+`","imported":"`+string(c.State)+`"}`)
			continue
		case sqldb.CallFailed:
			kind = EventCallFailed
		}
		digest := b.in.hasher.Digest(state, c.response.column, c.data.column, failure.Kind, message, int64(c.Tries),
			c.InputTokens, c.OutputTokens, c.CachedTokens, int64(boolInt(c.Estimated)), cost, *ended, t.id, c.Model, c.Attempt,
			int64(c.Position), c.RequestHash)
		b.event(t.tree, t.id, kind, `{"call_id":"`+CallID(id).String()+`","model":`+quote(c.Model)+
			`,"imported":"`+string(c.State)+`","digest":"`+digest+`"}`)
	}
	return nil
}

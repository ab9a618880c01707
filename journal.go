package perdure

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/process/failpoint"
	"github.com/perdure/perdure/internal/storage/sqldb"
	"github.com/perdure/perdure/internal/text/clip"
)

// BeginCall records a call before it is sent: when it returns, the call and a reservation
// within the tree's limits are durable. If the attempt was interrupted and the journal
// already has the result of this call, BeginCall returns it with replayed set, and the
// call must not be sent. A call that an earlier lease sent and never settled becomes
// uncertain and is counted as spent. The journal identifies a call by its position in the
// attempt and the request hash; another request at the same position is recorded as a
// divergence and is a new call.
//
// A call that fits into the limits of the tree only without the reservations of calls in
// flight waits until enough of these have been settled, or until ctx ends. BeginCall fails
// with CodeBudgetExceeded if it does not fit with what was spent. Begin a call only when
// its request is sent at once, and settle it when the request has failed, also if it is
// sent again: calls that wait while they are open can wait for each other for ever.
func (l *Lease) BeginCall(ctx context.Context, spec CallSpec) (call Call, replayed bool, err error) {
	if err := spec.validate(); err != nil {
		return Call{}, false, err
	}
	c := l.newCall(spec)
	if err := l.waitReserved(ctx, c); err != nil {
		return Call{}, false, err
	}
	failpoint.Hit("call.after_begin")
	return l.begun(ctx, c)
}

func (l *Lease) newCall(spec CallSpec) *beginCall {
	l.calls.Store(true)
	return &beginCall{l: l, spec: spec, read: l.fence > 1 || !l.begins(spec.Position)}
}

// begun returns the call that was begun, or found in the journal.
func (l *Lease) begun(ctx context.Context, c *beginCall) (call Call, replayed bool, err error) {
	if c.found != 0 {
		call, err := l.s.readCall(ctx, c.found)
		return call, true, err
	}
	return Call{ID: CallID(c.id), Task: l.Task.ID, Attempt: l.Task.Attempts, Position: c.spec.Position, State: CallStarted,
		Model: c.spec.Model, RequestHash: c.spec.RequestHash, StartedAt: micros(c.at)}, false, nil
}

// FindCall returns the result of a call that the journal has because the attempt was
// interrupted: what [Lease.BeginCall] does, without beginning a call. It lets a caller
// begin calls only when they are about to be sent, so that a call that was still waiting
// for its turn when the process died is not taken for one that was sent.
func (l *Lease) FindCall(ctx context.Context, spec CallSpec) (call Call, found bool, err error) {
	if err := spec.validate(); err != nil || l.fence <= 1 {
		return Call{}, false, err
	}
	c := &beginCall{l: l, spec: spec, read: true, find: true}
	if err := l.s.w.do(ctx, c); err != nil || c.found == 0 {
		return Call{}, false, err
	}
	call, err = l.s.readCall(ctx, c.found)
	return call, true, err
}

func (spec *CallSpec) validate() error {
	const op = "begin call"
	switch {
	case spec.Position < 0:
		return invalidf(op, "position %d is negative", spec.Position)
	case spec.Model == "" || !storable(spec.Model) || len(spec.Model) > maxNameBytes:
		return invalidf(op, "model is not a name of at most %d bytes", maxNameBytes)
	case spec.RequestHash == "" || len(spec.RequestHash) > 128 || !storable(spec.RequestHash):
		return invalidf(op, "request hash is not UTF-8 text of 1 to 128 bytes")
	case spec.ReserveTokens < 0 || spec.ReserveCostMicros < 0:
		return invalidf(op, "a reservation is negative")
	}
	return nil
}

type beginCall struct {
	l     *Lease
	spec  CallSpec
	find  bool  // only the recorded call is read
	read  bool  // the journal may have calls at the position
	id    int64 // of the new call
	found int64 // of the recorded call
	moved int64 // the same, if it was at another position
	at    int64
}

const (
	// sqlLastCall returns the completed call of this request, else the last call.
	sqlLastCall = `SELECT id, state, fence, request_hash FROM call WHERE task = $1 AND attempt = $2 AND position = $3
		ORDER BY CASE WHEN state = ` + sqldb.SQLCallCompleted + ` AND request_hash = $4 THEN 0 ELSE 1 END, id DESC LIMIT 1`
	sqlInsertCall = `INSERT INTO call (id, tree, task, attempt, position, fence, state, model, request_hash, open_tokens,
		open_cost_micros, started_at, response, data, error_kind, error, tries, input_tokens, output_tokens, cached_tokens,
		estimated) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8, $9, $10, $11, '', '', '', '', 0, 0, 0, 0, 0)`
)

func (c *beginCall) apply(ctx context.Context, b *batch) error {
	l, id := c.l, int64(c.l.Task.ID)
	if err := b.held(ctx, l, "begin call"); err != nil {
		return err
	}
	st, err := b.stat(ctx, l.Tree.key)
	if err != nil {
		return err
	}
	c.found = 0
	if c.read {
		if found, err := c.recorded(ctx, b, st); found || err != nil {
			return err
		}
		if found, err := c.earlier(ctx, b); found || err != nil {
			return err
		}
	}
	if c.find {
		return nil
	}
	if err := b.reserve(st, l, &c.spec); err != nil {
		return err
	}
	st.tick(b.now)
	b.cache.seq.call++
	c.id, c.at = b.cache.seq.call, b.now
	if l.early {
		l.timedFrom, l.early = b.now, false
	}
	_, err = b.tx.Exec(ctx, sqlInsertCall, c.id, st.tree, id, l.Task.Attempts, c.spec.Position, l.fence, c.spec.Model,
		c.spec.RequestHash, c.spec.ReserveTokens, c.spec.ReserveCostMicros, b.now)
	b.event(st.tree, id, EventCallStarted, `{"call_id":"`+CallID(c.id).String()+`","model":`+quote(c.spec.Model)+
		`,"position":`+itoa(int64(c.spec.Position))+`}`)
	return err
}

// begins records that the lease begins a call at the position, and reports whether that
// is after all positions before: then the journal of a first lease has no call there.
func (l *Lease) begins(position int) bool {
	for next := int64(position) + 1; ; {
		done := l.positions.Load()
		if next <= done {
			return false
		}
		if l.positions.CompareAndSwap(done, next) {
			return true
		}
	}
}

// recorded reads the journal at the position. found reports whether it has the result.
func (c *beginCall) recorded(ctx context.Context, b *batch, st *treeStat) (found bool, err error) {
	l, id := c.l, int64(c.l.Task.ID)
	var call, state, fence int64
	var hash string
	err = b.tx.QueryRow(ctx, sqlLastCall, []any{id, l.Task.Attempts, c.spec.Position, c.spec.RequestHash},
		&call, &state, &fence, &hash)
	if err != nil {
		return false, ignoreNoRows(err)
	}
	switch {
	case state == sqldb.CallStarted && fence == l.fence:
		return false, conflictf("begin call", "position %d of task %q has an open call", c.spec.Position, l.Task.ID)
	case state == sqldb.CallStarted:
		return false, b.closeCalls(ctx, st, id, l.fence)
	case state == sqldb.CallCompleted && hash == c.spec.RequestHash:
		c.found = call
		return true, nil
	case state == sqldb.CallCompleted:
		b.event(st.tree, id, EventCallDiverged, `{"call_id":"`+CallID(call).String()+`","position":`+
			itoa(int64(c.spec.Position))+`}`)
	}
	return false, nil
}

// sqlEarlierCall and sqlMovedCall return a completed call of this request by an earlier
// attempt, at the same position and at any.
const (
	sqlMovedCall = `SELECT id FROM call WHERE task = $1 AND attempt >= $2 AND attempt < $3 AND request_hash = $4
		AND state = ` + sqldb.SQLCallCompleted + ` ORDER BY attempt DESC, position DESC, id DESC`
	sqlEarlierCall = `SELECT id FROM call WHERE task = $1 AND attempt >= $2 AND attempt < $3 AND request_hash = $4
		AND state = ` + sqldb.SQLCallCompleted + ` AND position = $5 ORDER BY attempt DESC LIMIT 1`
)

// earlier reads the journal of the earlier attempts whose calls were kept.
func (c *beginCall) earlier(ctx context.Context, b *batch) (found bool, err error) {
	l := c.l
	if l.replays == 0 || l.replays >= int64(l.Task.Attempts) {
		return false, nil
	}
	delete(l.replayed, c.moved) // of a transaction that was repeated
	args := []any{int64(l.Task.ID), l.replays, l.Task.Attempts, c.spec.RequestHash, c.spec.Position}
	err = b.tx.QueryRow(ctx, sqlEarlierCall, args, &c.found)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		l.answeredBy(c.found)
		return err == nil, err
	}
	ids, err := sqldb.Collect(ctx, b.tx.Query, sqldb.Column[int64], sqlMovedCall, args[:4]...)
	for _, id := range ids {
		if !l.replayed[id] { // a request that was repeated on purpose has several answers
			c.found, c.moved = id, id
			l.answeredBy(id)
			return true, err
		}
	}
	return false, err
}

// answeredBy notes that a call of an earlier attempt answered a request. Only the writer's
// goroutine calls it.
func (l *Lease) answeredBy(id int64) {
	if l.replayed == nil {
		l.replayed = make(map[int64]bool)
	}
	l.replayed[id] = true
}

// Replays reports whether the results of the calls of an attempt answer the same requests
// of the current one: those of the current one do, if it was interrupted, and those that
// [Result].KeepCalls and [Failure].KeepCalls kept.
func (l *Lease) Replays(attempt int) bool {
	return attempt == l.Task.Attempts || l.replays > 0 && attempt >= int(l.replays)
}

const (
	sqlCloseCalls = `UPDATE call SET state = ` + sqldb.SQLCallUncertain + `, ended_at = $2
		WHERE task = $1 AND state = ` + sqldb.SQLCallStarted + ` AND fence < $3
		RETURNING id, open_tokens, open_cost_micros, model`
	sqlTaskDepth = `SELECT depth FROM task WHERE id = $1`
	sqlAddUsage  = `UPDATE task_hot SET calls = calls + $2, input_tokens = input_tokens + $3,
		output_tokens = output_tokens + $4, cached_tokens = cached_tokens + $5, cost_micros = cost_micros + $6,
		unpriced = unpriced + $7 WHERE id = $1`
)

// allLeases is above every fencing token.
const allLeases = 1 << 62

// closeCalls makes the open calls of leases below a fencing token uncertain; their
// reservations count as spent.
func (b *batch) closeCalls(ctx context.Context, st *treeStat, task, below int64) error {
	lost, err := sqldb.Collect(ctx, b.tx.Query, func(scan sqldb.Scan) (l costLine, err error) {
		var id int64
		l = costLine{Calls: 1, Uncertain: 1}
		err = scan(&id, &l.LostTokens, &l.LostMicros, &l.Model)
		b.event(st.tree, task, EventCallUncertain, `{"call_id":"`+CallID(id).String()+`"}`)
		return l, err
	}, sqlCloseCalls, task, b.now, below)
	if err != nil || len(lost) == 0 {
		return err
	}
	depth := 0
	if err := b.tx.QueryRow(ctx, sqlTaskDepth, []any{task}, &depth); err != nil {
		return err
	}
	var sum costLine
	for _, l := range lost {
		l.Depth = depth
		st.spent(l)
		sum.add(&l)
	}
	st.openCalls, st.openTokens = st.openCalls-sum.Calls, st.openTokens-sum.LostTokens
	st.openCost -= sum.LostMicros
	b.freed = true
	return b.addUsage(ctx, task, &costLine{Calls: sum.Calls})
}

// SettleCall records the result or the failure of a call that BeginCall recorded, and
// replaces the reservation by the actual usage. When it returns nil, the result is durable
// and the call will not be repeated.
func (l *Lease) SettleCall(ctx context.Context, id CallID, r CallResult) error {
	settle, err := l.settlement(ctx, id, r)
	if err != nil {
		return err
	}
	failpoint.Hit("call.before_settle")
	err = l.s.w.do(ctx, settle)
	failpoint.Hit("call.after_settle")
	return err
}

// CompleteCall settles a call and ends the task with its result in one transaction: what
// [Lease.SettleCall] and [Lease.Complete] do one after the other.
func (l *Lease) CompleteCall(ctx context.Context, id CallID, call CallResult, r Result) error {
	settle, err := l.settlement(ctx, id, call)
	if err != nil {
		return err
	}
	end, err := l.completion(ctx, r)
	if err != nil {
		return err
	}
	failpoint.Hit("call.before_settle")
	err = l.s.w.do(ctx, opFunc(func(ctx context.Context, b *batch) error {
		if err := settle.apply(ctx, b); err != nil {
			return err
		}
		return undoing(end.apply(ctx, b))
	}))
	failpoint.Hit("call.after_settle")
	return err
}

// settlement checks the result of a call, and stores what of it is long.
func (l *Lease) settlement(ctx context.Context, id CallID, r CallResult) (*settleCall, error) {
	const op = "settle call"
	if !storable(r.Response) {
		return nil, invalidf(op, "response is not valid UTF-8 text")
	}
	if !storable(r.Thoughts) {
		return nil, invalidf(op, "thoughts are not valid UTF-8 text")
	}
	if !storable(r.Model) || len(r.Model) > maxNameBytes {
		return nil, invalidf(op, "model is not a name of at most %d bytes", maxNameBytes)
	}
	if err := validateObject(op, "data", r.Data, MaxResultBytes); err != nil {
		return nil, err
	}
	if err := r.validateUsage(op); err != nil {
		return nil, err
	}
	kept, err := withThoughts(r.Data, r.Thoughts)
	if err != nil {
		return nil, err
	}
	response, data, err := l.s.storeBoth(ctx, r.Response, kept)
	return &settleCall{l: l, id: int64(id), r: r, response: response, data: data}, err
}

type settleCall struct {
	l              *Lease
	id             int64
	r              CallResult
	response, data stored
}

func (r *CallResult) validateUsage(op string) error {
	if r.InputTokens < 0 || r.OutputTokens < 0 || r.CachedTokens < 0 || r.CostMicros != nil && *r.CostMicros < 0 {
		return invalidf(op, "a usage figure is negative")
	}
	return nil
}

// requests returns how many requests were sent.
func (r *CallResult) requests() int64 {
	if r.NotSent {
		return 0
	}
	return int64(max(r.Tries, 1))
}

// line returns the usage of the requests of a call.
func (r *CallResult) line(depth int, model string) costLine {
	l := costLine{Depth: depth, Model: model, Calls: r.requests(), Input: r.InputTokens, Output: r.OutputTokens,
		Cached: r.CachedTokens}
	if r.CostMicros != nil {
		l.Micros = *r.CostMicros
	} else if r.Err == nil || r.InputTokens > 0 || r.OutputTokens > 0 {
		l.Unpriced = 1
	}
	return l
}

const sqlSettleCall = `UPDATE call SET state = $2, response = $3, data = $4, error_kind = $5, error = $6,
		tries = tries + $7, input_tokens = input_tokens + $8, output_tokens = output_tokens + $9,
		cached_tokens = cached_tokens + $10, estimated = CASE WHEN CAST($11 AS INTEGER) = 1 THEN 1 ELSE estimated END,
		cost_micros = CASE WHEN CAST($12 AS BIGINT) < 0 THEN cost_micros
			ELSE COALESCE(cost_micros, 0) + CAST($12 AS BIGINT) END, ended_at = $13,
		model = CASE WHEN $16 = '' THEN model ELSE $16 END
	WHERE id = $1 AND state = ` + sqldb.SQLCallStarted + ` AND task = $14 AND fence = $15
	RETURNING open_tokens, open_cost_micros, model, position, request_hash, tries, input_tokens, output_tokens,
		cached_tokens, estimated, cost_micros`

func (c *settleCall) apply(ctx context.Context, b *batch) error {
	l := c.l
	if err := b.held(ctx, l, "settle call"); err != nil {
		return err
	}
	ended, err := c.update(ctx, b)
	if err != nil {
		return err
	}
	if err := b.keepValues(ctx, l.Tree.key, c.response, c.data); err != nil {
		return err
	}
	st, err := b.stat(ctx, l.Tree.key)
	if err != nil {
		return err
	}
	st.openCalls, st.openTokens, st.openCost = st.openCalls-1, st.openTokens-ended.openTokens, st.openCost-ended.openCost
	b.freed = true
	line := c.r.line(l.Task.Depth, ended.model)
	st.tick(b.now)
	st.spent(line)
	st.took(&line, &ended)
	b.overspent(st, l)
	kind, event := "", EventCallCompleted
	if c.r.Err != nil {
		kind, event = c.r.Err.Kind, EventCallFailed
	}
	b.event(st.tree, int64(l.Task.ID), event, fmt.Sprintf(
		`{"call_id":%q,"model":%s,"input_tokens":%d,"output_tokens":%d,"cost_micros":%s,"tries":%d,"error":%s,"digest":%q}`,
		CallID(c.id), quote(ended.model), c.r.InputTokens, c.r.OutputTokens, microsText(c.r.CostMicros), ended.tries,
		quote(kind), ended.digest))
	return b.addUsage(ctx, int64(l.Task.ID), &line)
}

// settledCall is what a call had reserved, and its row: the usage is that of all its requests.
type settledCall struct {
	openTokens, openCost     int64
	model                    string
	tries, input, output     int64
	cached, estimated, place int64
	cost                     *int64
	request, digest          string
}

// update writes the result into the row of the call.
func (c *settleCall) update(ctx context.Context, b *batch) (e settledCall, err error) {
	l, id, r := c.l, int64(c.l.Task.ID), &c.r
	state, failure := sqldb.CallCompleted, TaskError{}
	if r.Err != nil {
		state, failure = sqldb.CallFailed, *r.Err
	}
	message := validPrefix(failure.Message, MaxErrorBytes)
	err = b.tx.QueryRow(ctx, sqlSettleCall, []any{c.id, state, c.response.column, c.data.column, failure.Kind, message,
		r.requests(), r.InputTokens, r.OutputTokens, r.CachedTokens, boolInt(r.Estimated), knownMicros(r.CostMicros), b.now,
		id, l.fence, r.Model}, &e.openTokens, &e.openCost, &e.model, &e.place, &e.request, &e.tries, &e.input, &e.output,
		&e.cached, &e.estimated, &e.cost)
	if err != nil {
		return e, orNotFound(err, conflictf("settle call", "call %q of task %q is not open", CallID(c.id), l.Task.ID))
	}
	e.digest = b.in.hasher.Digest(state, c.response.column, c.data.column, failure.Kind, message, e.tries, e.input,
		e.output, e.cached, e.estimated, e.cost, b.now, id, e.model, l.Task.Attempts, e.place, e.request)
	return e, nil
}

func (b *batch) addUsage(ctx context.Context, task int64, l *costLine) error {
	_, err := b.tx.Exec(ctx, sqlAddUsage, task, l.Calls, l.Input, l.Output, l.Cached, l.Micros, l.Unpriced)
	return err
}

// knownMicros returns a cost, -1 if it is not known.
func knownMicros(micros *int64) int64 {
	if micros == nil {
		return -1
	}
	return *micros
}

// microsText formats a cost for an event: null if it is not known.
func microsText(micros *int64) string {
	if micros == nil {
		return "null"
	}
	return itoa(*micros)
}

const (
	callColumns = `id, task, tree, attempt, position, state, model, request_hash, response, data, error_kind, error, tries,
		input_tokens, output_tokens, cached_tokens, estimated, cost_micros, started_at, ended_at, open_tokens,
		open_cost_micros`
	sqlCall  = `SELECT ` + callColumns + ` FROM call WHERE id = $1`
	sqlCalls = `SELECT ` + callColumns + ` FROM call WHERE task = $1 ORDER BY attempt, position, id`
)

func (s *Store) readCall(ctx context.Context, id int64) (Call, error) {
	calls, err := s.readCalls(ctx, sqlCall, id)
	if err == nil && len(calls) == 0 {
		err = sql.ErrNoRows
	}
	if err != nil {
		return Call{}, wrap("begin call", err)
	}
	return calls[0], nil
}

// Calls lists the calls of a task, of all its attempts, in order.
func (s *Store) Calls(ctx context.Context, task TaskID) ([]Call, error) {
	calls, err := s.readCalls(ctx, sqlCalls, int64(task))
	return calls, wrap("list calls", err)
}

func (s *Store) readCalls(ctx context.Context, q string, id int64) ([]Call, error) {
	var trees []int64
	var columns [][2]string
	calls, err := sqldb.Collect(ctx, s.db.Query, func(scan sqldb.Scan) (c Call, err error) {
		var tree, state, startedAt int64
		var estimated int
		var text [2]string
		var kind, message string
		var cost, endedAt *int64
		var lostTokens, lostMicros int64
		err = scan((*int64)(&c.ID), (*int64)(&c.Task), &tree, &c.Attempt, &c.Position, &state, &c.Model, &c.RequestHash,
			&text[0], &text[1], &kind, &message, &c.Tries, &c.InputTokens, &c.OutputTokens, &c.CachedTokens, &estimated,
			&cost, &startedAt, &endedAt, &lostTokens, &lostMicros)
		c.State, c.Estimated, c.StartedAt = callStates[state], estimated == 1, micros(startedAt)
		if kind != "" {
			c.Error = &TaskError{Kind: kind, Message: message}
		}
		if cost != nil {
			c.CostUSD = new(float64(*cost) / microsPerDollar)
		}
		if state == sqldb.CallUncertain {
			c.UncertainTokens, c.UncertainCostUSD = lostTokens, float64(lostMicros)/microsPerDollar
		}
		c.EndedAt = timePtr(endedAt)
		trees, columns = append(trees, tree), append(columns, text)
		return c, err
	}, q, id)
	if err != nil {
		return nil, err
	}
	for i := range calls {
		data := ""
		if calls[i].Response, err = s.load(ctx, trees[i], columns[i][0]); err == nil {
			data, err = s.load(ctx, trees[i], columns[i][1])
		}
		if err != nil {
			return nil, err
		}
		if calls[i].Data, calls[i].Thoughts, err = splitThoughts(data); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

func timePtr(us *int64) *time.Time {
	if us == nil {
		return nil
	}
	return new(micros(*us))
}

// micros converts a time of the database, Unix microseconds or 0.
func micros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func microsOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func microsPtr(t *time.Time) *int64 {
	if t == nil {
		return nil
	}
	return new(t.UnixMicro())
}

func boolInt(v bool) int {
	if v {
		return 1
	}
	return 0
}

// validPrefix returns the first n bytes of s as both databases can store them: valid UTF-8
// without NUL.
func validPrefix(s string, n int) string {
	return clip.Prefix(clip.Storable(clip.Prefix(s, n)), n)
}

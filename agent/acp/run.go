package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/background"
	"github.com/perdure/perdure/internal/jsonrpc"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// Causes for which this client stops waiting.
var (
	errQuiet = errors.New("agent does not answer what is not in the protocol")
	errStart = errors.New("the limit for beginning a session passed")
)

// drainTimeout is how long the output of an agent that is gone may stay open;
// it matters only where a process can escape the guard.
const drainTimeout = 2 * time.Second

// maxNotes is how many notes a result has.
const maxNotes = 32

// run is one turn with one process. Three goroutines serve it in addition to the one
// that waits: one reads, one writes, one waits for the process; and one for
// each permission asked for. All have ended when serve returns.
type run struct {
	a      *Agent
	turn   *agent.Turn
	conn   *jsonrpc.Conn
	peer   *peer
	stderr *stderrLog
	// steering is how the agent was started for the turn.
	steering *steering
	events   *opencodeEvents // nil for other agents
	follow   sync.WaitGroup  // of events

	activity activity
	greeted  atomic.Bool // the agent answered
	denied   atomic.Bool // a call was denied

	// quit ends the prompt for a reason that the agent's reports give.
	quit context.CancelCauseFunc
	// limit is the last refusal after which the agent retried, nil since it worked again.
	limit atomic.Pointer[agent.Error]

	asking context.Context // what deciding waits under; ends with the prompt
	asks   sync.WaitGroup

	observing sync.Mutex // one event is reported at a time

	mu       sync.Mutex // guards the following
	story    story
	session  string
	notes    []string
	underWay map[string]context.CancelFunc
	askedFor int

	// left are commands that ran in the background when the agent was ended.
	left string

	// Set when the prompt ended; read when all goroutines have.
	stopReason string
	usage      agent.Usage
}

func newRun(a *Agent, turn *agent.Turn) *run {
	r := &run{a: a, turn: turn, underWay: make(map[string]context.CancelFunc)}
	r.story.titleIsName = a.preset.TitleIsName
	r.stderr = &stderrLog{end: clip.Tail{Limit: a.cfg.MaxErrorBytes}, tell: func(line string) {
		r.activity.heard()
		r.emit(agent.Event{Kind: agent.EventStderr, Text: line})
		if reRetry().MatchString(line) { // Gemini says it nowhere else
			e, _ := retryOf(line)
			r.report(e)
		}
	}}
	r.activity.heard()
	r.story.prices = a.preset.prices
	if a.preset.Name == nameOpencode {
		if events, err := newOpencodeEvents(r.report); err == nil { // else less is known
			r.events = events
		}
	}
	return r
}

// uses records the model of the session. A suffix in brackets is not a part of its name.
func (r *run) uses(model string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.story.model = model
}

// serve does the turn with an agent that was started, and waits until nothing
// of it is left.
func (r *run) serve(ctx context.Context, p *peer) *agent.Error {
	r.peer, r.conn = p, jsonrpc.NewConn(p.in, r.activity.heard)
	var stopAsking context.CancelFunc
	r.asking, stopAsking = context.WithCancel(ctx)
	defer stopAsking()

	var waited error
	gone, read, written := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(written); r.conn.Write() }()
	go func() { defer close(read); r.conn.Read(p.out, r.a.cfg.MaxFrameBytes, r) }()
	go func() { defer close(gone); waited = p.wait() }()

	prompting, quit := context.WithCancelCause(ctx)
	defer quit(nil)
	r.mu.Lock()
	r.quit = quit
	r.mu.Unlock()
	failure := r.work(prompting)
	if early, ok := errors.AsType[*agent.Error](context.Cause(prompting)); ok && ctx.Err() == nil && failure != nil {
		failure = early
	}
	stopAsking()
	r.end(gone)
	r.drain(read)
	_ = p.in.Close() // messages that still wait to be written are dropped
	<-written
	r.asks.Wait()
	r.stderr.flush()
	if limit := r.limit.Load(); failure != nil && failure.Kind == agent.KindIdle && limit != nil {
		failure = limit // Gemini reports its retries only when it ends
	}
	if errors.Is(waited, guard.ErrGuardLost) { // whatever the agent reported
		failure = lostError()
	}
	if failure != nil && errors.Is(failure.Err, errGone) {
		failure = deathError(waited, r.conn.Err(), r.greeted.Load(), r.stderr.text())
	}
	if failure != nil && failure.Detail == "" {
		failure.Detail = r.stderr.text()
	}
	return failure
}

// work does the turn as far as the agent lives and lets it.
func (r *run) work(ctx context.Context) *agent.Error {
	if err := r.openInTime(ctx); err != nil {
		r.peer.stop() // nothing was begun that could be saved
		return err
	}
	r.mu.Lock()
	r.story.phase = working
	r.mu.Unlock()
	defer r.follow.Wait()
	following, stop := context.WithCancel(ctx)
	defer stop()
	r.followEvents(following)
	commands := background.Begin(r.peer.pid)
	done := make(chan jsonrpc.Reply, 1)
	r.conn.Send(methodPrompt, map[string]any{
		"sessionId": r.session, "prompt": []any{map[string]any{"type": "text", "text": r.turn.Prompt}},
	}, func(rep jsonrpc.Reply) { r.complete(rep); done <- rep })
	rep, err := r.await(ctx, done)
	if err != nil {
		return r.cancel(err, done)
	}
	if r.events != nil && rep.Err == nil {
		r.events.settle(ctx)
	}
	failure := r.outcome(rep)
	if failure == nil && r.peer.pid > 0 {
		left := commands.Wait(ctx, r.a.cfg.Background, func(text string) {
			r.emit(agent.Event{Kind: agent.EventBackground, Text: text})
		})
		r.mu.Lock()
		r.left = left
		r.mu.Unlock()
		if ctx.Err() != nil {
			return agent.Stopped(ctx)
		}
	}
	return failure
}

// openInTime opens the session within the limit for it.
func (r *run) openInTime(ctx context.Context) *agent.Error {
	limit := r.a.cfg.StartTimeout
	if limit < 0 {
		return r.open(ctx)
	}
	inTime, stop := context.WithTimeoutCause(ctx, limit, errStart)
	defer stop()
	err := r.open(inTime)
	if err != nil && ctx.Err() == nil && context.Cause(inTime) == errStart { //nolint:errorlint // contexts return exactly this
		return &agent.Error{Kind: agent.KindFailed, Msg: fmt.Sprintf("agent began no session within %s", limit), Err: err}
	}
	return err
}

// complete reads the end of a prompt, in each form it is reported: with version
// 1 of the protocol it is the response to session/prompt.
func (r *run) complete(rep jsonrpc.Reply) {
	if rep.Err != nil {
		return
	}
	c := readCompletion(rep.Result)
	usage := c.usage()
	r.mu.Lock()
	r.stopReason, r.usage = clean(c.StopReason), usage
	context, model, cost := r.story.context, r.story.modelName(), r.story.spent()
	r.mu.Unlock()
	if usage.Reported && !r.a.preset.UsageIsLast {
		e := agent.Event{Kind: agent.EventUsage, Usage: &usage, Model: model, CostMicros: cost, Raw: rep.Raw}
		if context != nil {
			e.Context = new(*context)
		}
		r.emit(e)
	}
}

// outcome says whether a prompt that ended was a turn that was done.
func (r *run) outcome(rep jsonrpc.Reply) *agent.Error {
	var refused *jsonrpc.Error
	switch {
	case errors.As(rep.Err, &refused):
		return replyError(methodPrompt, refused, time.Now())
	case rep.Err != nil:
		if !errors.Is(rep.Err, jsonrpc.ErrClosed) { // it runs, but its replies are invalid
			r.peer.kill()
		}
		return &agent.Error{Kind: agent.KindFailed, Err: errGone}
	}
	r.mu.Lock()
	reason, broken, text := r.stopReason, r.story.broken, r.story.text.String()
	r.mu.Unlock()
	if err := r.stopError(reason); err != nil {
		return err
	}
	if broken {
		return spokenError(text, time.Now())
	}
	return nil
}

// cancel stops a prompt that is not waited for any more: the agent is asked to
// stop, and given time to. It returns why it was.
func (r *run) cancel(why *agent.Error, done <-chan jsonrpc.Reply) *agent.Error {
	r.conn.Notify(methodCancel, map[string]any{"sessionId": r.session})
	grace := time.NewTimer(max(0, r.a.cfg.Grace))
	defer grace.Stop()
	select {
	case <-done:
	case <-grace.C:
		r.peer.kill()
	}
	return why
}

// errGone marks the error of a turn whose agent has gone; it is replaced when
// it is known how.
var errGone = errors.New("agent is gone")

// call sends a request and waits for the response. A refusal is an error.
func (r *run) call(ctx context.Context, method string, params any) (jsonrpc.Reply, *agent.Error) {
	return r.callThen(ctx, method, params, nil)
}

// callThen is call with something to do before more of the agent is read.
func (r *run) callThen(ctx context.Context, method string, params any,
	then func(jsonrpc.Reply)) (jsonrpc.Reply, *agent.Error) {
	rep, err := r.request(ctx, method, params, then)
	if err != nil {
		return rep, err
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](rep.Err); ok {
		return rep, replyError(method, refused, time.Now())
	}
	return rep, nil
}

// request is callThen for one whose refusal is an answer too.
func (r *run) request(ctx context.Context, method string, params any,
	then func(jsonrpc.Reply)) (jsonrpc.Reply, *agent.Error) {
	got := make(chan jsonrpc.Reply, 1)
	r.conn.Send(method, params, func(rep jsonrpc.Reply) {
		if then != nil && rep.Err == nil {
			then(rep)
		}
		got <- rep
	})
	rep, err := r.await(ctx, got)
	var refused *jsonrpc.Error
	if err == nil && rep.Err != nil && !errors.As(rep.Err, &refused) {
		err = &agent.Error{Kind: agent.KindFailed, Err: errGone}
	}
	return rep, err
}

// await waits for a response, or for what ends the turn before: the context, or
// silence of the agent. The death of an agent is a response too.
func (r *run) await(ctx context.Context, got <-chan jsonrpc.Reply) (jsonrpc.Reply, *agent.Error) {
	idle := r.turn.IdleTimeout
	timer := time.NewTimer(idle)
	defer timer.Stop()
	if idle == 0 {
		timer.Stop()
	}
	for {
		select {
		case rep := <-got:
			return rep, nil
		case <-ctx.Done():
			select {
			case rep := <-got: // it came first, or at the same time
				return rep, nil
			default:
				return jsonrpc.Reply{}, agent.Stopped(ctx)
			}
		case <-timer.C:
			left := idle - r.activity.quiet()
			if left <= 0 {
				return jsonrpc.Reply{}, &agent.Error{Kind: agent.KindIdle,
					Msg: fmt.Sprintf("nothing was heard of the agent for %s", idle)}
			}
			timer.Reset(left)
		}
	}
}

// end ends an agent that was not stopped yet. It may end by itself, so that it
// can save what it has.
func (r *run) end(gone <-chan struct{}) {
	r.conn.CloseInput()
	grace := time.NewTimer(max(0, r.a.cfg.Grace))
	defer grace.Stop()
	select {
	case <-gone:
		return
	case <-grace.C:
	}
	r.peer.stop()
	<-gone
}

// drain waits until everything the agent wrote was read.
func (r *run) drain(read <-chan struct{}) {
	late := time.NewTimer(drainTimeout)
	defer late.Stop()
	for left := drainTimeout; left > 0; left = drainTimeout - r.activity.quiet() {
		late.Reset(left)
		select {
		case <-read:
			return
		case <-late.C:
		}
	}
	_ = r.peer.out.Close()
	<-read
}

// result is what is known of the turn; called when all has ended.
func (r *run) result() *agent.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.story
	res := &agent.Result{
		Text: s.text.String(), Session: r.session, StopReason: r.stopReason, Usage: r.usage,
		CostMicros: s.spent(), Model: s.modelName(), Context: s.context, Messages: s.messages + s.calls.begun,
		Left: r.left,
	}
	if s.cost != nil && r.session != "" {
		r.a.costs.set(r.session, *s.cost)
		if s.before == nil {
			r.noteLocked("the agent reports the cost of the whole session only; the cost of this turn is unknown")
		}
	}
	r.countLocked(res)
	if s.madeUp() {
		r.noteLocked(fmt.Sprintf("the agent does not know the price of the model %q: the cost it reports is a guess and is "+
			"left out", s.model))
	}
	if s.text.cut {
		r.noteLocked(fmt.Sprintf("the agent's last message was cut to its last %d bytes", agent.MaxTextBytes))
	}
	if r.conn.WasReplaced() {
		r.noteLocked(model.NoteReplaced)
	}
	res.Notes = r.notes
	return res
}

// countLocked replaces the tokens of the last answer by those of all answers, or says that they
// are not known.
func (r *run) countLocked(res *agent.Result) {
	if !r.a.preset.UsageIsLast {
		return
	}
	if r.events != nil {
		if usage, answers := r.events.total(); answers > 0 {
			res.Usage = usage
			return
		}
	}
	if r.usage.Reported && r.story.calls.begun > 0 {
		res.Usage.Reported = false
		r.noteLocked("the agent reports the tokens of its last answer only: the turn used more")
	}
}

// followEvents begins to read the events of opencode's server, so that the tokens of all answers
// are known.
func (r *run) followEvents(ctx context.Context) {
	if r.events == nil {
		return
	}
	r.mu.Lock()
	r.events.session, r.events.model = r.session, r.story.modelName()
	r.mu.Unlock()
	if err := r.events.follow(ctx, &r.follow); err != nil {
		r.a.cfg.Logger.Debug("events of the agent's server not read", "error", err)
	}
}

// note remembers something unusual for the result, once.
func (r *run) note(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(text)
}

func (r *run) noteLocked(text string) {
	if len(r.notes) < maxNotes && !slices.Contains(r.notes, text) {
		r.notes = append(r.notes, text)
	}
}

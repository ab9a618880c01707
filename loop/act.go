package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/sandbox"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/loop/hook"
)

// Waits for a rate limit whose end is unknown double from the first to the
// last.
const (
	firstWait = 30 * time.Second
	lastWait  = 120 * time.Second
)

// agentName returns the name of the agent in use.
func (r *run) agentName() string { return r.cfg.AgentAt(r.state.Agent) }

// act lets the agent do one turn.
func act(ctx context.Context, r *run) (string, error) {
	t := &r.state.Run
	if to, decided, err := r.obeyInTurn(ctx); decided || err != nil {
		return to, err
	}
	a, err := r.e.cfg.Agents.Agent(r.e.agentSpec(&r.cfg, r.state.Agent))
	if perdure.CodeOf(err) == perdure.CodeUnavailable {
		return r.turned(ctx, &turnResult{Settings: r.settings(), Failure: &agent.Error{Kind: agent.KindNotFound,
			Msg: err.Error(), Hint: perdure.HintOf(err)}})
	}
	if err != nil {
		return "", err
	}
	call, replayed, err := r.l.BeginCall(ctx, perdure.CallSpec{Position: t.Turns, Model: r.agentName(),
		RequestHash: requestHash(r.agentName(), strconv.Itoa(t.Number), string(t.Before), strconv.Itoa(t.Turns))})
	if err != nil {
		return r.refused(err)
	}
	if replayed { // the turn ended, and then the process died
		return r.turned(ctx, recalled(&call))
	}
	if err := r.undoInterrupted(ctx); err != nil {
		return "", err
	}
	prompt, err := r.prompt(ctx)
	if err != nil {
		return "", err
	}
	t.Working, t.Settings = true, cmp.Or(t.Settings, r.settings())
	if err := r.save(ctx); err != nil { // so that a crash differs from a wait
		return "", err
	}
	r.keepCopies(ctx)
	watched, stop := r.watched(ctx)
	result, failure, cause, err := r.watchedTurn(watched, a, prompt)
	stop()
	if ctx.Err() != nil { // the process stops: the turn is interrupted, not over
		return "", ctx.Err()
	}
	if err != nil {
		return "", err
	}
	_, control := errors.AsType[*controlError](cause)
	_, exhausted := errors.AsType[*spentError](cause)
	if (control || exhausted) && !guardLost(failure) {
		failure = &agent.Error{Kind: agent.KindCanceled, Msg: "turn stopped: " + cause.Error()}
	}
	if result != nil {
		t.Text = clip.Bytes(result.Text, maxAgentText)
	}
	r.handTurn(ctx, failure)
	turn := &turnResult{Result: result, Failure: failure, Settings: r.settings(), Measured: t.Measured}
	if err := r.l.SettleCall(ctx, call.ID, settled(turn)); err != nil {
		return "", err
	}
	return r.turned(ctx, turn)
}

// requestHash identifies a turn.
func requestHash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// refused ends the iteration if a further turn cannot begin because the budget is exhausted.
func (r *run) refused(err error) (string, error) {
	e, ok := errors.AsType[*perdure.Error](err)
	if !ok || e.Code != perdure.CodeBudgetExceeded {
		return "", err
	}
	r.state.Run.Failure = e.Msg
	return stepMeasure, nil
}

// undoInterrupted restores the files from before a turn that was interrupted when the
// process died: how far the agent came is unknown.
func (r *run) undoInterrupted(ctx context.Context) error {
	t := &r.state.Run
	if !t.Working {
		return nil
	}
	if err := r.takeCalls(nil); err != nil {
		return err
	}
	before := cmp.Or(t.Kept, t.Before)
	changes, err := r.files.DiffNow(ctx, before)
	if err != nil {
		return refusal(err)
	}
	if len(changes) > 0 {
		if _, err := r.files.Restore(ctx, before); err != nil {
			return refusal(err)
		}
		r.note(EventReverted, map[string]any{"iteration": t.Number, "why": "it was interrupted", "files": len(changes)})
	}
	r.handed("the turn is reverted", r.reopenHandoff(ctx))
	t.Working, t.Reopened = false, true
	return nil
}

// watchedTurn runs the agent, and keeps what it did with its tools.
func (r *run) watchedTurn(ctx context.Context, a agent.Agent, prompt string) (result *agent.Result,
	failure *agent.Error, cause, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w, err := r.watch(ctx, stop, a, prompt)
	if err != nil {
		return nil, nil, nil, err
	}
	result, failure, cause = r.turn(ctx, w, a, prompt)
	lost := r.afterProgram(context.WithoutCancel(ctx), "the agent", cmp.Or(r.state.Run.Kept, r.state.Run.Before))
	err = errors.Join(lost, w.close(), r.takeCalls(w.denials()))
	r.noteLeft(result)
	result, failure = w.measured(result, failure)
	return recordable(w.tally.complete(result)), recordableFailure(failure), cause, err
}

// noteLeft records the commands that the agent ran in the background and that ended with it; the
// next prompt says so.
func (r *run) noteLeft(result *agent.Result) {
	if result == nil || result.Left == "" {
		return
	}
	t := &r.state.Run
	text := "not done when the agent's turn ended, and stopped: " + clip.Storable(result.Left)
	t.Warnings = append(t.Warnings, text)
	t.Inject = strings.TrimSpace(t.Inject + "\nCommands in the background are stopped after a turn. " +
		strings.ToUpper(text[:1]) + text[1:] + ". Run such commands in the foreground.")
	r.warnings.add(hook.Warning{Kind: "background", Iteration: t.Number, Message: text})
}

// recordable returns a result without characters that the store refuses: what an agent says
// must not keep its iteration from ending.
func recordable(result *agent.Result) *agent.Result {
	if result != nil {
		result.Text = clip.Storable(result.Text)
	}
	return result
}

func recordableFailure(f *agent.Error) *agent.Error {
	if f == nil {
		return nil
	}
	g := *f
	g.Msg, g.Hint, g.Detail = clip.Storable(f.Msg), clip.Storable(f.Hint), clip.Storable(f.Detail)
	return &g
}

// turn runs the agent. The failure is nil when it did its turn; cause is why it
// was stopped, if it was.
func (r *run) turn(ctx context.Context, w *watch, a agent.Agent, prompt string) (result *agent.Result,
	failure *agent.Error, cause error) {
	t := &r.state.Run
	limited := ctx
	if r.cfg.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, r.cfg.Timeout-time.Duration(t.SpentMS)*time.Millisecond)
		defer cancel()
	}
	began := time.Now()
	result, err := a.Run(sandbox.With(limited, r.hiding.sandbox), &agent.Turn{
		Prompt: prompt, Dir: r.files.Root(), Inherit: r.cfg.Env, IdleTimeout: max(r.cfg.IdleTimeout, 0), Hold: r.e.cfg.Hold,
		Commands: r.commands(),
		Env: append(append(r.handoffEnv(), "PERDURE_TASK="+r.l.Task.ID.String(),
			fmt.Sprintf("PERDURE_FENCE=%d", r.l.Fence()), "PERDURE_LOOP="+ID(&r.l.Tree)),
			w.env()...),
		Observe: w.hear, Decide: w.decide, Hook: w.command(), Reader: w.reader,
		Endpoints: w.endpoints,
	})
	w.closeMeter() // before anything else uses the run
	took := time.Since(began).Milliseconds()
	t.AgentMS, t.SpentMS = t.AgentMS+took, t.SpentMS+took
	cause = context.Cause(ctx)
	switch {
	case err == nil:
		return result, nil, cause
	case errors.As(err, &failure) && guardLost(failure): // whyever the turn was stopped
	case errors.Is(cause, errFull):
		return result, &agent.Error{Kind: agent.KindOverflow, Msg: "it was stopped at the end of a step", Err: cause}, cause
	case failure == nil:
		failure = &agent.Error{Kind: agent.KindFailed, Msg: err.Error(), Err: err}
	}
	return result, failure, cause
}

// turnResult is how a turn ended, also as the journal keeps it.
type turnResult struct {
	Result  *agent.Result
	Failure *agent.Error
	// Settings are the settings as the agent left them.
	Settings string
	// Measured is how full the context was.
	Measured state.Measured
}

// settled is what the journal keeps of a turn.
func settled(t *turnResult) perdure.CallResult {
	result, failure := t.Result, t.Failure
	c := perdure.CallResult{Tries: 1}
	if result != nil {
		c.Response = result.Text
		c.InputTokens, c.OutputTokens, c.CachedTokens = result.Usage.InputTokens, result.Usage.OutputTokens,
			result.Usage.CachedTokens
		c.CostMicros, c.Estimated = result.CostMicros, !result.Usage.Reported
	}
	kept := keptTurn{Settings: t.Settings, Measured: t.Measured}
	if result != nil {
		kept.Stop, kept.Session = result.StopReason, result.Session
		if result.Usage.Reported {
			kept.Usage = cmp.Or(result.Usage.Source, agent.SourceReported)
		}
	}
	if failure != nil {
		kept.Kind, kept.Msg, kept.Until = failure.Kind, failure.Error(), failure.Until
	}
	c.Data, _ = json.Marshal(kept) // strings and a time can be written
	return c
}

// keptTurn is what the journal keeps of a turn in addition to its text.
type keptTurn struct {
	Stop    string     `json:"stop_reason,omitempty"`
	Session string     `json:"session,omitempty"`
	Kind    agent.Kind `json:"failure,omitempty"`
	Msg     string     `json:"message,omitempty"`
	Until   time.Time  `json:"until,omitzero"`

	Settings string `json:"settings,omitempty"`
	state.Measured
}

// recalled reads a turn from the journal.
func recalled(call *perdure.Call) *turnResult {
	var kept keptTurn
	t := &turnResult{Result: &agent.Result{Text: call.Response, Usage: agent.Usage{InputTokens: call.InputTokens,
		OutputTokens: call.OutputTokens, CachedTokens: call.CachedTokens, Reported: !call.Estimated}}}
	if call.CostUSD != nil {
		t.Result.CostMicros = new(int64(math.Round(*call.CostUSD * microsPerDollar)))
	}
	if json.Unmarshal(call.Data, &kept) != nil {
		return t
	}
	t.Settings = kept.Settings
	if kept.Kind != "" {
		t.Failure = &agent.Error{Kind: kept.Kind, Msg: kept.Msg, Until: kept.Until}
	}
	return t
}

// thenCheck continues with the check.
func (r *run) thenCheck() (string, error) {
	r.note(EventCheck, map[string]any{"iteration": r.state.Run.Number})
	return stepMeasure, nil
}

// turned decides what follows a turn: the measuring, another turn, or a wait.
func (r *run) turned(ctx context.Context, t *turnResult) (string, error) {
	s := &r.state.Run
	s.Working, s.Turns, s.Left = false, s.Turns+1, t.Settings
	r.state.Unpriced = t.Result != nil && t.Result.CostMicros == nil
	if t.Result != nil {
		s.Text = clip.Bytes(t.Result.Text, maxAgentText)
	}
	if t.Failure == nil {
		s.Failure, s.Waits = "", 0
		return r.thenCheck()
	}
	s.Failure = clip.Bytes(t.Failure.Error(), maxAgentText)
	next := r.follows(t.Failure)
	r.noteFailure(t.Failure, next)
	if _, err := r.ask(ctx, hook.OnError, s.Failure,
		map[string]any{"error_type": string(t.Failure.Kind), "error_message": s.Failure,
			"iteration": s.Number}); err != nil {
		return "", err
	}
	if guardLost(t.Failure) {
		return stepContain, nil
	}
	switch next {
	case moveEnd:
		s.Exhausted = t.Failure.Kind == agent.KindIdle || t.Failure.Class() != agent.ClassCanceled && r.exhausted()
		return r.thenCheck()
	case movePause:
		r.pause("the agent cannot work here: %s%s", strings.TrimSuffix(s.Failure+" ("+t.Failure.Hint+")", " ()"),
			r.missingForAgent(t.Failure))
	case moveAgain:
		r.retryError()
		s.Retries++
	case moveFresh:
		r.retryError()
		s.Fresh++
	case moveReassign:
		r.retryError()
		r.reassign(ctx, t.Failure)
	case moveWait:
		if err := r.waitForLimit(ctx, t.Failure); err != nil {
			return "", err
		}
	}
	return stepAct, r.keepTurn(ctx)
}

// retryError keeps the error of a turn that another turn follows, for the record of the
// iteration, which otherwise has only that of the last turn.
func (r *run) retryError() {
	s := &r.state.Run
	s.Retried = append(s.Retried[max(0, len(s.Retried)-state.MaxRetried+1):],
		state.TurnError{At: time.Now().UTC(), Message: clip.Bytes(s.Failure, 500)})
}

// noteFailure records why a turn failed, and which retry follows.
func (r *run) noteFailure(f *agent.Error, next move) {
	s := &r.state.Run
	message := s.Failure
	if f.Kind == agent.KindCanceled { // the text says it
		message = cmp.Or(f.Msg, message)
	}
	data := map[string]any{"iteration": s.Number, "kind": f.Kind, "message": clip.Bytes(message, 500)}
	if next == moveAgain {
		data["retry"], data["retries"] = s.Retries+1, r.retries(f)
	}
	r.note(EventAgentError, data)
}

// keepTurn notes the files that a turn left which another follows: when that one
// is interrupted, this one is not lost with it.
func (r *run) keepTurn(ctx context.Context) error {
	id, _, err := r.files.Snapshot(ctx)
	if err != nil {
		return refusal(err)
	}
	r.state.Run.Kept, r.state.Run.KeptAt = id, time.Now().UTC()
	return nil
}

// waitForLimit parks the iteration until the limit ends. That is not a retry.
func (r *run) waitForLimit(ctx context.Context, failure *agent.Error) error {
	s := &r.state.Run
	wait := min(firstWait<<min(s.Waits, 4), lastWait)
	until := time.Now().Add(wait)
	if failure.Until.After(until) {
		until = failure.Until
	}
	s.Waits, s.WaitUntil = s.Waits+1, until
	r.note(EventWaiting, map[string]any{"iteration": s.Number, "why": string(failure.Kind), "until": until.UTC()})
	r.park(until)
	_, err := r.ask(ctx, hook.RateLimited, failure.Error(),
		map[string]any{"agent": r.agentName(), "until": until.UTC().Format(time.RFC3339),
			"message": failure.Error()})
	return err
}

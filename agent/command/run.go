package command

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/agent/internal/background"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// run is a turn under way.
type run struct {
	a      *Agent
	turn   *agent.Turn
	stop   context.CancelCauseFunc
	dog    *watchdog
	stdout splitter
	stderr splitter

	// commands finds what runs in the background; nil before the agent has started.
	commands atomic.Pointer[background.Commands]

	mu     sync.Mutex // guards all below: standard output and standard error arrive at once
	rec    record
	parser parser
	raw    []byte    // the line that is being read
	errs   clip.Tail // the end of standard error
	ending *agent.Error
	log    *follower // nil when the agent writes only its stream
}

// pollInterval is how often a log file is read.
const pollInterval = time.Second

func newRun(a *Agent, turn *agent.Turn, from session, stop context.CancelCauseFunc) *run {
	r := &run{a: a, turn: turn, stop: stop, errs: clip.Tail{Limit: a.cfg.MaxErrorBytes}}
	r.dog = &watchdog{idle: turn.IdleTimeout, patience: a.cfg.Patience, linger: a.cfg.Linger, end: stop,
		background: a.cfg.Background, running: func() string { return r.running() }}
	r.rec = record{
		from: from, totalKnown: from.known, now: time.Now, began: time.Now(), hear: r.hear, abort: r.abort,
		window: a.cfg.ContextWindow, fixed: a.cfg.ContextWindow > 0, model: a.cfg.Model,
	}
	r.stdout = splitter{line: r.out, max: pieceBytes, heard: r.dog.heard}
	read := stream{rec: &r.rec, calls: map[string]agent.ToolCall{}}
	if a.vendor.parse == nil {
		r.parser = &plainParser{stream: read, tail: clip.Tail{Limit: agent.MaxTextBytes}}
	} else {
		r.parser = a.vendor.parse(read)
		r.stdout.max, r.stdout.long = a.cfg.MaxLineBytes, r.long
	}
	r.stderr = splitter{line: r.err, max: pieceBytes, heard: r.dog.heard}
	return r
}

// execute runs the program and watches over it.
func (r *run) execute(ctx context.Context, cfg guard.Config) error {
	var beside sync.WaitGroup
	watched, stop := context.WithCancel(ctx)
	if r.a.vendor.follow != nil {
		r.log = r.a.vendor.follow(&r.rec, cfg.Env)
		beside.Go(func() { r.follow(watched) })
		if r.turn.Reader != nil {
			r.turn.Reader(r.poll)
		}
	}
	r.dog.start() // before the agent can report a limit
	p, err := guard.Start(ctx, cfg)
	if err == nil {
		r.commands.Store(background.Begin(p.Pid()))
		err = p.Wait()
	}
	r.dog.stop()
	stop()
	beside.Wait()
	return err
}

// running returns the commands of the agent that run in the background, "" for none.
func (r *run) running() string {
	if commands := r.commands.Load(); commands != nil {
		return commands.Text()
	}
	return ""
}

// follow reads the agent's log file until ctx ends.
func (r *run) follow(ctx context.Context) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.poll()
		}
	}
}

func (r *run) poll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending == nil && r.log != nil {
		r.log.poll()
	}
}

// out takes a line of standard output.
func (r *run) out(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending != nil {
		return
	}
	line = r.rec.valid(line)
	r.raw = nil
	if object(line) && r.a.vendor.parse != nil {
		r.raw = line
	}
	ends := r.rec.ends
	r.parser.stdout(line)
	r.raw = nil
	if r.rec.ends > ends {
		r.dog.over()
		r.noteCommands()
	}
}

// noteCommands reports the commands that run in the background although the agent ended its turn.
// Claude Code waits for them; the other agents end, and with them their commands.
func (r *run) noteCommands() {
	left := r.running()
	if r.a.vendor.waits && left != "" {
		r.rec.say(agent.EventBackground, fmt.Sprintf("waiting at most %s for %s", r.a.cfg.Background, left))
	} else {
		r.rec.left = left
	}
}

func (r *run) err(line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errs.AddLine(line)
	if r.ending != nil {
		return
	}
	r.parser.stderr(string(r.rec.valid(line)))
}

func (r *run) long() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rec.note(fmt.Sprintf("a line of the agent's stream was longer than %d bytes and was left out", r.stdout.max))
}

// abort ends the turn for a reason the parser found. What comes afterwards is
// not read.
func (r *run) abort(why *agent.Error) {
	r.ending = why
	r.stop(why)
}

// hear passes an event on and notifies the watchdog.
func (r *run) hear(ev agent.Event) {
	switch ev.Kind {
	case agent.EventRateLimited:
		r.dog.limited(r.rec.limit)
	case agent.EventMessage, agent.EventThought, agent.EventToolCall, agent.EventToolResult, agent.EventUsage:
		if !r.rec.over { // figures at the end are not work after a limit
			r.rec.limit = nil
		}
		r.dog.progress()
	case agent.EventCompaction:
		r.compacted()
	default:
	}
	if r.turn.Observe == nil {
		return
	}
	if r.raw != nil {
		ev.Raw = slices.Clone(r.raw)
	}
	r.turn.Observe(ev)
}

// compacted ends a turn that does nothing any more but shorten its context.
func (r *run) compacted() {
	if limit := r.a.cfg.MaxCompactions; limit < 0 || r.rec.inARow <= limit {
		return
	}
	r.abort(&agent.Error{
		Kind: agent.KindOverflow,
		Msg:  fmt.Sprintf("the context was shortened %d times in a row and still does not fit", r.rec.inARow),
	})
}

// finish makes of all that is known a result, and an error unless the turn was
// done. Nothing is under way any more.
func (r *run) finish(ctx, child context.Context, ended error) (*agent.Result, error) {
	r.stdout.flush()
	r.stderr.flush()
	r.poll()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.log != nil {
		r.log.close()
		r.log = nil // later calls of a turn's reader read nothing
	}
	var exit *guard.ExitError
	code := 0
	switch {
	case errors.As(ended, &exit):
		code = exit.Code
	case ended != nil && child.Err() == nil && !errors.Is(ended, guard.ErrGuardLost) &&
		r.errs.String() == "" && r.rec.messages == 0 && r.rec.id == "": // nothing came from the program
		return nil, r.a.startError(ended)
	}
	r.parser.finish(code)
	r.rec.complete()
	why := r.why(ctx, child, ended)
	if why == nil && exit != nil && child.Err() == nil {
		r.rec.note(fmt.Sprintf("the agent reported a good end and then ended otherwise: %s", exit))
	}
	result := r.result()
	if why == nil {
		return result, nil
	}
	if exit != nil && child.Err() == nil {
		why.Exit = code
		if why.Err == nil {
			why.Err = exit
		}
	}
	r.explain(why)
	return result, why
}

// why returns what went wrong, nil for a turn that was done.
func (r *run) why(ctx, child context.Context, ended error) *agent.Error {
	cause := context.Cause(child)
	early, isEarly := errors.AsType[*agent.Error](cause)
	switch {
	case errors.Is(ended, guard.ErrGuardLost): // also when the turn was stopped
		return &agent.Error{Kind: agent.KindGuardLost, Msg: r.a.name(), Err: guard.ErrGuardLost}
	case ctx.Err() != nil:
		return agent.Stopped(ctx)
	case r.ending != nil:
		return r.ending
	case isEarly:
		return early
	case errors.Is(cause, errLingers):
		r.rec.left = r.dog.leaves()
		r.rec.note("the agent went on after the end of its turn and was stopped")
	}
	_, exited := errors.AsType[*guard.ExitError](ended)
	if r.rec.fault == nil && ended != nil && cause == nil && !exited {
		return &agent.Error{Kind: agent.KindFailed, Msg: r.a.name(), Err: model.RedactError(ended)}
	}
	return r.rec.fault
}

// explain adds what a person needs.
func (r *run) explain(e *agent.Error) {
	if !strings.HasPrefix(e.Msg, r.a.name()) {
		e.Msg = strings.TrimSuffix(r.a.name()+": "+e.Msg, ": ")
	}
	text, _ := model.Clean(r.errs.String())
	e.Detail = model.Redact(text)
	if shells := []string{"sh", "bash", "dash", "zsh", "env"}; e.Kind == agent.KindFailed &&
		(e.Exit == 126 || e.Exit == 127) &&
		slices.Contains(shells, filepath.Base(r.a.cfg.Program)) {
		e.Kind, e.Hint = agent.KindNotFound, "the shell did not find the program, or may not execute it"
	}
}

// result is what is known of the turn.
func (r *run) result() *agent.Result {
	rec := &r.rec
	used, reported := rec.usage()
	res := &agent.Result{
		Text: lastText(rec.text), StopReason: rec.stop, Usage: used.usage(reported), CostMicros: rec.cost,
		Model: rec.model, Context: rec.fill(), Messages: rec.messages, Left: rec.left,
	}
	if r.a.vendor.totals {
		res.Session = rec.next().String()
	} else {
		res.Session = rec.id
	}
	if rec.compactions > 0 {
		rec.note(fmt.Sprintf("the context was shortened %d times", rec.compactions))
	}
	res.Notes = rec.notes
	return res
}

// lastText cleans a message and keeps its end.
func lastText(text string) string {
	text, _ = model.Clean(clip.Suffix(text, agent.MaxTextBytes))
	return text
}

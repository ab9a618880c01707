package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/agent"
)

// watchdog ends a turn that is silent, waits for limits without end, or continues
// after its end. It is safe for concurrent use.
type watchdog struct {
	idle, patience, linger time.Duration // below or equal 0: no limit
	end                    context.CancelCauseFunc
	// background is how long the agent may wait after its end while running reports commands that it
	// runs in the background, "" for none.
	background time.Duration
	running    func() string

	mu    sync.Mutex // guards all below
	timer *time.Timer
	state watchState
	// waited is how long the agent waited for its commands after its end.
	waited time.Duration
	// left are the commands that ran when the agent was stopped.
	left string
	// due is when the state's time is over; zero without a limit.
	due time.Time
	// limit is what the agent waits for.
	limit *agent.Error
}

type watchState string

const (
	watchOff     watchState = ""
	watchWorking watchState = "working"
	watchLimited watchState = "limited"
	watchOver    watchState = "over"
)

// errLingers says that an agent was stopped after the end of its turn.
var errLingers = errors.New("the agent went on after the end of its turn")

func (w *watchdog) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(time.Hour, w.bark)
	w.enter(watchWorking)
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = watchOff
	w.timer.Stop()
}

// enter begins a state and its time.
func (w *watchdog) enter(state watchState) {
	w.state, w.due = state, time.Time{}
	w.timer.Stop()
	if d := w.limitOf(state); d > 0 {
		w.due = time.Now().Add(d)
		w.timer.Reset(d)
	}
}

func (w *watchdog) limitOf(state watchState) time.Duration {
	switch state {
	case watchWorking:
		return w.idle
	case watchLimited:
		return w.patience
	case watchOver:
		return w.linger
	case watchOff:
	}
	return 0
}

// heard: something came from the agent.
func (w *watchdog) heard() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == watchWorking || w.state == watchOver {
		w.enter(w.state)
	}
}

// progress: what came was work. It ends waiting for a limit.
func (w *watchdog) progress() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != watchOff {
		w.enter(watchWorking)
	}
}

// limited: the agent waits for a limit by itself. The first of several in a row
// begins the time; one that is to last longer than the patience, or that does not
// end by waiting, ends the turn at once.
func (w *watchdog) limited(limit *agent.Error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state == watchOff {
		return
	}
	w.limit = limit
	if w.state != watchLimited {
		w.enter(watchLimited)
	}
	if limit.Kind == agent.KindQuota || w.patience > 0 && time.Until(limit.Until) > w.patience {
		w.end(limit)
	}
}

// over records that the agent reported the end of its turn.
func (w *watchdog) over() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state != watchOff {
		w.enter(watchOver)
	}
}

// leaves returns the commands that ran when the agent was stopped.
func (w *watchdog) leaves() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left
}

// bark ends the turn, unless the time was set anew while this began.
func (w *watchdog) bark() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due.IsZero() || time.Now().Before(w.due) {
		return
	}
	switch w.state {
	case watchWorking:
		w.end(&agent.Error{
			Kind: agent.KindIdle, Msg: fmt.Sprintf("nothing was heard for %s", w.idle),
			Hint: "raise the limit for silence if the agent works long without a word",
		})
	case watchLimited:
		w.end(w.limit)
	case watchOver:
		if w.running != nil {
			w.left = w.running()
		}
		if w.left != "" && w.waited < w.background {
			w.waited += w.linger
			w.enter(watchOver)
			return
		}
		w.end(errLingers)
	case watchOff:
	}
}

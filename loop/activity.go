package loop

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/text/clip"
)

// EventActivity reports what the agent of an iteration does now, for people who watch. It is an
// event of the iteration's task, at most one every activityEvery.
const EventActivity perdure.EventKind = "loop.activity"

const (
	// activityEvery is the shortest time between two reports: each is a write to the store.
	activityEvery = 2 * time.Second
	// maxActivityText is the length of a text in a report, in bytes.
	maxActivityText = 160
)

// Activity is the data of an [EventActivity].
type Activity struct {
	Iteration int    `json:"iteration"`
	Agent     string `json:"agent"`
	// Call is the tool call that is running; empty between calls. Message is the beginning
	// of the agent's last message. Waiting is why the agent waits, if it does.
	Call    string `json:"call,omitempty"`
	Message string `json:"message,omitempty"`
	Waiting string `json:"waiting,omitempty"`
	// Files counts the files that the agent has edited, as far as its tool calls say.
	Files int `json:"files,omitempty"`
	// Tokens and CostUSD are the usage of the turn; CostUSD is nil if it is not known.
	Tokens  int64    `json:"tokens,omitempty"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// ElapsedMS is the time since the beginning of the turn.
	ElapsedMS int64 `json:"elapsed_ms"`
}

// activity collects what an agent does and reports it while the agent continues. It is safe
// for concurrent use.
type activity struct {
	emit  func(a *Activity)
	began time.Time

	mu      sync.Mutex // guards the following
	now     Activity
	files   map[string]bool
	changed bool

	stop chan struct{}
	done chan struct{}
}

// newActivity starts the reports about a turn. The activity has to be closed.
func (r *run) newActivity(ctx context.Context) *activity {
	a := &activity{began: time.Now(), now: Activity{Iteration: r.state.Run.Number, Agent: r.agentName()},
		files: make(map[string]bool), stop: make(chan struct{}), done: make(chan struct{})}
	a.emit = func(now *Activity) {
		if err := r.l.AppendEvent(ctx, EventActivity, now); err != nil && ctx.Err() == nil {
			r.e.cfg.Logger.Warn("activity of agent not recorded", "tree_id", string(r.l.Tree.ID), "error", err)
		}
	}
	go a.run()
	return a
}

func (a *activity) run() {
	defer close(a.done)
	tick := time.NewTicker(activityEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
			if now, ok := a.take(); ok {
				a.emit(&now)
			}
		}
	}
}

// take returns what the agent does, if it has changed.
func (a *activity) take() (Activity, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, ok := a.now, a.changed
	now.ElapsedMS = time.Since(a.began).Milliseconds()
	a.changed = false
	return now, ok
}

// close ends the reports.
func (a *activity) close() {
	close(a.stop)
	<-a.done
}

// hear notes an event. t has the usage until now.
func (a *activity) hear(e *agent.Event, t *tally) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e.Kind {
	case agent.EventMessage:
		if line := strings.TrimSpace(e.Text); line != "" {
			a.now.Message = shortLine(line)
		}
		a.now.Waiting = ""
	case agent.EventToolCall:
		a.call(e.Call)
		a.now.Waiting = ""
	case agent.EventToolResult:
		a.now.Call = ""
	case agent.EventUsage:
		u := t.total()
		a.now.Tokens = u.InputTokens + u.OutputTokens
		if micros := t.micros(); micros != nil {
			a.now.CostUSD = new(float64(*micros) / microsPerDollar)
		}
	case agent.EventRateLimited:
		a.now.Waiting = shortLine(e.Text)
		if !e.Until.IsZero() {
			a.now.Waiting += ", until " + e.Until.Local().Format(time.TimeOnly)
		}
	case agent.EventBackground:
		a.now.Waiting = shortLine(e.Text)
	default:
		return
	}
	a.changed = true
}

func (a *activity) call(c *agent.ToolCall) {
	if c == nil {
		return
	}
	what := c.Title
	switch {
	case c.Command != "":
		what = c.Command
	case len(c.Paths) > 0:
		what = strings.TrimSpace(string(c.Kind) + " " + c.Paths[0])
	}
	a.now.Call = shortLine(what)
	if c.Kind == agent.ToolEdit || c.Kind == agent.ToolDelete || c.Kind == agent.ToolMove {
		for _, p := range c.Paths {
			a.files[filepath.Clean(p)] = true
		}
		a.now.Files = len(a.files)
	}
}

// shortLine returns the first line of a text, shortened.
func shortLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return clip.Bytes(strings.TrimSpace(line), maxActivityText)
}

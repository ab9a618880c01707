package acp

import (
	"sync"
	"time"
)

// activity measures how long an agent was silent. It is safe for concurrent use.
type activity struct {
	mu sync.Mutex // guards the following
	// busy counts what this side does for the agent.
	busy int
	last time.Time
}

// heard notes a sign of life.
func (a *activity) heard() { a.change(0) }

// begin and end enclose what the agent has to wait for.
func (a *activity) begin() { a.change(1) }
func (a *activity) end()   { a.change(-1) }

func (a *activity) change(busy int) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy += busy
	a.last = now
}

// quiet is how long nothing was heard that this side did not wait for.
func (a *activity) quiet() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy > 0 {
		return 0
	}
	return time.Since(a.last)
}

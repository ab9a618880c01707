package loop

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/loop/state"
	"github.com/perdure/perdure/internal/process/environ"
	"github.com/perdure/perdure/internal/text/clip"
)

// move is the reaction to a failed turn.
type move string

const (
	moveAgain    move = "again"    // another turn of the same agent spends a retry
	moveFresh    move = "fresh"    // a fresh session continues from the handoff
	moveWait     move = "wait"     // the same turn later
	moveReassign move = "reassign" // the next agent continues from the handoff
	movePause    move = "pause"    // the user has to fix a problem
	moveEnd      move = "end"      // the iteration is over
)

const (
	// waitsForLimit is how often the loop waits for an agent's limit when another
	// agent is available.
	waitsForLimit = 3
	// longLimit is the longest limit to wait for when another agent is available.
	longLimit = time.Hour
)

// follows returns the reaction to a failed turn. It waits for limits, or reassigns the
// iteration to another agent when they are long or repeated. An agent that cannot work at
// all (it is missing, not logged in, or its quota is used up) is replaced at once. An agent
// that hangs, or failed, is retried once; without another agent, one that failed MaxRetries
// times. A full context is followed by a fresh session.
func (r *run) follows(f *agent.Error) move {
	s := &r.state.Run
	_, other := r.nextAgent()
	instead := moveEnd
	if other {
		instead = moveReassign
	}
	class := f.Class()
	if class == agent.ClassAgent && len(environ.Secrets(r.withheldFrom(f))) > 0 {
		class = agent.ClassSetup // no further turn gets the key
	}
	switch class {
	case agent.ClassWait:
		if other && (s.Waits >= waitsForLimit || time.Until(f.Until) > longLimit) {
			return moveReassign
		}
		return moveWait
	case agent.ClassSetup:
		if other || r.exhausted() {
			return instead
		}
		return movePause
	case agent.ClassCanceled:
		return moveEnd
	case agent.ClassFresh:
		if s.Fresh < max(r.cfg.MaxRetries, 1) {
			return moveFresh
		}
		return instead
	case agent.ClassAgent:
	}
	if guardLost(f) {
		return moveEnd
	}
	if f.Kind == agent.KindTimeout || s.Retries >= r.retries(f) {
		return instead
	}
	return moveAgain
}

// retries returns how often a turn that failed is repeated with the same agent.
func (r *run) retries(f *agent.Error) int {
	if _, other := r.nextAgent(); other || f.Kind == agent.KindIdle {
		return min(r.cfg.MaxRetries, 1)
	}
	return r.cfg.MaxRetries
}

// agentMark is what is known of the agent at a place of the chain.
func (r *run) agentMark(place int) state.AgentMark { return r.state.Marks[r.cfg.AgentAt(place)] }

func (r *run) markAgent(place int, m state.AgentMark) {
	if r.state.Marks == nil {
		r.state.Marks = make(map[string]state.AgentMark)
	}
	r.state.Marks[r.cfg.AgentAt(place)] = m
}

// nextAgent returns the first other agent of the chain that can work now.
func (r *run) nextAgent() (place int, ok bool) {
	for i := range r.cfg.Agents() {
		if m := r.agentMark(i); i != r.state.Agent && !m.Failed && !m.Until.After(time.Now()) {
			return i, true
		}
	}
	return 0, false
}

// firstAgent assigns the next iteration to the first agent of the chain that can work,
// which may be one whose limit has ended.
func (r *run) firstAgent() {
	if place, ok := r.nextAgent(); ok && (place < r.state.Agent || r.agentMark(r.state.Agent).Failed) {
		r.state.Agent = place
	}
}

// reassign assigns the iteration to the next agent of the chain, which continues
// from the handoff.
func (r *run) reassign(ctx context.Context, f *agent.Error) {
	place, ok := r.nextAgent()
	if !ok {
		return
	}
	m := r.agentMark(r.state.Agent)
	if f.Class() == agent.ClassWait {
		m.Until = f.Until
		if !m.Until.After(time.Now()) {
			m.Until = time.Now().Add(longLimit)
		}
	} else {
		m.Failed = true
	}
	r.markAgent(r.state.Agent, m)
	why := "the agent before failed: " + clip.Bytes(f.Error(), 300)
	r.hand(ctx, "reassignment", ledger.Op{Kind: ledger.OpReassign, To: clip.Bytes(r.cfg.AgentAt(place), maxAgentName),
		Text: why})
	from := r.agentName()
	s := &r.state.Run
	r.state.Agent, s.Retries, s.Fresh, s.Waits, s.SpentMS = place, 0, 0, 0, 0
	r.note(EventReassigned, map[string]any{"iteration": s.Number, "from": from, "agent": r.agentName(), "why": why})
}

// exhausted reports whether a chain of several agents has none left that did not
// fail.
func (r *run) exhausted() bool {
	if len(r.cfg.Fallback) == 0 {
		return false
	}
	for i := range r.cfg.Agents() {
		if i != r.state.Agent && !r.agentMark(i).Failed {
			return false
		}
	}
	return true
}

// chain names the agents that failed, for people.
func (r *run) chain() string {
	var lines []string
	for i, name := range r.cfg.Agents() {
		state := "did not work"
		switch m := r.agentMark(i); {
		case m.Failed || i == r.state.Agent:
			state = "failed"
		case m.Until.After(time.Now()):
			state = "has a limit until " + m.Until.UTC().Format(time.RFC3339)
		}
		lines = append(lines, fmt.Sprintf("- %s: %s", name, state))
	}
	return strings.Join(lines, "\n")
}

package model

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// lesson is what a call showed of its endpoint.
type lesson int

const (
	nothing lesson = iota
	// answered: there is an answer. reached: a program ran, and failed.
	answered
	reached
	// faulty: the endpoint does not answer, whatever is asked.
	faulty
)

// lessonOf returns what a failed request showed.
func lessonOf(e *Error) lesson {
	switch e.Kind {
	case KindAuth, KindNotFound, KindQuota, KindRefused:
		return faulty
	case KindFailed:
		return reached
	}
	if e.Foreign {
		return faulty
	}
	return nothing
}

// noteBeginning returns the request with an OnText that notes the beginning of an answer.
func (g *Guarded) noteBeginning(req *Request) *Request {
	if g.admission.isProven() {
		return req
	}
	own := *req
	own.OnText = func(text string) {
		if strings.TrimSpace(text) != "" {
			g.admission.prove()
		}
		if req.OnText != nil {
			req.OnText(text)
		}
	}
	return &own
}

// How often a server that refuses connections is tried: the waits double from the first to the
// second.
const (
	firstProbe   = 500 * time.Millisecond
	longestProbe = 5 * time.Second
)

// Reacher is implemented by models whose server can be tried without a request.
type Reacher interface {
	// Reach reports whether the server accepts a connection.
	Reach(ctx context.Context) error
}

// waitsForServer reports whether a server that refuses connections is waited for.
func (g *Guarded) waitsForServer(ctx context.Context) bool {
	if g.cfg.Patience < 0 || g.cfg.HasFallback {
		return false
	}
	return g.admission.hasAnswered() || g.cfg.Answered != nil && g.cfg.Answered(ctx)
}

// awaitServer waits until the server accepts connections. The error is that of a call that waited
// too long, or of another one of the same run.
func (g *Guarded) awaitServer(ctx context.Context, req *Request, refused *Error, since time.Time) *Error {
	since = g.admission.joinOutage(since, refused.Error())
	defer g.admission.leaveOutage()
	for wait := firstProbe; ; wait = min(2*wait, longestProbe) {
		left := time.Until(since.Add(g.cfg.Patience))
		if left <= 0 {
			return g.lostPatience(req, refused)
		}
		if !sleep(ctx, min(wait, left)) {
			return Canceled(ctx)
		}
		if fault := req.Faults.standingFault(g.admission); fault != nil {
			return fault
		}
		server, ok := find[Reacher](g.cfg.Model)
		if !ok || server.Reach(ctx) == nil {
			return nil
		}
	}
}

// lostPatience is the error of a call that waited long enough.
func (g *Guarded) lostPatience(req *Request, refused *Error) *Error {
	e := *refused
	e.Msg = fmt.Sprintf("%s, waited %s", e.Msg, g.cfg.Patience)
	req.Faults.stop(g.admission, &e)
	return &e
}

// outage is the time in which calls wait for a server that refuses connections.
type outage struct {
	since   time.Time
	reason  string
	waiters int
}

// joinOutage adds a call that waits since then, and returns since when the first one does.
func (a *admission) joinOutage(since time.Time, reason string) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outage.waiters++; a.outage.waiters == 1 || since.Before(a.outage.since) {
		a.outage.since = since
	}
	a.outage.reason = reason
	return a.outage.since
}

func (a *admission) leaveOutage() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outage.waiters--
}

// Outage describes that calls wait for a server that refuses connections, "" if none does.
func (g *Guarded) Outage() string {
	a := g.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outage.waiters == 0 {
		return ""
	}
	return fmt.Sprintf("waiting %s of %s for %s", time.Since(a.outage.since).Round(time.Second), g.cfg.Patience,
		a.outage.reason)
}

// hold stops all calls for a while after a fault that may be permanent.
func (a *admission) hold(d time.Duration, reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if end := time.Now().Add(d); end.After(a.until) {
		a.until, a.reason = end, reason
	}
}

// prove records that an answer has begun.
func (a *admission) prove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.proven {
		a.proven = true
		a.admit()
	}
}

func (a *admission) isProven() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.proven || a.untilAnswer == 0
}

// hasAnswered reports whether any call got an answer.
func (a *admission) hasAnswered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers > 0
}

// resume ends a pause.
func (a *admission) resume() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.until = time.Time{}
	a.admit()
}

// Resume ends the rate-limit pauses of m and of what it consists of: the user says that it may be
// asked again.
func Resume(m Model) {
	switch m := m.(type) {
	case *Guarded:
		m.admission.resume()
	case *Chain:
		for _, l := range m.links {
			Resume(l.Model)
		}
	case Unwrapper:
		Resume(m.Unwrap())
	}
}

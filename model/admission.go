package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// pauseJitter is the part of a pause that may be added to it at random, so
// that several processes do not come back in the same instant.
const pauseJitter = 0.1

// maxDoublings keeps the length of a pause from overflowing.
const maxDoublings = 16

// admission decides which calls may be sent now: a limited number at a time, none
// during a rate-limit pause, in the order of arrival. A rate limit halves the
// number of calls in flight; answers raise it to the configured limit again.
type admission struct {
	mu sync.Mutex // guards all below
	// max is the configured limit, 0 for none; limit is the present one.
	max, limit int
	inflight   int
	// highest is how many were in flight when the first of a row of pauses
	// came; without a configured limit it tells when the present one can go.
	highest int
	until   time.Time
	reason  string
	// pauses counts the pauses, fruitless those since the last answer, answers
	// the answers, and credit those since the limit grew.
	pauses, fruitless, answers, credit int
	// first and longest are the shortest and the longest pause when the
	// provider does not say how long; each fruitless one doubles it.
	first, longest time.Duration
	waiting        []chan struct{}
	// untilAnswer is the most calls in flight while proven is not set, 0 for no limit. proven is
	// set by an answer that begins, until a fault of the endpoint.
	untilAnswer int
	proven      bool
	// outage is the time in which the server refuses connections.
	outage outage
	// news is closed, and replaced, when a pause begins or grows longer.
	news chan struct{}
	// wake lets the first ones in when the pause ends; it is stopped when
	// no call waits.
	wake *time.Timer
}

func newAdmission(limit int, first, longest time.Duration) *admission {
	return &admission{max: limit, limit: limit, first: first, longest: longest, news: make(chan struct{})}
}

// ticket is one call in flight: what the admission had seen when it was let in.
type ticket struct{ pauses, answers int }

// errPaused reports that the model is paused for longer than the caller waits.
var errPaused = errors.New("the pause is too long to wait for")

// enter waits until a call may be sent; the caller calls leave afterwards.
// patience is the longest pause to wait for, 0 for any: when one lasts longer,
// enter returns errPaused at once.
func (a *admission) enter(ctx context.Context, patience time.Duration) (ticket, error) {
	if ctx.Err() != nil {
		return ticket{}, ctx.Err()
	}
	a.mu.Lock()
	if a.tooLong(patience) {
		defer a.mu.Unlock()
		return ticket{}, errPaused
	}
	if len(a.waiting) == 0 && a.free() {
		defer a.mu.Unlock()
		a.inflight++
		return ticket{a.pauses, a.answers}, nil
	}
	turn, news := make(chan struct{}), a.news
	a.waiting = append(a.waiting, turn)
	a.admit()
	a.mu.Unlock()

	for {
		select {
		case <-turn:
			a.mu.Lock()
			defer a.mu.Unlock()
			return ticket{a.pauses, a.answers}, nil
		case <-news:
			a.mu.Lock()
			news = a.news
			long := a.tooLong(patience)
			a.mu.Unlock()
			if long {
				a.giveUp(turn)
				return ticket{}, errPaused
			}
		case <-ctx.Done():
			a.giveUp(turn)
			return ticket{}, ctx.Err()
		}
	}
}

// tooLong reports whether the present pause lasts longer than the caller waits. The
// caller holds mu.
func (a *admission) tooLong(patience time.Duration) bool {
	return patience > 0 && time.Until(a.until) > patience
}

// giveUp takes turn out of the queue, or gives its place on when it was let in
// at the same moment.
func (a *admission) giveUp(turn chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.waiting, turn); i >= 0 {
		a.waiting = slices.Delete(a.waiting, i, i+1)
	} else {
		a.inflight--
	}
	a.admit()
}

// leave gives a ticket back, with what the call showed.
func (a *admission) leave(learned lesson) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inflight--
	switch learned {
	case nothing:
	case answered:
		a.answers++
		a.fruitless, a.proven = 0, true
		a.grow()
	case reached:
		a.proven = true
	case faulty:
		a.proven = false
	}
	a.admit()
}

// answersToGrow is the part of the present limit that has to be answered
// before it grows by one: quick enough to recover from a single refusal, slow
// enough not to run into the next one at once.
const answersToGrow = 0.25

// grow raises the limit after an answer, as far as one is in the way.
func (a *admission) grow() {
	if a.limit == 0 || a.limit == a.max {
		return
	}
	a.credit++
	if float64(a.credit) < answersToGrow*float64(a.limit) {
		return
	}
	a.credit = 0
	a.limit++
	if a.max == 0 && a.limit > a.highest {
		a.limit = 0
	}
}

// pause stops all calls after a rate limit, for at least retryAfter. fresh is
// false when another call of the same burst was refused before; until is when
// the pause ends.
func (a *admission) pause(t ticket, retryAfter time.Duration, reason string) (until time.Time, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := retryAfter
	fresh = t.pauses == a.pauses
	if fresh {
		d = max(d, min(a.longest, a.first<<min(a.fruitless, maxDoublings)))
		a.pauses++
		a.fruitless++
		a.reason = reason
		a.shrink()
	}
	d += time.Duration(rand.Float64() * pauseJitter * float64(d))
	if end := time.Now().Add(d); end.After(a.until) {
		a.until = end
		close(a.news)
		a.news = make(chan struct{})
	}
	return a.until, fresh
}

func (a *admission) shrink() {
	if a.limit == 0 {
		a.highest = a.inflight
	}
	a.limit = max(1, a.inflight/2)
	a.credit = 0
}

// paused returns when the present pause ends; the zero time when there is none.
func (a *admission) paused() (time.Time, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !time.Now().Before(a.until) {
		return time.Time{}, ""
	}
	return a.until, a.reason
}

// progress reports whether any call got an answer since t was let in.
func (a *admission) progress(t ticket) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answers > t.answers
}

// free reports whether one more may be sent now. The caller holds mu.
func (a *admission) free() bool {
	if a.untilAnswer > 0 && !a.proven && a.inflight >= a.untilAnswer {
		return false
	}
	return !time.Now().Before(a.until) && (a.limit == 0 || a.inflight < a.limit)
}

// admit lets waiting calls in, now and when the pause ends. The caller holds mu.
func (a *admission) admit() {
	for len(a.waiting) > 0 && a.free() {
		a.inflight++
		close(a.waiting[0])
		a.waiting = a.waiting[1:]
	}
	if a.wake != nil {
		a.wake.Stop()
		a.wake = nil
	}
	if left := time.Until(a.until); len(a.waiting) > 0 && left > 0 {
		a.wake = time.AfterFunc(left, func() {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.admit()
		})
	}
}

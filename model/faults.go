package model

import (
	"net/http"
	"sync"
	"time"
)

// maxStrikes is how many requests of a run fail in a row, without an answer of the model between
// them, before the run asks it no more.
const maxStrikes = 3

// maxUnavailable and maxSilent are the same for a server that never answered and is not available, or
// answers nothing in time.
const (
	maxUnavailable = 20
	maxSilent      = 2 * DefaultMaxTimeouts
)

// refusedAgainAfter is the time after which a model that refused connections is asked again in a
// run whose requests went to the next one of its chain.
const refusedAgainAfter = 30 * time.Second

// Faults are the permanent faults that the requests of one run have met: a wrong key, an address
// where no model is, an account without credit, a model that answers nothing. Requests with the
// same Faults are not sent to a model that has one, and their error has Permanent set. A nil Faults
// remembers nothing. It is safe for concurrent use.
type Faults struct {
	mu     sync.Mutex
	models map[*admission]*strikes
}

// strikes is what a run knows of one model.
type strikes struct {
	answered bool
	// count is the number of requests that failed in a row.
	count int
	// fault is why the model is not asked any more; until is when it is asked again, zero for
	// never.
	fault *Error
	until time.Time
}

// strikesOf returns the strikes of a model. The caller holds mu.
func (f *Faults) strikesOf(a *admission) *strikes {
	s := f.models[a]
	if s == nil {
		if f.models == nil {
			f.models = make(map[*admission]*strikes)
		}
		s = &strikes{}
		f.models[a] = s
	}
	return s
}

// standingFault returns the fault of a model as the error of a request that was not sent, nil if
// it has none.
func (f *Faults) standingFault(a *admission) *Error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.strikesOf(a)
	if s.fault == nil || !s.until.IsZero() && !time.Now().Before(s.until) {
		return nil
	}
	e := *s.fault
	e.Usage = Usage{}
	return &e
}

// noteAnswer records that the model answered.
func (f *Faults) noteAnswer(a *admission) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	*f.strikesOf(a) = strikes{answered: true}
}

// note records a failed request, and reports whether it shows that the model answers no request
// of the run. The error is then marked as permanent.
func (f *Faults) note(a *admission, e *Error, hasFallback bool) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.strikesOf(a)
	most, counts := e.strikesAllowed(s.answered)
	if !counts {
		return false
	}
	if s.count++; s.count < most && !(hasFallback && e.Kind == KindRefused) {
		return false
	}
	e.Permanent = true
	fault := *e
	s.fault, s.until = &fault, time.Time{}
	if hasFallback && e.Kind == KindRefused {
		s.until = time.Now().Add(refusedAgainAfter)
	}
	return true
}

// Forget has the models be asked again, for example when the user says that the cause is removed.
func (f *Faults) Forget() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.models)
}

// strikesAllowed returns how many requests that fail as e does show a permanent fault; counts is
// false for a failure that says nothing about other requests. A status of 403 may be about the
// text of the request, and one fault among answers that of a proxy.
func (e *Error) strikesAllowed(answered bool) (most int, counts bool) {
	switch e.Kind {
	case KindAuth, KindNotFound, KindQuota:
		if answered || e.Status == http.StatusForbidden || e.Foreign {
			return maxStrikes, true
		}
		return 1, true
	case KindRefused:
		return maxStrikes, true
	case KindInvalid, KindEmpty, KindThoughts:
		return maxStrikes, !answered && !e.AboutText
	case KindUnavailable:
		if e.Foreign {
			return maxStrikes, !answered
		}
		return maxUnavailable, !answered // it may be starting
	case KindTimeout:
		return maxSilent, !answered
	case KindTooLong, KindRateLimit, KindCut, KindTooLarge, KindFailed, KindCanceled:
	}
	return 0, false
}

// stop records a permanent fault.
func (f *Faults) stop(a *admission, e *Error) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	e.Permanent = true
	fault := *e
	s := f.strikesOf(a)
	s.fault, s.until = &fault, time.Time{}
}

package mock

import (
	"cmp"
	"slices"
	"sync"
)

// maxPrompt is how much of a request an [Entry] keeps, in bytes.
const maxPrompt = 200

// Ledger counts requests by their text. It is safe for concurrent use.
type Ledger struct {
	mu             sync.Mutex // guards all below
	entries        map[string]*Entry
	inflight, peak int
}

// Entry counts what happened to requests with one text.
type Entry struct {
	// Hash is that of the request; see [Hash].
	Hash string
	// Prompt is the beginning of the request.
	Prompt string
	// First numbers the different requests in the order of their arrival,
	// from 1.
	First int
	// Started is how often it was asked. Finished is how often the whole
	// answer was handed out: over a socket, that its last byte was written,
	// which does not mean that it was read. Failed is the rest of those that
	// have ended: refused, broken off, or cancelled by the caller.
	Started, Finished, Failed int
}

func newLedger() *Ledger { return &Ledger{entries: map[string]*Entry{}} }

// call is one open request. Its methods are called by one goroutine.
type call struct {
	ledger *Ledger
	entry  *Entry
	closed bool
}

// begin notes that a request arrived.
func (l *Ledger) begin(text string) *call {
	hash := Hash(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.entries[hash]
	if e == nil {
		e = &Entry{Hash: hash, Prompt: text[:min(len(text), maxPrompt)], First: len(l.entries) + 1}
		l.entries[hash] = e
	}
	e.Started++
	l.inflight++
	l.peak = max(l.peak, l.inflight)
	return &call{ledger: l, entry: e}
}

// answering notes that the answer is about to be sent. A client that has read it can
// send its next request before the server returns from this one, so the request no
// longer counts as open.
func (c *call) answering() {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.close()
}

// done notes how the request ended.
func (c *call) done(finished bool) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	c.close()
	if finished {
		c.entry.Finished++
	} else {
		c.entry.Failed++
	}
}

func (c *call) close() {
	if !c.closed {
		c.closed = true
		c.ledger.inflight--
	}
}

// Entries returns all entries in the order of their first arrival.
func (l *Ledger) Entries() []Entry {
	return l.pick(func(*Entry) bool { return true })
}

// Repeated returns the entries whose answer was handed out more than once.
func (l *Ledger) Repeated() []Entry {
	return l.pick(func(e *Entry) bool { return e.Finished > 1 })
}

// Of returns the entry of a request's text; zero counts when it never came.
func (l *Ledger) Of(text string) Entry {
	hash := Hash(text)
	found := l.pick(func(e *Entry) bool { return e.Hash == hash })
	if len(found) == 0 {
		return Entry{Hash: hash, Prompt: text[:min(len(text), maxPrompt)]}
	}
	return found[0]
}

// Totals returns the sums over all requests, and in First how many different
// ones there were.
func (l *Ledger) Totals() Entry {
	var sum Entry
	for _, e := range l.Entries() {
		sum.First++
		sum.Started += e.Started
		sum.Finished += e.Finished
		sum.Failed += e.Failed
	}
	return sum
}

// Peak returns the largest number of requests that were open at once. Over a socket, a
// request is open until its answer begins.
func (l *Ledger) Peak() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.peak
}

// InFlight returns how many requests are open now; see [Ledger.Peak].
func (l *Ledger) InFlight() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inflight
}

func (l *Ledger) pick(want func(*Entry) bool) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Entry
	for _, e := range l.entries {
		if want(e) {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Compare(a.First, b.First) })
	return list
}

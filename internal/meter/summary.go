package meter

import (
	"cmp"
	"slices"
	"time"

	"github.com/perdure/perdure/model"
)

// Total is the sum of requests.
type Total struct {
	// Requests counts requests to models, Answers those with a usage.
	Requests int `json:"requests"`
	Answers  int `json:"answers"`
	// Estimated counts answers whose tokens were estimated.
	Estimated        int   `json:"estimated"`
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	// CostMicros is the known cost in millionths of a US dollar, Unpriced the number of
	// answers whose cost is unknown.
	CostMicros int64 `json:"-"`
	Unpriced   int   `json:"unpriced"`
}

func (t *Total) add(r *Exchange) {
	t.Requests++
	u := r.Usage
	if u == nil {
		if r.Unread {
			t.Unpriced++
		}
		return
	}
	t.Answers++
	t.InputTokens, t.OutputTokens = t.InputTokens+u.InputTokens, t.OutputTokens+u.OutputTokens
	t.CachedTokens, t.CacheWriteTokens = t.CachedTokens+u.CachedTokens, t.CacheWriteTokens+u.CacheWriteTokens
	if u.Estimated {
		t.Estimated++
	}
	if r.CostMicros == nil {
		t.Unpriced++
		return
	}
	t.CostMicros += *r.CostMicros
}

// Cost returns the cost in millionths of a US dollar; nil if that of an answer is unknown.
func (t *Total) Cost() *int64 {
	if t.Unpriced > 0 {
		return nil
	}
	return &t.CostMicros
}

// Summary is what a meter has seen.
type Summary struct {
	Total
	Began time.Time
	// Models are the sums for each model, those with the most tokens first.
	Models []ModelTotal
	// Context is the context of the conversation after its last answer; nil if there was
	// none. Highest is the largest used part of a window, in percent, nil if no window is
	// known.
	Context *Context
	Highest *int
	// Overflows and RateLimits count requests that were refused for these reasons, and Failed
	// those with another error.
	Overflows, RateLimits, Failed int
	// LimitedUntil is the latest time that a rate limit named; zero if there was none.
	LimitedUntil time.Time
	// Cut counts answers that ended before their end, Unread those that could not be read,
	// and Others requests that do not ask a model.
	Cut, Unread, Others int
}

// ModelTotal is the sum of the requests to a model.
type ModelTotal struct {
	Model string
	Total
}

// totals are the sums of a meter.
type totals struct {
	began        time.Time
	total        Total
	models       map[string]*Total
	conversation conversation
	last         Summary // its counters
}

// maxModels bounds the models that are counted one by one; the rest have the name "other".
const maxModels = 50

func (t *totals) add(r *Exchange) {
	s := &t.last
	if r.Limited {
		s.RateLimits++
		if r.Until.After(s.LimitedUntil) {
			s.LimitedUntil = r.Until
		}
	}
	if r.API == "" {
		s.Others++
		return
	}
	t.total.add(r)
	t.model(string(r.Provider) + ":" + cmp.Or(r.Model, "unknown")).add(r)
	switch {
	case r.Overflow:
		s.Overflows++
	case !r.Limited && (r.Status == 0 || r.Status >= 400 || r.Usage == nil && r.Message != ""):
		s.Failed++
	}
	if r.Cut {
		s.Cut++
	}
	if r.Unread {
		s.Unread++
	}
	if c := r.Context; c != nil {
		s.Context = c
		if c.Window > 0 {
			percent := int(100 * c.Used / c.Window)
			s.Highest = new(max(percent, *cmp.Or(s.Highest, &percent)))
		}
	}
}

func (t *totals) model(name string) *Total {
	if t.models == nil {
		t.models = make(map[string]*Total)
	}
	if t.models[name] == nil {
		if len(t.models) >= maxModels {
			name = "other"
		}
		t.models[name] = cmp.Or(t.models[name], &Total{})
	}
	return t.models[name]
}

// Summary returns what the meter has seen until now.
func (m *Meter) Summary() Summary {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sum.last
	s.Total, s.Began = m.sum.total, m.sum.began
	for name, t := range m.sum.models {
		s.Models = append(s.Models, ModelTotal{Model: name, Total: *t})
	}
	slices.SortFunc(s.Models, func(a, b ModelTotal) int {
		return cmp.Or(cmp.Compare(b.InputTokens+b.OutputTokens, a.InputTokens+a.OutputTokens),
			cmp.Compare(a.Model, b.Model))
	})
	return s
}

// takeover is the number of requests of other conversations after which one of them is the
// program's conversation.
const takeover = 4

// conversation follows the conversation of a program with its model among its other
// requests: agents ask for titles and summaries, and start agents of their own, each with a
// context of its own.
type conversation struct {
	begun  bool
	id     uint64
	used   int64
	others int
}

// goesOn reports whether a request belongs to the conversation: it continues the last one of
// it, or fills more of a context, or others have not continued it for some requests, as
// after the agent has shortened its context.
func (c *conversation) goesOn(req *request, u *model.Usage) bool {
	used := u.InputTokens + u.OutputTokens
	if req.tools {
		c.others++
	}
	if c.begun && req.conversation != c.id && used < c.used && c.others < takeover {
		return false
	}
	*c = conversation{begun: true, id: req.conversation, used: used}
	return true
}

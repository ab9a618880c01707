package meter

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure/model"
	"github.com/perdure/perdure/model/price"
)

// maxWait bounds the time that a provider asks to wait.
const maxWait = 24 * time.Hour

// Exchange is a request and its answer.
type Exchange struct {
	Provider Provider
	// API is the protocol; empty for a request of another kind, of which only the status
	// is known.
	API API
	// Model is the name of the model in the request, else in the answer.
	Model string
	// Status is the HTTP status; 0 if no answer began.
	Status int
	// Usage is what the provider counted. If it did not report anything, it is estimated from
	// the sizes of request and answer. Nil for a request that was refused, and for one whose
	// answer could not be read.
	Usage *model.Usage
	// CostMicros is the cost in millionths of a US dollar; nil if it is unknown.
	CostMicros *int64
	// Context is the context of the conversation that the program has with the model; nil
	// if the request does not belong to it.
	Context *Context
	// Overflow is set if the request did not fit into the model's context, Limited if it was
	// refused because of a rate limit, which ends at Until; the zero time is unknown.
	Overflow, Limited bool
	Until             time.Time
	// Cut is set if the answer ended before its end, Unread if the meter could not read it.
	Cut, Unread bool
	// Message is the beginning of the provider's error.
	Message string
	// FirstByte and Took are the times until the head of the answer, and until its end.
	FirstByte, Took time.Duration
	// Total is the usage of all requests until now, this one included.
	Total Total
}

// Context is how full the context of a conversation is, in tokens.
type Context struct {
	Used int64 `json:"used"`
	// Window is the size of the model's context; 0 if it is unknown.
	Window int64 `json:"window,omitempty"`
	// Estimated is set if the provider did not report the tokens.
	Estimated bool `json:"estimated,omitempty"`
}

// exchange is a request under way.
type exchange struct {
	meter             *Meter
	began             time.Time
	request, response *queue
	record            Exchange
	encoding          string // of the request
	model             string // in the path
	// headed is closed when the head of the answer is known, or that there is none.
	headed         chan struct{}
	heading, over  sync.Once
	answerEncoding string
}

func newExchange(m *Meter, p Provider, r *http.Request, path string) *exchange {
	x := &exchange{meter: m, began: time.Now(), request: newQueue(), response: newQueue(), headed: make(chan struct{}),
		encoding: r.Header.Get("Content-Encoding")}
	x.record.Provider = p
	x.record.API, x.model = apiOf(r.Method, path)
	return x
}

// answer reads the head of an answer.
func (x *exchange) answer(resp *http.Response) {
	x.heading.Do(func() {
		x.record.Status = resp.StatusCode
		x.record.FirstByte = time.Since(x.began)
		x.answerEncoding = resp.Header.Get("Content-Encoding")
		if wait := model.RetryAfter(resp.Header, time.Now(), maxWait); wait > 0 {
			x.record.Until = time.Now().Add(wait)
		}
		close(x.headed)
	})
}

// ended follows the last byte of the answer.
func (x *exchange) ended() { x.over.Do(func() { x.meter.fallBehind(1) }) }

// finish ends the bodies that have not ended.
func (x *exchange) finish(err error) {
	x.ended()
	x.heading.Do(func() { close(x.headed) })
	x.request.finish(err)
	x.response.finish(err)
}

// read reads the bodies of an exchange, and reports it.
func (x *exchange) read() {
	defer x.meter.fallBehind(-1)
	defer x.ended()
	req := readRequest(x.request, x.encoding)
	_, _ = io.Copy(io.Discard, x.request) // what could not be read
	<-x.headed
	a, err := readAnswer(x.record.API, x.response, x.answerEncoding)
	_, end := io.Copy(io.Discard, x.response)
	skipped := errors.Is(end, errSkipped)
	x.record.Cut, x.record.Unread = end != nil && !skipped && !a.complete(), skipped || end == nil && err != nil
	x.judge(&a)
	r := &x.record
	r.Took = time.Since(x.began)
	r.Model = firstOf(x.model, req.model, a.model)
	x.meter.add(r, &req)
}

// judge fills the record with what the answer says.
func (x *exchange) judge(a *answer) {
	r := &x.record
	r.Message = a.fault.Text()
	if r.API == "" {
		r.Limited = r.Status == http.StatusTooManyRequests
		return
	}
	r.Overflow = r.Status != 0 && a.overflow(r.Status)
	r.Limited = a.limited(r.Status)
	if r.Limited && r.Until.IsZero() && a.fault.RetryAfter > 0 {
		r.Until = time.Now().Add(a.fault.RetryAfter)
	}
	if !r.Limited && r.Status < http.StatusInternalServerError {
		r.Until = time.Time{}
	}
	usage, known := a.usage()
	partial := r.Cut || r.Unread
	switch {
	case r.Status == 0 || r.Status >= http.StatusMultipleChoices,
		!known && a.fault.Message != "" && a.text == 0: // an error in place of an answer
		r.Cut, r.Unread = r.Cut && r.Status != 0, false
		return
	case !known && r.Unread:
		return
	case !known:
		usage = model.Usage{InputTokens: model.EstimateTokens(int(x.request.length()))}
	}
	if !known || partial {
		usage.Estimated = true
		usage.OutputTokens = max(usage.OutputTokens, model.EstimateTokens(int(a.text)))
	}
	r.Usage = &usage
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// rate returns what is known of the model of an exchange. The window is that of a model of
// the same name at the provider's own service if nothing else is known.
func (m *Meter) rate(r *Exchange) price.Rate {
	upstream := m.upstreams[r.Provider].String()
	provider := r.Provider.asked(r.API)
	rate, err := m.cfg.Rate(provider.priced(r.Model, upstream))
	if err != nil {
		m.cfg.Logger.Debug("price unknown", "model", r.Model, "error", err)
		return price.Rate{}
	}
	if rate.Window == 0 {
		if own, err := m.cfg.Rate(provider.priced(r.Model, provider.defaultUpstream())); err == nil {
			rate.Window = own.Window
		}
	}
	return rate
}

// add adds an exchange to the sums and reports it.
func (m *Meter) add(r *Exchange, req *request) {
	rate := m.rate(r)
	if r.Usage != nil && !r.Usage.Estimated {
		if micros, known := rate.Price(*r.Usage); known {
			r.CostMicros = &micros
		}
	}
	m.observing.Lock() // in the order of the sums
	defer m.observing.Unlock()
	m.sumUp(r, req, rate.Window)
	if m.cfg.Observe != nil {
		m.cfg.Observe(*r)
	}
}

// sumUp adds an exchange to the sums.
func (m *Meter) sumUp(r *Exchange, req *request, window int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Usage != nil && m.sum.conversation.goesOn(req, r.Usage) {
		r.Context = &Context{Used: r.Usage.InputTokens + r.Usage.OutputTokens, Window: int64(window),
			Estimated: r.Usage.Estimated}
	}
	m.sum.add(r)
	r.Total = m.sum.total
}

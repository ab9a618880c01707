package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Link is one model of a [Chain].
type Link struct {
	// Name is what the configuration calls it, for errors and notes.
	Name string
	// Model is what is asked. It does its own retrying; see [Guarded].
	Model Model
}

// Chain asks the first of its models, and the next one after any final failure,
// except when the caller's context ended, or when a divisible request is too
// long.
//
// Text that OnText received from a model that then failed is void. The response
// names the model that answered in Asked, and the failures of the previous ones
// in its notes. A Chain is safe for concurrent use if its models are.
type Chain struct{ links []Link }

// NewChain returns a chain of at least one model.
func NewChain(links ...Link) (*Chain, error) {
	if len(links) == 0 {
		return nil, &Error{Kind: KindInvalid, Msg: "make chain: there are no models"}
	}
	for i, l := range links {
		if l.Model == nil {
			return nil, &Error{Kind: KindInvalid, Msg: fmt.Sprintf("make chain: model %d is missing", i+1)}
		}
	}
	return &Chain{links: links}, nil
}

// Window is the smallest of the models' windows: what fits it fits all. It is 0
// when none has a limit.
func (c *Chain) Window() int {
	smallest := 0
	for _, l := range c.links {
		if w, ok := AsWindower(l.Model); ok && w.Window() > 0 && (smallest == 0 || w.Window() < smallest) {
			smallest = w.Window()
		}
	}
	return smallest
}

// Price is that of the dearest model; it is not known when that of one of them
// is not.
func (c *Chain) Price(u Usage) (micros int64, known bool) {
	for _, l := range c.links {
		p, ok := AsPricer(l.Model)
		if !ok {
			return 0, false
		}
		one, ok := p.Price(u)
		if !ok {
			return 0, false
		}
		micros = max(micros, one)
	}
	return micros, true
}

// Generate asks the models in order. When all fail, the error is an [*Error]
// that names each with its failure; it is of the first kind that may pass, else
// of the last one's.
func (c *Chain) Generate(ctx context.Context, req *Request) (*Response, error) {
	var failures []*Error
	tries := 0
	for i, l := range c.links {
		if i > 0 {
			if err := req.followed(ctx, failures[i-1]); err != nil {
				return nil, Stopped(err, tries)
			}
		}
		resp, err := l.generate(ctx, req)
		if err == nil && resp != nil {
			return c.answered(l, resp, failures, tries), nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if err == nil {
			err = errors.New("it returned neither an answer nor an error")
		}
		failure := asError(err)
		if failure.Kind == KindTooLong && req.Divisible || failure.Kind == KindCanceled {
			failure.Tries += tries
			return nil, failure
		}
		tries += failure.Tries
		failures = append(failures, failure)
	}
	return nil, c.failed(failures, tries)
}

// Announces returns true: the chain calls OnSend for models that do not.
func (c *Chain) Announces() bool { return true }

func (l *Link) generate(ctx context.Context, req *Request) (*Response, error) {
	if req.OnSend == nil {
		return l.Model.Generate(ctx, req)
	}
	own := *req
	own.OnSend = func(ctx context.Context, _ string) error { return req.OnSend(ctx, l.Name) }
	if !Announces(l.Model) {
		if err := req.OnSend(ctx, l.Name); err != nil {
			return nil, Stopped(err, 0)
		}
		own.OnSend = nil
	}
	return l.Model.Generate(ctx, &own)
}

func (c *Chain) answered(l Link, resp *Response, failures []*Error, tries int) *Response {
	out := *resp
	out.Asked = cmp.Or(out.Asked, l.Name)
	out.Tries += tries
	out.Notes = slices.Clone(resp.Notes)
	for i, f := range failures {
		out.Notes = append(out.Notes, fmt.Sprintf("%s answered instead of %s: %s", Redact(l.Name),
			Redact(c.links[i].Name), f.Error()))
	}
	return &out
}

func (c *Chain) failed(failures []*Error, tries int) *Error {
	if len(failures) == 1 {
		return failures[0]
	}
	last := failures[len(failures)-1]
	e := &Error{Kind: last.Kind, Status: last.Status, Hint: last.Hint, Detail: last.Detail, Tries: tries,
		Usage: last.Usage, Permanent: true}
	for _, f := range slices.Backward(failures) {
		e.Permanent = e.Permanent && f.Permanent
		if !f.Retryable() {
			continue
		}
		e.Kind, e.Status, e.Hint = f.Kind, f.Status, f.Hint
		if e.RetryAfter == 0 || f.RetryAfter < e.RetryAfter { // that of the first that can be asked again
			e.RetryAfter = f.RetryAfter
		}
	}
	texts := make([]string, len(failures))
	for i, f := range failures {
		texts[i] = Redact(c.links[i].Name) + ": " + f.Error()
	}
	e.Msg = fmt.Sprintf("none of %d models answered: %s", len(failures), strings.Join(texts, "; "))
	return e
}

// reNext matches the beginning of the next name in the name of a chain.
var reNext = lazyregexp.New(`\s*,\s*((?:builtin|exec|mock|openai|anthropic):)`)

// ChainNames splits the name of a chain into those of its models:
// "openai:a, anthropic:b" into two. A comma separates names only where one of
// the known kinds of model begins behind it, because commands and scripts have
// commas of their own. A name of a single model is returned as it is.
func ChainNames(name string) []string {
	var names []string
	for {
		at := reNext().FindStringSubmatchIndex(name)
		if at == nil {
			return append(names, strings.TrimSpace(name))
		}
		names = append(names, strings.TrimSpace(name[:at[0]]))
		name = name[at[2]:]
	}
}

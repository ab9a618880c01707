// Package price returns the prices and the context windows of models, from a
// built-in table and from a file of the user that overrides it.
//
// A price that is in neither is unknown, which is not 0: a report marks it as
// unknown instead of printing a sum that is too small.
package price

import (
	"context"
	"math"

	"github.com/perdure/perdure/model"
)

// Rate is the known data of a model at an endpoint. In the zero value nothing
// is known.
type Rate struct {
	// Known says that the prices below are known. They are US dollars for a
	// million tokens.
	Known bool
	// Input and Output are the prices of tokens of the request and the answer,
	// CacheRead and CacheWrite of those of the request that were read from or
	// written to the provider's cache of prompts.
	Input, Output, CacheRead, CacheWrite float64
	// Window is how many tokens a request may hold, prompt and answer
	// together, MaxOutput how many of them the answer. 0: not known.
	Window, MaxOutput int
	// Source says where this is from, for people: the table with its date, or
	// the file and line; empty when nothing is known.
	Source string
}

// Price returns what an answer that took this much costs, in millionths of a
// US dollar to the nearest one, and whether that is known.
func (r Rate) Price(u model.Usage) (micros int64, known bool) {
	if !r.Known {
		return 0, false
	}
	// A dollar for a million tokens is a millionth of a dollar for one.
	plain := max(0, u.InputTokens-u.CachedTokens-u.CacheWriteTokens)
	sum := float64(plain)*r.Input + float64(u.CachedTokens)*r.CacheRead +
		float64(u.CacheWriteTokens)*r.CacheWrite + float64(u.OutputTokens)*r.Output
	if sum >= math.MaxInt64/4 {
		return math.MaxInt64 / 4, true // more than any budget, and far from overflow
	}
	return int64(math.Round(sum)), true
}

// Attach returns m with a rate: its answers say what they cost and who gave
// them, and it knows its window. name is what the configuration calls it.
func Attach(m model.Model, name string, r Rate) model.Model {
	return &priced{Model: m, name: name, rate: r}
}

// priced is a model with a rate.
type priced struct {
	model.Model
	name string
	rate Rate
}

// Unwrap returns the model without the rate.
func (p *priced) Unwrap() model.Model { return p.Model }

// Window is that of the rate, or of the model.
func (p *priced) Window() int {
	if p.rate.Window > 0 {
		return p.rate.Window
	}
	if w, ok := model.AsWindower(p.Model); ok {
		return w.Window()
	}
	return 0
}

// Price is that of the rate.
func (p *priced) Price(u model.Usage) (micros int64, known bool) { return p.rate.Price(u) }

// Generate asks the model and adds the cost to the answer.
func (p *priced) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	resp, err := p.Model.Generate(ctx, req)
	if err != nil || resp == nil {
		return resp, err
	}
	out := *resp
	out.Asked = p.name
	if micros, known := p.rate.Price(resp.Usage); known {
		out.CostMicros = &micros
	}
	return &out, nil
}

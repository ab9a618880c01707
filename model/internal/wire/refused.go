package wire

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/model"
)

// Options are the parts of a request that not every server takes, as they are to be sent.
type Options struct {
	// Temperature is nil for none.
	Temperature *float64
	// Schema is the schema of the answer, nil for none.
	Schema json.RawMessage
	// Tools are what the model may call.
	Tools []model.Tool
	// Shared are the places at which the prompt is divided, so that the server can keep it
	// up to the last one; see [model.Request].
	Shared []int
}

// The options, as [Options.refusedBy] names them.
const (
	optionTemperature = iota
	optionSchema
	optionShared
	optionTools
)

// refusals are the options that a model has refused. A schema is refused by itself: another
// one can use only keywords that the server knows.
type refusals struct {
	temperature, shared, tools atomic.Bool
	schemas                    sync.Map // of hashes
}

func (r *refusals) add(option int, o Options) {
	switch option {
	case optionTemperature:
		r.temperature.Store(true)
	case optionSchema:
		r.schemas.Store(sha256.Sum256(o.Schema), true)
	case optionShared:
		r.shared.Store(true)
	case optionTools:
		r.tools.Store(true)
	}
}

func (r *refusals) schema(schema json.RawMessage) bool {
	_, refused := r.schemas.Load(sha256.Sum256(schema))
	return refused
}

// minShared is the least beginning of a prompt worth keeping, in bytes: providers keep none
// of less than 1,024 tokens.
const minShared = 4 << 10

// Options returns what of a request is to be sent: all that the model has not refused.
func (c *Caller) Options(req *model.Request) Options {
	var o Options
	if !c.refused.temperature.Load() {
		o.Temperature = req.Temperature
	}
	if req.Schema != nil && !c.NoSchema && !c.refused.schema(req.Schema) {
		o.Schema = req.Schema
	}
	if n := len(req.Shared); n > 0 && req.Shared[n-1] >= minShared && c.Keeps && !c.refused.shared.Load() {
		o.Shared = req.Shared
	}
	if !c.NoTools && !c.refused.tools.Load() {
		o.Tools = req.Tools
	}
	return o
}

// Generate calls send with the options of a request, and again without an option that the
// model refuses.
func (c *Caller) Generate(ctx context.Context, req *model.Request,
	send func(Options) (*model.Response, error)) (*model.Response, error) {
	for {
		sent := c.Options(req)
		resp, err := send(sent)
		option := sent.refusedBy(err)
		if option < 0 {
			return c.noted(req, resp, sent), err
		}
		c.refused.add(option, sent)
		refusal, _ := errors.AsType[*model.Error](err)
		if err := announce(ctx, req, refusal); err != nil {
			return nil, model.Stopped(err, 1)
		}
	}
}

// announce announces that a request failed and that another one is sent.
func announce(ctx context.Context, req *model.Request, failed *model.Error) error {
	if req.OnFailed != nil {
		if err := req.OnFailed(ctx, failed); err != nil {
			return err
		}
	}
	if req.OnSend == nil {
		return nil
	}
	return req.OnSend(ctx, "")
}

// noted adds what of the request was not sent to the notes of an answer.
func (c *Caller) noted(req *model.Request, resp *model.Response, sent Options) *model.Response {
	if resp != nil && req.Temperature != nil && sent.Temperature == nil {
		resp.Notes = append(resp.Notes, model.NoteNoTemperature)
	}
	if resp != nil && req.Schema != nil && sent.Schema == nil && !c.NoSchema {
		resp.Notes = append(resp.Notes, model.NoteNoSchema)
	}
	return resp
}

// What servers say of an option that they do not take. Servers that hold answers to schemas
// with tools name these.
var (
	reSchema = lazyregexp.New(`(?i)response_?format|schema|structured output|\btools?\b|tool_choice|grammar`)
	reShared = lazyregexp.New(`(?i)cache_control`)
	reTools  = lazyregexp.New(`(?i)\btools?\b|tool_choice|tool-choice|function`)
)

// refusedBy returns the option that was sent and that an error refuses, -1 for none.
func (o Options) refusedBy(err error) int {
	e, ok := errors.AsType[*model.Error](err)
	if ok && o.refusesTools(e) {
		return optionTools
	}
	if !ok || !slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented},
		e.Status) || e.Kind == model.KindTooLong {
		return -1
	}
	switch {
	case o.Temperature != nil && strings.Contains(e.Msg, "temperature"):
		return optionTemperature
	case len(o.Shared) > 0 && reShared().MatchString(e.Msg):
		return optionShared
	case o.Schema != nil && reSchema().MatchString(e.Msg):
		return optionSchema
	}
	return -1
}

// refusesTools reports whether an error refuses the tools that were sent. OpenRouter answers with a
// status of 404 then, llama.cpp with 500.
func (o Options) refusesTools(e *model.Error) bool {
	if len(o.Tools) == 0 || e.Kind == model.KindTooLong {
		return false
	}
	switch _, why, _ := strings.Cut(e.Msg, " answers "); e.Status { // the address and the model are before that
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusNotImplemented, http.StatusNotFound,
		http.StatusInternalServerError:
		return reTools().MatchString(why)
	}
	return false
}

// IsObject reports whether a schema allows objects only.
func IsObject(schema json.RawMessage) bool {
	var s struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

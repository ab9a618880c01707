package wire

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/perdure/perdure/model"
)

// Options are the parts of a request that not every server takes, as they are to be sent.
type Options struct {
	// Temperature and Seed are nil for none.
	Temperature *float64
	Seed        *int64
	// Schema is the schema of the answer, nil for none. With JSONObject the server is asked for
	// any JSON object.
	Schema     json.RawMessage
	JSONObject bool
	// Tools are what the model may call.
	Tools []model.Tool
	// Shared are the places at which the prompt is divided, so that the server can keep it
	// up to the last one; see [model.Request].
	Shared []int
	// System is the role of the system text, [RoleUser] to send it with the first message, empty
	// if there is none.
	System string
	// LimitName is the field for the limit of an answer, empty for none; MaxOutput is the limit,
	// 0 for none.
	LimitName string
	MaxOutput int
	// Stream asks for a stream, StreamUsage for the usage at its end.
	Stream, StreamUsage bool
	// Params are further fields of the request.
	Params map[string]json.RawMessage
}

// The roles of the system text.
const (
	RoleSystem    = "system"
	RoleDeveloper = "developer"
	RoleUser      = "user"
)

// The names of the limit of an answer in the OpenAI protocol.
const (
	MaxTokens           = "max_tokens"
	MaxCompletionTokens = "max_completion_tokens"
)

// minShared is the least beginning of a prompt worth keeping, in bytes: providers keep none
// of less than 1,024 tokens.
const minShared = 4 << 10

// options returns all that a request can have, before what the model refuses is left out.
func (c *Caller) options(req *model.Request) Options {
	o := Options{Temperature: req.Temperature, Seed: req.Seed, LimitName: c.LimitName, MaxOutput: req.MaxOutputTokens,
		Stream: true, StreamUsage: true, Params: maps.Clone(c.Params)}
	if req.System != "" {
		o.System = RoleSystem
	}
	if c.MaxOutput > 0 {
		o.MaxOutput = cmp.Or(o.MaxOutput, c.MaxOutput)
	}
	if !c.NoSchema {
		o.Schema = req.Schema
	}
	if n := len(req.Shared); n > 0 && req.Shared[n-1] >= minShared && c.Keeps {
		o.Shared = req.Shared
	}
	if !c.NoTools {
		o.Tools = req.Tools
	}
	return o
}

// leaveOut applies a finding.
func (o *Options) leaveOut(f model.Finding) {
	list := parts()
	for i := range list {
		p := &list[i]
		if p.sent(o) && p.key(o) == f.Part {
			p.replace(o, f.Value)
			return
		}
	}
	for name := range o.Params {
		if f.Part == partParam+name {
			delete(o.Params, name)
		}
	}
	n, err := strconv.Atoi(f.Value)
	if f.Part == partMaxOutput && err == nil && n > 0 && (o.MaxOutput == 0 || n < o.MaxOutput) {
		o.MaxOutput = n
	}
}

// part is a part of a request that some servers refuse.
type part struct {
	// key names it in a finding. It includes the value where other values may be accepted.
	key func(*Options) string
	// sent reports whether a request has the part.
	sent func(*Options) bool
	// replace replaces it by a value; empty: leaves it out.
	replace func(o *Options, value string)
	// instead returns the value that is tried next.
	instead func(o *Options, r *refusal) string
	// names reports whether a text names the part.
	names func(text string, o *Options) bool
	// mentioned is set if any error that names the part is taken for a refusal; otherwise the error
	// has to say so.
	mentioned bool
	// statuses are further HTTP statuses with which servers refuse it.
	statuses []int
}

// The names of findings that are no row of the table.
const (
	partParam     = "param "
	partMaxOutput = "max_output"
	partWindow    = "window"
)

// constant returns a key without a value.
func constant(name string) func(*Options) string { return func(*Options) string { return name } }

// nothing is the value of a part that is left out.
func nothing(*Options, *refusal) string { return "" }

func temperatureKey(o *Options) string {
	return "temperature=" + strconv.FormatFloat(*o.Temperature, 'g', -1, 64)
}

// schemaKey names a schema by its hash: another one can use only keywords that the server knows.
func schemaKey(o *Options) string {
	sum := sha256.Sum256(o.Schema)
	if o.JSONObject {
		return "json_object"
	}
	return "schema " + hex.EncodeToString(sum[:8])
}

// nextSchema returns json_object if the server holds answers to no schema.
func nextSchema(o *Options, r *refusal) string {
	if !o.JSONObject && IsObject(o.Schema) && reSchemaForm().MatchString(r.text) {
		return "json_object"
	}
	return ""
}

func replaceSchema(o *Options, value string) {
	o.JSONObject = value == "json_object"
	if !o.JSONObject {
		o.Schema = nil
	}
}

// nextLimit returns the other name of the limit of an answer, or none if that is refused, too.
func nextLimit(o *Options, r *refusal) string {
	other := map[string]string{MaxTokens: MaxCompletionTokens, MaxCompletionTokens: MaxTokens}[o.LimitName]
	if r.tried[partLimit(other)] {
		return ""
	}
	return other
}

func partLimit(name string) string { return "limit " + name }

// nextRole returns the role to try instead of that of the system text.
func nextRole(o *Options, r *refusal) string {
	if o.System == RoleSystem && reDeveloper().MatchString(r.text) {
		return RoleDeveloper
	}
	return RoleUser
}

// parts returns the table of the parts that servers refuse, in the order in which an error is
// compared with them.
func parts() []part {
	return []part{
		{key: constant("tools"), sent: func(o *Options) bool { return len(o.Tools) > 0 },
			replace: func(o *Options, _ string) { o.Tools = nil }, instead: nothing, mentioned: true,
			names: matches(reTools()), statuses: []int{404, 500}},
		{key: constant("cache_control"), sent: func(o *Options) bool { return len(o.Shared) > 0 },
			replace: func(o *Options, _ string) { o.Shared = nil }, instead: nothing, mentioned: true,
			names: matches(reShared())},
		{key: constant("stream_options"), sent: func(o *Options) bool { return o.Stream && o.StreamUsage },
			replace: func(o *Options, _ string) { o.StreamUsage = false }, instead: nothing, mentioned: true,
			names: matches(reStreamOptions())},
		{key: temperatureKey, sent: func(o *Options) bool { return o.Temperature != nil },
			replace: func(o *Options, _ string) { o.Temperature = nil }, instead: nothing, mentioned: true,
			names: matches(reTemperature())},
		{key: constant("seed"), sent: func(o *Options) bool { return o.Seed != nil },
			replace: func(o *Options, _ string) { o.Seed = nil }, instead: nothing,
			names: matches(reSeed())},
		{key: func(o *Options) string { return partLimit(o.LimitName) },
			sent:    func(o *Options) bool { return o.LimitName != "" && o.MaxOutput > 0 },
			replace: func(o *Options, value string) { o.LimitName = value }, instead: nextLimit,
			names: func(text string, o *Options) bool { return reField(o.LimitName).MatchString(text) }},
		{key: func(o *Options) string { return "role " + o.System },
			sent:    func(o *Options) bool { return o.System != "" && o.System != RoleUser },
			replace: func(o *Options, value string) { o.System = value }, instead: nextRole, mentioned: true,
			names: matches(reSystem()), statuses: []int{500}},
		{key: schemaKey, sent: func(o *Options) bool { return o.Schema != nil },
			replace: replaceSchema, instead: nextSchema, mentioned: true, names: matches(reSchema())},
		{key: constant("stream"), sent: func(o *Options) bool { return o.Stream },
			replace: func(o *Options, _ string) { o.Stream = false }, instead: nothing,
			names: matches(reStream()), statuses: []int{405, 406, 415}},
	}
}

// noteOnce returns the note on a finding, for the answer that proves it.
func noteOnce(f model.Finding) string {
	if f.Value == "" {
		return fmt.Sprintf("the server refuses %q; it is left out of later requests", f.Part)
	}
	return fmt.Sprintf("the server refuses %q; later requests have %q instead", f.Part, f.Value)
}

// paramNames returns the names of the further fields, in order.
func (o *Options) paramNames() []string { return slices.Sorted(maps.Keys(o.Params)) }

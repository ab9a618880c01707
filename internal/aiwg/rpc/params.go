package rpc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"

	"github.com/perdure/perdure"
)

// params are the parameters of a call by name. A parameter that was read is removed, so
// that the others can be kept.
type params struct {
	values map[string]json.RawMessage
	err    error // the first invalid parameter
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = invalidParams(fmt.Sprintf(format, args...))
	}
}

// take returns a parameter that can have several names, nil if it is missing or null.
func (p *params) take(names ...string) json.RawMessage {
	var found json.RawMessage
	for _, name := range names {
		if v := p.values[name]; given(v) && found == nil {
			found = v
		}
		delete(p.values, name)
	}
	return found
}

func given(raw json.RawMessage) bool { return raw != nil && string(raw) != "null" }

func (p *params) text(names ...string) (text string, ok bool) {
	raw := p.take(names...)
	if raw == nil {
		return "", false
	}
	if json.Unmarshal(raw, &text) != nil {
		p.fail("%s is not a string", names[0])
	}
	return text, true
}

// whole reads an integer; 5.0 is one.
func (p *params) whole(least, most int64, names ...string) (n int64, ok bool) {
	raw := p.take(names...)
	if raw == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || v != math.Trunc(v) || v < float64(least) || v > float64(most) {
		p.fail("%s is not an integer from %d to %d", names[0], least, most)
	}
	if n, err = strconv.ParseInt(string(raw), 10, 64); err != nil {
		n = int64(v)
	}
	return n, true
}

func (p *params) flag(names ...string) (value, ok bool) {
	raw := p.take(names...)
	if raw != nil && json.Unmarshal(raw, &value) != nil {
		p.fail("%s is not a boolean", names[0])
	}
	return value, raw != nil
}

func (p *params) object(names ...string) (members map[string]json.RawMessage) {
	if raw := p.take(names...); raw != nil && json.Unmarshal(raw, &members) != nil {
		p.fail("%s is not an object", names[0])
	}
	return members
}

// taskID reads the ID of the task.
func (p *params) taskID() string {
	id, _ := p.text("taskId", "task_id", "id")
	if id == "" {
		p.fail("Missing required parameter: taskId")
	}
	return id
}

// fence reads the token of a lease, nil if there is none.
func (p *params) fence() *int64 {
	if n, ok := p.whole(0, math.MaxInt64, "fence"); ok {
		return &n
	}
	return nil
}

// failure reads an error as in records: a string, or an object with a kind and a
// message.
func (p *params) failure() perdure.Failure {
	f := perdure.Failure{Kind: "unknown"}
	switch raw := p.take("error", "message"); {
	case raw == nil:
		f.Message = "the worker gave no reason"
	case json.Unmarshal(raw, &f.Message) == nil:
	default:
		var e struct {
			Kind    string `json:"kind"`
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &e) != nil {
			p.fail("error is not a string or an object with a kind and a message")
		}
		f.Kind, f.Message = cmp.Or(e.Kind, f.Kind), e.Message
	}
	if kind, ok := p.text("kind"); ok {
		f.Kind = kind
	}
	f.Retry, _ = p.flag("retry")
	return f
}

// outcome reads a result: text, or an object that is also kept as data.
func (p *params) outcome() (r perdure.Result) {
	raw := p.take("result")
	if raw == nil || json.Unmarshal(raw, &r.Text) == nil {
		return r
	}
	r.Text = string(raw)
	if raw[0] == '{' {
		r.Data = raw
	}
	return r
}

// rest returns metadata with the parameters that were not read, unless it has members of
// the same names.
func (p *params) rest(metadata map[string]json.RawMessage) map[string]json.RawMessage {
	if len(p.values) == 0 {
		return metadata
	}
	all := maps.Clone(p.values)
	maps.Copy(all, metadata)
	return all
}

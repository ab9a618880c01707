package rpc

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"

	"github.com/perdure/perdure"
)

// params are the parameters of a call by name. What is read is taken out, so
// that the rest can be kept.
type params map[string]json.RawMessage

// take returns a parameter that may have several names; nil when it is missing
// or null.
func (p params) take(names ...string) json.RawMessage {
	var found json.RawMessage
	for _, name := range names {
		if v, there := p[name]; there && string(v) != "null" && found == nil {
			found = v
		}
		delete(p, name)
	}
	return found
}

func (p params) text(names ...string) (text string, there bool, err error) {
	raw := p.take(names...)
	if raw == nil {
		return "", false, nil
	}
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", false, invalidParams(fmt.Sprintf("%s is no text", names[0]))
	}
	return text, true, nil
}

// whole reads a whole number; 5.0 is one.
func (p params) whole(least, most int64, names ...string) (n int64, there bool, err error) {
	raw := p.take(names...)
	if raw == nil {
		return 0, false, nil
	}
	v, perr := strconv.ParseFloat(string(raw), 64)
	if perr != nil || v != math.Trunc(v) || v < float64(least) || v > float64(most) {
		return 0, false, invalidParams(fmt.Sprintf("%s is no whole number from %d to %d", names[0], least, most))
	}
	if n, perr = strconv.ParseInt(string(raw), 10, 64); perr != nil {
		n = int64(v)
	}
	return n, true, nil
}

func (p params) flag(names ...string) (value, there bool, err error) {
	raw := p.take(names...)
	if raw == nil {
		return false, false, nil
	}
	if json.Unmarshal(raw, &value) != nil {
		return false, false, invalidParams(fmt.Sprintf("%s is neither true nor false", names[0]))
	}
	return value, true, nil
}

func (p params) object(names ...string) (map[string]json.RawMessage, error) {
	raw := p.take(names...)
	if raw == nil {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil || members == nil {
		return nil, invalidParams(fmt.Sprintf("%s is no object", names[0]))
	}
	return members, nil
}

// taskID reads which task is meant.
func (p params) taskID() (string, error) {
	id, there, err := p.text("taskId", "task_id", "id")
	if err == nil && (!there || id == "") {
		err = invalidParams("Missing required parameter: taskId")
	}
	return id, err
}

// fence reads the token of a lease, nil when none is given.
func (p params) fence() (*int64, error) {
	n, there, err := p.whole(0, math.MaxInt64, "fence")
	if !there {
		return nil, err
	}
	return &n, nil
}

// failure reads an error as records have it: a text, or an object with a kind
// and a message.
func (p params) failure() (perdure.Failure, error) {
	f := perdure.Failure{Kind: "unknown"}
	raw := p.take("error", "message")
	switch {
	case raw == nil:
		f.Message = "the worker gave no reason"
	case raw[0] == '"':
		if json.Unmarshal(raw, &f.Message) != nil {
			return f, invalidParams("error is no text")
		}
	default:
		var e struct {
			Kind    string `json:"kind"`
			Message string `json:"message"`
		}
		if json.Unmarshal(raw, &e) != nil || raw[0] != '{' {
			return f, invalidParams("error is neither a text nor an object with a kind and a message")
		}
		if e.Kind != "" {
			f.Kind = e.Kind
		}
		f.Message = e.Message
	}
	if kind, there, err := p.text("kind"); err != nil || there {
		f.Kind = kind
		if err != nil {
			return f, err
		}
	}
	var err error
	f.Retry, _, err = p.flag("retry")
	return f, err
}

// outcome reads a result: text, or an object that is kept beside its text.
func (p params) outcome() (perdure.Result, error) {
	raw := p.take("result")
	switch {
	case raw == nil:
		return perdure.Result{}, nil
	case raw[0] == '"':
		var r perdure.Result
		if json.Unmarshal(raw, &r.Text) != nil {
			return r, invalidParams("result is no text")
		}
		return r, nil
	case raw[0] == '{':
		return perdure.Result{Text: string(raw), Data: raw}, nil
	}
	return perdure.Result{Text: string(raw)}, nil
}

// rest are the parameters that nobody asked for: they are kept in the metadata,
// as unknown members of records are, where they do not hide what is there.
func (p params) rest(metadata map[string]json.RawMessage) map[string]json.RawMessage {
	if len(p) == 0 {
		return metadata
	}
	all := maps.Clone(map[string]json.RawMessage(p))
	maps.Copy(all, metadata)
	return all
}

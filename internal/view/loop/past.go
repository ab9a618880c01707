package loop

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/perdure/perdure/loop/record"
)

// past is the document from which a loop was imported.
type past struct {
	record.Past
	doc object
}

// object is a JSON object with its members in their order.
type object struct {
	keys []string
	vals map[string]json.RawMessage
}

func (o *object) set(key string, value json.RawMessage) {
	if _, there := o.vals[key]; !there {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = value
}

// readObject reads an object; false for what is none.
func readObject(raw json.RawMessage) (object, bool) {
	o := object{vals: make(map[string]json.RawMessage)}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, false
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		name, ok := key.(string)
		if err != nil || !ok || d.Decode(&value) != nil {
			return o, false
		}
		o.set(name, value)
	}
	return o, true
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range o.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(o.vals[key])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON writes the document. That of an imported loop also has everything from the
// imported document: histories continue, sums are added, unknown members stay, and
// replaced ones are in imported_from.
func (d State) MarshalJSON() ([]byte, error) {
	type plain State
	raw, err := json.Marshal(plain(d))
	if err != nil || d.past == nil {
		return raw, err
	}
	own, ok := readObject(raw)
	if !ok {
		return raw, nil
	}
	return json.Marshal(d.past.under(own))
}

// importedFrom is the member that says where a loop was imported from.
type importedFrom struct {
	LoopID    string    `json:"loop_id"`
	File      string    `json:"file,omitempty"`
	At        time.Time `json:"imported_at"`
	Iteration int       `json:"iteration"`
	// Replaced are the members of the imported document that have another value now.
	Replaced object `json:"replaced"`
}

// under adds the members of the imported document to the current one.
func (p *past) under(own object) object {
	from := importedFrom{LoopID: p.LoopID, File: p.From, At: p.At, Iteration: p.Iteration,
		Replaced: object{vals: make(map[string]json.RawMessage)}}
	for _, key := range p.doc.keys {
		was, is := p.doc.vals[key], own.vals[key]
		value, replaced := p.member(key, was, is)
		own.set(key, value)
		if replaced != nil {
			from.Replaced.set(key, replaced)
		}
	}
	if raw, err := json.Marshal(&from); err == nil {
		own.set("imported_from", raw)
	}
	return own
}

// member returns the value of a member now, and the replaced value; nil for none.
func (p *past) member(key string, was, is json.RawMessage) (value, replaced json.RawMessage) {
	switch key {
	case "iteration_history", "regression_events", "recovery_history", "error_history", "gates", "reinforcement_history",
		"risky_actions", "tool_call_history":
		return p.continued(was, is), nil
	case "started_at":
		if !empty(was) {
			return was, nil
		}
	case "detected_patterns":
		return joined(was, is), nil
	case "recovery_attempts", "error_count":
		return largest(was, is), nil
	case "progress", "configuration", "metrics", "persistence_metrics":
		return p.members(was, is)
	case "completion_checks":
		return p.continued(was, is), nil
	case "total_tokens", "total_cost_usd", "total_duration_seconds":
		return summed(was, is), nil
	case "total_iterations", "successful_iterations", "failed_iterations", "false_positives":
		return largest(was, is), nil
	}
	switch {
	case empty(is):
		return was, nil
	case empty(was) || sameJSON(was, is):
		return is, nil
	}
	return is, was
}

// members merges two objects member by member.
func (p *past) members(was, is json.RawMessage) (value, replaced json.RawMessage) {
	under, ok := readObject(was)
	over, also := readObject(is)
	if !ok || !also {
		if empty(is) {
			return was, nil
		}
		return is, nil
	}
	left := object{vals: make(map[string]json.RawMessage)}
	for _, key := range under.keys {
		v, was := p.member(key, under.vals[key], over.vals[key])
		over.set(key, v)
		if was != nil {
			left.set(key, was)
		}
	}
	value, err := json.Marshal(over)
	if err != nil {
		return is, nil
	}
	if len(left.keys) > 0 {
		replaced, _ = json.Marshal(left) // it was read as JSON
	}
	return value, replaced
}

// continued is the imported list, followed by the entries that are new.
func (p *past) continued(was, is json.RawMessage) json.RawMessage {
	var old, now []json.RawMessage
	if json.Unmarshal(was, &old) != nil {
		return is
	}
	if json.Unmarshal(is, &now) != nil {
		return was
	}
	for _, entry := range now {
		var of struct {
			Iteration int `json:"iteration"`
		}
		if json.Unmarshal(entry, &of) == nil && (of.Iteration == 0 || of.Iteration > p.Iteration) {
			old = append(old, entry)
		}
	}
	return encoded(old, is)
}

// encoded returns a list as JSON, or without one the fallback.
func encoded(list []json.RawMessage, fallback json.RawMessage) json.RawMessage {
	if raw, err := json.Marshal(list); err == nil && list != nil {
		return raw
	}
	return fallback
}

// joined are the entries of two lists, each once.
func joined(was, is json.RawMessage) json.RawMessage {
	var old, now []json.RawMessage
	if json.Unmarshal(was, &old) != nil || json.Unmarshal(is, &now) != nil {
		return is
	}
	for _, entry := range now {
		if !slices.ContainsFunc(old, func(o json.RawMessage) bool { return sameJSON(o, entry) }) {
			old = append(old, entry)
		}
	}
	return encoded(old, is)
}

// empty reports whether a value says nothing.
func empty(raw json.RawMessage) bool {
	return len(raw) == 0 || slices.Contains([]string{"null", "[]", "{}"}, string(bytes.TrimSpace(raw)))
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// largest is the larger of two numbers.
func largest(was, is json.RawMessage) json.RawMessage {
	a, errA := strconv.ParseFloat(string(was), 64)
	b, errB := strconv.ParseFloat(string(is), 64)
	if errB != nil || errA == nil && a > b {
		return was
	}
	return is
}

// summed is the sum of two numbers, of which one may not be known.
func summed(was, is json.RawMessage) json.RawMessage {
	a, errA := strconv.ParseFloat(string(was), 64)
	b, errB := strconv.ParseFloat(string(is), 64)
	switch {
	case errA != nil:
		return is
	case errB != nil || b == 0:
		return was
	}
	raw, err := json.Marshal(a + b)
	if err != nil {
		return is
	}
	return raw
}

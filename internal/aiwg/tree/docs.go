package tree

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// taskDoc is a record of daemon/tasks.json and of nodes/.
type taskDoc struct {
	ID          string          `json:"id"`
	Prompt      string          `json:"prompt"`
	Agent       *string         `json:"agent"`
	Priority    int             `json:"priority"`
	State       string          `json:"state"`
	Result      *string         `json:"result"`
	Data        json.RawMessage `json:"data,omitempty"`
	Error       json.RawMessage `json:"error"`
	ErrorKind   string          `json:"error_kind,omitempty"` // only for clients of the socket
	Output      string          `json:"output"`
	PID         json.RawMessage `json:"pid"`
	Attempts    int             `json:"attempts"`
	MaxAttempts int             `json:"max_attempts"`
	ActiveMS    float64         `json:"active_ms"`
	CreatedAt   time.Time       `json:"createdAt"`
	StartedAt   *time.Time      `json:"startedAt"`
	CompletedAt *time.Time      `json:"completedAt"`
	Metadata    any             `json:"metadata"`
}

type metaDoc struct {
	TreeID      string             `json:"tree_id,omitempty"`
	NodeID      string             `json:"node_id,omitempty"`
	ParentID    *string            `json:"parent_id"`
	Depth       int                `json:"depth"`
	Position    int                `json:"position"`
	Strategy    perdure.Strategy   `json:"decomposition_strategy"`
	Merge       string             `json:"merge_strategy"`
	Policy      perdure.Policy     `json:"failure_policy"`
	Variables   json.RawMessage    `json:"rlm_state,omitempty"`
	Context     perdure.ContextRef `json:"context_reference"`
	Cost        costDoc            `json:"cost_tracking"`
	Checkpoints []checkRef         `json:"checkpoints,omitempty"`
}

type costDoc struct {
	Input    int64   `json:"input_tokens"`
	Output   int64   `json:"output_tokens"`
	Cached   int64   `json:"cached_tokens,omitempty"`
	Calls    int64   `json:"calls,omitempty"`
	Unpriced int64   `json:"unpriced_calls,omitempty"`
	CostUSD  float64 `json:"total_cost_usd"`
}

type checkRef struct {
	ID   string `json:"checkpoint_id"`
	Name string `json:"name"`
	Path string `json:"snapshot_path"`
}

// extended is a document with more members than those of T.
type extended[T any] struct {
	doc  T
	more map[string]json.RawMessage
	// over are the names of those that replace members of T.
	over map[string]bool
}

// MarshalJSON writes the members of T and then the others by name.
func (e extended[T]) MarshalJSON() ([]byte, error) {
	raw, err := jsontree.Marshal(e.doc, "")
	if err != nil || len(e.more) == 0 {
		return raw, err
	}
	own := make(map[string]json.RawMessage)
	if err := json.Unmarshal(raw, &own); err != nil {
		return nil, err
	}
	if len(e.over) > 0 { // all members by name
		for key, value := range e.more {
			if own[key] == nil || e.over[key] {
				own[key] = value
			}
		}
		return jsontree.Marshal(own, "")
	}
	out := raw[:len(raw)-1]
	for _, key := range sortedKeys(e.more) {
		if _, taken := own[key]; taken {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, jsontree.MustMarshal(key)...), ':'), e.more[key]...)
	}
	return append(out, '}'), nil
}

// taskDoc returns the record of a task.
func (x *exporter) taskDoc(t *exportTree, task *perdure.Task) *taskDoc {
	name := t.names[task.ID]
	d := &taskDoc{ID: name.id, Prompt: task.Prompt, Agent: someText(task.Agent), Priority: task.Priority,
		PID:   json.RawMessage("null"),
		State: exportState(task.State), Data: task.Data, Output: task.Output, Attempts: task.Attempts,
		MaxAttempts: task.MaxAttempts, ActiveMS: float64(task.Active.Microseconds()) / 1000, CreatedAt: task.CreatedAt,
		StartedAt: someTime(task.StartedAt), CompletedAt: someTime(task.CompletedAt),
		Error: jsontree.MustMarshal(task.Error)}
	if task.State == perdure.Completed {
		d.Result = &task.Result
	}
	f := foreignOf(task.Metadata)
	if state := foreignState(task); state != "" && !x.verbatim {
		d.State, d.CompletedAt = state, nil
		if task.State == perdure.Cancelled {
			d.Error = json.RawMessage("null")
		}
	}
	m := metaDoc{Depth: task.Depth, Position: task.Position, Strategy: task.Strategy, Merge: task.Merge,
		Policy: task.Policy, Context: task.Context,
		Cost: usageDoc(&task.Usage)}
	if !t.single {
		m.TreeID, m.NodeID = t.id, name.node
	} else if f != nil {
		m.NodeID = f.Node
	}
	if up, ok := t.names[task.Parent]; ok {
		m.ParentID = &up.id
	}
	if s := t.states[task.ID]; s != nil {
		m.Variables = s.current()
		for _, c := range s.checks {
			m.Checkpoints = append(m.Checkpoints, checkRef{c.ID, c.Name, c.Path})
		}
	}
	more := without(task.Metadata, importKey)
	if f != nil && f.PID != nil && d.State == string(perdure.Running) {
		d.PID = f.PID
	}
	if f != nil && f.Error != nil && string(d.Error) != "null" {
		more["error_as_given"] = f.Error
	}
	d.Metadata = extended[metaDoc]{m, more, x.submitted(t, more)}
	if x.verbatim {
		x.forClient(t, d, task, &m, more)
	}
	return d
}

// someText returns a text, nil for an empty one.
func someText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// forClient changes a record to the form of clients of the socket, for which an error is a
// string.
func (x *exporter) forClient(t *exportTree, d *taskDoc, task *perdure.Task, m *metaDoc,
	more map[string]json.RawMessage) {
	if task.Error != nil {
		d.Error, d.ErrorKind = jsontree.MustMarshal(task.Error.Message), task.Error.Kind
	}
	if !t.single {
		return
	}
	if plain, err := m.plain(more); err == nil {
		d.Metadata = plain
	}
}

func someTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

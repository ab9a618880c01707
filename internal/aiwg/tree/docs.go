package tree

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// taskDoc is a record of daemon/tasks.json and of nodes/.
type taskDoc struct {
	ID          string            `json:"id"`
	Prompt      string            `json:"prompt"`
	Agent       string            `json:"agent"`
	Priority    int               `json:"priority"`
	State       string            `json:"state"`
	Result      *string           `json:"result"`
	Data        json.RawMessage   `json:"data,omitempty"`
	Error       json.RawMessage   `json:"error"`
	Output      string            `json:"output,omitempty"`
	Attempts    int               `json:"attempts"`
	MaxAttempts int               `json:"max_attempts"`
	ActiveMS    float64           `json:"active_ms"`
	CreatedAt   time.Time         `json:"createdAt"`
	StartedAt   *time.Time        `json:"startedAt"`
	CompletedAt *time.Time        `json:"completedAt"`
	Metadata    extended[metaDoc] `json:"metadata"`
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
	d := &taskDoc{ID: name.id, Prompt: task.Prompt, Agent: task.Agent, Priority: task.Priority,
		State: exportState(task.State), Data: task.Data, Output: task.Output, Attempts: task.Attempts,
		MaxAttempts: task.MaxAttempts, ActiveMS: float64(task.Active.Microseconds()) / 1000, CreatedAt: task.CreatedAt,
		StartedAt: someTime(task.StartedAt), CompletedAt: someTime(task.CompletedAt),
		Error: jsontree.MustMarshal(task.Error)}
	if task.State == perdure.Completed {
		d.Result = &task.Result
	}
	f := foreignOf(task.Metadata)
	if state := foreignState(task); state != "" {
		d.State, d.CompletedAt = state, nil
		if task.State == perdure.Cancelled {
			d.Error = json.RawMessage("null")
		}
	}
	m := metaDoc{Depth: task.Depth, Position: task.Position, Strategy: task.Strategy, Merge: task.Merge,
		Policy: task.Policy, Context: task.Context,
		Cost: costDoc{task.Usage.InputTokens, task.Usage.OutputTokens, task.Usage.CachedTokens, task.Usage.Calls,
			task.Usage.UnpricedCalls, task.Usage.CostUSD}}
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
	if f != nil && f.Error != nil && string(d.Error) != "null" {
		more["error_as_given"] = f.Error
	}
	d.Metadata = extended[metaDoc]{m, more, x.submitted(t, more)}
	return d
}

func someTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// treeDoc is a tree.json.
type treeDoc struct {
	Version       string          `json:"version"`
	ID            string          `json:"tree_id"`
	Name          string          `json:"name,omitempty"`
	Kind          string          `json:"kind,omitempty"`
	Configuration json.RawMessage `json:"configuration,omitempty"`
	Limits        *perdure.Limits `json:"limits,omitempty"`
	Root          *nodeDoc        `json:"root_task"`

	Metadata extended[treeMeta] `json:"metadata"`
}

type treeMeta struct {
	Status      string     `json:"status"`
	Partial     bool       `json:"partial,omitempty"`
	Total       int        `json:"total_nodes"`
	Completed   int        `json:"completed_nodes"`
	Failed      int        `json:"failed_nodes"`
	CostUSD     float64    `json:"total_cost_usd"`
	CreatedAt   time.Time  `json:"created_at"`
	CompletedAt *time.Time `json:"completed_at"`
}

// nodeDoc is a node of a tree.json.
type nodeDoc struct {
	NodeID   string     `json:"node_id"`
	TaskID   string     `json:"task_id"`
	Prompt   string     `json:"prompt"`
	Agent    string     `json:"agent,omitempty"`
	State    string     `json:"state"`
	Depth    int        `json:"depth"`
	Strategy string     `json:"decomposition_strategy"`
	Merge    string     `json:"merge_strategy"`
	Children []*nodeDoc `json:"children"`
}

// treeDoc returns the tree.json of a tree.

func (x *exporter) treeDoc(t *exportTree) any {
	d := treeDoc{Version: "1.0.0", ID: t.id, Name: t.Name, Kind: t.Kind, Configuration: t.Config}
	var more, fields map[string]json.RawMessage
	if t.record != nil {
		d.Kind, d.Configuration, fields, more = t.record.Kind, t.record.Configuration, t.record.Fields, t.record.Metadata
	}
	if t.Limits != (perdure.Limits{}) {
		d.Limits = &t.Limits
	}
	m := treeMeta{Partial: t.Partial, Total: len(t.tasks), CreatedAt: t.CreatedAt}
	nodes := make(map[perdure.TaskID]*nodeDoc, len(t.tasks))
	micros := int64(0)
	for i := range t.tasks {
		task := &t.tasks[i]
		state := cmp.Or(foreignState(task), exportState(task.State))
		n := &nodeDoc{NodeID: t.names[task.ID].node, TaskID: t.names[task.ID].id, Prompt: task.Prompt, Agent: task.Agent,
			State: state, Depth: task.Depth, Strategy: string(task.Strategy), Merge: task.Merge, Children: []*nodeDoc{}}
		nodes[task.ID] = n
		switch state {
		case string(perdure.Completed):
			m.Completed++
		case string(perdure.Failed):
			m.Failed++
		}
		micros += int64(task.Usage.CostUSD*1e6 + 0.5)
		if up := nodes[task.Parent]; up != nil { // parents come first
			up.Children = append(up.Children, n)
			continue
		}
		d.Root, m.Status, m.CompletedAt = n, state, someTime(task.CompletedAt)
	}
	m.CostUSD = float64(micros) / 1e6
	d.Metadata = extended[treeMeta]{doc: m, more: more}
	return extended[treeDoc]{doc: d, more: fields}
}

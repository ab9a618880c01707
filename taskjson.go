package perdure

import (
	"encoding/json"
	"math"
	"time"
)

// ShowTask is a task with its calls and its state, as `perdure show --json` prints it.
type ShowTask struct {
	Task
	Calls []Call
	// Variables are those of the task's own state, without values that are longer than
	// MaxInlineBytes; Checkpoints are its checkpoints, the oldest first. In JSON they are the
	// keys rlm_state and checkpoints of metadata.
	Variables   map[string]Variable
	Checkpoints []Checkpoint
	// Turns are those of a task that is answered by a REPL, see package rlm; nil for others.
	Turns json.RawMessage
}

// shownState are the keys of metadata with the state of a task.
type shownState struct {
	Variables   map[string]Variable `json:"rlm_state"`
	Checkpoints []Checkpoint        `json:"checkpoints"`
}

// taskJSON is the JSON form of a task: standard fields at the top, the fields about the
// tree under metadata.
type taskJSON struct {
	ID          TaskID                     `json:"id"`
	Prompt      string                     `json:"prompt"`
	Agent       string                     `json:"agent"`
	Priority    int                        `json:"priority"`
	State       State                      `json:"state"`
	Partial     bool                       `json:"partial,omitempty"`
	Skipped     bool                       `json:"skipped,omitempty"`
	Result      *string                    `json:"result"`
	Data        json.RawMessage            `json:"data,omitempty"`
	Error       *TaskError                 `json:"error"`
	Output      string                     `json:"output,omitempty"`
	Attempts    int                        `json:"attempts"`
	MaxAttempts int                        `json:"max_attempts"`
	Pending     int                        `json:"pending_children,omitempty"`
	WaitsFor    TaskID                     `json:"waits_for,omitzero"`
	ReadyAt     time.Time                  `json:"ready_at,omitzero"`
	ActiveMS    float64                    `json:"active_ms"`
	Usage       Usage                      `json:"usage"`
	Lease       *LeaseInfo                 `json:"lease,omitempty"`
	CreatedAt   time.Time                  `json:"createdAt"`
	StartedAt   *time.Time                 `json:"startedAt"`
	CompletedAt *time.Time                 `json:"completedAt"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
	Calls       *[]Call                    `json:"calls,omitempty"`
	Turns       json.RawMessage            `json:"turns,omitempty"`
}

// treeJSON are the keys of metadata that this package sets; all other keys are the user's.
type treeJSON struct {
	TreeID   TreeID      `json:"tree_id"`
	NodeID   NodeID      `json:"node_id"`
	ParentID *TaskID     `json:"parent_id"`
	Depth    int         `json:"depth"`
	Position int         `json:"position"`
	Strategy Strategy    `json:"decomposition_strategy"`
	Merge    string      `json:"merge_strategy"`
	Policy   Policy      `json:"failure_policy"`
	Context  contextJSON `json:"context_reference"`
	Cost     costJSON    `json:"cost_tracking"`
}

type contextJSON struct {
	ContextRef
	Source *string `json:"source"`
}

type costJSON struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	TotalCostUSD *float64 `json:"total_cost_usd"`
}

// MarshalJSON encodes the stable form of a task.
func (t Task) MarshalJSON() ([]byte, error) { return t.marshal(nil, nil) }

// MarshalJSON encodes the stable form of a task with its calls and its state.
func (t ShowTask) MarshalJSON() ([]byte, error) {
	calls := t.Calls
	if calls == nil {
		calls = []Call{}
	}
	if t.Variables == nil && t.Checkpoints == nil {
		return t.marshal(&calls, t.Turns)
	}
	all := make(map[string]json.RawMessage)
	if len(t.Metadata) > 0 {
		if err := json.Unmarshal(t.Metadata, &all); err != nil {
			return nil, err
		}
	}
	state, err := json.Marshal(shownState{t.Variables, t.Checkpoints})
	if err == nil {
		err = json.Unmarshal(state, &all) // adds the keys to the map
	}
	if err != nil {
		return nil, err
	}
	task := t.Task
	if task.Metadata, err = json.Marshal(all); err != nil {
		return nil, err
	}
	return task.marshal(&calls, t.Turns)
}

func (t *Task) marshal(calls *[]Call, turns json.RawMessage) ([]byte, error) {
	j := taskJSON{ID: t.ID, Prompt: t.Prompt, Agent: t.Agent, Priority: t.Priority, State: t.State, Partial: t.Partial,
		Skipped: t.Skipped, Data: t.Data,
		Error: t.Error, Output: t.Output, Attempts: t.Attempts, MaxAttempts: t.MaxAttempts, Pending: t.Pending,
		WaitsFor: t.WaitsFor, ReadyAt: t.ReadyAt, ActiveMS: float64(t.Active.Microseconds()) / 1000, Usage: t.Usage,
		Lease: t.Lease, CreatedAt: t.CreatedAt, StartedAt: someTime(t.StartedAt), CompletedAt: someTime(t.CompletedAt),
		Calls: calls, Turns: turns}
	if t.State == Completed {
		j.Result = &t.Result
	}
	own := treeJSON{TreeID: t.Tree, NodeID: t.Node, Depth: t.Depth, Position: t.Position, Strategy: t.Strategy,
		Merge: t.Merge, Policy: t.Policy, Context: contextJSON{ContextRef: t.Context}, Cost: costJSON{
			t.Usage.InputTokens, t.Usage.OutputTokens, t.Usage.knownCost()}}
	if t.Parent != 0 {
		own.ParentID = &t.Parent
	}
	if t.Context.Source != "" {
		own.Context.Source = &t.Context.Source
	}
	var err error
	j.Metadata, err = mergeMetadata(t.Metadata, own)
	if err != nil {
		return nil, err
	}
	return json.Marshal(j)
}

func mergeMetadata(user json.RawMessage, own treeJSON) (map[string]json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	if len(user) > 0 {
		if err := json.Unmarshal(user, &all); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(raw, &all) // adds the keys to the map
}

// UnmarshalJSON decodes the stable form.
func (t *Task) UnmarshalJSON(b []byte) error {
	_, err := t.unmarshal(b, nil)
	return err
}

// UnmarshalJSON decodes the stable form of a task with its calls and its state.
func (t *ShowTask) UnmarshalJSON(b []byte) error {
	turns, err := t.unmarshal(b, &t.Calls)
	if err != nil {
		return err
	}
	t.Turns = turns
	var state shownState
	if json.Unmarshal(t.Metadata, &state) != nil || state.Variables == nil || state.Checkpoints == nil {
		return nil // the keys are the user's
	}
	t.Variables, t.Checkpoints = state.Variables, state.Checkpoints
	var all map[string]json.RawMessage
	if err := json.Unmarshal(t.Metadata, &all); err != nil {
		return err
	}
	delete(all, "rlm_state")
	delete(all, "checkpoints")
	raw, err := json.Marshal(all)
	t.Metadata = raw
	return err
}

func (t *Task) unmarshal(b []byte, calls *[]Call) (turns json.RawMessage, err error) {
	var j taskJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return nil, err
	}
	var own treeJSON
	raw, err := json.Marshal(j.Metadata)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &own); err != nil {
		return nil, err
	}
	*t = Task{ID: j.ID, Node: own.NodeID, Tree: own.TreeID, Depth: own.Depth, Position: own.Position, Prompt: j.Prompt,
		Agent: j.Agent, Priority: j.Priority, State: j.State, Partial: j.Partial,
		Skipped: j.Skipped, Strategy: own.Strategy, Policy: own.Policy, Merge: own.Merge,
		Context: own.Context.ContextRef, Attempts: j.Attempts, MaxAttempts: j.MaxAttempts, Pending: j.Pending, Data: j.Data,
		Error: j.Error, Output: j.Output, Usage: j.Usage, Lease: j.Lease, CreatedAt: j.CreatedAt,
		WaitsFor: j.WaitsFor, ReadyAt: j.ReadyAt, StartedAt: timeOf(j.StartedAt), CompletedAt: timeOf(j.CompletedAt),
		Active: time.Duration(math.Round(j.ActiveMS*1000)) * time.Microsecond}
	if own.Context.Source != nil {
		t.Context.Source = *own.Context.Source
	}
	if own.ParentID != nil {
		t.Parent = *own.ParentID
	}
	if j.Result != nil {
		t.Result = *j.Result
	}
	if calls != nil && j.Calls != nil {
		*calls = *j.Calls
	}
	return j.Turns, t.userMetadata(j.Metadata)
}

// userMetadata sets the metadata to the keys that this package does not set.
func (t *Task) userMetadata(all map[string]json.RawMessage) error {
	for _, key := range []string{"tree_id", "node_id", "parent_id", "depth", "position", "decomposition_strategy",
		"merge_strategy", "failure_policy", "context_reference", "cost_tracking"} {
		delete(all, key)
	}
	raw, err := json.Marshal(all)
	if len(all) == 0 {
		raw = []byte("{}")
	}
	t.Metadata = raw
	return err
}

func someTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func timeOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

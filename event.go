package perdure

import (
	"encoding/json"
	"time"
)

// EventKind is the kind of an event.
type EventKind string

// The kinds that this package appends; executors may append others.
const (
	EventTreeCreated   EventKind = "tree.created"
	EventTreeCompleted EventKind = "tree.completed"
	EventTreeFailed    EventKind = "tree.failed"
	EventTreeCancelled EventKind = "tree.cancelled"
	EventTreeReopened  EventKind = "tree.reopened"
	EventTaskCreated   EventKind = "task.created"
	EventTaskStarted   EventKind = "task.started"
	EventTaskWaiting   EventKind = "task.waiting"
	EventTaskQueued    EventKind = "task.queued"
	EventTaskReleased  EventKind = "task.released"
	EventTaskCompleted EventKind = "task.completed"
	EventTaskFailed    EventKind = "task.failed"
	EventTaskCancelled EventKind = "task.cancelled"
	EventTaskRetried   EventKind = "task.retried"
	EventTaskLeaseLost EventKind = "task.lease_lost"
	EventTaskProgress  EventKind = "task.progress"
	EventCallStarted   EventKind = "call.started"
	EventCallCompleted EventKind = "call.completed"
	EventCallFailed    EventKind = "call.failed"

	EventVariableSet          EventKind = "variable.set"
	EventVariableDeleted      EventKind = "variable.deleted"
	EventVariableRenamed      EventKind = "variable.renamed"
	EventVariablesImported    EventKind = "variable.imported"
	EventCheckpointSaved      EventKind = "checkpoint.saved"
	EventCheckpointRolledBack EventKind = "checkpoint.rolled_back"
	EventCallUncertain        EventKind = "call.uncertain"
	EventCallDiverged         EventKind = "call.diverged"
	EventGateOpened           EventKind = "gate.opened"
	EventGateAnswered         EventKind = "gate.answered"
	EventLoopGateOpened       EventKind = "loop.gate_opened"
	EventLoopGateAnswered     EventKind = "loop.gate_answered"
	EventLoopGateToken        EventKind = "loop.gate_token"   // the gate has another token
	EventLoopGateRefused      EventKind = "loop.gate_refused" // a [GateRefusal]
	EventBudgetWarning        EventKind = "budget.warning"
	EventBudgetExceeded       EventKind = "budget.exceeded"
)

// Event is an entry of the event log.
type Event struct {
	// Seq numbers the events of a store without gaps, in the order in which
	// they were committed; removed trees leave gaps.
	Seq  int64           `json:"seq"`
	Time time.Time       `json:"time"`
	Tree TreeID          `json:"tree_id"`
	Task TaskID          `json:"task_id,omitempty"`
	Kind EventKind       `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// EventFilter selects events.
type EventFilter struct {
	// After is the number of the last event read before.
	After int64
	// Tree, when set, selects the events of one tree.
	Tree TreeID
	// Limit bounds the page; 0 means 1,000, which is also the maximum.
	Limit int
}

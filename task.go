package perdure

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/storage/sqldb"
)

// State is the state of a task or a tree.
type State string

// The states of a task. Completed, failed and cancelled are terminal until the user
// retries the task or reopens its tree.
const (
	Queued    State = "queued"
	Running   State = "running"
	Waiting   State = "waiting"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Partial is a state of trees only: the root completed, and parts are missing.
// [Store.Reopen] takes them up.
const Partial State = "partial"

// Terminal reports whether the state does not change any more by itself.
func (s State) Terminal() bool {
	return s == Completed || s == Partial || s == Failed || s == Cancelled
}

// CanBecome reports whether a task can change from one state to the other. From running to
// running is the takeover of a lost lease. A terminal task becomes queued or waiting only if
// it is reopened, see [Store.Reopen] and [Store.RetryTask].
func (s State) CanBecome(to State) bool {
	switch s {
	case Queued:
		return to == Running || to == Cancelled
	case Running:
		return true
	case Waiting:
		return to == Queued || to == Failed || to == Cancelled
	case Completed, Failed, Cancelled:
		return to == Queued || to == Waiting
	case Partial:
	}
	return false
}

// The numbers of the states in the database, and the same as SQL text.
const (
	stQueued    = sqldb.TaskQueued
	stRunning   = sqldb.TaskRunning
	stWaiting   = sqldb.TaskWaiting
	stCompleted = sqldb.TaskCompleted
	stFailed    = sqldb.TaskFailed
	stCancelled = sqldb.TaskCancelled

	dbQueued    = sqldb.SQLQueued
	dbRunning   = sqldb.SQLRunning
	dbWaiting   = sqldb.SQLWaiting
	dbCompleted = sqldb.SQLCompleted // the first one that is terminal
	dbFailed    = sqldb.SQLFailed
	dbCancelled = sqldb.SQLCancelled
	dbOpen      = sqldb.SQLOpen     // a list: all that are not terminal
	dbOpenTree  = sqldb.SQLOpenTree // the same for trees
)

var stateNames = [...]State{stQueued: Queued, stRunning: Running, stWaiting: Waiting,
	stCompleted: Completed, stFailed: Failed, stCancelled: Cancelled}

func stateOf(n int64) State {
	if n < 1 || n >= int64(len(stateNames)) {
		return State("")
	}
	return stateNames[n]
}

// treeStateOf returns the state of a tree from its columns.
func treeStateOf(state, partial int64) State {
	if state == stCompleted && partial == 1 {
		return Partial
	}
	return stateOf(state)
}

// number returns 0 for a state that does not exist.
func (s State) number() int64 {
	names := stateNames
	return int64(max(slices.Index(names[:], s), 0))
}

// Strategy is how the children of a task run.
type Strategy string

// The strategies. Children of a sequential task become claimable one after
// another, in the order of their positions.
const (
	Parallel   Strategy = "parallel"
	Sequential Strategy = "sequential"
)

// Policy is the effect of a child without a result on its parent.
type Policy string

// The policies. With PolicyFail the first child that fails permanently cancels its
// unfinished siblings; with PolicyPartial the other children continue and the parent
// merges the results that exist.
const (
	PolicyPartial Policy = "partial"
	PolicyFail    Policy = "fail"
)

// Limits of the values of a task; longer ones are refused with CodeInvalid.
const (
	MaxPromptBytes   = 64 << 20
	MaxResultBytes   = 64 << 20
	MaxMetadataBytes = 1 << 20
	MaxAgentBytes    = 256
	MaxErrorBytes    = 16 << 10
	// DefaultMaxAttempts is the default of [TaskSpec].MaxAttempts.
	DefaultMaxAttempts = 3
	// MaxPriority is the largest [TaskSpec].Priority, -MaxPriority the smallest.
	MaxPriority = 100
)

// ContextRef refers to the text that a task is about.
type ContextRef struct {
	// Type is full, slice, filtered, summary or none; empty means none.
	Type string `json:"type"`
	// Source is the context's ID, or another name of the text's origin.
	Source string `json:"source,omitempty"`
	// Offset and Length are the position of the slice in bytes.
	Offset int64 `json:"offset,omitempty"`
	Length int64 `json:"length,omitempty"`
	// SizeTokens is the estimated size.
	SizeTokens int64 `json:"size_tokens"`
	// Hash is the content hash of the source.
	Hash string `json:"content_hash,omitempty"`
}

// TaskSpec describes a task to create.
type TaskSpec struct {
	Prompt   string
	Agent    string
	Priority int
	// MaxAttempts defaults to DefaultMaxAttempts.
	MaxAttempts int
	// Strategy and Policy apply to the task's children. Strategy defaults to
	// Parallel, Policy to PolicyPartial, or to PolicyFail if Strategy is Sequential.
	Strategy Strategy
	Policy   Policy
	Merge    string
	Context  ContextRef
	// Metadata is a JSON object, kept as it is.
	Metadata json.RawMessage
	// Work is the planned work of the task and of those below it, unless it is part of the
	// Work of a task above. [Progress] is calculated from it.
	Work *Work
}

// Work is planned work.
type Work struct {
	// Levels has the tasks by depth: the task itself first, then its children.
	Levels []WorkLevel
	// Open is added to the number of the tree's tasks below which an unknown number of tasks
	// may follow. While there are such tasks, the remaining time is unknown.
	Open int
}

// WorkLevel is the planned work of one depth.
type WorkLevel struct {
	Tasks int64
	// Calls is the expected number of calls of these tasks together.
	Calls int64
}

// TaskError is the reason why a task, or its last attempt, ended without a result.
type TaskError struct {
	// Kind is for programs: "model", "budget_exceeded", "timeout", …
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Task is one node of a tree.
type Task struct {
	ID       TaskID
	Node     NodeID
	Tree     TreeID
	Parent   TaskID // 0 for a root
	Depth    int
	Position int
	Prompt   string
	Agent    string
	Priority int
	State    State
	// Partial is set on a completed task whose result lacks parts, Skipped on one that
	// did not run because a condition was false.
	Partial, Skipped bool

	Strategy Strategy
	Policy   Policy
	Merge    string
	Context  ContextRef
	Metadata json.RawMessage
	// Attempts counts the attempts begun; an attempt that was interrupted and
	// continues under another lease counts once.
	Attempts    int
	MaxAttempts int
	// Pending counts the children that are not terminal.
	Pending int
	// WaitsFor is the sibling that a queued task of a sequential parent waits for.
	WaitsFor TaskID
	// ReadyAt is when a queued task may be claimed; zero if it waits for a sibling.
	ReadyAt time.Time
	// Result and Data are set when the task completed. Data is structured.
	Result string
	Data   json.RawMessage
	Error  *TaskError
	// Output is what the task has streamed so far.
	Output      string
	Usage       Usage
	Lease       *LeaseInfo
	CreatedAt   time.Time
	StartedAt   time.Time // zero until first claimed
	CompletedAt time.Time // zero until terminal
	// Active is the running time of all attempts.
	Active time.Duration
}

// LeaseInfo describes the lease of a running task.
type LeaseInfo struct {
	Session   string    `json:"session"`
	Fence     int64     `json:"fence"`
	ClaimedAt time.Time `json:"claimed_at"`
	// Lost is set when the session is dead; the task may be claimed.
	Lost bool `json:"lost,omitempty"`
}

func (s *TaskSpec) validate() error {
	const op = "create task"
	switch {
	case len(s.Prompt) > MaxPromptBytes:
		return invalidf(op, "prompt has %d bytes, the limit is %d", len(s.Prompt), MaxPromptBytes)
	case !storable(s.Prompt):
		return invalidf(op, "prompt is not valid UTF-8 text")
	case len(s.Agent) > MaxAgentBytes || !storable(s.Agent):
		return invalidf(op, "agent is not a name of at most %d bytes", MaxAgentBytes)
	case s.Priority < -MaxPriority || s.Priority > MaxPriority:
		return invalidf(op, "priority %d is not between %d and %d", s.Priority, -MaxPriority, MaxPriority)
	case s.MaxAttempts < 0:
		return invalidf(op, "max attempts is %d, at least 1 is needed", s.MaxAttempts)
	case s.Strategy != "" && s.Strategy != Parallel && s.Strategy != Sequential:
		return invalidf(op, "strategy %q is not one of parallel, sequential", s.Strategy)
	case s.Policy != "" && s.Policy != PolicyPartial && s.Policy != PolicyFail:
		return invalidf(op, "policy %q is not one of partial, fail", s.Policy)
	case !storable(s.Merge) || !storable(s.Context.Source):
		return invalidf(op, "merge or context source is not valid UTF-8 text")
	}
	return validateObject(op, "metadata", s.Metadata, MaxMetadataBytes)
}

func (s *TaskSpec) withDefaults() TaskSpec {
	d := *s
	d.MaxAttempts = cmp.Or(d.MaxAttempts, DefaultMaxAttempts)
	d.Strategy = cmp.Or(d.Strategy, Parallel)
	if d.Policy == "" {
		d.Policy = PolicyPartial
		if d.Strategy == Sequential {
			d.Policy = PolicyFail
		}
	}
	d.Context.Type = cmp.Or(d.Context.Type, "none")
	if len(d.Metadata) == 0 {
		d.Metadata = json.RawMessage("{}")
	}
	return d
}

// storable reports whether both databases can store s as text.
func storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

func validateObject(op, field string, raw json.RawMessage, limit int) error {
	if len(raw) == 0 {
		return nil
	}
	if len(raw) > limit {
		return invalidf(op, "%s has %d bytes, the limit is %d", field, len(raw), limit)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return invalidf(op, "%s is not a JSON object", field)
	}
	if !storable(string(raw)) {
		return invalidf(op, "%s is not valid UTF-8 text", field)
	}
	return nil
}

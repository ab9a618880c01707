package perdure

import (
	"context"
	"encoding/json"
	"time"
)

// Limits bound a tree; 0 means no limit. The store enforces them for the whole tree, so that
// parallel tasks cannot exceed them together.
type Limits struct {
	// MaxNodes bounds the number of tasks; SoftNodes only causes a warning event.
	MaxNodes  int64 `json:"max_nodes,omitempty"`
	SoftNodes int64 `json:"soft_nodes,omitempty"`
	// Calls, Tokens (input and output) and CostMicros (millionths of a US
	// dollar) are reserved before a call and settled after it.
	Calls      int64 `json:"calls,omitempty"`
	Tokens     int64 `json:"tokens,omitempty"`
	CostMicros int64 `json:"cost_micros,omitempty"`
	// WallTime counts from the creation of the tree, or from when it was last reopened, in
	// nanoseconds.
	WallTime time.Duration `json:"wall_time,omitempty"`
}

func (l *Limits) negative() bool {
	return min(l.MaxNodes, l.Calls, l.Tokens, l.CostMicros, int64(l.WallTime)) < 0
}

// KindLoop is the kind of the trees of loops. All other trees are runs, or records
// of them, see [KindRecord].
const KindLoop = "loop"

// TreeSpec describes a tree to create.
type TreeSpec struct {
	// Kind selects the executor of the tree: "run", [KindLoop].
	Kind string
	// Name is for people; may be empty.
	Name string
	// Config is a JSON object for the executor.
	Config json.RawMessage
	Limits Limits
	// Placement restricts which processes claim the tree's tasks; see
	// [Placement.Satisfies]. Empty fields restrict nothing.
	Placement Placement
	// Owner, when set, is the only session that claims the tree's tasks while
	// it lives.
	Owner *Session
	Root  TaskSpec
	// Contexts are the IDs of contexts that the tree needs; they are kept as long as it.
	Contexts []string
	// IdempotencyKey, when set, makes a second creation with the same key return the
	// first tree.
	IdempotencyKey string
	// Request identifies what was requested with the key, such as a digest. A creation with
	// the same key and another Request fails with CodeConflict; "" equals any.
	Request string
	// LateState leaves out the tree's state, which then begins with its first change. It is for
	// records of other programs, which have a state only if that program wrote one.
	LateState bool
	// Vars are the variables with which the tree's state begins.
	Vars []VarSpec
	// InTx, when set, is called in the transaction that creates the tree and may
	// write rows of other packages, see [Store.WriteTx]. When it fails, no tree is
	// created.
	InTx func(context.Context, *WriteTx, *Tree) error
}

// Tree is one run.
type Tree struct {
	ID        TreeID          `json:"tree_id"`
	Name      string          `json:"name,omitempty"`
	Kind      string          `json:"kind"`
	Root      TaskID          `json:"root_task"`
	Config    json.RawMessage `json:"config"`
	Limits    Limits          `json:"limits"`
	Placement Placement       `json:"placement"`
	// State is queued until a task was claimed, then running until the root is
	// terminal, then the state of the root, or [Partial].
	State State `json:"state"`
	// Partial is set if the state is Partial.
	Partial   bool      `json:"partial,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	// Reopened counts how often the tree was reopened, see [Store.Reopen].
	Reopened    int        `json:"reopened,omitempty"`
	ReopenedAt  *time.Time `json:"reopened_at,omitempty"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	CompletedAt *time.Time `json:"completed_at,omitempty"`

	key   int64 // the tree's number in the database
	owner int64
}

// Deadline returns the time at which the tree's time limit ends, zero without a limit.
func (t *Tree) Deadline() time.Time {
	if t.Limits.WallTime <= 0 {
		return time.Time{}
	}
	return t.limitsFrom().Add(t.Limits.WallTime)
}

// limitsFrom returns the time from which the time limit counts.
func (t *Tree) limitsFrom() time.Time {
	if t.ReopenedAt != nil {
		return *t.ReopenedAt
	}
	return t.CreatedAt
}

// Usage is the usage of the calls of a task or tree.
type Usage struct {
	// Calls counts requests sent, repeated ones included.
	Calls        int64 `json:"calls"`
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	CachedTokens int64 `json:"cached_tokens,omitempty"`
	// CostUSD is the sum of the calls whose price is known. In JSON it is null if there are
	// calls and the price of none is known.
	CostUSD float64 `json:"cost_usd"`
	// UnpricedCalls counts calls whose price is unknown.
	UnpricedCalls int64 `json:"unpriced_calls,omitempty"`
	// UncertainCalls are those of the calls whose outcome is unknown: the process that
	// sent them died. UncertainTokens and UncertainCostUSD estimate what they took, by
	// their reservations; the other sums do not contain them, the limits of a tree do.
	UncertainCalls   int64   `json:"uncertain_calls"`
	UncertainTokens  int64   `json:"uncertain_tokens,omitempty"`
	UncertainCostUSD float64 `json:"uncertain_cost_usd,omitempty"`
}

const microsPerDollar = 1e6

// usageJSON is the stable form of Usage.
type usageJSON struct {
	Calls            int64    `json:"calls"`
	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
	CachedTokens     int64    `json:"cached_tokens,omitempty"`
	CostUSD          *float64 `json:"cost_usd"`
	UnpricedCalls    int64    `json:"unpriced_calls,omitempty"`
	UncertainCalls   int64    `json:"uncertain_calls"`
	UncertainTokens  int64    `json:"uncertain_tokens,omitempty"`
	UncertainCostUSD float64  `json:"uncertain_cost_usd,omitempty"`
}

// MarshalJSON encodes the stable form.
func (u Usage) MarshalJSON() ([]byte, error) { return json.Marshal(u.form()) }

func (u *Usage) form() usageJSON {
	return usageJSON{Calls: u.Calls, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens,
		CachedTokens: u.CachedTokens, CostUSD: u.knownCost(), UnpricedCalls: u.UnpricedCalls,
		UncertainCalls: u.UncertainCalls, UncertainTokens: u.UncertainTokens, UncertainCostUSD: u.UncertainCostUSD}
}

// knownCost returns the cost, nil if the price of no call is known.
func (u *Usage) knownCost() *float64 {
	if u.UnpricedCalls > 0 && u.CostUSD == 0 {
		return nil
	}
	return &u.CostUSD
}

// Limits of the values of a tree.
const (
	MaxConfigBytes = 1 << 20
	maxNameBytes   = 1024
)

func (s *TreeSpec) validate() error {
	const op = "create tree"
	switch {
	case s.Kind == "" || len(s.Kind) > 32 || !storable(s.Kind):
		return invalidf(op, "kind %q is not UTF-8 text of 1 to 32 bytes", s.Kind)
	case len(s.Name) > maxNameBytes || !storable(s.Name):
		return invalidf(op, "name is longer than %d bytes or not UTF-8 text", maxNameBytes)
	case len(s.IdempotencyKey) > maxNameBytes || !storable(s.IdempotencyKey):
		return invalidf(op, "idempotency key is longer than %d bytes or not UTF-8 text", maxNameBytes)
	case len(s.Request) > maxNameBytes || !storable(s.Request):
		return invalidf(op, "request is longer than %d bytes or not UTF-8 text", maxNameBytes)
	case s.Limits.negative():
		return invalidf(op, "a limit is negative")
	}
	if err := validateObject(op, "config", s.Config, MaxConfigBytes); err != nil {
		return err
	}
	if err := s.Placement.validate(op); err != nil {
		return err
	}
	return s.Root.validate()
}

package sqldb

// The numbers in columns. Those that statements compare with are also constants of SQL
// text below, because SQLite does not use a partial index for a parameter.

// Task states, in task_hot.state and tree_stat.state. The states from TaskCompleted
// on are terminal.
const (
	TaskQueued = iota + 1
	TaskRunning
	TaskWaiting
	TaskCompleted
	TaskFailed
	TaskCancelled
)

// Call states, in call.state.
const (
	CallStarted = iota + 1
	CallCompleted
	CallFailed
	CallUncertain
)

// Scopes of variables, in state.scope.
const (
	ScopeGlobal = iota + 1
	ScopeSession
	ScopeTree
	ScopeTemporary
)

// Bits of task_hot.flags.
const (
	FlagSequential   = 1 << iota // the children run one after another
	FlagFailFast                 // a failed child ends its siblings
	FlagSiblingsFail             // the parent has FlagFailFast
	FlagStep                     // the parent has FlagSequential
	FlagVars                     // a lease of the task has changed variables
	FlagPartial                  // completed without some of its parts
	FlagSkipped                  // completed without having run
)

// KindRecord is the tree.kind of imported trees.
const KindRecord = "record"

// EventBlock is how many event numbers a row of event_block covers.
const EventBlock = 256

// The same as SQL text.
const (
	SQLQueued    = string(rune('0' + TaskQueued))
	SQLRunning   = string(rune('0' + TaskRunning))
	SQLWaiting   = string(rune('0' + TaskWaiting))
	SQLCompleted = string(rune('0' + TaskCompleted))
	SQLFailed    = string(rune('0' + TaskFailed))
	SQLCancelled = string(rune('0' + TaskCancelled))
	// SQLOpen lists the states that are not terminal, SQLOpenTree those of trees.
	SQLOpen     = `(` + SQLQueued + `, ` + SQLRunning + `, ` + SQLWaiting + `)`
	SQLOpenTree = `(` + SQLQueued + `, ` + SQLRunning + `)`

	SQLCallStarted   = string(rune('0' + CallStarted))
	SQLCallCompleted = string(rune('0' + CallCompleted))
	SQLCallFailed    = string(rune('0' + CallFailed))
	SQLCallUncertain = string(rune('0' + CallUncertain))

	SQLScopeTree      = string(rune('0' + ScopeTree))
	SQLScopeTemporary = string(rune('0' + ScopeTemporary))

	SQLFlagSiblingsFail = string(rune('0' + FlagSiblingsFail))
	SQLFlagPartial      = string(rune('0'+FlagPartial/10)) + string(rune('0'+FlagPartial%10))

	SQLEventBlock = string(rune('0'+EventBlock/100)) + string(rune('0'+EventBlock/10%10)) + string(rune('0'+EventBlock%10))
	// SQLEventsOfBlock joins the events e of the tree and numbers of a row k of
	// event_block.
	SQLEventsOfBlock = `e.seq BETWEEN k.block * ` + SQLEventBlock + ` AND k.block * ` + SQLEventBlock + ` + ` +
		SQLEventBlock + ` - 1 AND e.tree = k.tree`
)

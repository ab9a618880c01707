package agent

import (
	"encoding/json"
	"time"
)

// Event is an event of a turn that an agent reported.
type Event struct {
	Kind EventKind
	// Text is the message, the thought, the line of output, the notice, or the
	// end of what a tool wrote, of [EventToolResult].
	Text string
	// Call is the tool call of [EventToolCall] and [EventToolResult].
	Call *ToolCall
	// Usage is the turn's usage until now, of [EventUsage]; nil when the agent
	// reported only its context.
	Usage *Usage
	// Context is how full the context is, of [EventUsage]; nil when unknown.
	Context *Context
	// CostMicros is the turn's cost until now in millionths of a US dollar, of
	// [EventUsage], and Model the agent's name of the model; nil and empty when the
	// agent did not report them.
	CostMicros *int64
	Model      string
	// Session is the session that began, of [EventSession].
	Session string
	// Until is when a limit ends that the agent waits for by itself, of
	// [EventRateLimited]; zero when it does not say.
	Until time.Time
	// Attempt is which retry follows the wait of [EventRateLimited], from 1, and Of how many
	// retries the agent makes; 0 when it does not say.
	Attempt, Of int
	// Raw is what the agent sent, when it sends JSON.
	Raw json.RawMessage
}

// EventKind is the kind of an [Event].
type EventKind string

// The kinds of events.
const (
	// EventSession: the agent began or continued a session.
	EventSession EventKind = "session"
	// EventMessage: a message of the agent, or a part of one.
	EventMessage EventKind = "message"
	// EventThought: a thought of the agent, or a part of one.
	EventThought EventKind = "thought"
	// EventToolCall: a tool call begins or its description changed.
	EventToolCall EventKind = "tool_call"
	// EventToolResult: a tool call ended.
	EventToolResult EventKind = "tool_result"
	// EventUsage: figures of tokens and of the context.
	EventUsage EventKind = "usage"
	// EventRateLimited: the agent met a rate limit, or a provider that cannot answer now, and
	// waits by itself.
	EventRateLimited EventKind = "rate_limited"
	// EventCompaction: the agent shortens its context, or did.
	EventCompaction EventKind = "compaction"
	// EventBackground: the agent ended its turn, and its commands in the background are waited for.
	EventBackground EventKind = "background"
	// EventNotice: something the agent wants people to know.
	EventNotice EventKind = "notice"
	// EventOutput: a line of standard output that is no JSON.
	EventOutput EventKind = "output"
	// EventStderr: a line of standard error.
	EventStderr EventKind = "stderr"
	// EventUnknown: JSON whose meaning is not known; only Raw is set.
	EventUnknown EventKind = "unknown"
)

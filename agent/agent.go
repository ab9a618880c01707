// Package agent is the port to whatever works on files by itself for a while: a
// coding agent started as a program, or one that is spoken to over a protocol.
//
// The port is one method, one turn: a prompt goes in, the agent works in the
// workspace, and what came of it comes out. An Agent does one attempt and
// reports what happened. It does not retry, does not wait for rate limits and
// does not judge the work: that is the loop's, so that it is the same for all
// agents. Agent and its implementations know nothing of tasks or of the store.
//
// Implementations are tolerant: agents change weekly. What they do not know in
// an agent's output is handed on as an [Event] of kind [EventUnknown] and is
// never an error.
package agent

import (
	"context"
	"encoding/json"
	"os"
	"time"
)

// Agent does turns of work. Implementations are safe for concurrent use; each
// turn is a session of its own unless [Turn.Session] names one.
//
// Run returns when the agent and everything it started has ended. A failure is
// an [*Error], so that callers can find the cause and what to do; when
// ctx ended, the error wraps ctx.Err(). With an error the Result may be nil or
// contain what the agent reported until then (usage, session, last message).
type Agent interface {
	Run(ctx context.Context, turn *Turn) (*Result, error)
}

// Watcher is implemented by agents that report their tool calls. Agents that do not
// implement it report none: [SightNone].
type Watcher interface {
	Sight() Sight
}

// Hooked is implemented by agents that can run [Turn.Hook].
type Hooked interface {
	Hooked() bool
}

// HookChecker is implemented by agents whose settings can switch their hooks off.
type HookChecker interface {
	// HooksOff returns why the agent runs no hooks in a folder, with the variables that inherit names,
	// for users; empty if it runs them.
	HooksOff(dir string, inherit []string) string
}

// Inheriting is implemented by agents that get variables of this process in addition to those
// that all agents get: the settings and keys of their vendor.
type Inheriting interface {
	// Inherits returns the names of these variables, NAME* for all that begin so.
	Inherits() []string
}

// Priced is implemented by agents whose cost may be known.
type Priced interface {
	// Priced reports whether the agent itself reports what its turns cost, and returns
	// the agent's name of the model that it was configured to use, which may be empty.
	Priced() (reports bool, model string)
}

// Metered is implemented by agents that can send the requests to their models to other addresses,
// so that a meter counts them.
type Metered interface {
	// Endpoints returns the addresses of the agent's providers by names, in a folder, with the
	// variables of this process that inherit names in addition to those that the agent always gets.
	// The error says why they are not known, for users.
	Endpoints(dir string, inherit []string) (map[string]string, error)
}

// Sight is how an agent's tool calls are seen.
type Sight string

// The ways tool calls are seen, from best to worst.
const (
	// SightNative: the agent asks before calls through its own mechanism and
	// keeps to the answer.
	SightNative Sight = "native"
	// SightObserved: calls are seen as they happen and cannot be refused.
	SightObserved Sight = "observed"
	// SightNone: nothing is seen; the workspace is compared afterwards.
	SightNone Sight = "none"
)

// Turn is one request to an agent. It is read-only for the agent.
type Turn struct {
	// Prompt is valid UTF-8. Required.
	Prompt string
	// Dir is the workspace, an absolute path: the folder the agent starts in.
	// Required.
	Dir string
	// Env are further variables, "NAME=value". Of variables given twice the last one
	// counts. Of the variables of this process the agent gets those that say where things
	// are (PATH, HOME, locations of tool chains, proxies), those of its vendor if the
	// vendor is known, and those of Inherit.
	Env []string
	// Inherit are names of further variables of this process that the agent gets, NAME* for
	// all that begin so.
	Inherit []string
	// Session is what [Result].Session was after an earlier turn: the agent is
	// to continue there. Empty is a fresh session. One that cannot be continued
	// is an [*Error] of kind [KindSession] and nothing was done.
	Session string
	// IdleTimeout ends a turn of which nothing was heard for this long; 0 is no
	// limit. The limit for the whole turn is ctx's deadline.
	IdleTimeout time.Duration
	// Observe, when set, receives the events of a turn. It is called from one goroutine
	// at a time and only before Run returns. The agent waits for it.
	Observe func(Event)
	// Decide, when set, is asked before tool calls by agents that ask; see
	// [Watcher]. It may be called from several goroutines, may block for as long
	// as a person needs, and has to return when ctx ends: the time it takes is
	// not idle time. Without it calls are allowed.
	Decide func(ctx context.Context, call ToolCall) Decision
	// Commands are commands that the agent may run without asking, in addition to what its
	// permission says; see [PermissionEdits].
	Commands []CommandRule
	// Hook, when set, is the command line of a program that agents with hooks of
	// their own run before and after their calls of tools; the name of the agent's
	// hooks is added to it. See [Hooked].
	Hook []string
	// Reader, when set, is called before the agent starts, with a function that reads what the
	// agent has written to files of its own so far, by agents that report their usage there.
	// The function returns after Observe received it, and may be called at any time.
	Reader func(read func())
	// Endpoints are addresses that the agent uses instead of those with the same names that
	// [Metered] returned.
	Endpoints map[string]string
	// Hold are files that stay open until the agent and its descendants are
	// gone: another process that waits for a lock on one of them can then take over.
	Hold []*os.File
}

// Result is the result of a turn.
type Result struct {
	// Text is the agent's last message, valid UTF-8; at most [MaxTextBytes].
	Text string
	// Session continues this one in [Turn].Session; empty when the agent has no
	// sessions. Recovery must never depend on it alone.
	Session string
	// StopReason is as the agent reported it, for example "end_turn".
	StopReason string
	// Usage is what this turn used, as far as the agent reports it; for agents that
	// report running totals it is the difference.
	Usage Usage
	// CostMicros is what this turn cost in millionths of a US dollar as the agent
	// reports it; nil when it does not.
	CostMicros *int64
	// Model is the agent's name of the model that it used; empty when it is not known.
	Model string
	// Context is how full the agent's context was in the end; nil when unknown.
	Context *Context
	// Messages counts the agent's messages and tool calls: the last resort for
	// an estimate of the context.
	Messages int
	// Left describes commands that the agent ran in the background and that were stopped, or ended
	// with it, before they were done; empty without any.
	Left string `json:",omitempty"`
	// Notes report to users what was unusual (text replaced, output cut).
	Notes []string
}

// MaxTextBytes is the most of an agent's last message that is kept; the end of
// it is.
const MaxTextBytes = 64 << 10

// Usage is what a turn used, in tokens.
type Usage struct {
	// InputTokens are all tokens of all requests, those of caches among them.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	// CachedTokens were read from the provider's cache of prompts,
	// CacheWriteTokens written to it.
	CachedTokens     int64 `json:"cached_tokens,omitempty"`
	CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	// Reported is whether any of this is known. Without it the zeros are unknown counts.
	Reported bool `json:"reported"`
	// Source says where known counts are from; empty is the agent itself.
	Source Source `json:"source,omitempty"`
}

// Context is how full an agent's context window is, in tokens.
type Context struct {
	Used int64 `json:"used"`
	// Size is the window; 0 when it is not known.
	Size int64 `json:"size,omitempty"`
	// Source says where the figure is from.
	Source Source `json:"source"`
}

// Source says where a figure about an agent's tokens or context is from.
type Source string

// The sources of a figure: the agent, its requests to the provider as a meter saw them, or an
// estimate.
const (
	SourceReported  Source = "reported"
	SourceObserved  Source = "observed"
	SourceEstimated Source = "estimated"
)

// ToolCall is something an agent does or wants to do with a tool.
type ToolCall struct {
	// ID is the agent's name for the call, the same in all events of it.
	ID string `json:"id"`
	// Name is the agent's name for the tool, for example "Bash".
	Name string `json:"name,omitempty"`
	// Kind is what the tool does.
	Kind ToolKind `json:"kind"`
	// Title is the call in words for people.
	Title string `json:"title,omitempty"`
	// Command is the shell's command line of a call that runs one.
	Command string `json:"command,omitempty"`
	// Paths are the files it touches, as far as they are known, absolute or
	// relative to the workspace as the agent gave them.
	Paths []string `json:"paths,omitempty"`
	// Input is what the agent gave the tool, as JSON; may be nil.
	Input json.RawMessage `json:"input,omitempty"`
	// Status is set in events.
	Status ToolStatus `json:"status,omitempty"`
}

// ToolKind is what a tool does.
type ToolKind string

// The kinds of tools.
const (
	ToolRead    ToolKind = "read"
	ToolEdit    ToolKind = "edit"
	ToolDelete  ToolKind = "delete"
	ToolMove    ToolKind = "move"
	ToolSearch  ToolKind = "search"
	ToolExecute ToolKind = "execute"
	ToolFetch   ToolKind = "fetch"
	ToolThink   ToolKind = "think"
	ToolOther   ToolKind = "other"
)

// ToolStatus is how far a call is.
type ToolStatus string

// The statuses of a tool call.
const (
	ToolPending   ToolStatus = "pending"
	ToolRunning   ToolStatus = "running"
	ToolCompleted ToolStatus = "completed"
	ToolFailed    ToolStatus = "failed"
	// ToolDenied: the agent's permissions, its sandbox or a hook refused the call.
	ToolDenied ToolStatus = "denied"
)

// Decision is the answer to an agent that asks before a tool call.
type Decision struct {
	// Allow lets this call through, and no other.
	Allow bool
	// Message is sent to the agent, where its protocol has a place for it.
	Message string
}

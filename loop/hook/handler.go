package hook

import (
	"context"
	"time"
)

// Handler answers the messages of a hook. Implementations are safe for
// concurrent use: tool calls of an agent may come at once.
//
// Handle returns soon after ctx ends. A Go value that does not is abandoned
// after a while: the runner continues with a [FaultError] of kind [FaultHung], does
// not ask it again until it has returned, and [Runner.Close] waits for it. An
// error is a fault; a verdict in addition to the error counts when it is stricter than
// the result of the policy for faults. A panic is a fault too.
//
// The message is shared with other handlers and must not be changed.
type Handler interface {
	Handle(ctx context.Context, m Message) (Reply, error)
}

// Func is a function as a [Handler].
type Func func(ctx context.Context, m Message) (Reply, error)

// Handle calls f.
func (f Func) Handle(ctx context.Context, m Message) (Reply, error) { return f(ctx, m) }

// Kind says where a handler runs.
type Kind string

// The kinds of handlers.
const (
	KindBuiltin Kind = "builtin" // a Go value
	KindCommand Kind = "command" // a program
	KindHTTP    Kind = "http"    // an endpoint
)

// kindOf returns the kind of a handler.
func kindOf(h Handler) Kind {
	switch h.(type) {
	case *Command:
		return KindCommand
	case *Endpoint:
		return KindHTTP
	}
	return KindBuiltin
}

// How long a handler may take to return after its context ended.
const (
	patience = time.Second
	// killTime is for a guard process to kill and for output to be read to its end.
	killTime = 15 * time.Second
)

// patienceWith is how long a handler may take to return after its context
// ended. That of a program is rather long: when it is over, processes may be
// left that work on the files.
func patienceWith(h Handler) time.Duration {
	if c, ok := h.(*Command); ok {
		return max(0, c.cfg.Grace) + killTime
	}
	return patience
}

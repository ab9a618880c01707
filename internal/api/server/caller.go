package server

import (
	"context"
	"net"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/internal/process/guard"
)

// callerKey is the context key of the process at the other end of a connection.
type callerKey struct{}

// ConnContext adds the process at the other end of a Unix socket to the context of a
// connection, for [net/http.Server].ConnContext. Handlers know by it whether an agent calls,
// and whether a gate takes its answer.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := caller.Of(conn); ok {
		return context.WithValue(ctx, callerKey{}, c)
	}
	return ctx
}

// callerOf returns the process that makes a request. Without a socket it is this process.
func callerOf(ctx context.Context) (c caller.Caller, fromSocket bool) {
	if c, ok := ctx.Value(callerKey{}).(caller.Caller); ok {
		return c, true
	}
	return caller.Self(), false
}

// supervised reports whether a request comes over a socket from a program that perdure runs,
// or from a process that has ended, of which that is not known.
func supervised(ctx context.Context) bool {
	c, fromSocket := callerOf(ctx)
	return fromSocket && (c.Ended() || guard.Below(c.PID))
}

// byUser returns an error if a request comes from a program that perdure runs: an agent, a
// check, a model or what they started. They cannot decide for the user, whatever the store:
// which stores a process above has open is not visible to ordinary users. This process cannot
// either if it is one of them, or a daemon that they started.
func (s *server) byUser(ctx context.Context) error {
	const op = "check caller"
	c, fromSocket := callerOf(ctx)
	if fromSocket && c.Ended() {
		return &perdure.Error{Code: perdure.CodeConflict, Op: op,
			Msg: "the process that connected has ended, so it is not known whether an agent started it"}
	}
	if !guard.Guarded() && !(fromSocket && guard.Below(c.PID)) {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: op,
		Msg: "a program that a loop or a run has started cannot decide for the user",
		Hint: "the user answers gates, pauses, resumes and aborts loops, and marks false alarms, in a terminal of their " +
			"own; if no loop or run has started this one, `ulimit -Hx` must print unlimited"}
}

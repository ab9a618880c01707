package server

import (
	"context"
	"net"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/process/guard"
)

// callerKey is the context key of the process at the other end of a connection.
type callerKey struct{}

// ConnContext adds the process at the other end of a Unix socket to the context of a
// connection, for [net/http.Server].ConnContext. Handlers know by it whether an agent calls.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	if pid := peer(conn); pid > 0 {
		return context.WithValue(ctx, callerKey{}, pid)
	}
	return ctx
}

// byUser returns an error if a request comes from a program that this store's trees run: an
// agent, a check, a model or what they started. They cannot decide for the user. Without a
// socket the caller is this process.
func (s *server) byUser(ctx context.Context) error {
	pid, fromSocket := ctx.Value(callerKey{}).(int)
	var below bool
	if fromSocket {
		below = guard.Below(pid)
	} else if supervisor := guard.Supervisor(); supervisor > 0 {
		below = s.store.Dir() == "" || opens(supervisor, s.store.Dir())
	}
	if !below {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeConflict, Op: "check caller",
		Msg:  "a program that a loop or a run has started cannot decide for the user",
		Hint: "the user answers gates, resumes and aborts loops, and marks false alarms, in a terminal of their own"}
}

package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/perdure/perdure"
)

// maxSocketPath is the longest path that every system takes for a socket.
const maxSocketPath = 103

// maxIdle is how many connections are kept for later requests.
const maxIdle = 64

func checkSocketPath(path string) error {
	if len(path) <= maxSocketPath {
		return nil
	}
	return &perdure.Error{Code: perdure.CodeInvalid, Op: "make client",
		Msg:  fmt.Sprintf("the socket path %q has %d bytes, systems take at most %d", path, len(path), maxSocketPath),
		Hint: "set PERDURE_DIR to a folder with a shorter path"}
}

func socketTransport(path string) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdle,
		IdleConnTimeout:     time.Minute,
		DisableCompression:  true,
	}
}

// transportError returns why a request did not reach the server.
func (c *Client) transportError(ctx context.Context, op string, err error) error {
	var own *perdure.Error
	if errors.As(err, &own) {
		return err
	}
	if ctx.Err() != nil {
		return &perdure.Error{Code: perdure.CodeCanceled, Op: op, Err: errors.Join(ctx.Err(), context.Cause(ctx))}
	}
	e := &perdure.Error{Code: perdure.CodeUnavailable, Op: op, Err: err}
	switch {
	case c.cfg.Socket == "" || !dialing(err):
		e.Msg = "the connection to the server broke"
		e.Hint = "it is unknown whether the server did it; `perdure status` shows the current state"
	case errors.Is(err, fs.ErrNotExist):
		e.Msg, e.Hint = fmt.Sprintf("no server runs: there is no socket %q", c.cfg.Socket), "start one with `perdure serve`"
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Msg = fmt.Sprintf("no server answers on the socket %q", c.cfg.Socket)
		e.Hint = "`perdure serve` starts a new server and replaces the socket"
	case errors.Is(err, fs.ErrPermission):
		e.Msg = fmt.Sprintf("the socket %q belongs to another user", c.cfg.Socket)
		e.Hint = "only the user who started the server may use it"
	default:
		e.Msg = fmt.Sprintf("the server on the socket %q cannot be reached", c.cfg.Socket)
	}
	return e
}

// dialing reports whether a request failed because no connection was made.
func dialing(err error) bool {
	var netErr *net.OpError
	return errors.As(err, &netErr) && netErr.Op == "dial"
}

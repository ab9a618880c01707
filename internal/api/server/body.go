package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// timedBody ends a body that does not arrive in time, so that a client that stops midway does
// not hold a connection and a handler.
type timedBody struct {
	io.ReadCloser
	rc *http.ResponseController
	// idle, when set, is the time for each part; otherwise the whole body has one deadline.
	idle time.Duration
}

// limitBodies sets the deadlines of bodies, also of those that no handler reads: the server
// then reads their rest.
func (s *server) limitBodies(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			body := &timedBody{ReadCloser: r.Body, rc: http.NewResponseController(w)}
			body.extend(s.limits.Body)
			r.Body = body
		}
		h.ServeHTTP(w, r)
	})
}

// extend sets the deadline. Requests within the process have none.
func (b *timedBody) extend(d time.Duration) { _ = b.rc.SetReadDeadline(time.Now().Add(d)) }

// Read reads a part of the body. After its end the connection has no deadline, because the
// server reads on to find out whether the client is still there.
func (b *timedBody) Read(p []byte) (int, error) {
	if b.idle > 0 {
		b.extend(b.idle)
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// streams gives each part of the body the time d instead of one deadline for the whole: the
// client makes the body while it sends it.
func (r *request) streams(d time.Duration) {
	if body, ok := r.Body.(*timedBody); ok {
		body.idle = d
	}
}

// lateBody returns the error for a body that did not arrive in time, or nil.
func lateBody(err error, what string) error {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return &statusError{status: http.StatusRequestTimeout, err: invalid(opRead,
		fmt.Sprintf("the %s did not arrive in time", what), "send the body without pauses")}
}

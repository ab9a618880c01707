package inproc

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// bufferBytes is how far a handler may run ahead of the caller, about what a
// socket holds.
const bufferBytes = 64 << 10

var errHungUp = errors.New("the caller closed the response")

// response is the handler's http.ResponseWriter and the buffer that the caller
// reads from. It also has what http.ResponseController looks for.
type response struct {
	ctx    context.Context // the exchange's; bounds every wait
	isHead bool
	header http.Header   // the handler's, until it is sent
	ready  chan struct{} // closed when the header is sent or the handler ended

	mu       sync.Mutex // guards what follows
	status   int        // 0 until the header is sent
	sent     http.Header
	length   int64 // -1 when unknown
	buf      bytes.Buffer
	ended    bool
	err      error // why the response ended early
	hungUp   bool
	deadline time.Time
	// changed is closed and replaced when the buffer or one of the ends
	// changes; waiters read it under mu.
	changed chan struct{}
}

func newResponse(ctx context.Context, isHead bool) *response {
	return &response{
		ctx:     ctx,
		isHead:  isHead,
		header:  make(http.Header),
		ready:   make(chan struct{}),
		changed: make(chan struct{}),
	}
}

// Header is the handler's to fill in until the first write.
func (r *response) Header() http.Header { return r.header }

// WriteHeader sends the header. Informational ones are dropped, as are repeated
// ones.
func (r *response) WriteHeader(status int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sendHeader(status)
}

// sendHeader needs mu.
func (r *response) sendHeader(status int) {
	if r.status != 0 || status < 200 {
		return
	}
	r.status = status
	r.sent = r.header.Clone()
	r.length = -1
	if n, err := strconv.ParseInt(r.sent.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		r.length = n
	}
	if !r.bodyAllowed() {
		r.length = 0
	}
	if r.sent.Get("Date") == "" {
		r.sent.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	close(r.ready)
}

func (r *response) bodyAllowed() bool {
	return r.status != http.StatusNoContent && r.status != http.StatusNotModified
}

// Write hands p to the caller; it waits while the buffer is full.
func (r *response) Write(p []byte) (int, error) {
	r.mu.Lock()
	if r.status == 0 {
		if r.header.Get("Content-Type") == "" && len(p) > 0 {
			r.header.Set("Content-Type", http.DetectContentType(p))
		}
		r.sendHeader(http.StatusOK)
	}
	allowed := r.bodyAllowed()
	r.mu.Unlock()
	switch {
	case !allowed:
		return 0, http.ErrBodyNotAllowed
	case r.isHead:
		return len(p), nil
	}
	written := 0
	for written < len(p) {
		n, err := r.put(p[written:])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// put appends as much of p as there is room for, or waits for room.
func (r *response) put(p []byte) (int, error) {
	r.mu.Lock()
	room := bufferBytes - r.buf.Len()
	deadline, changed := r.deadline, r.changed
	switch {
	case r.hungUp:
		r.mu.Unlock()
		return 0, errHungUp
	case r.ctx.Err() != nil:
		r.mu.Unlock()
		return 0, context.Cause(r.ctx)
	case !deadline.IsZero() && !time.Now().Before(deadline):
		r.mu.Unlock()
		return 0, os.ErrDeadlineExceeded
	case room > 0:
		n := min(room, len(p))
		r.buf.Write(p[:n])
		r.signal()
		r.mu.Unlock()
		return n, nil
	}
	r.mu.Unlock()
	r.await(changed, deadline)
	return 0, nil
}

// await waits for a change, and for the deadline when there is one; a passed
// deadline is found by the next look.
func (r *response) await(changed <-chan struct{}, deadline time.Time) {
	var passed <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		passed = timer.C
	}
	select {
	case <-changed:
	case <-passed:
	case <-r.ctx.Done():
	}
}

// Flush sends the header; what was written is with the caller already.
func (r *response) Flush() {
	r.WriteHeader(http.StatusOK)
}

// SetWriteDeadline makes writes that wait for the caller fail after the given
// time; zero means never.
func (r *response) SetWriteDeadline(at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = at
	r.signal()
	return nil
}

// finish ends the response, with err when the handler broke off.
func (r *response) finish(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if err == nil && r.ctx.Err() != nil {
		err = context.Cause(r.ctx) // the caller has left
	}
	if err == nil && r.status == 0 {
		r.length = 0
		r.header.Set("Content-Length", "0")
		r.sendHeader(http.StatusOK)
	}
	r.err = err
	if r.status == 0 {
		close(r.ready)
	}
	r.signal()
}

// begun reports whether the header was sent or the handler ended.
func (r *response) begun() bool {
	select {
	case <-r.ready:
		return true
	default:
		return false
	}
}

func (r *response) read(p []byte) (int, error) {
	for {
		r.mu.Lock()
		changed := r.changed
		switch {
		case r.hungUp:
			r.mu.Unlock()
			return 0, http.ErrBodyReadAfterClose
		case r.buf.Len() > 0:
			n, err := r.buf.Read(p)
			r.signal()
			r.mu.Unlock()
			return n, err
		case r.ended && r.err != nil:
			r.mu.Unlock()
			return 0, r.err
		case r.ended:
			r.mu.Unlock()
			return 0, io.EOF
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-r.ctx.Done():
			if r.over() {
				continue // the handler's end came first
			}
			return 0, context.Cause(r.ctx)
		}
	}
}

func (r *response) over() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended || r.hungUp
}

func (r *response) hangUp() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hungUp = true
	r.buf.Reset()
	r.signal()
}

// signal needs mu.
func (r *response) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// reply answers with a JSON document. Values of users stay as they are: what is
// escaped for HTML only would be longer than its limits.
func (s *server) reply(w http.ResponseWriter, status int, v any) error {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	out := s.timed(w)
	if _, err := out.Write(body.Bytes()); err != nil {
		s.log.Debug("write response", "error", err)
	}
	return nil
}

// timed bounds each write to w by the write limit.
func (s *server) timed(w http.ResponseWriter) *timedWriter {
	return &timedWriter{w: w, rc: http.NewResponseController(w), limit: s.limits.Write}
}

// timedWriter limits the time a reader has for each part, so that a slow
// one gets a long response and a stopped one does not hold the server.
type timedWriter struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	limit time.Duration
}

const pieceBytes = 64 << 10

// Write writes p in parts.
func (t *timedWriter) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		// Not every writer has deadlines; those without need none.
		_ = t.rc.SetWriteDeadline(time.Now().Add(t.limit))
		n, err := t.w.Write(p[written:min(written+pieceBytes, len(p))])
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// flush sends what was written on its way.
func (t *timedWriter) flush() error {
	_ = t.rc.SetWriteDeadline(time.Now().Add(t.limit))
	return t.rc.Flush()
}

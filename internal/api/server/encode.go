package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// object is an answer of few members.
type object map[string]any

// created is the answer with a new resource; at is its path, if it has one.
type created struct {
	at    string
	value any
}

// orEmpty makes an empty list of none, so that JSON has [] instead of null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// next returns the place at which a list continues: the key of the last entry of a full
// page, else zero.
func next[T, K any](page []T, limit int, key func(*T) K) (at K) {
	if len(page) == limit {
		at = key(&page[limit-1])
	}
	return at
}

// reply answers with a JSON document. The characters <, > and & are not escaped, so that
// values of users keep their length.
func (s *server) reply(w http.ResponseWriter, v any) error {
	status, h := http.StatusOK, w.Header()
	if c, ok := v.(created); ok {
		status, v = http.StatusCreated, c.value
		if c.at != "" {
			h.Set("Location", c.at)
		}
	}
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(status)
	if _, err := s.timed(w).Write(body.Bytes()); err != nil {
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

package acp

import (
	"bytes"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/clip"
	"github.com/perdure/perdure/model"
)

// maxLineBytes is the longest line of output that becomes an event as it is;
// what is longer is cut.
const maxLineBytes = 64 << 10

// stderrLog keeps the end of an agent's standard error and passes its lines on.
type stderrLog struct {
	// tell receives each line, from the goroutine that writes.
	tell func(line string)

	mu  sync.Mutex // guards end
	end clip.Tail

	line []byte // the beginning of a line; only of the goroutine that writes
}

// Write takes a part of the output.
func (s *stderrLog) Write(p []byte) (int, error) {
	n := len(p)
	s.mu.Lock()
	_, _ = s.end.Write(p) // never fails
	s.mu.Unlock()
	for len(p) > 0 {
		part, rest, whole := bytes.Cut(p, []byte("\n"))
		s.line = append(s.line, part[:min(len(part), maxLineBytes-len(s.line))]...)
		p = rest
		if whole {
			s.flush()
		}
	}
	return n, nil
}

// flush passes on the incomplete last line.
func (s *stderrLog) flush() {
	if line := strings.TrimRight(clean(string(s.line)), "\r \t"); line != "" {
		s.tell(model.Redact(line))
	}
	s.line = s.line[:0]
}

// text returns the end of the output, without what looks like a secret.
func (s *stderrLog) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return model.Redact(clean(s.end.String()))
}

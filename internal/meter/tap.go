package meter

import (
	"errors"
	"io"
	"sync"
)

// maxQueued bounds the bytes of a body that wait to be read by the meter. When more
// wait, the meter stops reading the body, which itself is not delayed.
const maxQueued = 8 << 20

// errSkipped is the error of a body that the meter read too slowly.
var errSkipped = errors.New("the meter read the body too slowly and skipped the rest")

// queue passes copies of the bytes of a body to a reader in another goroutine. Writing
// never waits for the reader.
type queue struct {
	mu      sync.Mutex // guards the following
	changed sync.Cond  // signals the reader
	parts   [][]byte
	waiting int
	total   int64
	ended   bool
	err     error
}

func newQueue() *queue {
	q := &queue{}
	q.changed.L = &q.mu
	return q
}

// add copies the next bytes of the body.
func (q *queue) add(p []byte) {
	if len(p) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.total += int64(len(p))
	if q.ended {
		return
	}
	if q.waiting+len(p) > maxQueued {
		q.end(errSkipped)
		q.parts, q.waiting = nil, 0
		return
	}
	q.parts, q.waiting = append(q.parts, append([]byte(nil), p...)), q.waiting+len(p)
	q.changed.Signal()
}

// end ends the body; q.mu is held. The first error counts.
func (q *queue) end(err error) {
	if !q.ended {
		q.ended, q.err = true, err
		q.changed.Signal()
	}
}

// finish ends the body: io.EOF is its regular end.
func (q *queue) finish(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(err)
}

// length returns the number of bytes of the body until now.
func (q *queue) length() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total
}

// Read returns the next bytes. It waits until there are some.
func (q *queue) Read(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.parts) == 0 {
		if q.ended {
			return 0, q.err
		}
		q.changed.Wait()
	}
	n := copy(p, q.parts[0])
	q.waiting -= n
	if q.parts[0] = q.parts[0][n:]; len(q.parts[0]) == 0 {
		q.parts[0] = nil
		q.parts = q.parts[1:]
	}
	return n, nil
}

// tapped is a body whose bytes are also added to a queue.
type tapped struct {
	io.ReadCloser
	queue *queue
	// ended, when set, is called before the last bytes are returned if their number is known,
	// or else at the end. left is the number of bytes to come; negative if it is unknown.
	ended func()
	left  int64
}

// Read reads the body.
func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.queue.add(p[:n])
	t.left -= int64(n)
	if t.ended != nil && (err != nil || t.left == 0) {
		t.ended()
	}
	if err != nil {
		t.queue.finish(err)
	}
	return n, err
}

// errUnread is the error of a body that was closed before its end.
var errUnread = errors.New("the body was not read to its end")

// Close closes the body.
func (t *tapped) Close() error {
	t.queue.finish(errUnread)
	return t.ReadCloser.Close()
}

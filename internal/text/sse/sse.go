// Package sse reads streams of server-sent events, as the HTML standard defines
// them. Lines end with LF or CRLF; the fields retry and unknown ones are ignored.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// ErrTooLong is the error of an event that is longer than the reader's limit.
var ErrTooLong = errors.New("an event of the stream is too long")

// Event is one server-sent event.
type Event struct {
	ID, Name string
	// Data is the lines of the data field, joined with LF. It is nil for a
	// comment, which servers send to keep a connection open, and for an event
	// without a data field.
	Data []byte
}

// Reader reads events from a stream. It is not safe for concurrent use.
type Reader struct {
	r     *bufio.Reader
	limit int
	// long is the buffer for lines that do not fit into the buffer of r.
	long []byte
}

// NewReader returns a reader of events with at most limit bytes each.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Next returns the next complete event or, between two events, the next
// comment, which has no fields. The error is io.EOF at the end of the stream;
// an event that the end of the stream cuts is dropped.
func (s *Reader) Next() (Event, error) {
	var e Event
	begun, size := false, 0
	for {
		line, err := s.line()
		if err != nil {
			return Event{}, err
		}
		if size += len(line); size > s.limit {
			return Event{}, s.tooLong()
		}
		if len(line) == 0 {
			if begun {
				return e, nil
			}
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "":
			if !begun {
				return Event{}, nil
			}
			continue
		case "data":
			if e.Data != nil {
				e.Data = append(e.Data, '\n')
			}
			e.Data = append(e.Data, value...)
			if e.Data == nil {
				e.Data = []byte{}
			}
		case "event":
			e.Name = string(value)
		case "id":
			e.ID = string(value)
		default:
			continue
		}
		begun = true
	}
}

// line returns the next line without its end; it is valid until the next call.
func (s *Reader) line() ([]byte, error) {
	s.long = s.long[:0]
	for {
		part, err := s.r.ReadSlice('\n')
		if len(s.long)+len(part) > s.limit+len("\r\n") {
			return nil, s.tooLong()
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			s.long = append(s.long, part...)
			continue
		case err != nil:
			return nil, err
		case len(s.long) > 0:
			s.long = append(s.long, part...)
			part = s.long
		}
		return bytes.TrimSuffix(part[:len(part)-1], []byte("\r")), nil
	}
}

func (s *Reader) tooLong() error { return fmt.Errorf("%w: more than %d bytes", ErrTooLong, s.limit) }

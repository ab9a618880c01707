// Package sse reads streams of server-sent events, as the HTML standard defines
// them. Lines end with LF, CRLF or CR; the fields retry and unknown ones are ignored.
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

// mark is the byte order mark. The standard has one at the beginning of a stream ignored; some
// gateways put one before each event.
const mark = "\uFEFF"

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
	// afterCR: the last line ended with CR, so that LF belongs to its end.
	afterCR bool
	// rest is the event that the end of the stream cut.
	rest Event
}

// NewReader returns a reader of events with at most limit bytes each.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Next returns the next complete event or, between two events, the next
// comment, which has no fields. The error is io.EOF at the end of the stream;
// an event that the end of the stream cuts is not returned, see [Reader.Rest].
func (s *Reader) Next() (Event, error) {
	var e Event
	begun, size := false, 0
	for {
		line, err := s.line()
		if err != nil {
			s.keepRest(e, line, err)
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
		if line[0] == ':' && !begun {
			return Event{}, nil
		}
		begun = e.add(line) || begun
	}
}

// add adds a line, and reports whether it is a field of an event.
func (e *Event) add(line []byte) bool {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
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
		return false
	}
	return true
}

// Rest returns the event that the end of the stream cut, after [Reader.Next] has returned io.EOF.
// Its last line may be cut, too. It has no data if the stream ended with an empty line.
func (s *Reader) Rest() Event { return s.rest }

func (s *Reader) keepRest(e Event, line []byte, err error) {
	if !errors.Is(err, io.EOF) {
		return
	}
	if len(line) > 0 {
		e.add(line)
	}
	s.rest = e
}

// line returns the next line without its end; it is valid until the next call. With an error it
// returns the bytes after the last line's end.
func (s *Reader) line() ([]byte, error) {
	s.long = s.long[:0]
	for {
		part, err := s.buffered()
		if err != nil {
			return withoutMark(s.long), err
		}
		if s.afterCR && part[0] == '\n' {
			part = part[1:]
			s.discard(1)
		}
		s.afterCR = false
		end := bytes.IndexByte(part, '\n')
		if end >= 0 {
			part = part[:end]
		}
		if cr := bytes.IndexByte(part, '\r'); cr >= 0 {
			end, part, s.afterCR = cr, part[:cr], true
		}
		if len(s.long)+len(part) > s.limit {
			return nil, s.tooLong()
		}
		if end < 0 {
			s.long = append(s.long, part...)
			s.discard(len(part))
			continue
		}
		s.discard(end + 1) // part stays valid until the next read
		if len(s.long) > 0 {
			s.long = append(s.long, part...)
			part = s.long
		}
		return withoutMark(part), nil
	}
}

// buffered returns the bytes that can be read at once, at least one.
func (s *Reader) buffered() ([]byte, error) {
	if _, err := s.r.Peek(1); err != nil {
		return nil, err
	}
	return s.r.Peek(s.r.Buffered())
}

// discard skips bytes that are buffered, which cannot fail.
func (s *Reader) discard(n int) { _, _ = s.r.Discard(n) }

func withoutMark(line []byte) []byte { return bytes.TrimPrefix(line, []byte(mark)) }

func (s *Reader) tooLong() error { return fmt.Errorf("%w: more than %d bytes", ErrTooLong, s.limit) }

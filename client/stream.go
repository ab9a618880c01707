package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine bounds a line of an event stream.
const maxLine = 64 << 20

var errLongLine = errors.New("a line of the event stream is too long")

// message is one server-sent event, or a sign of life when data is nil.
type message struct {
	id   string
	data []byte
}

// stream reads server-sent events as the HTML standard has them, as far as
// this API uses them: LF or CRLF lines, fields id and data.
type stream struct {
	r *bufio.Reader
}

func newStream(r io.Reader) *stream { return &stream{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next event that is whole, or a comment. An event that the
// end of the stream cuts is dropped.
func (s *stream) next() (message, error) {
	var m message
	begun := false
	for {
		line, err := s.line()
		if err != nil {
			return message{}, err
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(line) == 0 && begun:
			return m, nil
		case len(line) == 0:
		case len(name) == 0:
			if !begun {
				return message{}, nil
			}
		case string(name) == "data":
			if m.data != nil {
				m.data = append(m.data, '\n')
			}
			m.data = append(m.data, value...)
			begun = true
		case string(name) == "id":
			m.id = string(value)
			begun = true
		}
	}
}

// line returns the next line without its end; it is valid until the next call.
func (s *stream) line() ([]byte, error) {
	var long []byte
	for {
		part, err := s.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			if len(long)+len(part) > maxLine {
				return nil, errLongLine
			}
			long = append(long, part...)
			continue
		}
		if err != nil {
			return nil, err
		}
		if long != nil {
			part = append(long, part...)
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(part, []byte("\n")), []byte("\r")), nil
	}
}

package jsonrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrFrameTooLarge is the cause of the end of a connection whose peer sent a message over
// the limit that could not be left out.
var ErrFrameTooLarge = errors.New("message is larger than the limit")

// headBytes is how much of a frame over the limit is kept, to see what it is.
const headBytes = 4 << 10

// Frame is one line of a stream.
type Frame struct {
	// Data is the line without its end; only the head of one over the limit.
	Data []byte
	// Size is the length of the line in bytes.
	Size int64
	// Cut reports whether Data is less than the line.
	Cut bool
}

// Reader splits a stream into lines and never buffers more than limit bytes
// of one. It is not safe for concurrent use.
type Reader struct {
	r     *bufio.Reader
	limit int
}

// NewReader returns a Reader of r whose lines have at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// Next returns the next line that is not blank. The last one may lack its end.
// The error is that of the stream, io.EOF at its end.
func (f *Reader) Next() (Frame, error) {
	for {
		got, err := f.line()
		got.Data = bytes.TrimSpace(got.Data)
		if len(got.Data) > 0 || got.Cut {
			return got, nil
		}
		if err != nil {
			return Frame{}, err
		}
	}
}

// line reads up to the end of a line, also when the stream ends before. Each
// line has memory of its own, because events keep it.
func (f *Reader) line() (Frame, error) {
	var got Frame
	for {
		part, err := f.r.ReadSlice('\n')
		got.Size += int64(len(part))
		if !got.Cut {
			got.Data = append(got.Data, part...)
		}
		if len(bytes.TrimRight(got.Data, "\r\n")) > f.limit {
			got.Cut, got.Data = true, bytes.Clone(got.Data[:min(headBytes, f.limit)])
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return got, err
		}
	}
}

// Droppable reports whether a frame of which this is the beginning can be left
// out without leaving a caller waiting: it is not a Message at all, or one that
// wants no answer and is none. Agents write the method and the ID before the
// parameters; a head in which neither was seen is not Droppable.
func Droppable(head []byte) bool {
	if head = bytes.TrimSpace(head); len(head) == 0 || head[0] != '{' {
		return true
	}
	dec := json.NewDecoder(bytes.NewReader(head))
	if _, err := dec.Token(); err != nil {
		return false
	}
	method := false
	for {
		key, err := dec.Token()
		if err != nil {
			return method
		}
		switch key {
		case "id", "result", "error":
			return false
		case "method":
			method = true
		}
		var skipped json.RawMessage
		if dec.Decode(&skipped) != nil {
			return method
		}
	}
}

// TooLarge returns the error for a line of size bytes.
func TooLarge(size int64, limit int) error {
	return fmt.Errorf("%w: %d bytes, at most %d", ErrFrameTooLarge, size, limit)
}

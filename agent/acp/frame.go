package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ErrFrameTooLarge is the cause of the error of a turn whose agent sent a
// message over [Config].MaxFrameBytes that could not be left out.
var ErrFrameTooLarge = errors.New("message is larger than the limit")

// headBytes is how much of a frame over the limit is kept, to see what it is.
const headBytes = 4 << 10

// frame is one line of what the agent wrote.
type frame struct {
	// data is the line without its end; only the head of one over the limit.
	data []byte
	// size is how long the line was, in bytes.
	size int64
	// cut is whether data is less than the line.
	cut bool
}

// frameReader splits a stream into lines and never buffers more than limit bytes
// of one. It is not safe for concurrent use.
type frameReader struct {
	r     *bufio.Reader
	limit int
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line that is not blank. The last one may lack its end.
// The error is that of the stream, io.EOF at its end.
func (f *frameReader) next() (frame, error) {
	for {
		got, err := f.line()
		got.data = bytes.TrimSpace(got.data)
		if len(got.data) > 0 || got.cut {
			return got, nil
		}
		if err != nil {
			return frame{}, err
		}
	}
}

// line reads up to the end of a line, also when the stream ends before. Each
// line has memory of its own, because events keep it.
func (f *frameReader) line() (frame, error) {
	var got frame
	for {
		part, err := f.r.ReadSlice('\n')
		got.size += int64(len(part))
		if !got.cut {
			got.data = append(got.data, part...)
		}
		if len(bytes.TrimRight(got.data, "\r\n")) > f.limit {
			got.cut, got.data = true, bytes.Clone(got.data[:min(headBytes, f.limit)])
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return got, err
		}
	}
}

// droppable reports whether a frame of which this is the beginning can be left
// out without leaving a caller waiting: it is not a message at all, or one that
// wants no answer and is none. Agents write the method and the ID before the
// parameters; a head in which neither was seen is not droppable.
func droppable(head []byte) bool {
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

func tooLarge(size int64, limit int) error {
	return fmt.Errorf("%w: %d bytes, at most %d", ErrFrameTooLarge, size, limit)
}

package rpc

import (
	"bufio"
	"errors"
	"io"
)

// errLineTooLong is the error of a line that is longer than the limit.
var errLineTooLong = errors.New("the line is too long")

// lineReader reads lines of at most limit bytes. Longer lines take no more memory.
type lineReader struct {
	r     *bufio.Reader
	limit int
	skip  bool // skip the rest of a line that was too long
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line without its end. For a line that is too long it returns
// errLineTooLong before the line is read to its end; the next call returns the next
// line. The last line does not need an end.
func (l *lineReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		ended := err == nil
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return nil, err
		}
		switch {
		case l.skip:
			l.skip = !ended
		case len(line)+len(part) > l.limit+1 || len(line)+len(part) > l.limit && !ended:
			l.skip = !ended
			return nil, errLineTooLong
		default:
			line = append(line, part...)
			if ended {
				return line[:len(line)-1], nil
			}
		}
		if errors.Is(err, io.EOF) {
			if len(line) > 0 {
				return line, nil
			}
			return nil, io.EOF
		}
	}
}

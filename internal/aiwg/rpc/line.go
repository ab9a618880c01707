package rpc

import (
	"bufio"
	"errors"
	"io"
)

// errLineTooLong tells of a line that was longer than allowed.
var errLineTooLong = errors.New("the line is too long")

// lineReader reads lines of at most so many bytes. What is longer takes no more
// memory than that.
type lineReader struct {
	r    *bufio.Reader
	most int
	skip bool // the rest of a line that was too long
}

func newLineReader(r io.Reader, most int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), most: most}
}

// next returns the next line without its end. A line that is too long is told of
// as soon as that is known, once; the call after it goes on with the next line.
// What stands behind the last line end counts as a line.
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
		case len(line)+len(part) > l.most+1 || len(line)+len(part) > l.most && !ended:
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

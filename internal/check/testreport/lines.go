package testreport

import (
	"bufio"
	"errors"
	"io"
)

// lines reads lines and keeps at most the limit of each.
type lines struct {
	r     *bufio.Reader
	limit int
	no    int  // of the line returned last
	open  bool // the line returned last had no end
	buf   []byte
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line without its end, valid until the next call; long is set if
// it was cut at the limit. After the last one the error is io.EOF.
func (l *lines) next() (line []byte, long bool, err error) {
	l.buf = l.buf[:0]
	l.no++
	for {
		part, err := l.r.ReadSlice('\n')
		if room := max(l.limit-len(l.buf), 0); len(part) > room+1 {
			part, long = part[:room], true
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == nil:
			l.open = false
			return trimEnd(l.buf), long, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.buf) > 0:
			l.open = true
			return trimEnd(l.buf), long, nil
		default:
			return nil, false, err
		}
	}
}

func trimEnd(line []byte) []byte {
	for n := len(line); n > 0 && (line[n-1] == '\n' || line[n-1] == '\r'); n-- {
		line = line[:n-1]
	}
	return line
}

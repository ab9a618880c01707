package testreport

import (
	"bufio"
	"bytes"
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

// each calls do for every line without its end, valid during the call; long is set if the
// line was cut at the limit.
func (l *lines) each(do func(line []byte, long bool) error) error {
	for {
		line, long, err := l.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(line, long)
		}
		if err != nil {
			return err
		}
	}
}

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
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF) && len(l.buf) > 0:
			l.open = err != nil
			return bytes.TrimRight(l.buf, "\r\n"), long, nil
		default:
			return nil, false, err
		}
	}
}

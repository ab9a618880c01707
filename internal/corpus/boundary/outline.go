package boundary

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// windowBytes are read at once.
	windowBytes = 256 << 10
	// byteOrderMark may stand before a text.
	byteOrderMark = "\xef\xbb\xbf"
)

// Outline finds the marks of one text while it is read forward. It is used by
// one goroutine; the memory it takes is the window and the marks that were not
// forgotten.
type Outline struct {
	r       io.ReaderAt
	end     int64
	scan    scanner
	marks   marks
	buf     []byte
	text    []byte // read and not yet told; part of buf
	start   int64
	at      int64 // offset of text
	inLine  bool  // text goes on with a line whose beginning was told
	settled int64
}

// NewOutline returns the outline of the bytes of r between two offsets. buf is
// the memory to read with, or nil: it may be taken from an outline that is not
// used any more; see [Outline.Buffer].
func NewOutline(r io.ReaderAt, off, end int64, f Form, buf []byte) *Outline {
	o := &Outline{r: r, end: end, start: off, at: off, buf: buf, settled: off}
	if len(o.buf) != windowBytes {
		o.buf = make([]byte, windowBytes)
	}
	o.scan = f.scanner(&o.marks)
	return o
}

// Buffer returns the memory that the outline reads with, for the next one.
func (o *Outline) Buffer() []byte { return o.buf }

// Marks returns the marks that were not forgotten, in order: all that lie before
// to, and some after it. They are valid until the next call.
func (o *Outline) Marks(to int64) ([]Mark, error) {
	for o.settled < to && o.settled < o.end {
		if err := o.step(); err != nil {
			return nil, err
		}
	}
	return o.marks.list[o.marks.head:], nil
}

// Forget drops the marks before off.
func (o *Outline) Forget(off int64) { o.marks.forget(off) }

// step tells the scanner the lines of the next window.
func (o *Outline) step() error {
	if err := o.fill(); err != nil {
		return err
	}
	last := o.at+int64(len(o.text)) >= o.end
	for len(o.text) > 0 {
		n := bytes.IndexByte(o.text, '\n')
		if n < 0 && !last && len(o.text) < len(o.buf) {
			break // the rest of the line comes with the next window
		}
		o.tell(n)
	}
	if o.settled = o.scan.settled(o.at); o.at >= o.end {
		o.scan.end()
		o.settled = o.end
	}
	return nil
}

// tell passes on the line that ends at n, or for -1 all there is of it.
func (o *Outline) tell(n int) {
	size, line := n+1, o.text
	if n >= 0 {
		line = o.text[:n]
	} else {
		size = len(o.text)
	}
	switch {
	case o.inLine:
		o.scan.more(line)
	case o.at == o.start:
		o.scan.line(o.at, bytes.TrimPrefix(line, []byte(byteOrderMark)))
	default:
		o.scan.line(o.at, line)
	}
	o.inLine = n < 0
	o.at += int64(size)
	o.text = o.text[size:]
}

// fill reads on, behind what was not told yet.
func (o *Outline) fill() error {
	kept := copy(o.buf, o.text)
	n := int(min(int64(len(o.buf)-kept), o.end-o.at-int64(kept)))
	if got, err := o.r.ReadAt(o.buf[kept:kept+n], o.at+int64(kept)); got < n {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read at %d: %w", o.at, err)
	}
	o.text = o.buf[:kept+n]
	return nil
}

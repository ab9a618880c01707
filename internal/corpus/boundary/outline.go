package boundary

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// windowBytes is the number of bytes read at once.
	windowBytes = 256 << 10
	// byteOrderMark may begin a text.
	byteOrderMark = "\xef\xbb\xbf"
)

// Outline finds the marks of one text while it is read forward. It is used by one
// goroutine. Its memory is the window and the marks that were not forgotten.
type Outline struct {
	r       io.ReaderAt
	end     int64
	scan    scanner
	marks   marks
	buf     []byte
	text    []byte // read and not yet scanned; part of buf
	start   int64
	at      int64 // offset of text
	inLine  bool  // text continues a line whose beginning was scanned
	settled int64
}

// NewOutline returns the outline of the bytes of r between two offsets. buf is the memory
// to read with, or nil; an outline that is not used any more has one in [Outline.Buffer].
func NewOutline(r io.ReaderAt, off, end int64, f Form, buf []byte) *Outline {
	o := &Outline{r: r, end: end, start: off, at: off, buf: buf, settled: off}
	if len(o.buf) != windowBytes {
		o.buf = make([]byte, windowBytes)
	}
	o.scan = f.scanner(&o.marks)
	return o
}

// Buffer returns the memory that the outline reads with, for reuse by the next one.
func (o *Outline) Buffer() []byte { return o.buf }

// Marks returns the marks that were not forgotten, in order: all those before to, and some
// after it. They are valid until the next call.
func (o *Outline) Marks(to int64) ([]Mark, error) {
	for o.settled < to && o.settled < o.end {
		if err := o.step(); err != nil {
			return nil, err
		}
	}
	return o.marks.list[o.marks.head:], nil
}

// Forget removes the marks before off.
func (o *Outline) Forget(off int64) { o.marks.forget(off) }

// step scans the lines of the next window.
func (o *Outline) step() error {
	if err := o.fill(); err != nil {
		return err
	}
	last := o.at+int64(len(o.text)) >= o.end
	for len(o.text) > 0 {
		line, _, ended := bytes.Cut(o.text, []byte{'\n'})
		if !ended && !last && len(o.text) < len(o.buf) {
			break // the rest of the line is in the next window
		}
		o.line(line, ended)
	}
	if o.settled = o.scan.settled(o.at); o.at >= o.end {
		o.scan.end()
		o.settled = o.end
	}
	return nil
}

// line scans the next line, or the part of it that the window holds.
func (o *Outline) line(line []byte, ended bool) {
	switch {
	case o.inLine:
		o.scan.more(line)
	case o.at == o.start:
		o.scan.line(o.at, bytes.TrimPrefix(line, []byte(byteOrderMark)))
	default:
		o.scan.line(o.at, line)
	}
	size := len(line)
	if ended {
		size++
	}
	o.inLine = !ended
	o.at += int64(size)
	o.text = o.text[size:]
}

// fill reads on, after the text that was not scanned yet.
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

package charset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// InvalidError is the error of a text with bytes that its encoding does not have.
type InvalidError struct {
	Charset Charset
	// Line is the line of the text, from 1, Offset the bytes of converted text before it.
	Line, Offset int64
	// ASCII is set if the text before has ASCII characters only.
	ASCII bool
}

// Error returns the line and the encoding.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("line %d has bytes that are not %s", e.Line, e.Charset.Name())
}

// Reader converts a text to UTF-8.
type Reader struct {
	charset Charset
	in      io.Reader
	// skip is the rest of the byte order mark.
	skip int
	raw  []byte // read, not yet converted
	text []byte // converted, not yet returned
	cut  bool
	err  error
	// bytes and lines of the text returned or in text.
	bytes, lines int64
	wide         bool // it has characters beyond ASCII
	buf          []byte
}

// NewReader returns a reader of the text of r, which has the encoding c, as UTF-8 without a byte
// order mark. It fails with an [*InvalidError] at bytes that the encoding does not have: no
// character is replaced. A character that the end of the text cuts is left out.
func NewReader(r io.Reader, c Charset) *Reader {
	out := &Reader{charset: c, in: r, skip: c.mark}
	if c.enc != nil {
		out.in, out.skip = transform.NewReader(&skipReader{r: r, n: c.mark}, c.enc.NewDecoder()), 0
	}
	return out
}

// Cut reports whether the last character was left out because it is incomplete.
func (d *Reader) Cut() bool { return d.cut }

// Read returns the text.
func (d *Reader) Read(p []byte) (int, error) {
	for len(d.text) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.fill()
	}
	n := copy(p, d.text)
	d.text = d.text[n:]
	return n, nil
}

const readBuffer = 64 << 10

// fill converts the next bytes.
func (d *Reader) fill() {
	if d.buf == nil {
		d.buf = make([]byte, readBuffer)
	}
	n, err := d.in.Read(d.buf)
	part := d.buf[:n]
	skipped := min(d.skip, len(part))
	part, d.skip = part[skipped:], d.skip-skipped
	d.raw = append(d.raw, part...)
	valid := false
	if d.charset.width > 0 {
		d.text, d.raw, valid = d.charset.decode(d.text[:0:0], d.raw)
	} else {
		d.text, d.raw, valid = d.split(d.raw)
	}
	d.raw = bytes.Clone(d.raw)
	switch {
	case !valid && d.mayBeCut() && errors.Is(err, io.EOF):
		d.cut, d.err = true, io.EOF
	case !valid && d.mayBeCut() && err == nil: // the end may follow
	case !valid:
		d.count()
		d.err = &InvalidError{d.charset, d.lines + 1, d.bytes, !d.wide}
		return
	case err != nil:
		d.cut, d.err = errors.Is(err, io.EOF) && len(d.raw) > 0, err
	}
	d.count()
}

// mayBeCut reports whether the invalid rest can be a character that the end of the text cuts.
func (d *Reader) mayBeCut() bool {
	return d.charset.enc != nil && !d.charset.isSingleByte() && string(d.raw) == "\uFFFD"
}

func (d *Reader) count() {
	d.bytes += int64(len(d.text))
	d.lines += int64(bytes.Count(d.text, []byte{'\n'}))
	d.wide = d.wide || !isASCII(d.text)
}

func isASCII(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// split returns the valid UTF-8 at the beginning of text and the rest, and whether the rest is
// empty or an incomplete character. A decoder's replacement character is not valid, and neither
// are control characters that no encoding but Unicode has.
func (d *Reader) split(text []byte) (valid, rest []byte, ok bool) {
	end := len(text) - cutRune(text)
	if d.charset.enc == nil {
		if utf8.Valid(text[:end]) {
			return text[:end], text[end:], true
		}
		end = 0
		for {
			r, size := utf8.DecodeRune(text[end:])
			if r == utf8.RuneError && size <= 1 {
				return text[:end], text[end:], false
			}
			end += size
		}
	}
	for i, r := range string(text[:end]) {
		if r == utf8.RuneError || r >= 0x80 && r < 0xa0 && r != 0x85 {
			return text[:i], text[i:], false
		}
	}
	return text[:end], text[end:], true
}

// skipReader leaves out the first bytes.
type skipReader struct {
	r io.Reader
	n int
}

// Read returns what follows.
func (s *skipReader) Read(p []byte) (int, error) {
	for s.n > 0 {
		n, err := s.r.Read(p[:min(len(p), s.n)])
		if s.n -= n; err != nil {
			return 0, err
		}
	}
	return s.r.Read(p)
}

package pack

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// ErrLimit is wrapped by the errors of a pack that would exceed a limit.
var ErrLimit = errors.New("over the limit")

// ReadError is the error of a file that could not be read to its end. The pack continues
// without the file.
type ReadError struct {
	Name string
	Err  error
}

// Error returns the name and the reader's own error.
func (e *ReadError) Error() string { return fmt.Sprintf("read %q: %v", e.Name, e.Err) }

// Unwrap returns the reader's own error.
func (e *ReadError) Unwrap() error { return e.Err }

// Limits are the limits of a [Builder].
type Limits struct {
	// Files limits the number of files, at most [MaxFiles]. Zero: [MaxFiles].
	Files int
	// Bytes limits the size of the pack, at most [MaxBytes]. Zero: [MaxBytes].
	Bytes int64
}

func (l Limits) withDefaults() Limits {
	l.Files = min(cmp.Or(l.Files, MaxFiles), MaxFiles)
	l.Bytes = min(cmp.Or(l.Bytes, MaxBytes), MaxBytes)
	return l
}

// copyBuffer is the number of bytes read at once. A file that fits is written only after it
// was read as a whole.
const copyBuffer = 256 << 10

// Builder writes the files of a pack one after another and makes the manifest. It is used
// by one goroutine.
type Builder struct {
	w      io.Writer
	limits Limits
	m      Manifest
	names  map[string]struct{}
	buf    []byte
	// newlines is their number in the m.Bytes bytes written so far.
	newlines int64
	err      error // why the pack cannot be finished
}

// NewBuilder returns a builder that writes the pack to w. The caller flushes or
// commits w after Manifest.
func NewBuilder(w io.Writer, limits Limits) *Builder {
	return &Builder{
		w:      w,
		limits: limits.withDefaults(),
		m:      Manifest{Version: Version, Files: []File{}},
		names:  map[string]struct{}{},
	}
}

// Add writes the content of r as the file name. After a [*ReadError] of r, the pack
// continues without the file. After any other error the pack cannot be finished: an invalid
// or repeated name, a limit, or the writer's error.
func (b *Builder) Add(name string, r io.Reader) error {
	if b.err != nil {
		return b.err
	}
	if err := b.admit(name); err != nil {
		return b.fail(err)
	}
	file := File{Name: name, Offset: b.m.Bytes}
	before := b.newlines
	last, err := b.copy(r)
	if readErr := (*ReadError)(nil); errors.As(err, &readErr) {
		readErr.Name = name
		return err
	}
	if err != nil {
		return b.fail(fmt.Errorf("pack %q: %w", name, err))
	}
	file.Length = b.m.Bytes - file.Offset
	file.Lines = b.newlines - before
	if file.Length > 0 && last != '\n' {
		file.Lines++
	}
	b.m.Files = append(b.m.Files, file)
	b.m.Lines += file.Lines
	b.names[name] = struct{}{}
	return nil
}

func (b *Builder) admit(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if _, twice := b.names[name]; twice {
		return fmt.Errorf("file %q is listed twice", name)
	}
	if len(b.m.Files) >= b.limits.Files {
		return fmt.Errorf("pack %q: %w of %d files", name, ErrLimit, b.limits.Files)
	}
	return nil
}

// copy writes all of r and returns the last byte.
func (b *Builder) copy(r io.Reader) (last byte, err error) {
	if b.buf == nil {
		b.buf = make([]byte, copyBuffer)
	}
	for {
		n, end, err := readFull(r, b.buf)
		if err != nil {
			return 0, &ReadError{Err: err}
		}
		if n > 0 {
			last = b.buf[n-1]
			if err := b.write(b.buf[:n]); err != nil {
				return 0, err
			}
		}
		if end {
			return last, nil
		}
	}
}

// readFull fills buf up to the end of r. Unlike io.ReadFull it accepts only io.EOF itself as
// the end: io.ErrUnexpectedEOF may come from a source that was cut.
func readFull(r io.Reader, buf []byte) (n int, end bool, err error) {
	for n < len(buf) {
		var m int
		m, err = r.Read(buf[n:])
		n += m
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// write writes p and adds the marks.
func (b *Builder) write(p []byte) error {
	if int64(len(p)) > b.limits.Bytes-b.m.Bytes {
		return fmt.Errorf("%w of %d bytes", ErrLimit, b.limits.Bytes)
	}
	if n, err := b.w.Write(p); err != nil || n < len(p) {
		return cmp.Or(err, io.ErrShortWrite)
	}
	for len(p) > 0 {
		n := min(int64(len(p)), markEvery-b.m.Bytes%markEvery)
		b.newlines += int64(bytes.Count(p[:n], []byte{'\n'}))
		b.m.Bytes += n
		if b.m.Bytes%markEvery == 0 {
			b.m.Marks = append(b.m.Marks, b.newlines)
		}
		p = p[n:]
	}
	return nil
}

// Skip lists a skipped file, the kind of the reason, which may be empty, and the reason for
// people.
func (b *Builder) Skip(file, kind, why string) {
	kind = cutText(kind, maxKindBytes)
	if b.m.SkippedKinds == nil {
		b.m.SkippedKinds = make(map[string]int64)
	}
	if _, known := b.m.SkippedKinds[kind]; kind != "" && (known || len(b.m.SkippedKinds) < maxKinds) {
		b.m.SkippedKinds[kind]++
	}
	if len(b.m.Skipped) >= MaxSkipped {
		b.m.MoreSkipped++
		return
	}
	b.m.Skipped = append(b.m.Skipped,
		Skipped{File: cutText(file, MaxNameBytes), Kind: kind, Why: cutText(why, MaxReasonBytes)})
}

// Note lists a note on a file that was added, of a kind, for people.
func (b *Builder) Note(file, kind, text string) {
	if len(b.m.Notes) >= MaxNotes {
		b.m.MoreNotes++
		return
	}
	b.m.Notes = append(b.m.Notes, Note{File: cutText(file, MaxNameBytes), Kind: cutText(kind, maxKindBytes),
		Text: cutText(text, MaxReasonBytes)})
}

// cutText returns s as valid UTF-8 of at most limit bytes.
func cutText(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

// Size returns the number of bytes written so far.
func (b *Builder) Size() int64 { return b.m.Bytes }

// Manifest ends the pack. It returns the error after which the pack cannot be finished; the
// bytes written must be discarded then.
func (b *Builder) Manifest() (*Manifest, error) {
	if b.err != nil {
		return nil, b.err
	}
	b.err = errors.New("pack is finished")
	m := b.m
	return &m, nil
}

// fail records why the pack cannot be finished.
func (b *Builder) fail(err error) error {
	b.err = err
	return err
}

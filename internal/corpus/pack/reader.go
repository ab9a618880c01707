package pack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/perdure/perdure/model"
)

// ErrRange is wrapped by errors about ranges that are not in the pack.
var ErrRange = errors.New("outside the pack")

// partBytes is the size of the largest text that [Reader.All] yields.
const partBytes = 1 << 20

// Reader reads a pack. It is safe for concurrent use when its io.ReaderAt is.
type Reader struct {
	m      *Manifest
	r      io.ReaderAt
	byName func() map[string]int
}

// NewReader returns a reader of the pack in r, which m describes. If r has a method Size, it
// must return that of the manifest. The caller closes r after the last use of the reader.
func NewReader(m *Manifest, r io.ReaderAt) (*Reader, error) {
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	if s, ok := r.(interface{ Size() int64 }); ok && s.Size() != m.Bytes {
		return nil, fmt.Errorf("open pack: it has %d bytes, %d in its manifest", s.Size(), m.Bytes)
	}
	byName := sync.OnceValue(func() map[string]int {
		names := make(map[string]int, len(m.Files))
		for i, f := range m.Files {
			names[f.Name] = i
		}
		return names
	})
	return &Reader{m: m, r: r, byName: byName}, nil
}

// Manifest returns the pack's manifest, which must not be changed.
func (r *Reader) Manifest() *Manifest { return r.m }

// File returns the entry of a file in the manifest.
func (r *Reader) File(name string) (File, bool) {
	i, ok := r.byName()[name]
	if !ok {
		return File{}, false
	}
	return r.m.Files[i], true
}

// ReadAt reads bytes of the pack unchanged; it implements [io.ReaderAt].
func (r *Reader) ReadAt(p []byte, off int64) (int, error) { return r.r.ReadAt(p, off) }

// Documents returns the parts of files in the length bytes from off, in order, with the
// numbers of their first lines. If the range begins or ends within a line, the text does,
// too. Invalid UTF-8 is replaced by U+FFFD. Empty files and bytes of no file are left out.
func (r *Reader) Documents(off, length int64) ([]model.Document, error) {
	if off < 0 || length < 0 || length > r.m.Bytes-off {
		return nil, fmt.Errorf("read pack: offset %d, length %d: %w of %d bytes", off, length, ErrRange, r.m.Bytes)
	}
	var docs []model.Document
	end := off + length
	for i := r.firstEndingAfter(off); i < len(r.m.Files) && r.m.Files[i].Offset < end; i++ {
		f := r.m.Files[i]
		from, to := max(off, f.Offset), min(end, f.End())
		if from >= to {
			continue
		}
		line, err := r.lineAt(f, from)
		if err != nil {
			return nil, err
		}
		text, err := r.text(from, to)
		if err != nil {
			return nil, err
		}
		column, err := r.columnAt(f, from)
		if err != nil {
			return nil, err
		}
		docs = append(docs, model.Document{File: f.Name, StartLine: line, StartColumn: column, Text: text})
	}
	return docs, nil
}

// Passage returns the name of the file at an offset, and the text of the length bytes there as
// valid UTF-8.
func (r *Reader) Passage(off, length int64) (name, text string, err error) {
	i := r.firstEndingAfter(off)
	if off < 0 || length < 0 || length > r.m.Bytes-off || i == len(r.m.Files) {
		return "", "", fmt.Errorf("read pack: offset %d, length %d: %w", off, length, ErrRange)
	}
	text, err = r.text(off, off+length)
	return r.m.Files[i].Name, text, err
}

// Place is a run of lines of a file, counted from 1 and both included.
type Place struct {
	File       string
	Start, End int
}

// Places returns the lines that a range of the pack touches, at most so many files, and
// how many files more there are.
func (r *Reader) Places(off, length int64, most int) (places []Place, more int, err error) {
	end := off + length
	for i := r.firstEndingAfter(off); i < len(r.m.Files) && r.m.Files[i].Offset < end; i++ {
		f := r.m.Files[i]
		from, to := max(off, f.Offset), min(end, f.End())
		if from >= to {
			continue
		}
		if len(places) == most {
			more++
			continue
		}
		p := Place{File: f.Name}
		if p.Start, err = r.lineAt(f, from); err != nil {
			return nil, 0, err
		}
		if p.End, err = r.lineAt(f, to-1); err != nil {
			return nil, 0, err
		}
		places = append(places, p)
	}
	return places, more, nil
}

// firstEndingAfter returns the index of the first file with bytes at or after off.
func (r *Reader) firstEndingAfter(off int64) int {
	return sort.Search(len(r.m.Files), func(i int) bool { return r.m.Files[i].End() > off })
}

// Lines returns lines start to end, counted from 1 and both included, of a file as valid
// UTF-8, without the newline of the last one. The error of a file that is not in the pack
// matches [fs.ErrNotExist], that of lines it does not have [ErrRange].
func (r *Reader) Lines(file string, start, end int) (string, error) {
	from, to, err := r.span(file, start, end)
	if err != nil {
		return "", err
	}
	text, err := r.text(from, to)
	return strings.TrimSuffix(text, "\n"), err
}

// LinesSize returns how many bytes of the pack lines have, without the newline of the last one.
// They are not read. The errors are those of [Reader.Lines].
func (r *Reader) LinesSize(file string, start, end int) (int64, error) {
	from, to, err := r.span(file, start, end)
	if err != nil || from == to {
		return 0, err
	}
	last := make([]byte, 1)
	if err := r.ReadFull(last, to-1); err != nil {
		return 0, err
	}
	if last[0] == '\n' {
		to--
	}
	return to - from, nil
}

// span returns the range of lines in the pack.
func (r *Reader) span(file string, start, end int) (from, to int64, err error) {
	f, ok := r.File(file)
	if !ok {
		return 0, 0, fmt.Errorf("read lines of %q: %w", file, fs.ErrNotExist)
	}
	if start < 1 || end < start || int64(end) > f.Lines {
		return 0, 0, fmt.Errorf("read lines %d to %d of %q: %w: it has %d lines", start, end, file, ErrRange, f.Lines)
	}
	before, err := r.newlinesBefore(f.Offset)
	if err != nil {
		return 0, 0, err
	}
	if from, err = r.lineStart(f, before, int64(start)); err != nil || int64(end) == f.Lines {
		return from, f.End(), err
	}
	to, err = r.lineStart(f, before, int64(end)+1)
	return from, to, err
}

// Range returns lines from start on, counted from 1, of a file as a document, the first one from the
// character on that has the byte of a column, counted from 1: at most lines lines and about most
// bytes, cut at the end of a line, or between runes in a line that is longer. The errors are those
// of [Reader.Lines]; that of a column behind the end of the line wraps [ErrRange]. The document is
// empty for the column behind the last byte of the file.
func (r *Reader) Range(file string, start, column, lines int, most int64) (model.Document, error) {
	f, ok := r.File(file)
	if !ok {
		return model.Document{}, fmt.Errorf("read range of %q: %w", file, fs.ErrNotExist)
	}
	if start < 1 || lines < 1 || int64(start) > f.Lines {
		return model.Document{}, fmt.Errorf("read range of %q from line %d: %w: it has %d lines", file, start, ErrRange,
			f.Lines)
	}
	before, err := r.newlinesBefore(f.Offset)
	if err != nil {
		return model.Document{}, err
	}
	from, err := r.lineStart(f, before, int64(start))
	if err == nil && column > 1 {
		from, column, err = r.inLine(f, from, before, start, column)
	}
	if err != nil {
		return model.Document{}, err
	}
	to := min(f.End(), from+max(most, 1))
	buf, err := r.read(from, to)
	if err != nil {
		return model.Document{}, err
	}
	if to < f.End() {
		buf = buf[:CutPoint(buf)]
	}
	at := 0
	for ; lines > 0 && at < len(buf); lines-- {
		n := bytes.IndexByte(buf[at:], '\n')
		if n < 0 {
			at = len(buf)
			break
		}
		at += n + 1
	}
	d := model.Document{File: file, StartLine: start, Text: strings.ToValidUTF8(string(buf[:at]), "\uFFFD")}
	if column > 1 {
		d.StartColumn = column
	}
	return d, nil
}

// inLine returns the offset and the column of the character that has a byte of a line, which begins
// at an offset; before is the number of newlines before f.
func (r *Reader) inLine(f File, begin, before int64, line, column int) (from int64, first int, err error) {
	end := f.End()
	if int64(line) < f.Lines {
		if end, err = r.lineStart(f, before, int64(line)+1); err != nil {
			return 0, 0, err
		}
	}
	at := begin + int64(column) - 1
	switch {
	case at == end && end == f.End(): // behind the last byte of the file there is no text
		return at, column, nil
	case at >= end:
		return 0, 0, fmt.Errorf("read pack: %q line %d, which has %d bytes, from column %d: %w", f.Name, line, end-begin,
			column, ErrRange)
	}
	head, err := r.read(max(at-utf8.UTFMax+1, begin), at+1)
	if err != nil {
		return 0, 0, err
	}
	for back := range len(head) {
		if utf8.RuneStart(head[len(head)-1-back]) {
			at -= int64(back)
			break
		}
	}
	return at, int(at-begin) + 1, nil
}

// lineStart returns the offset of a line of f; before is the number of newlines before f.
func (r *Reader) lineStart(f File, before, line int64) (int64, error) {
	if line == 1 {
		return f.Offset, nil
	}
	nth := before + line - 1 // the line starts after this newline of the pack
	block := sort.Search(len(r.m.Marks), func(i int) bool { return r.m.Marks[i] >= nth })
	if block > 0 {
		nth -= r.m.Marks[block-1]
	}
	off := int64(block) * markEvery
	buf, err := r.read(off, min(off+markEvery, r.m.Bytes))
	if err != nil {
		return 0, err
	}
	at := 0
	for ; nth > 0; nth-- {
		i := bytes.IndexByte(buf[at:], '\n')
		if i < 0 {
			return 0, fmt.Errorf("read pack: %q has fewer lines than in its manifest", f.Name)
		}
		at += i + 1
	}
	start := off + int64(at)
	if start < f.Offset || start >= f.End() {
		return 0, fmt.Errorf("read pack: line %d of %q is not at the place in its manifest", line, f.Name)
	}
	return start, nil
}

// lineAt returns the number of the line of f at an offset.
func (r *Reader) lineAt(f File, off int64) (int, error) {
	if off == f.Offset {
		return 1, nil
	}
	start, err := r.newlinesBefore(f.Offset)
	if err != nil {
		return 0, err
	}
	here, err := r.newlinesBefore(off)
	if err != nil {
		return 0, err
	}
	return int(here-start) + 1, nil
}

// columnAt returns the byte of a line of f, counted from 1, at an offset; 0 for the first.
func (r *Reader) columnAt(f File, off int64) (int, error) {
	for end := off; end > f.Offset; {
		from := max(f.Offset, (end-1)/markEvery*markEvery)
		buf, err := r.read(from, end)
		if err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf, '\n'); i >= 0 {
			return column(off - from - int64(i) - 1), nil
		}
		end = from
	}
	return column(off - f.Offset), nil
}

// column returns the column behind n bytes of a line.
func column(n int64) int {
	if n == 0 {
		return 0
	}
	return int(n) + 1
}

// newlinesBefore counts the newlines in the first off bytes of the pack.
func (r *Reader) newlinesBefore(off int64) (int64, error) {
	var n int64
	block := off / markEvery
	if block > 0 {
		n = r.m.Marks[block-1]
	}
	buf, err := r.read(block*markEvery, off)
	if err != nil {
		return 0, err
	}
	return n + int64(bytes.Count(buf, []byte{'\n'})), nil
}

// read reads the bytes between two offsets.
func (r *Reader) read(from, to int64) ([]byte, error) {
	buf := make([]byte, to-from)
	return buf, r.ReadFull(buf, from)
}

// ReadFull fills buf with the bytes from off on.
func (r *Reader) ReadFull(buf []byte, off int64) error {
	if len(buf) == 0 {
		return nil
	}
	if n, err := r.r.ReadAt(buf, off); n < len(buf) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read pack at %d: %w", off, err)
	}
	return nil
}

func (r *Reader) text(from, to int64) (string, error) {
	buf, err := r.read(from, to)
	return strings.ToValidUTF8(string(buf), "\uFFFD"), err
}

// All yields the whole pack as documents of at most 1 MiB each, cut at the ends of lines; a
// line longer than that is cut between runes. Each document is of one file. An error is
// yielded last. Memory use does not grow with the pack.
func (r *Reader) All() iter.Seq2[model.Document, error] {
	return func(yield func(model.Document, error) bool) {
		buf := make([]byte, partBytes)
		for _, f := range r.m.Files {
			if !r.parts(f, buf, yield) {
				return
			}
		}
	}
}

// parts yields one file and reports whether the consumer continues.
func (r *Reader) parts(f File, buf []byte, yield func(model.Document, error) bool) bool {
	line, begins := 1, f.Offset // of the line
	for off := f.Offset; off < f.End(); {
		part := buf[:min(int64(len(buf)), f.End()-off)]
		if err := r.ReadFull(part, off); err != nil {
			yield(model.Document{}, err)
			return false
		}
		if off+int64(len(part)) < f.End() {
			part = part[:CutPoint(part)]
		}
		text := strings.ToValidUTF8(string(part), "\uFFFD")
		d := model.Document{File: f.Name, StartLine: line, StartColumn: column(off - begins), Text: text}
		if !yield(d, nil) {
			return false
		}
		off += int64(len(part))
		if n := bytes.LastIndexByte(part, '\n'); n >= 0 {
			begins = off - int64(len(part)-n-1)
		}
		line += bytes.Count(part, []byte{'\n'})
	}
	return true
}

// CutPoint returns where a text that continues after b is cut: after the last newline in
// b, else, in a line longer than b, before an incomplete rune. It is at least 1 if b is not
// empty.
func CutPoint(b []byte) int {
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	i := len(b) - 1
	for i > 0 && i > len(b)-utf8.UTFMax && !utf8.RuneStart(b[i]) {
		i--
	}
	if i > 0 && !utf8.FullRune(b[i:]) {
		return i
	}
	return len(b)
}

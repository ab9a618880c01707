package loops

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// maxDocument is the limit of an unpacked document in bytes.
const maxDocument = 64 << 20

// Source is the files of a .aiwg folder to import.
type Source struct {
	// Files are the names of all files of the folder, with slashes, in order.
	Files []string
	// Read returns the content of a file.
	Read func(name string) ([]byte, error)
	// Note receives the notes.
	Note func(Note)
	// States are files that are each the state of a loop, outside of a folder of the loop.
	States []string
	// Settings are the files that can have a section agent_persistence; Read
	// reads them, too.
	Settings []string
	// DryRun changes nothing.
	DryRun bool
}

// file is a file that was read.
type file struct {
	src   *Source
	name  string
	text  []byte
	lines *jsontree.Lines // of text
}

// note adds a note about the value at an offset, -1 for the whole file.
func (f *file) note(kind string, off int, format string, args ...any) {
	n := Note{Kind: kind, File: f.name, Message: fmt.Sprintf(format, args...)}
	if off >= 0 && off <= len(f.text) {
		n.Line, n.Column = f.lines.Position(off)
	}
	f.src.Note(n)
}

// set replaces the text.
func (f *file) set(text []byte) { f.text, f.lines = text, jsontree.NewLines(text) }

// open reads a file. If it cannot be read, that is noted, and open returns nil.
func (s *Source) open(name string) *file {
	text, err := s.Read(name)
	f := &file{src: s, name: name}
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("it has %d bytes, the limit is %d", len(text), maxDocument)
	}
	if err != nil {
		if in, ok := errors.AsType[*fs.PathError](err); ok {
			err = in.Err
		}
		f.note(NotRead, -1, "cannot be read: %v", err)
		return nil
	}
	f.set(text)
	return f
}

// asText removes a byte order mark and replaces bytes that are not UTF-8.
func (f *file) asText() {
	f.set(bytes.TrimPrefix(f.text, []byte("\xef\xbb\xbf")))
	text, at := jsontree.ToValidUTF8(f.text)
	if at >= 0 {
		f.note(Corrected, at, "bytes that are not UTF-8 were replaced with U+FFFD")
		f.set(text)
	}
}

// unpack unpacks the text, up to its first error.
func (f *file) unpack() bool {
	if !bytes.HasPrefix(f.text, []byte("\x1f\x8b")) {
		f.note(Corrected, -1, "is not packed although its name ends in %s; an export packs it", packed)
		return true
	}
	text, err := unpack(f.text)
	f.set(text)
	switch {
	case err == nil:
		return true
	case len(text) == 0 || errors.Is(err, errTooLarge):
		f.note(NotRead, -1, "cannot be unpacked: %v; nothing was imported", err)
		return false
	}
	f.note(NotRead, -1, "cannot be unpacked: %v; the part before it was imported", err)
	return true
}

var errTooLarge = fmt.Errorf("the document has more than %d bytes", maxDocument)

// unpack returns the text up to the first error.
func unpack(packed []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = io.Copy(&out, io.LimitReader(z, maxDocument+1))
	if out.Len() > maxDocument {
		return nil, errTooLarge
	}
	return out.Bytes(), err
}

// pack packs a document without a time and a name, so that the same text gives the same
// bytes.
func pack(text []byte) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(text)
	err = errors.Join(err, z.Close())
	return out.Bytes(), err
}

// importer is one import.
type importer struct {
	*Source
	store  *perdure.Store
	shapes *shapes
	counts Counts
}

// document reads a file as a document of a schema; nil if nothing of it can be imported.
func (m *importer) document(l *loop, name string, s *shape, fallback map[string]*jsontree.Value) *document {
	f := m.open(name)
	if f == nil || strings.HasSuffix(name, packed) && !f.unpack() {
		return nil
	}
	f.asText()
	v, err := jsontree.Parse(f.text, jsontree.Options{Partial: true})
	if bad, ok := errors.AsType[*jsontree.Error](err); ok {
		f.note(NotRead, bad.Offset, "%s", SyntaxNote(v, bad))
	}
	if v == nil {
		return nil
	}
	x := m.fitter(l, f, s)
	x.fallback = fallback
	if s == m.shapes.state {
		x.current(v)
	}
	if v = x.document(v); v == nil {
		return nil
	}
	return &document{file: f, value: v}
}

// fitter returns a fitter for a file of a loop.
func (m *importer) fitter(l *loop, f *file, s *shape) *fitter {
	return &fitter{shape: s, given: l.folder, loop: l.id,
		note: func(kind string, at *jsontree.Value, format string, args ...any) {
			f.note(kind, at.Start, format, args...)
		}}
}

// lines reads a log line by line.
func (m *importer) lines(l *loop, name string) *document {
	f := m.open(name)
	if f == nil {
		return nil
	}
	f.asText()
	d := &document{file: f, value: &jsontree.Value{Kind: jsontree.Array}}
	at := 0
	for line := range bytes.Lines(f.text) {
		end := at + len(bytes.TrimSuffix(line, []byte("\n")))
		if v := m.line(l, f, at, end); v != nil {
			d.value.Items = append(d.value.Items, v)
		}
		at += len(line)
	}
	return d
}

// line reads one line of a log; nil for an empty line and for one that was not imported.
func (m *importer) line(l *loop, f *file, at, end int) *jsontree.Value {
	if len(bytes.TrimLeft(f.text[at:end], " \t\r")) == 0 {
		return nil
	}
	v, err := jsontree.Parse(f.text[:end], jsontree.Options{From: at})
	if bad, ok := errors.AsType[*jsontree.Error](err); ok {
		f.note(NotRead, bad.Offset, "invalid JSON in the line: %s; it was not imported", bad.Msg)
		return nil
	}
	s := m.shapes.forLine(v)
	x := m.fitter(l, f, s)
	for old, name := range map[string]string{"hook": "hook_name", "time": "timestamp"} {
		i := slices.IndexFunc(v.Members, func(m jsontree.Member) bool { return m.Name == old })
		if s == m.shapes.line && i >= 0 && v.Get(name) == nil {
			x.note(Corrected, v.Members[i].Value, "%s was renamed to %s", old, name)
			v.Members[i].Name = name
		}
	}
	return x.document(v)
}

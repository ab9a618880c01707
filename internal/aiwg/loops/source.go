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

// maxDocument bounds a document, packed ones when they are unpacked.
const maxDocument = 64 << 20

// Source is what an import reads: the files of a .aiwg folder.
type Source struct {
	// Files are the names of all files of the folder, with slashes, in order.
	Files []string
	// Read returns what a file holds. Files that were never read are told of as
	// left by whoever gives the source.
	Read func(name string) ([]byte, error)
	// Note is told what did not come in as it stands there.
	Note func(Note)
	// Settings are the files that may hold a section agent_persistence; Read
	// reads them, too.
	Settings []string
	// DryRun changes nothing.
	DryRun bool
}

// file is one that was read.
type file struct {
	src   *Source
	name  string
	text  []byte
	lines *jsontree.Lines // of text
}

// note tells of something at an offset, -1 for the whole file.
func (f *file) note(kind string, off int, format string, args ...any) {
	n := Note{Kind: kind, File: f.name, Message: fmt.Sprintf(format, args...)}
	if off >= 0 && off <= len(f.text) {
		n.Line, n.Column = f.lines.Position(off)
	}
	f.src.Note(n)
}

// set replaces the text.
func (f *file) set(text []byte) { f.text, f.lines = text, jsontree.NewLines(text) }

// open reads a file; nil when it cannot be read, which is noted.
func (s *Source) open(name string) *file {
	text, err := s.Read(name)
	f := &file{src: s, name: name}
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("it has %d bytes, the limit is %d", len(text), maxDocument)
	}
	if err != nil {
		var in *fs.PathError
		if errors.As(err, &in) {
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
		f.note(Corrected, at, "bytes that are not UTF-8 became U+FFFD")
		f.set(text)
	}
}

// unpack replaces a packed text by what is in it, as far as it is whole.
func (f *file) unpack() bool {
	if !bytes.HasPrefix(f.text, []byte("\x1f\x8b")) {
		f.note(Corrected, -1, "is not packed although it is called so; it will be")
		return true
	}
	text, err := unpack(f.text)
	f.set(text)
	if err == nil {
		return true
	}
	if len(text) == 0 || errors.Is(err, errTooLarge) {
		f.note(NotRead, -1, "cannot be unpacked: %v; nothing is taken", err)
		return false
	}
	f.note(NotRead, -1, "cannot be unpacked whole: %v; what is whole before is taken", err)
	return true
}

var errTooLarge = errors.New("there is more in it than a document may have")

// unpack returns what can be unpacked, and why that is not all.
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

// pack packs a document: the same bytes for the same text, without time and name.
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

// document reads a file as one of a schema; nil when there is nothing of it.
func (m *importer) document(l *loop, name string, s *shape, fallback map[string]*jsontree.Value) *document {
	f := m.open(name)
	if f == nil || strings.HasSuffix(name, packed) && !f.unpack() {
		return nil
	}
	f.asText()
	v, err := jsontree.Parse(f.text, jsontree.Options{Partial: true})
	var bad *jsontree.Error
	if errors.As(err, &bad) {
		kept := "what is whole before is taken"
		if v == nil {
			kept = "nothing is taken"
		}
		f.note(NotRead, bad.Offset, "is not whole: %s; %s", bad.Msg, kept)
	}
	if v == nil {
		return nil
	}
	x := m.fitter(l, f, s)
	x.fallback = fallback
	if v = x.document(v); v == nil {
		return nil
	}
	return &document{file: f, value: v}
}

// fitter brings what stands in a file of a loop into the form of a schema.
func (m *importer) fitter(l *loop, f *file, s *shape) *fitter {
	return &fitter{shape: s, given: l.folder, loop: l.id,
		note: func(kind string, at *jsontree.Value, format string, args ...any) {
			f.note(kind, at.Start, format, args...)
		}}
}

// lines reads a log, each line for itself.
func (m *importer) lines(l *loop, name string) *document {
	f := m.open(name)
	if f == nil {
		return nil
	}
	f.asText()
	d := &document{file: f, value: &jsontree.Value{Kind: jsontree.Array}}
	for at := 0; at < len(f.text); {
		end := len(f.text)
		if i := bytes.IndexByte(f.text[at:], '\n'); i >= 0 {
			end = at + i
		}
		if line := m.line(l, f, at, end); line != nil {
			d.value.Items = append(d.value.Items, line)
		}
		at = end + 1
	}
	return d
}

// line reads one line of a log; nil for an empty one and for what is noted.
func (m *importer) line(l *loop, f *file, at, end int) *jsontree.Value {
	if len(bytes.TrimLeft(f.text[at:end], " \t\r")) == 0 {
		return nil
	}
	v, err := jsontree.Parse(f.text[:end], jsontree.Options{From: at})
	var bad *jsontree.Error
	if errors.As(err, &bad) {
		f.note(NotRead, bad.Offset, "the line is not whole: %s; it was not taken", bad.Msg)
		return nil
	}
	s := m.shapes.forLine(v)
	x := m.fitter(l, f, s)
	for old, name := range map[string]string{"hook": "hook_name", "time": "timestamp"} {
		i := slices.IndexFunc(v.Members, func(m jsontree.Member) bool { return m.Name == old })
		if s == m.shapes.line && i >= 0 && v.Get(name) == nil {
			x.note(Corrected, v.Members[i].Value, "%s is called %s here", old, name)
			v.Members[i].Name = name
		}
	}
	return x.document(v)
}

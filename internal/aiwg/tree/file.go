package tree

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// maxFile is the limit of a file in bytes.
const maxFile = 1 << 30

// source is the folder that is imported. No file outside of it is opened, also not
// through links.
type source struct {
	root *os.Root
	// names are the names of the folder in references: ".aiwg" and its own name.
	names []string
	abs   string          // the path of the folder
	used  map[string]bool // the files that were read
}

const hintPath = "name a .aiwg folder, the folder it is in, or one of its files"

func openSource(dir string) (*source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "import",
			Msg: fmt.Sprintf("cannot open the folder %q", dir), Err: err, Hint: hintPath}
	}
	return &source{root: root, abs: filepath.Clean(dir), names: []string{layoutName, filepath.Base(dir)},
		used: make(map[string]bool)}, nil
}

// file is a file that was read.
type file struct {
	name  string // inside the source, with slashes
	text  []byte
	root  *jsontree.Value
	err   *jsontree.Error // the first syntax error
	lines *jsontree.Lines
}

var errNotRegular = errors.New("not a regular file")

// read returns the bytes of a file inside the folder.
func (s *source) read(name string) ([]byte, error) {
	s.used[name] = true
	info, err := s.root.Stat(filepath.FromSlash(name))
	if err := usable(info, err); err != nil {
		return nil, err
	}
	// It can be another file now: a pipe must not block.
	f, err := s.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err = f.Stat()
	if err := usable(info, err); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.Grow(int(info.Size()) + bytes.MinRead) // room to see the end of the file
	_, err = text.ReadFrom(io.LimitReader(f, maxFile))
	return text.Bytes(), err
}

// usable returns an error if a file cannot be read as a whole.
func usable(info fs.FileInfo, err error) error {
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return errNotRegular
	case info.Size() > maxFile:
		return fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), maxFile)
	}
	return nil
}

// list returns the regular files of the folder by name.
func (s *source) list() ([]string, error) {
	var names []string
	err := fs.WalkDir(s.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// resolve returns the file of a reference, which is relative to the parent of the
// .aiwg folder, to that folder, or to the file with the reference.
func (s *source) resolve(ref, from string) (string, error) {
	ref = filepath.ToSlash(strings.TrimPrefix(ref, fileScheme))
	if rest, ok := strings.CutPrefix(ref, filepath.ToSlash(s.abs)+"/"); ok {
		ref = rest
	}
	if path.IsAbs(ref) || filepath.IsAbs(ref) {
		return "", fmt.Errorf("%q is outside of the folder", ref)
	}
	var tries []string
	for _, name := range s.names {
		if rest, ok := strings.CutPrefix(path.Clean(ref), name+"/"); ok {
			tries = append(tries, rest)
		}
	}
	tries = append(tries, path.Clean(ref), path.Join(path.Dir(from), ref))
	outside := true
	for _, name := range tries {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			continue
		}
		outside = false
		if _, err := s.root.Stat(filepath.FromSlash(name)); err == nil {
			return name, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%q cannot be opened inside the folder: %w", ref, cause(err))
		}
	}
	if outside {
		return "", fmt.Errorf("%q is outside of the folder", ref)
	}
	return "", fmt.Errorf("the file %q does not exist", ref)
}

// cause returns an error without its path, which the message has anyway.
func cause(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// open reads and parses a file. Errors are noted; it returns nil if the file has no
// complete value, and else the file with the values before the error.
func (r *reader) open(name string) *file {
	text, err := r.src.read(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.note(NotRead, &file{name: name}, -1, "cannot be read: %v", cause(err))
		}
		return nil
	}
	f := r.parse(name, text)
	r.noteSyntax(f)
	if f.root == nil {
		return nil
	}
	r.strict.check(f)
	return f
}

// noteSyntax notes the syntax error of a file, if there is one.
func (r *reader) noteSyntax(f *file) {
	if f.err != nil {
		r.note(NotRead, f, f.err.Offset, "%s", loops.SyntaxNote(f.root, f.err))
	}
}

// parse reads a text as far as it is JSON.
func (r *reader) parse(name string, text []byte) *file {
	f := r.decoded(name, text)
	f.parse(0)
	return f
}

// decoded returns a file of a text in which bytes that are not UTF-8 are replaced.
func (r *reader) decoded(name string, text []byte) *file {
	f := &file{name: name}
	var at int
	f.text, at = jsontree.ToValidUTF8(text)
	f.lines = jsontree.NewLines(f.text)
	if at >= 0 {
		r.note(Corrected, f, at, "bytes that are not UTF-8 were replaced with U+FFFD")
	}
	return f
}

// parse parses the text from an offset up to its first syntax error.
func (f *file) parse(from int) {
	root, err := jsontree.Parse(f.text, jsontree.Options{From: from, Partial: true})
	f.root = root
	f.err, _ = errors.AsType[*jsontree.Error](err)
}

// Kinds of notes, as package loops describes them.
const (
	Corrected = loops.Corrected
	Kept      = loops.Kept
	Default   = loops.Default
	// Renumbered is the kind of a task that got another ID than in its file.
	Renumbered = "renumbered"
	NotRead    = loops.NotRead
	Missing    = loops.Missing
	Left       = loops.Left
	Differs    = loops.Differs
	// NotApplied is the kind of a setting that is kept and acts on nothing.
	NotApplied = "not_applied"
)

// Note is a note of an import.
type Note = loops.Note

// note adds a note about the value at an offset, -1 for the whole file.
func (r *reader) note(kind string, f *file, off int, format string, args ...any) {
	n := Note{Kind: kind, File: f.name, Message: fmt.Sprintf(format, args...)}
	if off >= 0 && off <= len(f.text) && f.lines != nil {
		n.Line, n.Column = f.lines.Position(off)
	}
	r.report.Notes = append(r.report.Notes, n)
}

// sortNotes sorts notes by file, line and column.
func sortNotes(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
}

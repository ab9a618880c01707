package tree

import (
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

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// maxFile bounds the files that are read.
const maxFile = 1 << 30

// source is the folder that is imported. Nothing outside of it is ever opened,
// also not through links.
type source struct {
	root *os.Root
	// names are what the folder may be called in references: ".aiwg" and its
	// own name; abs is its path.
	names []string
	abs   string
	used  map[string]bool
}

func openSource(dir string) (*source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &perdure.Error{Code: perdure.CodeNotFound, Op: "import",
			Msg: fmt.Sprintf("cannot open the folder %q", dir), Err: err,
			Hint: "name a .aiwg folder, the folder it is in, or one of its files"}
	}
	return &source{root: root, abs: filepath.Clean(dir), names: []string{layoutName, filepath.Base(dir)},
		used: make(map[string]bool)}, nil
}

// file is one that was read.
type file struct {
	name  string // inside the source, with slashes
	text  []byte
	root  *jsontree.Value
	err   *jsontree.Error // where the text stops being JSON
	lines *jsontree.Lines
}

var errNotRegular = errors.New("it is not a regular file")

// read returns the bytes of a file inside the folder.
func (s *source) read(name string) ([]byte, error) {
	s.used[name] = true
	info, err := s.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotRegular // opening a pipe would wait for ever
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), maxFile)
	}
	f, err := s.root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// list returns the regular files of the folder by name.
func (s *source) list() ([]string, error) {
	var names []string
	err := fs.WalkDir(s.root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !e.IsDir() {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// resolve finds the file that a reference means, relative to the folder the
// layout is in, to the layout, or to the file where it stands.
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
	return "", fmt.Errorf("there is no file %q", ref)
}

// cause leaves the path out of an error, which is told anyway.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// open reads and parses a file. What cannot be read is noted, and nil returned;
// a text that is cut is noted and returned as far as it is whole.
func (r *reader) open(name string) *file {
	text, err := r.src.read(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			r.note(NotRead, &file{name: name}, -1, "cannot be read: %v", cause(err))
		}
		return nil
	}
	f := r.parse(name, text)
	if f.err != nil {
		kept := "what is whole before is taken"
		if f.root == nil {
			kept = "nothing is taken"
		}
		r.note(NotRead, f, f.err.Offset, "is not whole: %s; %s", f.err.Msg, kept)
	}
	if f.root == nil {
		return nil
	}
	return f
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
		r.note(Corrected, f, at, "bytes that are not UTF-8 became U+FFFD")
	}
	return f
}

// parse reads the text from an offset on as far as it is JSON.
func (f *file) parse(from int) {
	f.err = nil
	root, err := jsontree.Parse(f.text, jsontree.Options{From: from, Partial: true})
	f.root = root
	errors.As(err, &f.err)
}

// Kinds of notes.
const (
	// Corrected is what came in otherwise than it stands there.
	Corrected = loops.Corrected
	// NotRead is what could not be read; it did not come in.
	NotRead = loops.NotRead
	// Missing is what is not there although something tells of it.
	Missing = loops.Missing
	// Left is what this version does not read; it stays where it is.
	Left = loops.Left
	// Differs is what is otherwise in the store already; the store's stays.
	Differs = loops.Differs
)

// Note tells of something that did not come in as it stands in its file.
type Note = loops.Note

// note records what happened to the text at an offset, -1 for the whole file.
func (r *reader) note(kind string, f *file, off int, format string, args ...any) {
	n := Note{Kind: kind, File: f.name, Message: fmt.Sprintf(format, args...)}
	if off >= 0 && off <= len(f.text) && f.lines != nil {
		n.Line, n.Column = f.lines.Position(off)
	}
	r.report.Notes = append(r.report.Notes, n)
}

// sortNotes brings them into the order of the files and their lines.
func sortNotes(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
}

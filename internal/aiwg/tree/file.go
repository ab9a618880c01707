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
	"unicode/utf8"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/aiwg/loops"
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
	name string // inside the source, with slashes
	text []byte
	root *node
	err  *syntaxError // where the text stops being JSON
	// lines are the offsets behind the line ends, found when first needed.
	lines []int
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
		r.note(NotRead, f, f.err.off, "is not whole: %s; %s", f.err.what, kept)
	}
	if f.root == nil {
		return nil
	}
	return f
}

// parse makes a text that may hold anything one that can be kept.
func (r *reader) parse(name string, text []byte) *file {
	f := &file{name: name, text: bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))}
	if !utf8.Valid(f.text) {
		at := 0
		for at < len(f.text) {
			c, size := utf8.DecodeRune(f.text[at:])
			if c == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		r.note(Corrected, f, at, "bytes that are not UTF-8 became U+FFFD")
		f.text = bytes.ToValidUTF8(f.text, []byte("\uFFFD"))
	}
	f.root, f.err = parse(f.text)
	return f
}

// place returns the line and the column, in bytes, of an offset.
func (f *file) place(off int) (line, column int) {
	if off < 0 || off > len(f.text) {
		return 0, 0
	}
	if f.lines == nil {
		f.lines = []int{0}
		for i, c := range f.text {
			if c == '\n' {
				f.lines = append(f.lines, i+1)
			}
		}
	}
	i, found := slices.BinarySearch(f.lines, off)
	if !found {
		i--
	}
	return i + 1, off - f.lines[i] + 1
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
	n.Line, n.Column = f.place(off)
	r.report.Notes = append(r.report.Notes, n)
}

// sortNotes brings them into the order of the files and their lines.
func sortNotes(notes []Note) {
	slices.SortStableFunc(notes, func(a, b Note) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
}

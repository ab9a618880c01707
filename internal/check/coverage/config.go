package coverage

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Module is a Go module whose import paths stand in a coverprofile.
type Module struct {
	// Path is the module's path, as in go.mod.
	Path string
	// Dir is its folder relative to the workspace, with slashes; "." or empty
	// for the workspace itself.
	Dir string
}

// Config says where files belong and how much is read. The zero value is
// ready to use for LCOV and Cobertura with relative names.
type Config struct {
	// Root is the absolute path of the workspace: absolute names of files below
	// it become relative to it, others are foreign. Zero: all absolute names
	// are.
	Root string
	// Dir is the folder, relative to the workspace, that relative names are
	// relative to: where the tests ran. Zero: the workspace itself.
	Dir string
	// Modules map import paths to folders; needed for Go only. The longest path
	// that fits decides.
	Modules []Module
	// Exists tells whether a file of the workspace exists. It chooses between
	// the source folders that a Cobertura document names. Nil: the first one
	// inside the workspace is taken.
	Exists func(name string) bool
	// MaxFiles is how many files a profile may have. Zero: 200,000.
	MaxFiles int
	// MaxFileLines is the highest line number a file may have. Zero: 4,000,000.
	MaxFileLines int
	// MaxTotal is how many lines all files may have together, each begun 64
	// counted as whole. Zero: 200,000,000.
	MaxTotal int
	// MaxLine is how many bytes a line of the input, or a tag of XML, may have.
	// Zero: 1 MiB.
	MaxLine int
}

func (c Config) withDefaults() Config {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.MaxFiles, 200_000)
	set(&c.MaxFileLines, 4_000_000)
	set(&c.MaxTotal, 200_000_000)
	set(&c.MaxLine, 1<<20)
	return c
}

func (c Config) validate() error {
	var all []error
	positive := func(name string, n int) {
		if n < 0 {
			all = append(all, fmt.Errorf("%s %d is negative", name, n))
		}
	}
	positive("max files", c.MaxFiles)
	positive("max file lines", c.MaxFileLines)
	positive("max total", c.MaxTotal)
	positive("max line", c.MaxLine)
	if c.MaxFileLines > MaxLine {
		all = append(all, fmt.Errorf("max file lines %d is over %d", c.MaxFileLines, MaxLine))
	}
	return errors.Join(all...)
}

// place makes the name of a file relative to the workspace; empty when it is
// outside.
func (c Config) place(name string) string {
	name = strings.ReplaceAll(strings.TrimPrefix(name, "file://"), `\`, "/")
	root := strings.TrimSuffix(strings.ReplaceAll(c.Root, `\`, "/"), "/")
	if absolute(name) {
		rest, below := strings.CutPrefix(path.Clean(name), root+"/")
		if root == "" || !below {
			return ""
		}
		return rest
	}
	name = path.Join(c.Dir, name)
	if name == "." || name == ".." || strings.HasPrefix(name, "../") {
		return ""
	}
	return name
}

func absolute(name string) bool {
	return strings.HasPrefix(name, "/") || (len(name) > 2 && name[1] == ':' && name[2] == '/')
}

// LimitError tells which limit of Config an input passed.
type LimitError struct {
	// Limit is the limit's name in words: "max files".
	Limit string
	// Max is its value.
	Max int
	// Line is where in the input it was passed, counted from 1.
	Line int
}

// Error names the limit, its value and the place.
func (e *LimitError) Error() string {
	return fmt.Sprintf("line %d: %s of %d passed", e.Line, e.Limit, e.Max)
}

// SyntaxError tells that an input is not of the format it should have.
type SyntaxError struct {
	// Line is counted from 1, Column too, in bytes; Column is 0 when the whole
	// line is meant.
	Line, Column int
	// Msg says what is wrong there.
	Msg string
}

// Error names the place and what is wrong there.
func (e *SyntaxError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// builder makes a profile and holds the limits.
type builder struct {
	cfg     Config
	profile Profile
	words   int // of all sets
	foreign map[string]bool
	line    int // of the input
}

func newBuilder(cfg Config) (*builder, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &builder{cfg: cfg.withDefaults(), profile: Profile{Complete: true, Files: map[string]*File{}},
		foreign: make(map[string]bool)}, nil
}

func (b *builder) incomplete(reason string) {
	if b.profile.Complete {
		b.profile.Complete, b.profile.Reason = false, reason
	}
}

// file returns the file of a name that is relative to the workspace; nil when
// it is foreign. Named is what the input calls it.
func (b *builder) file(name, named string) (*File, error) {
	if name == "" {
		if len(b.foreign) < b.cfg.MaxFiles && !b.foreign[named] {
			b.foreign[named] = true
			b.profile.Foreign++
		}
		return nil, nil
	}
	if f := b.profile.Files[name]; f != nil {
		return f, nil
	}
	if len(b.profile.Files) >= b.cfg.MaxFiles {
		return nil, &LimitError{Limit: "max files", Max: b.cfg.MaxFiles, Line: b.line}
	}
	return b.profile.file(name), nil
}

// add notes the lines first to last of a file.
func (b *builder) add(f *File, first, last int, covered bool) error {
	if last > b.cfg.MaxFileLines {
		return &LimitError{Limit: "max file lines", Max: b.cfg.MaxFileLines, Line: b.line}
	}
	before := len(f.Code.words) + len(f.Covered.words)
	f.Code.AddRange(first, last)
	if covered {
		f.Covered.AddRange(first, last)
	}
	b.words += len(f.Code.words) + len(f.Covered.words) - before
	if b.words/2 > b.cfg.MaxTotal/64 { // two sets
		return &LimitError{Limit: "max total", Max: b.cfg.MaxTotal, Line: b.line}
	}
	return nil
}

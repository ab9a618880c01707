package coverage

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Module is a Go module whose import paths occur in a coverprofile.
type Module struct {
	// Path is the module's path, as in go.mod.
	Path string
	// Dir is its folder relative to the workspace, with slashes; "." or empty
	// for the workspace itself.
	Dir string
}

// Config locates files and limits what is read. The zero value is ready to use for LCOV
// and Cobertura with relative names.
type Config struct {
	// Root is the absolute path of the workspace: absolute names of files below it become
	// relative to it, others are foreign. Zero: all absolute names are foreign.
	Root string
	// Dir is the folder, relative to the workspace, that relative names are relative to:
	// where the tests ran. Zero: the workspace.
	Dir string
	// Modules map import paths to folders; needed for Go only. The longest matching path
	// wins.
	Modules []Module
	// Exists reports whether a file of the workspace exists, to choose between the source
	// folders of a Cobertura document. Nil: the first one inside the workspace is used.
	Exists func(name string) bool
	// MaxFiles limits the files of a profile. Zero: 200,000.
	MaxFiles int
	// MaxFileLines limits the line numbers of a file. Zero: 4,000,000.
	MaxFileLines int
	// MaxTotal limits the lines of all files together, rounded up to 64 for each group.
	// Zero: 200,000,000.
	MaxTotal int
	// MaxLine limits the bytes of a line of the input, or of an XML tag. Zero: 1 MiB.
	MaxLine int
}

// complete returns the configuration with its defaults set, or what is wrong with it.
func (c Config) complete() (Config, error) {
	var all []error
	for _, l := range []struct {
		name     string
		limit    *int
		standard int
	}{
		{"max files", &c.MaxFiles, 200_000},
		{"max file lines", &c.MaxFileLines, 4_000_000},
		{"max total", &c.MaxTotal, 200_000_000},
		{"max line", &c.MaxLine, 1 << 20},
	} {
		if *l.limit < 0 {
			all = append(all, fmt.Errorf("%s %d is negative", l.name, *l.limit))
		}
		*l.limit = cmp.Or(*l.limit, l.standard)
	}
	if c.MaxFileLines > MaxLine {
		all = append(all, fmt.Errorf("max file lines %d is over %d", c.MaxFileLines, MaxLine))
	}
	return c, errors.Join(all...)
}

// place returns a file name relative to the workspace; empty if the file is outside.
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

// LimitError is the error of an input that exceeds a limit of Config.
type LimitError struct {
	// Limit is the name of the limit: "max files".
	Limit string
	// Max is its value.
	Max int
	// Line is the line of the input at which it was exceeded, counted from 1.
	Line int
}

// Error names the limit, its value and the place.
func (e *LimitError) Error() string {
	return fmt.Sprintf("line %d: %s of %d exceeded", e.Line, e.Limit, e.Max)
}

// SyntaxError is the error of an input that is not in its format.
type SyntaxError struct {
	// Line and Column are counted from 1, Column in bytes; Column is 0 if the whole line is
	// meant.
	Line, Column int
	// Msg describes the problem.
	Msg string
}

// Error names the position and the problem.
func (e *SyntaxError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

// builder builds a profile within the limits.
type builder struct {
	cfg     Config
	profile Profile
	words   int // of all sets
	foreign map[string]bool
	line    int // of the input
}

func newBuilder(cfg Config) (*builder, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &builder{cfg: cfg, profile: Profile{Complete: true, Files: map[string]*File{}},
		foreign: make(map[string]bool)}, nil
}

func (b *builder) incomplete(reason string) {
	if b.profile.Complete {
		b.profile.Complete, b.profile.Reason = false, reason
	}
}

// file returns the file with a name relative to the workspace; nil if the name is empty,
// for a file outside of it. Named is its name in the input.
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

// add adds the lines first to last of a file.
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

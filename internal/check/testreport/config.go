package testreport

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Config says where files belong and how much is read. The zero value is
// ready to use.
type Config struct {
	// Root is the absolute path of the workspace. Absolute names of files below
	// it become relative to it. Zero: names stay as they are written.
	Root string
	// Suite stands before every identity of a format that does not say where
	// its tests come from (TAP), so that several inputs can be merged. Zero:
	// nothing stands there.
	Suite string
	// MaxTests is how many tests, suites and broken suites a report may have.
	// Zero: 1,000,000.
	MaxTests int
	// MaxIdentity is how many bytes an identity may have. Zero: 8 KiB.
	MaxIdentity int
	// MaxLine is how many bytes a line of text, a tag of XML without the values
	// of its attributes, or a value in JSON may have. Zero: 4 MiB.
	MaxLine int
	// MaxMessage is how many bytes of a failure's message are kept. What is
	// longer is cut, which is no error. Zero: 2 KiB.
	MaxMessage int
	// MaxDepth is how deeply elements, values and subtests may be nested. Zero:
	// 64.
	MaxDepth int
}

func (c Config) withDefaults() Config {
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	set(&c.MaxTests, 1_000_000)
	set(&c.MaxIdentity, 8<<10)
	set(&c.MaxLine, 4<<20)
	set(&c.MaxMessage, 2<<10)
	set(&c.MaxDepth, 64)
	return c
}

func (c Config) validate() error {
	var all []error
	positive := func(name string, n int) {
		if n < 0 {
			all = append(all, fmt.Errorf("%s %d is negative", name, n))
		}
	}
	positive("max tests", c.MaxTests)
	positive("max identity", c.MaxIdentity)
	positive("max line", c.MaxLine)
	positive("max message", c.MaxMessage)
	positive("max depth", c.MaxDepth)
	return errors.Join(all...)
}

// relative makes a name of a file relative to the workspace, with slashes.
func (c Config) relative(name string) string {
	name = strings.ReplaceAll(name, `\`, "/")
	name = strings.TrimPrefix(name, "file://")
	root := strings.TrimSuffix(strings.ReplaceAll(c.Root, `\`, "/"), "/")
	if rest, ok := strings.CutPrefix(name, root+"/"); ok && root != "" {
		name = rest
	}
	if name == "" {
		return ""
	}
	return path.Clean(name)
}

// LimitError tells which limit of Config an input passed.
type LimitError struct {
	// Limit is the limit's name in words: "max tests".
	Limit string
	// Max is its value.
	Max int
	// Line is where in the input it was passed, counted from 1; 0 when the
	// input has no lines to speak of.
	Line int
}

// Error names the limit, its value and the place.
func (e *LimitError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s of %d passed", e.Limit, e.Max)
	}
	return fmt.Sprintf("line %d: %s of %d passed", e.Line, e.Limit, e.Max)
}

// SyntaxError tells that an input is not of the format it should have. An
// input that merely ends too early is none: it is a report that is not
// complete.
type SyntaxError struct {
	// Line and Column are counted from 1, the column in bytes.
	Line, Column int
	// Msg says what is wrong there.
	Msg string
}

// Error names the place and what is wrong there.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

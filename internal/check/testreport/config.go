package testreport

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Config locates files and limits what is read. The zero value is ready to use.
type Config struct {
	// Root is the absolute path of the workspace. Absolute names of files below it become
	// relative to it. Zero: names stay as they are.
	Root string
	// MaxTests limits the tests, suites and broken suites of a report. Zero: 1,000,000.
	MaxTests int
	// MaxIdentity limits the bytes of an identity. Zero: 8 KiB.
	MaxIdentity int
	// MaxLine limits the bytes of a line of text, an XML tag without the values of its
	// attributes, or a JSON value. Zero: 4 MiB.
	MaxLine int
	// MaxMessage limits the bytes of a failure's message; longer ones are cut, which is no
	// error. Zero: 2 KiB.
	MaxMessage int
	// MaxDepth limits the nesting of elements, values and subtests. Zero: 64.
	MaxDepth int
}

// complete returns the configuration with its defaults set. A negative limit is an error.
func (c Config) complete() (Config, error) {
	var all []error
	for _, l := range []struct {
		name     string
		limit    *int
		standard int
	}{
		{"max tests", &c.MaxTests, 1_000_000},
		{"max identity", &c.MaxIdentity, 8 << 10},
		{"max line", &c.MaxLine, 4 << 20},
		{"max message", &c.MaxMessage, 2 << 10},
		{"max depth", &c.MaxDepth, 64},
	} {
		if *l.limit < 0 {
			all = append(all, fmt.Errorf("%s %d is negative", l.name, *l.limit))
		}
		*l.limit = cmp.Or(*l.limit, l.standard)
	}
	return c, errors.Join(all...)
}

// relative converts a file name to a path relative to the workspace, with slashes.
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

// LimitError is the error of an input that exceeds a limit of Config.
type LimitError struct {
	// Limit is the name of the limit: "max tests".
	Limit string
	// Max is its value.
	Max int
	// Line is the line of the input at which it was exceeded, counted from 1; 0 if the
	// input has no lines.
	Line int
}

// Error names the limit, its value and the place.
func (e *LimitError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s of %d exceeded", e.Limit, e.Max)
	}
	return fmt.Sprintf("line %d: %s of %d exceeded", e.Line, e.Limit, e.Max)
}

// SyntaxError is the error of an input that is not in its format. An input that only ends
// too early is a report that is not complete.
type SyntaxError struct {
	// Line and Column are counted from 1, the column in bytes.
	Line, Column int
	// Msg describes the problem.
	Msg string
}

// Error names the position and the problem.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}

package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Kind is what runs the tests of a project.
type Kind string

// The kinds.
const (
	Go      Kind = "go"
	Jest    Kind = "jest"
	Vitest  Kind = "vitest"
	Mocha   Kind = "mocha"
	Node    Kind = "node" // node --test
	NPM     Kind = "npm"  // a script of package.json, of which nothing else is known
	Bun     Kind = "bun"  // bun test
	Deno    Kind = "deno" // deno test
	Pytest  Kind = "pytest"
	Python  Kind = "python" // unittest, or nothing that is known
	Cargo   Kind = "cargo"
	Nextest Kind = "nextest"
	Maven   Kind = "maven"
	Gradle  Kind = "gradle"
	RSpec   Kind = "rspec"
	Ruby    Kind = "ruby" // a Gemfile without RSpec
	DotNet  Kind = "dotnet"
	PHPUnit Kind = "phpunit"
	PHP     Kind = "php" // composer.json without PHPUnit
)

// Formats of results, as packages testreport and coverage name them, and those
// of type checkers and linters.
const (
	FormatGo        = "go-test-json"
	FormatJUnit     = "junit-xml"
	FormatJest      = "jest-json"
	FormatTAP       = "tap"
	FormatCargo     = "cargo-test"
	FormatTRX       = "trx"
	FormatRSpec     = "rspec-json"
	FormatCoverGo   = "go-coverprofile"
	FormatLCOV      = "lcov"
	FormatCobertura = "cobertura-xml"
	FormatLines     = "lines"       // one finding a line, with its place
	FormatESLint    = "eslint-json" // eslint --format json
)

// Stream is what a command prints.
type Stream string

// The streams that hold results.
const (
	Stdout Stream = "stdout"
	Both   Stream = "both" // standard output and error, in one
)

// Result is where a command leaves results.
type Result struct {
	// Format is how they are written.
	Format string `json:"format"`
	// Stream is set when the command prints them.
	Stream Stream `json:"stream,omitempty"`
	// Files are patterns of the files that hold them: absolute, or relative to
	// the command's folder; "**" stands for any folders.
	Files []string `json:"files,omitempty"`
	// Dir is the folder, relative to the workspace, that names in coverage are
	// relative to.
	Dir string `json:"dir,omitempty"`
}

// Stops is where a command may end after a failure.
type Stops string

// The places. Empty: a command runs everything.
const (
	StopsBetween Stops = "between suites"
	StopsInside  Stops = "inside a suite"
)

// later returns what reaches farther.
func (s Stops) later(other Stops) Stops {
	if s == StopsInside || other == "" {
		return s
	}
	return other
}

// Command is something to run, and what it leaves.
type Command struct {
	// Kind is the runner that was recognised; empty when none was.
	Kind Kind `json:"kind,omitempty"`
	// Script is the text for a POSIX shell (sh -c). Dir is the folder to run it
	// in, relative to the workspace, with slashes; "." is the workspace. Env are
	// variables to set besides those there are, as NAME=value.
	Script string   `json:"script"`
	Dir    string   `json:"dir"`
	Env    []string `json:"env,omitempty"`
	// Files are to be written before the run: absolute path to contents.
	Files map[string]string `json:"files,omitempty"`
	// Results are where to look afterwards; several when several runners run.
	Results []Result `json:"results,omitempty"`
	// Weak says why there are no results and the exit code is all the evidence;
	// empty when there are.
	Weak string `json:"weak,omitempty"`
	// Stops tells whether the command may end after a failure without having
	// run everything: then what is missing was not run, not deleted.
	Stops Stops `json:"stops,omitempty"`

	// NoCoverage says why Config.WithCoverage added none; empty when it did, or
	// was not asked to.
	NoCoverage string `json:"no_coverage,omitempty"`

	// Quiet tells that it leaves nothing in the workspace and does not build the
	// project a second time: it may be run unasked.
	Quiet bool `json:"quiet,omitempty"`

	plain  *Command // without coverage; nil when it has none
	source string   // Script without what Measure added
	sites  []site   // where the runners stand in source
}

// Clear removes what an earlier run left in the places of the results, and
// writes Files. Root is the absolute path of the workspace. Without it, old
// results pass for new ones when a run ends before it writes any. Relative
// patterns do not lead out of the workspace, also not through links.
func (c *Command) Clear(root string) error {
	var all []error
	for _, r := range c.Results {
		for _, pattern := range r.Files {
			all = append(all, c.visit(root, pattern, func(dir *os.Root, name string) error { return dir.Remove(name) }))
			if filepath.IsAbs(pattern) && !strings.ContainsAny(pattern, "*?[{") {
				all = append(all, os.MkdirAll(filepath.Dir(pattern), 0o700)) // not every runner makes it
			}
		}
	}
	for name, text := range c.Files {
		all = append(all, os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("clear results: %w", err)
	}
	return nil
}

// Found is what a run left of one result.
type Found struct {
	// Format is that of the result.
	Format string
	// Stream is set when the results are in what the command printed.
	Stream Stream
	// Files are the absolute names, sorted.
	Files []string
	// Stale are files that are there but older than the run: somebody put old
	// results back. They prove nothing.
	Stale []string
}

// slack is how much older than the start of its run a file may look: some file
// systems keep times in steps of two seconds.
const slack = 2 * time.Second

// Collect finds the results of a run that began at the given time. Root is the
// absolute path of the workspace.
func (c *Command) Collect(root string, started time.Time) ([]Found, error) {
	var all []Found
	for _, r := range c.Results {
		f := Found{Format: r.Format, Stream: r.Stream}
		for _, pattern := range r.Files {
			err := c.visit(root, pattern, func(dir *os.Root, name string) error {
				info, err := dir.Stat(name)
				if err != nil {
					return err
				}
				full := filepath.Join(dir.Name(), name)
				if info.ModTime().Before(started.Add(-slack)) {
					f.Stale = append(f.Stale, full)
				} else {
					f.Files = append(f.Files, full)
				}
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("collect results: %w", err)
			}
		}
		slices.Sort(f.Files)
		slices.Sort(f.Stale)
		f.Files, f.Stale = slices.Compact(f.Files), slices.Compact(f.Stale)
		all = append(all, f)
	}
	return all, nil
}

// visit calls do for each file of a pattern. The folder it hands over holds
// the file and cannot be left, so that what is read, and removed, is in the
// workspace or where the caller said.
func (c *Command) visit(root, pattern string, do func(dir *os.Root, name string) error) error {
	if !filepath.IsAbs(pattern) {
		pattern = path.Join(filepath.ToSlash(c.Dir), filepath.ToSlash(pattern))
		if pattern == ".." || strings.HasPrefix(pattern, "../") {
			return fmt.Errorf("pattern %q leads out of the workspace", pattern)
		}
		return glob(root, pattern, do)
	}
	// A file may be named as patterns are written.
	if info, err := os.Lstat(pattern); err == nil && info.Mode().IsRegular() {
		return inFolder(filepath.Dir(pattern), func(dir *os.Root) error { return do(dir, filepath.Base(pattern)) })
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(pattern))
	return glob(filepath.FromSlash(base), rest, do)
}

func inFolder(name string, do func(dir *os.Root) error) error {
	dir, err := os.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(do(dir), dir.Close())
}

func glob(base, pattern string, do func(dir *os.Root, name string) error) error {
	return inFolder(base, func(dir *os.Root) error {
		names, err := doublestar.Glob(dir.FS(), pattern, doublestar.WithFilesOnly(), doublestar.WithNoFollow())
		if err != nil {
			return fmt.Errorf("pattern %q: %w", pattern, err)
		}
		for _, name := range names {
			if ignoredPath(name) {
				continue
			}
			if err := do(dir, filepath.FromSlash(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ignoredPath tells whether a path goes through a folder that holds no project
// of its own.
func ignoredPath(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "node_modules" || part == ".git" || part == ".perdure" {
			return true
		}
	}
	return false
}

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

// Kind is the tool that runs the tests of a project.
type Kind string

// Kinds of projects.
const (
	Go      Kind = "go"
	Jest    Kind = "jest"
	Vitest  Kind = "vitest"
	Mocha   Kind = "mocha"
	Node    Kind = "node" // node --test
	NPM     Kind = "npm"  // an unknown script of package.json
	Bun     Kind = "bun"  // bun test
	Deno    Kind = "deno" // deno test
	Pytest  Kind = "pytest"
	Python  Kind = "python" // unittest, or an unknown runner
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

// Formats of results, as packages testreport and coverage name them, and formats of type
// checkers and linters.
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
	FormatLines     = "lines"       // one finding per line, with its place
	FormatESLint    = "eslint-json" // eslint --format json
)

// Stream is an output stream of a command.
type Stream string

// Streams that can hold results.
const (
	Stdout Stream = "stdout"
	Both   Stream = "both" // standard output and error, combined
)

// Result is a place where a command writes results.
type Result struct {
	// Format is the format of the results.
	Format string `json:"format"`
	// Stream is set if the command prints them.
	Stream Stream `json:"stream,omitempty"`
	// Files are patterns of the result files: absolute, or relative to the command's
	// folder; "**" matches any folders.
	Files []string `json:"files,omitempty"`
	// Dir is the folder, relative to the workspace, that file names in coverage are
	// relative to.
	Dir string `json:"dir,omitempty"`
}

// Stops is the point at which a command may end after a failure.
type Stops string

// Points at which a command may end. Empty: a command runs everything.
const (
	StopsBetween Stops = "between suites"
	StopsInside  Stops = "inside a suite"
)

// later returns the one that runs more.
func (s Stops) later(other Stops) Stops {
	if s == StopsInside || other == "" {
		return s
	}
	return other
}

// Command is a command with the places of its results.
type Command struct {
	// Kind is the recognised test runner; empty if there is none.
	Kind Kind `json:"kind,omitempty"`
	// Script is the text for a POSIX shell (sh -c). Dir is its working folder, relative to
	// the workspace, with slashes; "." is the workspace. Env are additional variables, as
	// NAME=value.
	Script string   `json:"script"`
	Dir    string   `json:"dir"`
	Env    []string `json:"env,omitempty"`
	// Files are written before the run: absolute path to content.
	Files map[string]string `json:"files,omitempty"`
	// Results are the places of the results; several if several runners run.
	Results []Result `json:"results,omitempty"`
	// Weak is why there are no results, so that only the exit code is known; empty if there
	// are results.
	Weak string `json:"weak,omitempty"`
	// Probe is the folder of the probes of a weak command, with which it may have results after
	// all: see WithProbes. Empty: none.
	Probe string `json:"probe,omitempty"`
	// Stops is set if the command may end after a failure without running everything: tests
	// missing then were not run, and count as not deleted.
	Stops Stops `json:"stops,omitempty"`

	// NoCoverage is why Config.WithCoverage added nothing; empty if it did, or was not set.
	NoCoverage string `json:"no_coverage,omitempty"`

	// Quiet is set if the command leaves nothing in the workspace and does not build the
	// project a second time: it may run without configuration.
	Quiet bool `json:"quiet,omitempty"`

	plain  *Command // the command without coverage; nil if it has none
	source string   // Script without the additions of Measure
	sites  []site   // positions of the runners in source
}

// Clear removes old files in the places of the results, and writes Files. Root is the
// absolute path of the workspace. Without Clear, old results would count as new if a run
// ends before it writes any. Relative patterns do not match outside of the workspace, also
// not through links.
func (c *Command) Clear(root string) error {
	var all []error
	for _, r := range c.Results {
		for _, pattern := range r.Files {
			all = append(all, c.visit(root, pattern, func(dir *os.Root, name string) error { return dir.Remove(name) }))
			if filepath.IsAbs(pattern) && !strings.ContainsAny(pattern, "*?[{") {
				all = append(all, os.MkdirAll(filepath.Dir(pattern), 0o700)) // some runners do not create it
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

// Found is the output of a run for one result.
type Found struct {
	// Format is the format of the result.
	Format string
	// Stream is set if the command printed the result.
	Stream Stream
	// Files are the absolute paths, sorted.
	Files []string
	// Stale are files that are older than the run, for example because old results were
	// copied back. They are not results of the run.
	Stale []string
}

// slack is the tolerance for file times: some file systems store times in steps of two
// seconds.
const slack = 2 * time.Second

// Collect finds the results of a run that began at the given time. Root is the absolute
// path of the workspace.
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

// visit calls do for each file of a pattern. The folder passed to do confines access, so
// that only files in the workspace, or where the caller named them, are read and removed.
func (c *Command) visit(root, pattern string, do func(dir *os.Root, name string) error) error {
	if !filepath.IsAbs(pattern) {
		pattern = path.Join(filepath.ToSlash(c.Dir), filepath.ToSlash(pattern))
		if pattern == ".." || strings.HasPrefix(pattern, "../") {
			return fmt.Errorf("pattern %q leads out of the workspace", pattern)
		}
		return glob(root, pattern, do)
	}
	// A file name may look like a pattern.
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

// ignoredPath reports whether a path leads through a folder without projects of its own.
func ignoredPath(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool {
		return part == "node_modules" || part == ".git" || part == ".perdure"
	})
}

package project

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/perdure/perdure/internal/check/testreport"
)

// site is the position of a runner in a script, and the arguments to add.
type site struct {
	kind Kind
	// at is the offset at which args are inserted; tail is set if they may also follow at
	// the end of the command.
	at   int
	args []string
	tail bool
	// drop are arguments that select tests, which those of filter replace.
	drop []word
	// filter returns arguments that select the tests; nil if the runner has none, or the
	// command uses them already. They are inserted at filterAt, or if that is 0 after args.
	filter   func(tests []testreport.Test) []string
	filterAt int

	results []Result
	env     []string
	files   map[string]string
	weak    string
	stops   Stops
	cover   cover
}

// weakSite returns a runner without results.
func weakSite(kind Kind, format string, args ...any) *site {
	return &site{kind: kind, weak: fmt.Sprintf(format, args...)}
}

// measurer analyses one command.
type measurer struct {
	cfg      Config
	number   int // of the results so far
	profiles int // of coverage so far
	depth    int // of scripts that call scripts
}

// file returns a new file name for results.
func (m *measurer) file(suffix string) string {
	m.number++
	return filepath.Join(m.cfg.Scratch, "results-"+strconv.Itoa(m.number)+suffix)
}

// Measure returns a command with the results of a user's command. The command stays the
// same except for arguments that name a format and a file. A command that cannot be
// parsed, or whose runner is unknown, is weak.
func Measure(command string, cfg Config) Command {
	made := measure(command, cfg)
	if made.Weak != "" && cfg.Scratch != "" && strings.TrimSpace(command) != "" {
		made.Probe, made.Stops = filepath.Join(cfg.Scratch, "probe"), StopsBetween
	}
	switch {
	case !cfg.WithCoverage:
	case made.Weak != "":
		made.NoCoverage = made.Weak
	default:
		return made.withCoverage()
	}
	return made
}

func measure(command string, cfg Config) Command {
	made := Command{Script: command, Dir: cfg.dir()}
	if strings.TrimSpace(command) == "" {
		made.Weak = "the command is empty"
		return made
	}
	s, err := parseScript(command, cfg.dir())
	if err != nil {
		made.Weak = err.Error()
		return made
	}
	m := &measurer{cfg: cfg}
	var weak []string
	for _, c := range s.calls {
		found := m.runner(c)
		switch {
		case found == nil:
		case found.weak != "":
			weak = append(weak, found.weak)
			made.Kind = found.kind
		default:
			made.sites = append(made.sites, *found)
		}
	}
	if len(made.sites) == 0 || len(weak) > 0 {
		made.sites = nil
		made.Weak = reason(s, weak)
		return made
	}
	for i := range made.sites {
		made.addSite(&made.sites[i])
	}
	if len(made.sites) > 1 { // the first may prevent the others from running
		made.Stops = made.Stops.later(StopsBetween)
	}
	made.source, made.Script = command, apply(command, edits(made.sites, nil, false))
	return made
}

func (c *Command) addSite(s *site) {
	c.Kind = s.kind
	for i := range s.results {
		s.results[i].Files = inDir(s.results[i].Files)
	}
	c.Results = append(c.Results, s.results...)
	c.Env = append(c.Env, s.env...)
	c.Stops = c.Stops.later(s.stops)
	if c.Files == nil && len(s.files) > 0 {
		c.Files = make(map[string]string)
	}
	maps.Copy(c.Files, s.files)
}

func inDir(patterns []string) []string {
	for i, p := range patterns {
		patterns[i] = filepath.ToSlash(p)
	}
	return patterns
}

// reason returns why a command is weak.
func reason(s *script, weak []string) string {
	if len(weak) > 0 {
		return weak[0]
	}
	m := &measurer{cfg: Config{Scratch: "/"}}
	for _, name := range slices.Sorted(maps.Keys(s.skipped)) {
		if m.known(name) {
			return fmt.Sprintf("%q has no readable results: %s", name, s.skipped[name])
		}
	}
	if len(s.calls) == 0 {
		return "no command runs tests"
	}
	return fmt.Sprintf("%q is not a known test runner", s.calls[len(s.calls)-1].at(0).text)
}

// edits returns the changes of a script for its sites; with tests, to run only those;
// with coverage, to write it where possible.
func edits(sites []site, tests []testreport.Test, coverage bool) []edit {
	var all []edit
	for i := range sites {
		s := &sites[i]
		args := s.args
		if coverage && s.cover.why == "" {
			args = slices.Concat(args, s.cover.args)
		}
		var filter []string
		if tests != nil {
			filter = s.filter(tests)
			for _, w := range s.drop {
				all = append(all, edit{start: w.start, end: w.end})
			}
		}
		if s.filterAt == 0 {
			args, filter = slices.Concat(args, filter), nil
		}
		all = append(all, edit{start: s.at, end: s.at, text: arguments(args)})
		if len(filter) > 0 {
			all = append(all, edit{start: s.filterAt, end: s.filterAt, text: arguments(filter)})
		}
	}
	return all
}

func arguments(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteByte(' ')
		b.WriteString(quote(a))
	}
	return b.String()
}

// maxAgain limits the tests of a command line.
const maxAgain = 500

// Again returns a command that reruns these tests, and as few others as the runner's
// filters allow, with results in the same places: collect those of the first run before.
// It returns false if that is not possible: the runner is unknown or has no filter, the
// command uses the filter itself, or there are more than 500 tests or none.
func (c *Command) Again(tests []testreport.Test) (Command, bool) {
	if c.plain != nil {
		return c.plain.Again(tests)
	}
	// Package testreport has no such names, and a shell cannot pass them.
	tests = slices.DeleteFunc(slices.Clone(tests), func(t testreport.Test) bool {
		text := t.ID + t.Suite + t.Name + t.File
		return !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl)
	})
	if len(tests) == 0 || len(tests) > maxAgain || len(c.sites) != 1 || c.sites[0].filter == nil ||
		len(c.sites[0].filter(tests)) == 0 {
		return Command{}, false
	}
	again := *c
	again.Script = apply(c.source, edits(c.sites, tests, false))
	again.sites = nil
	return again, true
}

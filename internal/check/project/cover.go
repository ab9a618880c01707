package project

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cover is the way in which a runner writes coverage while it runs tests.
type cover struct {
	args   []string
	env    []string
	result Result
	// why is why it does not; empty if it does.
	why string
}

// IsCoverage reports whether a format is one of package coverage.
func IsCoverage(format string) bool {
	return format == FormatCoverGo || format == FormatLCOV || format == FormatCobertura
}

// Plain returns the command without the additions of Config.WithCoverage: the user's
// command decides, and coverage may slow tests down, or make one fail that counts
// allocations.
func (c *Command) Plain() Command {
	if c.plain == nil {
		return *c
	}
	return *c.plain
}

// Covers reports whether the command writes coverage.
func (c *Command) Covers() bool {
	return slices.ContainsFunc(c.Results, func(r Result) bool { return IsCoverage(r.Format) })
}

// withCoverage adds coverage to the runners of the command that can write it.
func (c *Command) withCoverage() Command {
	made := *c
	made.plain = c
	made.Results, made.Env = slices.Clone(c.Results), slices.Clone(c.Env)
	why := ""
	for i := range c.sites {
		s := &c.sites[i].cover
		if s.why != "" || s.result.Format == "" {
			why = s.why
			continue
		}
		r := s.result
		r.Files = inDir(slices.Clone(r.Files))
		made.Results, made.Env = append(made.Results, r), append(made.Env, s.env...)
	}
	if !made.Covers() {
		made = *c
		if made.NoCoverage = why; why == "" {
			made.NoCoverage = "this runner cannot reliably write coverage and test results in one run"
		}
		return made
	}
	made.Script = apply(c.source, edits(c.sites, nil, true))
	made.sites = nil // reruns are without coverage
	return made
}

// profile returns a new file name for coverage.
func (m *measurer) profile(suffix string) string {
	m.profiles++
	return filepath.Join(m.cfg.Scratch, "coverage-"+strconv.Itoa(m.profiles)+suffix)
}

func (m *measurer) coverGo(c, flags *call) cover {
	result := Result{Format: FormatCoverGo, Dir: c.dir}
	if flags.has("-fuzz", "--fuzz") {
		return cover{why: "go test -fuzz writes no coverage"}
	}
	if c.at(1).text == "-C" {
		result.Dir = path.Join(c.dir, c.at(2).text)
	}
	if file, ok := flags.value("-coverprofile", "--coverprofile"); ok {
		name, why := m.named(c, file)
		result.Files = []string{name}
		return cover{result: result, why: why}
	}
	if m.cfg.Scratch == "" {
		return cover{why: noScratch}
	}
	file := m.profile(".out")
	result.Files = []string{file}
	return cover{args: []string{"-coverprofile=" + file}, result: result}
}

const noScratch = "no folder for coverage"

// coverPytest needs the plugin. It disables the project's minimum percentage.
func (m *measurer) coverPytest(c *call) cover {
	switch {
	case c.has("--no-cov"):
		return cover{why: "the command switches coverage off"}
	case !m.declares(c.dir, "pytest-cov", "pyproject.toml", "setup.cfg", "tox.ini", "setup.py", "Pipfile",
		"requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements/dev.txt",
		"requirements/test.txt", "test-requirements.txt"):
		return cover{why: "the project does not use the plugin pytest-cov"}
	}
	file := m.profile(".xml")
	k := cover{result: Result{Format: FormatCobertura, Files: []string{file}, Dir: c.dir},
		env: []string{"COVERAGE_FILE=" + file + ".data"}}
	if !c.has("--cov") {
		k.args = []string{"--cov"}
	}
	k.args = append(k.args, "--cov-report=xml:"+file, "--cov-fail-under=0")
	return k
}

// coverJest uses jest's built-in coverage, without the thresholds of the project's
// configuration.
func (m *measurer) coverJest(c *call) cover {
	if v, ok := c.value("--coverage", "--collectCoverage"); ok && v.text == "false" {
		return cover{why: "the command switches coverage off"}
	}
	if c.has("--coverageDirectory", "--coverageReporters", "--coverageThreshold") {
		return cover{why: "the command sets the output of coverage itself"}
	}
	dir := m.profile("")
	return cover{args: []string{"--coverage", "--coverageReporters=lcovonly", "--coverageDirectory=" + dir,
		"--coverageThreshold={}"},
		result: Result{Format: FormatLCOV, Files: []string{dir + "/lcov.info"}, Dir: c.dir}}
}

// declares reports whether one of the files of a folder contains a text.
func (m *measurer) declares(dir, text string, names ...string) bool {
	if m.cfg.Files == nil || dir == "?" {
		return false
	}
	for _, name := range names {
		name = path.Join(dir, name)
		if !fs.ValidPath(name) {
			return false
		}
		if content, err := readSmall(m.cfg.Files, name); err == nil && strings.Contains(string(content), text) {
			return true
		}
	}
	return false
}

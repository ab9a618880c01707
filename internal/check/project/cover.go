package project

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// cover is how a runner writes coverage in the run of its tests.
type cover struct {
	args   []string
	env    []string
	result Result
	// why says why it does not; empty when it does.
	why string
}

// IsCoverage tells whether a format is one of package coverage's.
func IsCoverage(format string) bool {
	return format == FormatCoverGo || format == FormatLCOV || format == FormatCobertura
}

// Plain is the command without what Config.WithCoverage added: what the user
// wrote decides, and coverage may slow tests down, or make one fail that counts
// allocations.
func (c *Command) Plain() Command {
	if c.plain == nil {
		return *c
	}
	return *c.plain
}

// Covers tells whether the command writes coverage.
func (c *Command) Covers() bool {
	return slices.ContainsFunc(c.Results, func(r Result) bool { return IsCoverage(r.Format) })
}

// withCoverage is the measured command with coverage of those of its runners
// that can write it.
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
			made.NoCoverage = "this runner does not take coverage and tests in one run for certain"
		}
		return made
	}
	made.Script = apply(c.source, edits(c.sites, nil, true))
	made.sites = nil // tests are run again without coverage
	return made
}

// profile is a new name for coverage.
func (m *measurer) profile(suffix string) string {
	m.profiles++
	return filepath.Join(m.cfg.Scratch, "coverage-"+strconv.Itoa(m.profiles)+suffix)
}

func (m *measurer) coverGo(c, flags *call) cover {
	result := Result{Format: FormatCoverGo, Dir: c.dir}
	if flags.has("-fuzz", "--fuzz") {
		return cover{why: "go test -fuzz takes no coverage"}
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

const noScratch = "there is no folder for coverage"

// coverPytest needs the plugin. A least percentage that the project asks for is
// not the check's business.
func (m *measurer) coverPytest(c *call) cover {
	switch {
	case c.has("--no-cov"):
		return cover{why: "the command switches coverage off"}
	case !m.declares(c.dir, "pytest-cov", "pyproject.toml", "setup.cfg", "tox.ini", "setup.py", "Pipfile",
		"requirements.txt",
		"requirements-dev.txt", "dev-requirements.txt", "requirements/dev.txt", "requirements/test.txt",
		"test-requirements.txt"):
		return cover{why: "the project does not name the plugin pytest-cov, which takes it"}
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

// coverJest takes coverage with what jest brings along, without the thresholds
// of the project's configuration.
func (m *measurer) coverJest(c *call) cover {
	if v, ok := c.value("--coverage", "--collectCoverage"); ok && v.text == "false" {
		return cover{why: "the command switches coverage off"}
	}
	if c.has("--coverageDirectory", "--coverageReporters", "--coverageThreshold") {
		return cover{why: "the command says itself where coverage goes"}
	}
	dir := m.profile("")
	return cover{args: []string{"--coverage", "--coverageReporters=lcovonly", "--coverageDirectory=" + dir,
		"--coverageThreshold={}"},
		result: Result{Format: FormatLCOV, Files: []string{dir + "/lcov.info"}, Dir: c.dir}}
}

// declares tells whether one of the files of a folder has a text.
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

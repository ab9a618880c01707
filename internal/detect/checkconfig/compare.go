package checkconfig

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Level is how much a change of a configuration counts.
type Level uint8

// Levels, in ascending order.
const (
	Harmless Level = iota
	Unclear
	Weaker
)

// File is a changed file that configures checks. A version that does not exist has no path.
type File struct {
	OldPath, NewPath string
	Class            project.Class
	Old, New         []byte
}

// Path returns the path of the new version, or of the old one if there is no new one.
func (f *File) Path() string { return cmp.Or(f.NewPath, f.OldPath) }

// Finding is what a change means.
type Finding struct {
	// Path is the path of the file in the version of Line.
	Path  string
	Level Level
	// Line is a line of the old version if Gone is set; 0 if there is none. Source is its text.
	Line   int
	Gone   bool
	Source string
	// Text says what got weaker; empty if the change is harmless.
	Text string
}

// version is a version of a file.
type version struct {
	index    int
	path     string
	class    project.Class
	settings []setting
	readable bool
}

// comparison is the state of one Compare.
type comparison struct {
	files    []File
	olds     []version
	news     []version
	old, now []check
	findings []placed
}

// Compare returns what the changes of configurations mean, at least one finding for each
// file. The files of one change are compared together, because checks and settings move.
func Compare(files []File) []Finding {
	c := &comparison{files: paired(files)}
	for i := range c.files {
		f := &c.files[i]
		c.olds = append(c.olds, c.version(i, f.OldPath, f.Old))
		c.news = append(c.news, c.version(i, f.NewPath, f.New))
		c.old = append(c.old, checksOf(&c.olds[i])...)
		c.now = append(c.now, checksOf(&c.news[i])...)
	}
	c.compareChecks()
	for i := range c.files {
		c.compareFile(i)
	}
	c.level()
	all := make([]Finding, len(c.findings))
	for i, f := range c.findings {
		all[i] = f.Finding
	}
	return all
}

// placed is a finding with the index of its file.
type placed struct {
	Finding
	file int
}

// paired joins a deleted configuration with a new one that has its content, or that
// configures the same tool in the same folder.
func paired(files []File) []File {
	all := slices.Clone(files)
	for i := 0; i < len(all); i++ {
		old := &all[i]
		if old.NewPath != "" {
			continue
		}
		at := slices.IndexFunc(all, func(f File) bool {
			return f.OldPath == "" && f.Class == old.Class && (string(f.New) == string(old.Old) ||
				f.Class != project.CIConfig && path.Dir(f.NewPath) == path.Dir(old.OldPath) &&
					toolOf(f.NewPath) == toolOf(old.OldPath))
		})
		if at >= 0 {
			old.NewPath, old.New = all[at].NewPath, all[at].New
			if all = slices.Delete(all, at, at+1); at < i {
				i--
			}
		}
	}
	return all
}

// toolOf returns the name of the tool that a file configures, from the file's name.
func toolOf(name string) string {
	tool, _, _ := strings.Cut(strings.TrimLeft(strings.ToLower(path.Base(name)), "."), ".")
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(tool, "rc"), "-baseline"), "-config")
}

func (c *comparison) version(i int, name string, text []byte) version {
	v := version{index: i, path: name, class: c.files[i].Class, readable: true}
	if name == "" {
		return v
	}
	v.settings, v.readable = read(name, text)
	if v.class == project.Manifest {
		v.settings = slices.DeleteFunc(v.settings, func(s setting) bool { return !concerns(name, &s) })
	}
	return v
}

// found adds a finding, once.
func (c *comparison) found(i int, j *judgement) {
	f := placed{Finding{Path: c.files[i].Path(), Level: j.level, Line: j.at.line, Gone: j.old, Text: j.text}, i}
	if text := c.files[i].New; j.old {
		f.Path, f.Source = c.files[i].OldPath, lineOf(c.files[i].Old, f.Line)
	} else {
		f.Source = lineOf(text, f.Line)
	}
	if !slices.Contains(c.findings, f) {
		c.findings = append(c.findings, f)
	}
}

func lineOf(text []byte, line int) string {
	for l := range strings.Lines(string(text)) {
		if line--; line == 0 {
			return strings.TrimSpace(l)
		}
	}
	return ""
}

// compareFile compares a file without its checks.
func (c *comparison) compareFile(i int) {
	old, now := &c.olds[i], &c.news[i]
	f := &c.files[i]
	if f.OldPath != "" && f.NewPath != "" && !helper(f.NewPath) && path.Dir(f.OldPath) != path.Dir(f.NewPath) {
		c.found(i, &judgement{Unclear, setting{}, false, "configuration moved from " + f.OldPath})
	}
	switch {
	case !now.readable && old.readable && old.path != "":
		c.found(i, &judgement{Weaker, setting{}, false, "configuration cannot be read any more"})
	case !now.readable || !old.readable:
		c.found(i, &judgement{Unclear, setting{}, false, "configuration cannot be read"})
	case baseline(f):
		if len(difference(f.Class, old.settings, now.settings)) > 0 {
			c.found(i, &judgement{Unclear, setting{}, false, "list of accepted errors changed"})
		}
	case now.path == "" && old.class != project.CIConfig && old.class != project.Manifest && !helper(f.OldPath):
		c.found(i, &judgement{Unclear, setting{line: 1}, true, "configuration removed"})
	default:
		c.compareSettings(i, old.class == project.CIConfig)
	}
}

// compareSettings compares the settings of a file; of a workflow only options in variables
// and its matrix.
func (c *comparison) compareSettings(i int, workflow bool) {
	old, now := expanded(&c.olds[i]), expanded(&c.news[i])
	changes := difference(c.files[i].Class, old, now)
	for _, d := range changes {
		if workflow && starts(d.path) {
			if len(d.gone) > 0 || len(d.path) > 2 {
				c.found(i, d.unclear())
			}
			continue
		}
		j := d.judge()
		switch {
		case j == nil:
			continue
		case workflow && !flags(&d) && !fewer(&d):
			continue
		case helper(c.files[i].Path()) && !strong(&d, j):
			continue
		case c.files[i].Class == project.Manifest && j.level == Unclear && !telling(d.group):
			continue
		case c.olds[i].path == "" && j.level == Unclear:
			continue
		}
		c.found(i, j)
	}
}

// expanded splits values that are options into settings, and leaves out commands.
func expanded(f *version) []setting {
	all := make([]setting, 0, len(f.settings))
	for i := range f.settings {
		s := &f.settings[i]
		switch {
		case runs(f, s) || s.key() == "uses":
		case strings.HasPrefix(s.value, "-") && len(s.value) > 1:
			all = append(all, optionsOf(s.path, strings.Fields(strings.NewReplacer(`"`, "", "'", "").Replace(s.value)), s.line)...)
		default:
			all = append(all, *s)
		}
	}
	return all
}

// flags reports whether a variable or an input holds options of a compiler or a runner.
func flags(d *change) bool {
	return slices.ContainsFunc(d.path[:max(len(d.path)-1, 0)], func(p string) bool {
		p = strings.ToUpper(p)
		return p == "ARGUMENTS" || strings.HasSuffix(p, "FLAGS") || strings.HasSuffix(p, "OPTS")
	})
}

// fewer reports whether a matrix, or the owners of files, have fewer entries.
func fewer(d *change) bool {
	return len(d.gone) > len(d.added) && (kindOf(d.path) == platform || d.group == "owners")
}

// level adds a finding to files without one, and lowers those of workflows that do not run
// for changes, and of code that is not only settings.
func (c *comparison) level() {
	seen := make([]bool, len(c.files))
	for i := range c.findings {
		f := &c.findings[i]
		seen[f.file] = true
		if c.files[f.file].Class == project.CIConfig && !forChanges(&c.olds[f.file]) {
			f.Level = min(f.Level, Unclear)
		}
	}
	for i := range c.files {
		f := &c.files[i]
		differs := len(difference(f.Class, c.olds[i].settings, c.news[i].settings)) > 0
		if !seen[i] && differs && !helper(f.Path()) {
			c.findings = append(c.findings, placed{Finding{Path: f.Path()}, i})
		}
	}
	slices.SortStableFunc(c.findings, func(a, b placed) int { return a.file - b.file })
}

// starts reports whether a setting of a workflow says when it runs. YAML reads "on" as true.
func starts(path []string) bool { return len(path) > 0 && (path[0] == "on" || path[0] == "true") }

// forChanges reports whether a workflow runs for pull requests, or for pushes that are not only
// of tags. Files of other systems always do.
func forChanges(f *version) bool {
	other := true
	for i := range f.settings {
		s := &f.settings[i]
		if !starts(s.path) {
			continue
		}
		other = false
		event := s.value
		if len(s.path) > 1 && !strings.HasPrefix(s.path[1], "#") {
			event = s.path[1]
		}
		switch event {
		case "pull_request", "pull_request_target", "merge_group", "workflow_call":
			return true
		case "push":
			if len(s.path) < 3 || s.path[2] != "tags" {
				return true
			}
		}
	}
	return other
}

var helperName = lazyregexp.New(`(?i)^(conftest|sitecustomize|noxfile)\.py$|_helper\.rb$|^pest\.php$|(setup|^setupTests)[.-].*[jt]sx?$|` +
	`^jest[.-]setup`)

// helper reports whether a file is code that the tests use, in which settings are the
// exception.
func helper(name string) bool { return helperName().MatchString(path.Base(name)) }

var strongWords = lazyregexp.New(`filter-run|add-filter|collection-modifyitems|add-marker|collect-ignore|minimum-coverage|` +
	`maximum-coverage|coverage|refuse|failure-exit-code|success-codes|fail-under|raise-errors|(^|\.)exit|at-exit|` +
	`register-shutdown|pattern|exclude|warnings|order-random`)

// strong reports whether a setting in a helper is one without doubt.
func strong(d *change, j *judgement) bool {
	return j.level == Weaker && strongWords().MatchString(strings.Join(names(d.path), "."))
}

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
	// File is the index of the file.
	File  int
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
	findings []Finding
}

// Compare returns what the changes of configurations mean, at least one finding for each
// file. The files of one change are compared together, because checks and settings move.
func Compare(files []File) []Finding {
	c := &comparison{files: files}
	for i := range files {
		f := &files[i]
		c.olds = append(c.olds, c.version(i, f.OldPath, f.Old))
		c.news = append(c.news, c.version(i, f.NewPath, f.New))
		c.old = append(c.old, checksOf(&c.olds[i])...)
		c.now = append(c.now, checksOf(&c.news[i])...)
	}
	c.compareChecks()
	for i := range files {
		c.compareFile(i)
	}
	c.level()
	return c.findings
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
	text := c.files[i].New
	if j.old {
		text = c.files[i].Old
	}
	f := Finding{File: i, Level: j.level, Line: j.at.line, Gone: j.old, Source: lineOf(text, j.at.line), Text: j.text}
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
	switch {
	case !now.readable && old.readable && old.path != "":
		c.found(i, &judgement{Weaker, setting{}, false, "configuration cannot be read any more"})
	case !now.readable || !old.readable:
		c.found(i, &judgement{Unclear, setting{}, false, "configuration cannot be read"})
	case baseline(&c.files[i]):
		c.compareBaseline(i)
	case now.path == "" && old.class != project.CIConfig && old.class != project.Manifest:
		c.removed(i)
	case old.class == project.CIConfig:
		c.compareWorkflow(i)
	default:
		c.compareSettings(i, false)
	}
}

// compareWorkflow compares what starts the checks of a workflow, and variables with options.
func (c *comparison) compareWorkflow(i int) {
	old, now := triggersOf(&c.olds[i]), triggersOf(&c.news[i])
	if len(now) > 0 && slices.ContainsFunc(c.old, func(k check) bool { return k.file == i }) {
		for _, j := range compareTriggers(old, now) {
			c.found(i, &j)
		}
	}
	c.compareSettings(i, true)
}

// compareSettings compares the settings of a file; of a workflow only options in variables
// and its matrix.
func (c *comparison) compareSettings(i int, workflow bool) {
	old, now := expanded(&c.olds[i]), expanded(&c.news[i])
	changes := difference(c.files[i].Class, old, now)
	preset := slices.ContainsFunc(changes, addsPreset)
	for _, d := range changes {
		j := d.judge()
		if j == nil || c.moved(j) {
			continue
		}
		if preset && j.old || c.undefined(i, &d, j) {
			j.level = Unclear
		}
		switch {
		case workflow && !flags(&d) && (kindOf(d.path) != platform || len(d.added) >= len(d.gone)):
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

// undefined reports whether a task is no longer run by another one because it was removed.
func (c *comparison) undefined(i int, d *change, j *judgement) bool {
	switch innermost(d.path) {
	case "default", "needs", "depends-on":
		return j.old && !strings.Contains(string(c.files[i].New), j.at.value)
	}
	return false
}

// addsPreset reports whether a change adds a set of rules, which may have the removed ones.
func addsPreset(d change) bool {
	if len(d.added) == 0 || len(d.gone) > 0 && d.gone[0].value == d.added[0].value {
		return false
	}
	key := innermost(d.path)
	return key == "extends" || key == "presets" || key == "preset" || strings.Contains(d.group, "rules.@")
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

// flags reports whether a variable holds options of a compiler or a runner.
func flags(d *change) bool {
	return slices.Contains(d.path, "env") && slices.ContainsFunc(d.path, func(p string) bool {
		return strings.HasSuffix(strings.ToUpper(p), "FLAGS") || strings.HasSuffix(strings.ToUpper(p), "OPTS")
	})
}

// moved reports whether a lost value is in another file or under another key of the new
// version.
func (c *comparison) moved(j *judgement) bool {
	if !j.old || j.at.value == "" {
		return false
	}
	key := j.at.key()
	return slices.ContainsFunc(c.news, func(v version) bool {
		return slices.ContainsFunc(v.settings, func(s setting) bool {
			return s.key() == key && s.value == j.at.value && s.group() != j.at.group()
		})
	})
}

// removed reports a configuration that was deleted: unclear if another one of its class is
// new, or if the tool that it belongs to was removed from a manifest.
func (c *comparison) removed(i int) {
	f := &c.files[i]
	tool, _, _ := strings.Cut(strings.TrimLeft(strings.ToLower(path.Base(f.OldPath)), "."), ".")
	tool = strings.TrimSuffix(strings.TrimSuffix(tool, "rc"), "-baseline")
	level := Weaker
	for k := range c.files {
		o := &c.files[k]
		had, has := strings.Contains(string(o.Old), tool), strings.Contains(string(o.New), tool)
		if k != i && (o.Class == f.Class && o.OldPath == "" || o.Class == project.Manifest && had && !has ||
			o.Class == project.Manifest && !had && has) {
			level = Unclear
		}
	}
	c.found(i, &judgement{level, setting{line: 1}, true, "configuration removed"})
}

// level adds a finding to files without one, and lowers those of workflows that do not run
// for changes, and of code that is not only settings.
func (c *comparison) level() {
	seen := make([]bool, len(c.files))
	for i := range c.findings {
		f := &c.findings[i]
		seen[f.File] = true
		if c.files[f.File].Class == project.CIConfig && !triggersOf(&c.olds[f.File]).checksChanges() {
			f.Level = min(f.Level, Unclear)
		}
	}
	for i := range c.files {
		if !seen[i] && (c.files[i].Class != project.Manifest || c.files[i].OldPath == "") {
			c.findings = append(c.findings, Finding{File: i, Level: c.program(i)})
		}
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return a.File - b.File })
}

// program returns Unclear if a file is a program whose change no setting shows.
func (c *comparison) program(i int) Level {
	f := &c.files[i]
	if f.OldPath == "" || f.NewPath == "" || helper(f.NewPath) || formatOf(f.NewPath, f.New) != inCode {
		return Harmless
	}
	if len(difference(f.Class, c.olds[i].settings, c.news[i].settings)) > 0 || sameCode(f) {
		return Harmless
	}
	return Unclear
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

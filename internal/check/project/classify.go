package project

import (
	_ "embed" // the table
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/text/yamltext"
)

// Class is the role of a file.
type Class string

// Classes of files.
const (
	// OwnFile is a file of perdure, or one that installs its hooks in the agent.
	OwnFile Class = "perdure"
	// CIConfig, CoverageConfig, RunnerConfig and LintConfig configure checks.
	CIConfig       Class = "ci"
	CoverageConfig Class = "coverage"
	RunnerConfig   Class = "runner"
	LintConfig     Class = "lint"
	// Snapshot is a fixture or a file that tests compare with.
	Snapshot Class = "snapshot"
	// TestFile holds tests, or code that tests use. Tests within source files (Rust
	// modules, doctests) cannot be recognised by the path.
	TestFile Class = "test"
	// Manifest is a file of which parts configure checks.
	Manifest Class = "manifest"
	// Source is code in a supported language.
	Source Class = "source"
	// Other is any other file.
	Other Class = "other"
)

// Protected reports whether such a file configures checks or perdure. A change that makes
// checks weaker, or any change of a file of perdure, needs a waiver or an approval. Test
// files are not protected: an edited one counts only if a test or an assertion is lost.
func (c Class) Protected() bool {
	return slices.Contains([]Class{OwnFile, CIConfig, CoverageConfig, RunnerConfig, LintConfig}, c)
}

// Configures returns the class of a file that configures checks, and whether it does, by its
// new and old path, of which one may be empty. Files of perdure do not count.
func Configures(paths ...string) (Class, bool) {
	for _, name := range paths {
		if class := Classify(name).Class; name != "" && class != OwnFile && (class.Protected() || class == Manifest) {
			return class, true
		}
	}
	return "", false
}

// FileInfo describes a file.
type FileInfo struct {
	Class Class `json:"class"`
	// Language is one of go, javascript, typescript, python, java, kotlin, rust, ruby,
	// csharp and php; empty if the class has none.
	Language string `json:"language,omitempty"`
	// Why is the effect of a change, for people; empty for ordinary files.
	Why string `json:"why,omitempty"`
}

//go:embed paths.yaml
var pathTable []byte

// pathRule is a rule of the table; see paths.yaml.
type pathRule struct {
	Class    Class  `yaml:"class"`
	Language string `yaml:"language"`
	Why      string `yaml:"why"`
	Pattern  `yaml:",inline"`
}

// Pattern selects files by their paths; see paths.yaml for the meaning of the fields. Names and
// Paths are lower-case.
type Pattern struct {
	Names      []string `yaml:"names"`
	Paths      []string `yaml:"paths"`
	Prefixes   []string `yaml:"prefixes"`
	Suffixes   []string `yaml:"suffixes"`
	Extensions []string `yaml:"extensions"`
}

var pathRules = sync.OnceValue(func() []pathRule {
	rules, err := readRules(pathTable)
	if err != nil {
		panic(err) // a test reads the table
	}
	return rules
})

func readRules(text []byte) ([]pathRule, error) {
	var rules []pathRule
	if problem := yamltext.Decode(text, len(text), &rules); problem != nil {
		return nil, fmt.Errorf("read table of paths: %w", problem)
	}
	for i := range rules {
		rules[i].Lower()
	}
	return rules, nil
}

// Lower makes Names and Paths lower-case.
func (p *Pattern) Lower() {
	for _, list := range [...][]string{p.Names, p.Paths} {
		for i := range list {
			list[i] = strings.ToLower(list[i])
		}
	}
}

// Fits reports whether the pattern selects a file, which is relative to the workspace.
func (p *Pattern) Fits(name string) bool { return p.fits(factsOf(name)) }

// Classify returns the role of a file by its path, which is relative to the workspace,
// with slashes. It does not read the file, so the file need not exist.
func Classify(name string) FileInfo {
	f := factsOf(name)
	for i := range pathRules() {
		if r := &pathRules()[i]; r.fits(f) {
			return FileInfo{Class: r.Class, Language: r.Language, Why: r.Why}
		}
	}
	return FileInfo{Class: Other}
}

// pathFacts are the parts of a path, which begins with a slash.
type pathFacts struct {
	path, base, ext, lower string
}

func factsOf(name string) *pathFacts {
	name = path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))
	return &pathFacts{path: name, base: path.Base(name), ext: path.Ext(name), lower: strings.ToLower(name)}
}

func (p *Pattern) fits(f *pathFacts) bool {
	ext := f.ext
	if ext == f.base { // .eslintrc has none
		ext = ""
	}
	if len(p.Extensions) > 0 && !slices.Contains(p.Extensions, f.ext) && !slices.Contains(p.Extensions, ext) {
		return false
	}
	if slices.ContainsFunc(p.Names, func(n string) bool { return strings.HasSuffix(f.lower, "/"+n) }) ||
		slices.ContainsFunc(p.Paths, func(dir string) bool { return strings.Contains(f.lower, "/"+dir+"/") }) ||
		slices.ContainsFunc(p.Prefixes, func(s string) bool { return strings.HasPrefix(f.base, s) }) {
		return true
	}
	return slices.ContainsFunc(p.Suffixes, func(s string) bool {
		folder := strings.HasSuffix(s, "/") && strings.Contains(f.path[:len(f.path)-len(f.base)], s)
		return folder || strings.HasSuffix(f.path, s)
	})
}

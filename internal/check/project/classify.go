package project

import (
	_ "embed" // the table
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/goccy/go-yaml"
)

// Class is what a file is for.
type Class string

// The classes.
const (
	// OwnFile is one of perdure's, or one that holds its gates at the agent.
	OwnFile Class = "perdure"
	// CIConfig, CoverageConfig, RunnerConfig and LintConfig decide what is
	// checked.
	CIConfig       Class = "ci"
	CoverageConfig Class = "coverage"
	RunnerConfig   Class = "runner"
	LintConfig     Class = "lint"
	// Snapshot is a fixture or what tests compare with.
	Snapshot Class = "snapshot"
	// TestFile holds tests, or what they use. Tests that stand among the code
	// they test (Rust's modules, doctests) do not show in a path.
	TestFile Class = "test"
	// Manifest is a file of which parts configure what is checked; ChangedParts
	// finds these.
	Manifest Class = "manifest"
	// Source is code of a language that is known.
	Source Class = "source"
	// Other is everything else.
	Other Class = "other"
)

// Protected tells whether any change of such a file is one of what is checked,
// and needs a waiver or an approval. Tests are not among them: an edited test
// file counts only when a test or an assertion is lost.
func (c Class) Protected() bool {
	return slices.Contains([]Class{OwnFile, CIConfig, CoverageConfig, RunnerConfig, LintConfig}, c)
}

// FileInfo says what a file is.
type FileInfo struct {
	Class Class `json:"class"`
	// Language is one of go, javascript, typescript, python, java, kotlin, rust,
	// ruby, csharp and php; empty when the class is of no language.
	Language string `json:"language,omitempty"`
	// Why says what a change can do, for people; empty for ordinary files.
	Why string `json:"why,omitempty"`
}

//go:embed paths.yaml
var pathTable []byte

// pathRule is one of the table's rules; see there.
type pathRule struct {
	Class      Class    `yaml:"class"`
	Language   string   `yaml:"language"`
	Why        string   `yaml:"why"`
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
	if err := yaml.UnmarshalWithOptions(text, &rules, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("read table of paths: %w", err)
	}
	for i := range rules {
		for _, list := range [...][]string{rules[i].Names, rules[i].Paths} {
			for j := range list {
				list[j] = strings.ToLower(list[j])
			}
		}
	}
	return rules, nil
}

// Classify says what a file is, by its path relative to the workspace with
// slashes. It looks at nothing else, so files that are gone can be asked for,
// too.
func Classify(name string) FileInfo {
	name = path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))
	f := &pathFacts{path: name, base: path.Base(name), ext: path.Ext(name), lower: strings.ToLower(name)}
	for i := range pathRules() {
		if r := &pathRules()[i]; r.fits(f) {
			return FileInfo{Class: r.Class, Language: r.Language, Why: r.Why}
		}
	}
	return FileInfo{Class: Other}
}

// pathFacts is a path taken apart: it begins with a slash.
type pathFacts struct {
	path, base, ext, lower string
}

func (r *pathRule) fits(f *pathFacts) bool {
	ext := f.ext
	if ext == f.base { // .eslintrc has none
		ext = ""
	}
	if len(r.Extensions) > 0 && !slices.Contains(r.Extensions, f.ext) && !slices.Contains(r.Extensions, ext) {
		return false
	}
	for _, n := range r.Names {
		if rest, ok := strings.CutSuffix(f.lower, n); ok && strings.HasSuffix(rest, "/") {
			return true
		}
	}
	for _, p := range r.Paths {
		if i := strings.Index(f.lower, "/"+p+"/"); i >= 0 {
			return true
		}
	}
	for _, p := range r.Prefixes {
		if strings.HasPrefix(f.base, p) {
			return true
		}
	}
	for _, s := range r.Suffixes {
		if strings.HasSuffix(s, "/") && strings.Contains(f.path[:len(f.path)-len(f.base)], s) {
			return true
		}
		if strings.HasSuffix(f.path, s) {
			return true
		}
	}
	return false
}

package decider

import (
	_ "embed" // the table
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// Part is what a file decides.
type Part string

// The parts of what a check uses.
const (
	Interpreter Part = "interpreter"
	Loader      Part = "loader"
	Library     Part = "library"
	Collection  Part = "collection"
	Build       Part = "build"
)

// Row is a row of the table; see table.yaml.
type Row struct {
	Ecosystem string `yaml:"ecosystem"`
	Part      Part   `yaml:"part"`
	// Decides is what such a file decides, for people.
	Decides string `yaml:"decides"`
	// NextTo, if set, are files of which one is in the folder of such a file.
	NextTo          []string `yaml:"next_to"`
	project.Pattern `yaml:",inline"`
}

//go:embed table.yaml
var tableText []byte

var table = sync.OnceValue(func() []Row {
	rows, err := readTable(tableText)
	if err != nil {
		panic(err) // a test reads the table
	}
	return rows
})

// Table returns the published table. The caller owns the slice.
func Table() []Row { return slices.Clone(table()) }

func readTable(text []byte) ([]Row, error) {
	var rows []Row
	if problem := yamltext.Decode(text, len(text), &rows); problem != nil {
		return nil, fmt.Errorf("read table of deciding files: %w", problem)
	}
	for i := range rows {
		rows[i].Lower()
	}
	return rows, nil
}

// Files returns the files of the row as one text for people.
func (r *Row) Files() string {
	list := slices.Clone(r.Names)
	for _, dir := range r.Paths {
		list = append(list, dir+"/")
	}
	for _, s := range r.Prefixes {
		list = append(list, s+"*")
	}
	for _, s := range r.Suffixes {
		list = append(list, "*"+s)
	}
	text := strings.Join(list, ", ")
	if len(r.Extensions) > 0 {
		text += " (" + strings.Join(r.Extensions, ", ") + ")"
	}
	return text
}

// rowOf returns the row of a file; nil if it decides nothing.
func (v *Versions) rowOf(name string) *Row {
	if isFixture(name) {
		return nil
	}
	for i := range table() {
		if r := &table()[i]; r.Fits(name) && v.isNextTo(name, r.NextTo) {
			return r
		}
	}
	switch file := project.Classify(name); file.Class {
	case project.RunnerConfig, project.CoverageConfig, project.LintConfig, project.Manifest:
		return &Row{Ecosystem: file.Language, Part: Collection, Decides: whatChecks(file.Class)}
	case project.OwnFile, project.CIConfig, project.Snapshot, project.TestFile, project.Source, project.Other:
	}
	return nil
}

// isNextTo reports whether the folder of a file has one of some others; true without any.
func (v *Versions) isNextTo(name string, files []string) bool {
	return len(files) == 0 || slices.ContainsFunc(files, func(f string) bool {
		other := path.Join(path.Dir(name), f)
		return v.Was(other) || v.Is(other)
	})
}

// whatChecks returns what a file of a class of package project decides.
func whatChecks(class project.Class) string {
	switch class {
	case project.CoverageConfig:
		return "which lines coverage counts"
	case project.LintConfig:
		return "what counts as an error"
	}
	return "which tests run, and how"
}

// isFixture reports whether a file is in a folder of files for tests, in which names mean nothing.
func isFixture(name string) bool {
	for folder := range strings.SplitSeq(name, "/") {
		if slices.Contains([]string{"testdata", "fixtures", "__fixtures__", "__snapshots__", "cassettes"}, folder) {
			return true
		}
	}
	return false
}

package evidence

import (
	"cmp"
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
)

// Protect marks a changed file that is protected: one of perdure's own, or one that matches a
// glob, of which any change blocks, or one that configures CI, a test runner, a linter or
// coverage, of which changes that make checks weaker do.
func Protect(c *detect.Change, globs []string) {
	names := slices.DeleteFunc([]string{c.New.Path, c.Old.Path}, func(name string) bool { return name == "" })
	for _, name := range names {
		file := project.Classify(name)
		switch {
		case slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, name) }):
			c.Protected = "the settings protect it"
		case file.Class == project.OwnFile:
			c.Protected = cmp.Or(file.Why, string(file.Class)+" configuration")
		case c.Configures == "" && (file.Class.Protected() || file.Class == project.Manifest):
			c.Configures = file.Class
		}
	}
}

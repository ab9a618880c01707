package evidence

import (
	"slices"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
)

// Protect marks a changed file that is protected: one of perdure's own, or one that matches a
// glob, of which any change blocks, or one that configures CI, a test runner, a linter or
// coverage, of which changes that make checks weaker do.
func Protect(c *detect.Change, globs []string) {
	for _, name := range []string{c.New.Path, c.Old.Path} {
		switch file := project.Classify(name); {
		case name == "":
		case slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, name) }):
			c.Protected = "the settings protect it"
		case file.Class == project.OwnFile:
			c.Protected = file.Why
		}
	}
	c.Configures, _ = project.Configures(c.New.Path, c.Old.Path)
}

package evidence

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
)

// Protected returns why a changed file is protected: it configures CI, a test runner, a
// linter or coverage, it is a manifest in which parts that configure them changed, or it
// matches one of the globs. Empty for other changes.
func Protected(c *detect.Change, globs []string) string {
	names := slices.DeleteFunc([]string{c.New.Path, c.Old.Path}, func(name string) bool { return name == "" })
	for _, name := range names {
		if slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, name) }) {
			return "the settings protect it"
		}
		if file := project.Classify(name); file.Class.Protected() {
			return cmp.Or(file.Why, string(file.Class)+" configuration")
		}
	}
	if len(names) == 0 || project.Classify(names[0]).Class != project.Manifest {
		return ""
	}
	var parts []string
	for _, p := range project.ChangedParts(names[0], c.Old.Content, c.New.Content) {
		parts = append(parts, p.Name)
	}
	return strings.Join(parts, ", ")
}

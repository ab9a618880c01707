package project_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
)

func TestPrograms(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct{ has, lacks []string }{
		"go test ./...":                     {[]string{"go", "sh", "gcc"}, []string{"node", "cargo"}},
		"cd a && CI=1 timeout 60 npm test":  {[]string{"npm", "node", "timeout"}, []string{"go"}},
		"if lint; then pytest | tee x; fi":  {[]string{"lint", "pytest", "tee", "python3"}, []string{"go", "npm"}},
		"make check":                        {[]string{"make", "go", "python3", "node", "java"}, nil},
		"./run.sh 'unbalanced":              {[]string{"sh", "go"}, nil},
		"$TOOL test":                        {[]string{"sh", "go"}, []string{"$TOOL", ""}},
		"mvn -q verify\nnpm ci && npm test": {[]string{"mvn", "java", "npm", "node"}, []string{"go", "-q"}},
	} {
		got := project.Programs(text)
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("%q: not sorted, or twice: %v", text, got)
		}
		for _, name := range c.has {
			if !slices.Contains(got, name) {
				t.Errorf("%q: no %s in %v", text, name, got)
			}
		}
		for _, name := range c.lacks {
			if slices.Contains(got, name) {
				t.Errorf("%q: %q in %v", text, name, got)
			}
		}
	}
}

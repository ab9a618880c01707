package trial

import (
	"context"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/testreport"
	"github.com/perdure/perdure/internal/detect"
	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/verify/evidence"
	"github.com/perdure/perdure/internal/verify/mutate"
	"github.com/perdure/perdure/internal/workspace/diff"
)

// changed is what an iteration changed in one file.
type changed struct {
	before, source string // the text before and now
	// tests are the names of tests that are new or whose body is another one.
	tests map[string]bool
}

// mutations returns those of the changed lines.
func (f *changed) mutations(path string) []mutate.Mutation {
	lines := diff.Compare([]byte(f.before), []byte(f.source))
	if lines == nil {
		return nil
	}
	isNew := make([]bool, strings.Count(f.source, "\n")+2) // looked up for each token
	for line := range isNew {
		isNew[line] = !lines.Same(line)
	}
	return mutate.Find(path, f.source, func(line int) bool { return isNew[line] }, maxMutations)
}

// read returns the changed files in known languages, by path.
func read(ctx context.Context, cfg *Config) (map[string]*changed, error) {
	files := make(map[string]*changed)
	for c, err := range evidence.Versions(ctx, cfg.Files, cfg.Between) {
		if err != nil {
			return nil, err
		}
		if syntax.LanguageOf(c.New.Path) == nil || len(c.New.Content) == 0 || c.New.Kind != detect.Regular {
			continue
		}
		files[c.New.Path] = &changed{before: string(c.Old.Content), source: string(c.New.Content),
			tests: changedTests(&c)}
	}
	return files, nil
}

// changedTests returns the names of the tests of a file that are new or whose body is another one.
func changedTests(c *detect.Change) map[string]bool {
	was := make(map[string]uint64)
	for _, t := range testsIn(&c.Old) {
		was[t.Name] = t.BodyHash
	}
	names := make(map[string]bool)
	for _, t := range testsIn(&c.New) {
		if body, known := was[t.Name]; !known || body != t.BodyHash {
			names[t.Leaf] = true
		}
	}
	return names
}

// testsIn returns the tests and suites of a file.
func testsIn(v *detect.Version) []*syntax.Test {
	lang := syntax.LanguageOf(v.Path)
	if lang == nil {
		return nil
	}
	m := syntax.Read(lang, v.Path, string(v.Content))
	return slices.Concat(m.Tests, m.Suites)
}

// newTests returns the tests that passed and that the iteration added or changed.
func newTests(report *testreport.Report, files map[string]*changed) []testreport.Test {
	var tests []testreport.Test
	for _, t := range report.Tests {
		file := fileOf(&t, files)
		if t.Outcome != testreport.Passed || t.Flaky || file == "" ||
			t.Varies != "" && t.Varies != testreport.NotKnown {
			continue
		}
		t.File = file
		if tests = append(tests, t); len(tests) == maxTests {
			break
		}
	}
	return tests
}

// fileOf returns the file that a changed test is in, empty for other tests.
func fileOf(t *testreport.Test, files map[string]*changed) string {
	name := evidence.LastName(t.ID)
	for path, f := range files {
		if (t.File == "" || t.File == path) && (f.tests[name] || f.tests[ownName(name)]) {
			return path
		}
	}
	return ""
}

// ownName returns the name of a test without its subtests and parameters.
func ownName(name string) string {
	if i := strings.IndexAny(name, "/["); i > 0 {
		return name[:i]
	}
	return name
}

package project_test

import (
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
)

// words are the arguments of all simple commands of a script, printed.
func words(t *testing.T, script string) []string {
	t.Helper()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		t.Fatalf("script %q does not parse: %v", script, err)
	}
	var all []string
	printer := syntax.NewPrinter()
	syntax.Walk(file, func(n syntax.Node) bool {
		if w, ok := n.(*syntax.Word); ok {
			var b strings.Builder
			if err := printer.Print(&b, w); err != nil {
				t.Fatal(err)
			}
			all = append(all, b.String())
		}
		return true
	})
	return all
}

// For any command: a weak one is unchanged, and others keep all words of the user in
// order.
func FuzzMeasure(f *testing.F) {
	for _, seed := range []string{
		"go test ./...", "cd web && npm test -- --x", "pytest -k 'a b' | tee", "A=1 timeout 5 cargo test -- --nocapture",
		"mvn -f x/pom.xml verify", "npx -y jest@29 $X",
		"gradle :a:test --tests X", "python -m coverage run -m pytest", "composer test", "yarn --cwd web test",
		"php -d x artisan test", "node --test --test-reporter=tap", "go test <<E\nx\nE\n",
		"env -i go test", "dotnet test --results-directory a*", "cd .. && cd .. && pytest --junitxml x",
		"bun test; rspec; phpunit\ndeno test",
	} {
		f.Add(seed, "TestA/b", "a > b (1)")
	}
	files := manifests()
	f.Fuzz(func(t *testing.T, command, suite, name string) {
		c := project.Measure(command, project.Config{Files: files, Scratch: "/s p"})
		if c.Weak != "" {
			if c.Script != command || len(c.Results) > 0 {
				t.Fatalf("weak %q: script %q, results %v", c.Weak, c.Script, c.Results)
			}
			return
		}
		if len(c.Results) == 0 || c.Kind == "" {
			t.Fatalf("no results of %q", command)
		}
		kept := words(t, c.Script)
		for _, w := range words(t, command) {
			for len(kept) > 0 && kept[0] != w {
				kept = kept[1:]
			}
			if len(kept) == 0 {
				t.Fatalf("%q became %q: %q is lost", command, c.Script, w)
			}
			kept = kept[1:]
		}
		if again, ok := c.Again([]testreport.Test{{ID: suite + "::" + name, Suite: suite, Name: name, File: suite}}); ok {
			words(t, again.Script)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add("package.json")
	f.Add("../.github/workflows\\x.yml")
	f.Fuzz(func(_ *testing.T, name string) { project.Classify(name) })
}

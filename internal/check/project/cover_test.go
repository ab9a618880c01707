package project_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
)

// TestCoverageInOneRun: the added arguments, or the reason why there are none.
func TestCoverageInOneRun(t *testing.T) {
	t.Parallel()
	files := manifests()
	files["requirements.txt"] = &fstest.MapFile{Data: []byte("pytest\npytest-cov\n")}
	for _, c := range []struct{ command, script, results, env, why string }{
		{command: "go test ./...", script: "go test -json -coverprofile=/s/coverage-1.out ./...",
			results: "go-coverprofile [/s/coverage-1.out] ."},
		{command: "go test ./a && go -C web test .", script: "go test -json -coverprofile=/s/coverage-1.out ./a && go -C " +
			"web test -json -coverprofile=/s/coverage-2.out .",
			results: "go-coverprofile [/s/coverage-1.out] .; go-coverprofile [/s/coverage-2.out] web"},
		{command: "go test -coverprofile=c.out ./...", script: "go test -json -coverprofile=c.out ./...",
			results: "go-coverprofile [c.out] ."},
		{command: "go test -coverprofile=/tmp/c.out .", why: "absolute path"},
		{command: "go test -fuzz=X .", why: "-fuzz"},
		{command: "cd web && pytest -q", why: "pytest-cov"},
		{command: "pytest -q tests", env: "COVERAGE_FILE=/s/coverage-1.xml.data",
			results: "cobertura-xml [/s/coverage-1.xml] .",
			script: "pytest --junitxml=/s/results-1.xml -o junit_family=xunit1 --cov --cov-report=xml:/s/coverage-1.xml " +
				"--cov-fail-under=0 -q tests"},
		{command: "pytest --cov=src", env: "COVERAGE_FILE=/s/coverage-1.xml.data",
			results: "cobertura-xml [/s/coverage-1.xml] .",
			script: "pytest --junitxml=/s/results-1.xml -o junit_family=xunit1 --cov-report=xml:/s/coverage-1.xml " +
				"--cov-fail-under=0 --cov=src"},
		{command: "pytest --no-cov", why: "switches coverage off"},
		{command: "npm run unit", results: "lcov [/s/coverage-1/lcov.info] .",
			script: "npm run unit -- --json --outputFile=/s/results-1.json --coverage " +
				"--coverageReporters=lcovonly --coverageDirectory=/s/coverage-1 '--coverageThreshold={}'"},
		{command: "jest --coverage=false", why: "switches coverage off"},
		{command: "jest --coverageDirectory=x", why: "itself"},
		{command: "cargo test", why: "in one run"},
		{command: "make check", why: "test runner"},
		{command: "go test ./... | tee log", why: "piped"},
		{command: "", why: "empty"},
	} {
		got := project.Measure(c.command, project.Config{Files: files, Scratch: "/s", WithCoverage: true})
		var results []string
		for _, r := range got.Results {
			if project.IsCoverage(r.Format) {
				results = append(results, fmt.Sprintf("%s %v %s", r.Format, r.Files, r.Dir))
			}
		}
		plain := project.Measure(c.command, project.Config{Files: files, Scratch: "/s"})
		if c.script == "" {
			c.script = plain.Script
		}
		if got.Script != c.script || strings.Join(results, "; ") != c.results ||
			(c.env != "" && strings.Join(got.Env, " ") != c.env) ||
			!strings.Contains(got.NoCoverage, c.why) || (c.why == "") != (got.NoCoverage == "") ||
			got.Covers() != (c.why == "") {
			t.Errorf("%s: %q, coverage %q, environment %q, none because %q", c.command, got.Script, results, got.Env,
				got.NoCoverage)
		}
		if p := got.Plain(); p.Script != plain.Script || p.Covers() || p.Weak != plain.Weak ||
			len(p.Results) != len(plain.Results) {
			t.Errorf("%s without coverage is %q, not %q", c.command, p.Script, plain.Script)
		}
		tests := []testreport.Test{{ID: "a.py::b", Name: "TestA", File: "a.py"}}
		again, ok := got.Again(tests)
		want, okPlain := plain.Again(tests)
		if ok != okPlain || again.Script != want.Script {
			t.Errorf("%s again is %q, not %q", c.command, again.Script, want.Script)
		}
	}
}

func TestCoverageNeedsAPlace(t *testing.T) {
	t.Parallel()
	got := project.Measure("go test ./...", project.Config{WithCoverage: true})
	if got.Covers() || !strings.Contains(got.NoCoverage, "no folder") || got.Script != "go test -json ./..." {
		t.Errorf("%+v", got)
	}
}

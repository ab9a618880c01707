package project_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/coverage"
	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
)

// manifests is a workspace of package managers.
func manifests() fstest.MapFS {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	return fstest.MapFS{
		"package.json": file(`{"scripts":{"test":"tsc --noEmit && vitest run","unit":"jest","chain":"npm run unit","wrapped":"cross-env NODE_ENV=test jest --ci",
			"piped":"jest | tee log","swallowed":"jest || true","lint":"eslint .","nodes":"node --test","files":"node --test a.js",
			"cra":"react-scripts test","bin":"node --experimental-vm-modules node_modules/jest/bin/jest.js","after":"jest && echo done"}}`),
		"web/package.json": file(
			`{"scripts":{"test":"mocha","named":"jest --outputFile=o.json","far":"jest --outputFile=/home/x.json"}}`),
		"composer.json": file(
			`{"scripts":{"test":"phpunit --colors","list":["@php vendor/bin/phpunit"],"two":["a","phpunit"]}}`),
		"broken/package.json":   file(`{`),
		"broken/composer.json":  file(`{"scripts":{"test":1}}`),
		"many/packages/x/a.txt": file(``),
	}
}

const r = "/s/results-" // how the names of results begin

// measured are commands and their changed form. An empty script stands for a weak
// command.
var measured = []struct {
	command string
	script  string // the changed command; empty if it is weak
	results string // "format stream files"
	weak    string
}{
	// Go.
	{command: "go test ./...", script: "go test -json ./...", results: "go-test-json stdout []"},
	{command: "  go   test  -race ./... ", script: "  go   test -json  -race ./... ", results: "go-test-json stdout []"},
	{command: `CGO_ENABLED=0 go test -run "A|B" $PKGS -args -json`,
		script: `CGO_ENABLED=0 go test -json -run "A|B" $PKGS -args -json`, results: "go-test-json stdout []"},
	{command: "go test -json ./...", script: "go test -json ./...", results: "go-test-json stdout []"},
	{command: "go -C sub test ./...", script: "go -C sub test -json ./...", results: "go-test-json stdout []"},
	{command: "timeout -k 5 60 env A=b go test", script: "timeout -k 5 60 env A=b go test -json",
		results: "go-test-json stdout []"},
	{command: "time go test ./a ./b 2>/dev/null", script: "time go test -json ./a ./b 2>/dev/null",
		results: "go-test-json stdout []"},
	{command: "go vet ./... && go test ./...; echo done", script: "go vet ./... && go test -json ./...; echo done",
		results: "go-test-json stdout []"},
	{command: "go test -c ./a", weak: "go test -c runs no tests"},
	{command: "go test -list=. ./a", weak: "go test -list runs no tests"},
	{command: "go test ./... > log", weak: "is redirected"},
	{command: "go test ./... &> log", weak: "is redirected"},
	{command: "go test ./... | tee log", weak: `"go" has no readable results: its output is piped`},
	{command: "go test ./... || true", weak: `its exit code is changed by "||"`},
	{command: "! go test ./...", weak: "inverted"},
	{command: "go test ./... &", weak: "background"},
	{command: "(cd a && go test ./...)", weak: "compound"},
	{command: "if true; then go test ./...; fi", weak: "compound"},
	{command: "sh -c 'go test ./...'", weak: `"sh" is not a known test runner`},
	{command: "go build ./...", weak: `"go" is not a known test runner`},
	{command: "gotestsum -- ./...", script: "gotestsum --jsonfile=" + r + "1.json -- ./...",
		results: "go-test-json  [/s/results-1.json]"},
	{command: "gotestsum --jsonfile out.json", script: "gotestsum --jsonfile out.json",
		results: "go-test-json  [out.json]"},
	{command: `gotestsum --jsonfile "$OUT"`, weak: "known only to the shell"},
	{command: "gotestsum --jsonfile /etc/passwd", weak: "absolute path"},
	{command: "cd .. && pytest --junitxml=r.xml", weak: "outside of the workspace"},
	{command: "cd $X && pytest --junitxml=r.xml", weak: "known only to the shell"},
	// Python.
	{command: "pytest -q", script: "pytest --junitxml=" + r + "1.xml -o junit_family=xunit1 -q",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "python3 -W error -m pytest tests -k 'a b'", script: "python3 -W error -m pytest --junitxml=" + r +
		"1.xml -o junit_family=xunit1 tests -k 'a b'", results: "junit-xml  [/s/results-1.xml]"},
	{command: "cd api && uv run --frozen pytest --junit-xml out/r.xml",
		script:  "cd api && uv run --frozen pytest -o junit_family=xunit1 --junit-xml out/r.xml",
		results: "junit-xml  [api/out/r.xml]"},
	{command: "poetry run python -m pytest", script: "poetry run python -m pytest --junitxml=" + r +
		"1.xml -o junit_family=xunit1", results: "junit-xml  [/s/results-1.xml]"},
	{command: "coverage run --branch -m pytest -x", script: "coverage run --branch -m pytest --junitxml=" + r +
		"1.xml -o junit_family=xunit1 -x", results: "junit-xml  [/s/results-1.xml]"},
	{command: "pytest --collect-only", weak: "runs no tests"},
	{command: "python -m unittest", weak: "unittest"},
	{command: "python check.py", weak: `"python" is not a known test runner`},
	// JavaScript.
	{command: "npx jest src", script: "npx jest --json --outputFile=" + r + "1.json src",
		results: "jest-json  [/s/results-1.json]"},
	{command: "npx -y jest@29 --outputFile=o.json", script: "npx -y jest@29 --json --outputFile=o.json",
		results: "jest-json  [o.json]"},
	{command: "jest --watch", weak: "does not end"},
	{command: "yarn jest --ci", script: "yarn jest --json --outputFile=" + r + "1.json --ci",
		results: "jest-json  [/s/results-1.json]"},
	{command: "pnpm exec vitest run", script: "pnpm exec vitest run --reporter=default --reporter=junit " +
		"--outputFile.junit=" + r + "1.xml", results: "junit-xml  [/s/results-1.xml]"},
	{command: "vitest --run --reporter verbose", script: "vitest --reporter=junit --outputFile.junit=" + r +
		"1.xml --run --reporter verbose", results: "junit-xml  [/s/results-1.xml]"},
	{command: "vitest watch", weak: "use vitest run"},
	{command: "vitest bench", weak: "runs no tests"},
	{command: "vitest run --outputFile=x", weak: "remove --outputFile"},
	{command: "mocha", script: "mocha --reporter xunit --reporter-option output=" + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "mocha -R spec", weak: "single reporter"},
	{command: "node --test src/", script: "node --test-reporter=spec --test-reporter-destination=stdout " +
		"--test-reporter=junit --test-reporter-destination=" + r + "1.xml --test src/",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "node --test --test-reporter=tap", script: "node --test --test-reporter=tap", results: "tap stdout []"},
	{command: "node --test --test-reporter=dot", weak: `reporter "dot"`},
	{command: "node server.js", weak: `"node" is not a known test runner`},
	{command: "npm test", script: "npm test -- --reporter=default --reporter=junit --outputFile.junit=" + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "npm test -- src", script: "npm test -- src --reporter=default --reporter=junit --outputFile.junit=" + r +
		"1.xml", results: "junit-xml  [/s/results-1.xml]"},
	{command: "npm run -s unit", script: "npm run -s unit -- --json --outputFile=" + r + "1.json",
		results: "jest-json  [/s/results-1.json]"},
	{command: "npm ci && npm run unit", script: "npm ci && npm run unit -- --json --outputFile=" + r + "1.json",
		results: "jest-json  [/s/results-1.json]"},
	{command: "yarn wrapped", script: "yarn wrapped --json --outputFile=" + r + "1.json",
		results: "jest-json  [/s/results-1.json]"},
	{command: "pnpm run nodes", script: "pnpm run nodes --test-reporter=spec --test-reporter-destination=stdout " +
		"--test-reporter=junit --test-reporter-destination=" + r + "1.xml", results: "junit-xml  [/s/results-1.xml]"},
	{command: "npm run bin", script: "npm run bin -- --json --outputFile=" + r + "1.json",
		results: "jest-json  [/s/results-1.json]"},
	{command: "npm run cra", script: "npm run cra -- --json --outputFile=" + r + "1.json",
		results: "jest-json  [/s/results-1.json]"},
	{command: "npm --prefix web test", script: "npm --prefix web test -- --reporter xunit --reporter-option output=" +
		r + "1.xml", results: "junit-xml  [/s/results-1.xml]"},
	{command: "cd web && npm t", script: "cd web && npm t -- --reporter xunit --reporter-option output=" + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "npm --prefix web run named", script: "npm --prefix web run named -- --json",
		results: "jest-json  [web/o.json]"},
	{command: "cd web && npm run far", weak: "absolute path"},
	{command: "npm run chain", weak: "it runs another script"},
	{command: "npm run piped", weak: "known test runner"},
	{command: "npm run swallowed", weak: "known test runner"},
	{command: "npm run after", weak: "known test runner"},
	{command: "npm run files", weak: "no arguments"},
	{command: "npm run lint", weak: "known test runner"},
	{command: "npm run nothing", weak: `no script "nothing"`},
	{command: "npm test --workspaces", weak: "packages"},
	{command: "npm -w a test", weak: "packages"},
	{command: "pnpm -r test", weak: "packages"},
	{command: "cd broken && npm test", weak: "cannot be read"},
	{command: "cd nowhere && npm test", weak: "package.json does not exist"},
	{command: "cd $DIR && npm test", weak: "workspace"},
	{command: "bun test", script: "bun test --reporter=junit --reporter-outfile=" + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "deno test -A", script: "deno test --junit-path=" + r + "1.xml -A",
		results: "junit-xml  [/s/results-1.xml]"},
	// Rust.
	{command: "cargo test", script: "cargo test --no-fail-fast", results: "cargo-test both []"},
	{command: "cargo +nightly test --workspace -- --test-threads=1",
		script: "cargo +nightly test --no-fail-fast --workspace -- --test-threads=1", results: "cargo-test both []"},
	{command: "cargo test -q", weak: "leave it out"},
	{command: "cargo test -- --list", weak: "runs no tests"},
	{command: "cargo test --no-run", weak: "runs no tests"},
	{command: "cargo test 2>/dev/null", weak: "is redirected"},
	{command: "cargo build", weak: `"cargo" is not a known test runner`},
	{command: "cargo nextest run -P ci", script: "cargo nextest run --tool-config-file perdure:" + r +
		"1.toml --no-fail-fast -P ci", results: "junit-xml  [/s/results-2.xml]"},
	// Java and Kotlin.
	{command: "mvn -B verify", script: "mvn -fae -B verify",
		results: "junit-xml  [**/target/surefire-reports/TEST-*.xml **/target/failsafe-reports/TEST-*.xml]"},
	{command: "cd api && ./mvnw test -ff", script: "cd api && ./mvnw test -ff",
		results: "junit-xml  [api/**/target/surefire-reports/TEST-*.xml api/**/target/failsafe-reports/TEST-*.xml]"},
	{command: "mvn -f svc/pom.xml test", script: "mvn -fae -f svc/pom.xml test",
		results: "junit-xml  [svc/**/target/surefire-reports/TEST-*.xml svc/**/target/failsafe-reports/TEST-*.xml]"},
	{command: "mvn verify -DskipTests", weak: "-DskipTests"},
	{command: "mvn compile", weak: `"mvn" is not a known test runner`},
	{command: "./gradlew :app:test", script: "./gradlew --continue :app:test",
		results: "junit-xml  [**/build/test-results/**/TEST-*.xml]"},
	{command: "gradle build -x test", weak: "-x test"},
	{command: "gradle assemble", weak: `"gradle" is not a known test runner`},
	// Ruby, C#, PHP.
	{command: "bundle exec rspec spec/a_spec.rb", script: "bundle exec rspec --format progress --format json --out " +
		r + "1.json spec/a_spec.rb", results: "rspec-json  [/s/results-1.json]"},
	{command: "rspec -f doc", script: "rspec --format json --out " + r + "1.json -f doc",
		results: "rspec-json  [/s/results-1.json]"},
	{command: "bundle exec rake", weak: `"bundle" is not a known test runner`},
	{command: "dotnet test a.sln", script: "dotnet test --logger trx --results-directory " + r + "1 a.sln",
		results: "trx  [/s/results-1/*.trx]"},
	{command: "dotnet test --results-directory out", script: "dotnet test --logger trx --results-directory out",
		results: "trx  [out/*.trx]"},
	{command: "vendor/bin/phpunit tests", script: "vendor/bin/phpunit --log-junit " + r + "1.xml tests",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "php -d memory_limit=1G vendor/bin/phpunit --log-junit x.xml",
		script: "php -d memory_limit=1G vendor/bin/phpunit --log-junit x.xml", results: "junit-xml  [x.xml]"},
	{command: "php artisan test", script: "php artisan test --log-junit " + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "composer test", script: "composer test -- --log-junit " + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "composer run list", script: "composer run list -- --log-junit " + r + "1.xml",
		results: "junit-xml  [/s/results-1.xml]"},
	{command: "composer two", weak: "single command"},
	// Several commands, and unknown ones.
	{command: "go test ./... && pytest", script: "go test -json ./... && pytest --junitxml=" + r +
		"1.xml -o junit_family=xunit1", results: "go-test-json stdout []; junit-xml  [/s/results-1.xml]"},
	{command: "make test", weak: `"make" is not a known test runner`},
	{command: "", weak: "empty"},
	{command: "go test 'x", weak: "parse command"},
	{command: "$CMD ./...", weak: "is not a known test runner"},
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	for _, tt := range measured {
		t.Run(tt.command, func(t *testing.T) {
			t.Parallel()
			c := project.Measure(tt.command, project.Config{Files: manifests(), Scratch: "/s"})
			if tt.script == "" {
				if c.Weak == "" || !strings.Contains(c.Weak, tt.weak) || c.Script != tt.command || len(c.Results) > 0 {
					t.Errorf("weak %q, want %q; script %q, results %v", c.Weak, tt.weak, c.Script, c.Results)
				}
				return
			}
			var results []string
			for _, r := range c.Results {
				results = append(results, fmt.Sprintf("%s %s %v", r.Format, r.Stream, r.Files))
			}
			if diff := cmp.Diff([]string{tt.script, tt.results, ""},
				[]string{c.Script, strings.Join(results, "; "), c.Weak}); diff != "" {
				t.Errorf("command (-want +got):\n%s", diff)
			}
			if c.Dir != "." || c.Kind == "" {
				t.Errorf("folder %q, kind %q", c.Dir, c.Kind)
			}
		})
	}
}

// Requirements of results besides arguments.
func TestMeasureDetails(t *testing.T) {
	t.Parallel()
	cfg := project.Config{Files: manifests(), Scratch: "/s p/a'b", Dir: "web"}
	c := project.Measure("cd .. && pytest --junitxml web/r.xml", cfg)
	if diff := cmp.Diff([]string{"r.xml"}, c.Results[0].Files); diff != "" || c.Dir != "web" {
		t.Errorf("folder %q, files (-want +got):\n%s", c.Dir, diff)
	}
	c = project.Measure("pytest", cfg)
	if want := `pytest "--junitxml=/s p/a'b/results-1.xml" -o junit_family=xunit1`; c.Script != want {
		t.Errorf("script %s, want %s", c.Script, want)
	}
	c = project.Measure("cargo nextest run", cfg)
	if text := c.Files["/s p/a'b/results-1.toml"]; text != "[profile.default.junit]\npath = \"/s p/a'b/results-2.xml\"\n" {
		t.Errorf("configuration %q of %v", text, c.Files)
	}
	if c = project.Measure("pytest", project.Config{}); !strings.Contains(c.Weak, "no folder for its results") {
		t.Errorf("without a folder: %+v", c)
	}
	if c = project.Measure("go test ./...", project.Config{}); c.Weak != "" || c.Stops != "" {
		t.Errorf("without a folder: %+v", c)
	}
	for command, want := range map[string]project.Stops{
		"go test ./a && go test ./b": project.StopsBetween, "mvn test": project.StopsBetween,
		"gradle test --fail-fast": project.StopsInside,
		"go test -failfast ./...": project.StopsInside, "go test ./...": "", "pytest -qx": project.StopsInside,
		"pytest --maxfail=3":    project.StopsInside,
		"pytest -k 'x' tests/x": "", "pytest -x && mvn test": project.StopsInside,
		"mvn test && pytest -x": project.StopsInside, "npx jest --bail": project.StopsInside,
		"rspec --fail-fast": project.StopsInside, "phpunit --stop-on-failure": project.StopsInside, "cargo test": "",
		"cargo nextest run --fail-fast": project.StopsInside,
	} {
		if c := project.Measure(command, project.Config{Scratch: "/s"}); c.Stops != want || c.Weak != "" {
			t.Errorf("%s stops %q, want %q; weak %q", command, c.Stops, want, c.Weak)
		}
	}
	if c = project.Measure("npm run cra", project.Config{Files: manifests(), Scratch: "/s"}); !cmp.Equal(c.Env,
		[]string{"CI=true"}) {
		t.Errorf("environment %q", c.Env)
	}
}

// The formats are those of the packages that read them.
func TestFormats(t *testing.T) {
	t.Parallel()
	for ours, theirs := range map[string]string{
		project.FormatGo: string(testreport.GoTest), project.FormatJUnit: string(testreport.JUnit),
		project.FormatJest: string(testreport.Jest),
		project.FormatTAP:  string(testreport.TAP), project.FormatCargo: string(testreport.Cargo),
		project.FormatTRX:     string(testreport.TRX),
		project.FormatRSpec:   string(testreport.RSpec),
		project.FormatCoverGo: string(coverage.Go), project.FormatLCOV: string(coverage.LCOV),
		project.FormatCobertura: string(coverage.Cobertura),
	} {
		if ours != theirs {
			t.Errorf("format %q is called %q", ours, theirs)
		}
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	failing := []testreport.Test{
		{ID: "example.com/m::TestB/sub", Suite: "example.com/m", Name: "TestB/sub"},
		{ID: "example.com/m::TestA", Suite: "example.com/m", Name: "TestA"},
		{ID: "example.com/n::TestA", Suite: "example.com/n", Name: "TestA"},
	}
	python := []testreport.Test{
		{ID: "tests/test_a.py::TestC::test_m[a b]", Suite: "tests/test_a.py", Name: "TestC::test_m[a b]",
			File: "tests/test_a.py"},
		{ID: "tests.test_b::test_x", Suite: "tests.test_b", Name: "test_x"},
	}
	titles := []testreport.Test{{ID: "a.ts::outer > adds (1)", Suite: "a.ts", Name: "outer > adds (1)", File: "a.ts"}}
	rust := []testreport.Test{{Suite: "foo src/lib.rs", Name: "tests::fails"},
		{Suite: "doc foo", Name: "src/lib.rs - add"}}
	java := []testreport.Test{{Suite: "com.acme.CartTest", Name: "sums(int, int)[1]"},
		{Suite: "com.acme.CartTest", Name: "fails"}}
	tests := []struct {
		command string
		tests   []testreport.Test
		want    string // empty: not possible
	}{
		{"go test -race ./...", failing, `go test -json -count=1 '-run=^(TestA|TestB)$' -race ./...`},
		{"go test ./...", []testreport.Test{{Name: "BenchmarkX"}}, ""},
		{"go test ./... && go test ./b", failing, ""},
		{"make test", failing, ""},
		{"go test ./...", nil, ""},
		{"pytest -q -k 'a or b' tests/ -x", python,
			`pytest --junitxml=/s/results-1.xml -o junit_family=xunit1 'tests/test_a.py::TestC::test_m[a b]' -q -k 'a or b'  ` +
				`-x`},
		{"pytest", python[1:], ""},
		{"npx jest", titles, `npx jest --json --outputFile=/s/results-1.json --testNamePattern '^(outer adds \(1\))$'`},
		{"npx jest -t x", titles, ""},
		{"npm test", titles, `npm test -- --reporter=default --reporter=junit --outputFile.junit=/s/results-1.xml ` +
			`--testNamePattern '^(outer adds \(1\))$'`},
		{"mocha", titles, `mocha --reporter xunit --reporter-option output=/s/results-1.xml --grep '^(outer adds \(1\))$'`},
		{"cargo test", rust, `cargo test --no-fail-fast -- --exact tests::fails`},
		{"cargo test --workspace -- --nocapture", rust,
			`cargo test --no-fail-fast --workspace -- --exact tests::fails --nocapture`},
		{"cargo test", rust[1:], ""},
		{"cargo nextest run", rust[:1],
			`cargo nextest run --tool-config-file perdure:/s/results-1.toml --no-fail-fast -E 'test(=tests::fails)'`},
		{"mvn test", java, `mvn -fae '-Dtest=com.acme.CartTest#fails,com.acme.CartTest#sums' ` +
			`-Dsurefire.failIfNoSpecifiedTests=false -DfailIfNoTests=false test`},
		{"gradle test --info", java,
			`gradle --continue test --tests com.acme.CartTest.fails --tests com.acme.CartTest.sums --info`},
		{"gradle check", java, ""},
		{"dotnet test", java, `dotnet test --logger trx --results-directory /s/results-1 --filter ` +
			`'FullyQualifiedName=com.acme.CartTest.fails|FullyQualifiedName=com.acme.CartTest.sums'`},
		{"phpunit", []testreport.Test{{Suite: `App\CartTest`, Name: "testSum with data set #1"}},
			`phpunit --log-junit /s/results-1.xml --filter '/(^|\\)(App\\CartTest::testSum)( |$)/'`},
		{"rspec", []testreport.Test{{Name: "Cart adds"}},
			`rspec --format progress --format json --out /s/results-1.json --example "Cart adds"`},
	}
	for _, tt := range tests {
		c := project.Measure(tt.command, project.Config{Files: manifests(), Scratch: "/s"})
		again, ok := c.Again(tt.tests)
		// The kind of quotes does not matter.
		same := strings.ReplaceAll(again.Script, `"`, "'") == strings.ReplaceAll(tt.want, `"`, "'")
		if ok != (tt.want != "") || !same {
			t.Errorf("%s: %v\n got %s\nwant %s", tt.command, ok, again.Script, tt.want)
		}
		if ok && !cmp.Equal(again.Results, c.Results) {
			t.Errorf("%s: results %v", tt.command, again.Results)
		}
	}
	many := make([]testreport.Test, 501)
	c := project.Measure("go test ./...", project.Config{})
	if _, ok := c.Again(many); ok {
		t.Error("a command line of 501 tests is made")
	}
}

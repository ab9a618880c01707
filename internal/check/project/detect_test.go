package project_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/project"
)

func workspace(files map[string]string) fstest.MapFS {
	w := make(fstest.MapFS)
	for name, text := range files {
		w[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return w
}

func scripts(p project.Project) string {
	weak := ""
	if p.Test.Weak != "" {
		weak = " weak"
	}
	return fmt.Sprintf("test%s %s | coverage %s | types %s | lint %s", weak, p.Test.Script, p.Coverage.Script,
		p.Types.Script, p.Lint.Script)
}

func TestDetect(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		kind  project.Kind
		file  string
		want  string
	}{
		{"go", map[string]string{"go.mod": "// x\nmodule example.com/m // y\n\ngo 1.24\n", "a.go": ""}, project.Go, "go.mod",
			"test go test -json ./... | coverage go test -json -coverprofile=/s/coverage.out ./... | types go build -o " +
				"/dev/null ./... | lint go vet ./..."},
		{"golangci-lint", map[string]string{"go.mod": "module m\n", ".golangci.yml": ""}, project.Go, "go.mod",
			"test go test -json ./... | coverage go test -json -coverprofile=/s/coverage.out ./... | types go build -o " +
				"/dev/null ./... | lint golangci-lint run ./..."},
		{"jest by script", map[string]string{
			"package.json":  `{"scripts":{"test":"jest --ci"},"devDependencies":{"jest":"29","typescript":"5","eslint":"9"}}`,
			"tsconfig.json": "{}", "eslint.config.js": ""}, project.Jest, "package.json",
			"test npm test -- --json --outputFile=/s/results-1.json | coverage npm test -- --coverage " +
				"--coverageReporters=lcovonly --coverageDirectory=/s/coverage --json --outputFile=/s/results-1.json | types npx " +
				"--no-install tsc --noEmit --pretty false --incremental --tsBuildInfoFile /s/tsc.tsbuildinfo | lint npx " +
				"--no-install eslint --format json ."},
		{"vitest without script, pnpm",
			map[string]string{"package.json": `{"devDependencies":{"vitest":"2","@vitest/coverage-v8":"2"}}`,
				"pnpm-lock.yaml": ""}, project.Vitest, "package.json",
			"test npx --no-install vitest run --reporter=default --reporter=junit --outputFile.junit=/s/results-1.xml | " +
				"coverage npx --no-install vitest run --reporter=default --reporter=junit --outputFile.junit=/s/results-1.xml " +
				"--coverage.enabled --coverage.reporter=lcovonly --coverage.reportsDirectory=/s/coverage | types  | lint "},
		{"mocha, yarn", map[string]string{"package.json": `{"scripts":{"test":"mocha"},"devDependencies":{"c8":"9"}}`,
			"yarn.lock": ""}, project.Mocha, "package.json",
			"test yarn test --reporter xunit --reporter-option output=/s/results-1.xml | coverage npx --no-install c8 " +
				"--reporter=lcovonly --report-dir=/s/coverage npm test | types  | lint "},
		{"node", map[string]string{"package.json": `{"scripts":{"test":"node --test"}}`}, project.Node, "package.json",
			"test npm test -- --test-reporter=spec --test-reporter-destination=stdout --test-reporter=junit " +
				"--test-reporter-destination=/s/results-1.xml | coverage  | types  | lint "},
		{"script of its own", map[string]string{"package.json": `{"scripts":{"test":"./check.sh"}}`}, project.NPM,
			"package.json", "test weak npm test | coverage  | types  | lint "},
		{"pytest", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n[tool.mypy]\n[tool.ruff]\n",
			"uv.lock": "", "requirements-dev.txt": "pytest-cov\n"}, project.Pytest, "pyproject.toml",
			"test uv run python -m pytest --junitxml=/s/results-1.xml -o junit_family=xunit1 | coverage uv run python -m " +
				"pytest --junitxml=/s/results-1.xml -o junit_family=xunit1 --cov --cov-report=xml:/s/coverage.xml | types uv " +
				"run python -m mypy --no-error-summary --cache-dir=/s/mypy . | lint uv run ruff check --no-cache " +
				"--output-format concise ."},
		{"pytest by conftest", map[string]string{"setup.py": "", "tests/conftest.py": "", ".flake8": ""}, project.Pytest,
			"setup.py",
			"test python -m pytest --junitxml=/s/results-1.xml -o junit_family=xunit1 | coverage  | types  | lint python -m " +
				"flake8"},
		{"unittest", map[string]string{"setup.cfg": "[metadata]\n", "tests/test_a.py": ""}, project.Python, "setup.cfg",
			"test weak python -m unittest discover | coverage  | types  | lint "},
		{"cargo", map[string]string{"Cargo.toml": "[workspace]\nmembers = []\n"}, project.Cargo, "Cargo.toml",
			"test cargo test --no-fail-fast --workspace | coverage  | types cargo check --all-targets --message-format short " +
				"--workspace | lint cargo clippy --all-targets --message-format short --workspace"},
		{"maven", map[string]string{"pom.xml": "<project/>", "mvnw": ""}, project.Maven, "pom.xml",
			"test ./mvnw -fae -B test | coverage  | types ./mvnw -B -q -DskipTests test-compile | lint "},
		{"gradle", map[string]string{"build.gradle.kts": "", "settings.gradle.kts": ""}, project.Gradle, "build.gradle.kts",
			"test gradle --continue test | coverage  | types gradle -q testClasses | lint "},
		{"rspec", map[string]string{"Gemfile": "gem 'rspec'\ngem \"rubocop\"\n"}, project.RSpec, "Gemfile",
			"test bundle exec rspec --format progress --format json --out /s/results-1.json | coverage  | types  | lint " +
				"bundle exec rubocop --cache false --format emacs"},
		{"minitest", map[string]string{"Gemfile": "gem 'minitest'\n"}, project.Ruby, "Gemfile",
			"test weak bundle exec rake test | coverage  | types  | lint "},
		{"dotnet", map[string]string{"shop.sln": "", "a.csproj": ""}, project.DotNet, "shop.sln",
			`test dotnet test --logger trx --results-directory /s/results-1 | coverage dotnet test --logger trx --collect ` +
				`"XPlat Code Coverage" --results-directory /s/coverage | types dotnet build -v q --nologo | lint `},
		{"phpunit", map[string]string{"composer.json": `{"require-dev":{"phpunit/phpunit":"^11"}}`, "phpstan.neon": ""},
			project.PHPUnit, "composer.json",
			"test vendor/bin/phpunit --log-junit /s/results-1.xml | coverage vendor/bin/phpunit --log-junit /s/results-1.xml " +
				"--coverage-cobertura /s/cobertura.xml | types vendor/bin/phpstan analyse --no-progress --error-format=raw | " +
				"lint "},
		{"deno", map[string]string{"deno.json": "{}"}, project.Deno, "deno.json",
			"test deno test --junit-path=/s/results-1.xml | coverage  | types deno check . | lint deno lint --compact"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, err := project.Detect(project.Config{Files: workspace(tt.files), Scratch: "/s",
				Installed: func(name string) bool { return name == "golangci-lint" }})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) != 1 {
				t.Fatalf("%d projects: %+v", len(found), found)
			}
			p := found[0]
			if p.Kind != tt.kind || p.File != tt.file || p.Dir != "." || p.Test.Kind != tt.kind {
				t.Errorf("kind %q (test %q), file %q, folder %q", p.Kind, p.Test.Kind, p.File, p.Dir)
			}
			// The kind of quotes does not matter.
			if diff := cmp.Diff(strings.ReplaceAll(tt.want, `"`, "'"), strings.ReplaceAll(scripts(p), `"`, "'")); diff != "" {
				t.Errorf("commands (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetectMany(t *testing.T) {
	t.Parallel()
	files := workspace(map[string]string{
		"web/package.json":              `{"scripts":{"test":"vitest run"}}`,
		"go.mod":                        "module example.com/m\n",
		"svc/pom.xml":                   "<project/>",
		"svc/api/pom.xml":               "<project/>",
		"svc/node_modules/package.json": `{"scripts":{"test":"jest"}}`,
		".hidden/go.mod":                "module x\n",
		"tools/go.mod":                  "module example.com/m/tools\n",
		"composer.json":                 "{}",
		"a/b/c/d/e/go.mod":              "module deep\n",
		"a/b/c/d/e/f/go.mod":            "module deeper\n",
		"broken/package.json":           "{",
		"tests/conftest.py":             "",
	})
	found, err := project.Detect(project.Config{Files: files, Scratch: "/s"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range found {
		got = append(got, fmt.Sprintf("%s %s %s %s %v", p.Dir, p.Kind, p.File, p.Module, p.Inside))
		if p.Test.Dir != p.Dir {
			t.Errorf("%s is tested in %s", p.Dir, p.Test.Dir)
		}
	}
	want := []string{
		". go go.mod example.com/m false",
		". php composer.json  false",
		"svc maven svc/pom.xml  false",
		"tools go tools/go.mod example.com/m/tools false",
		"web vitest web/package.json  false",
		"svc/api maven svc/api/pom.xml  true",
		"a/b/c/d/e go a/b/c/d/e/go.mod deep false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
	below, err := project.Detect(project.Config{Files: files, Dir: "svc"})
	if err != nil || len(below) != 2 || below[0].Dir != "svc" || below[0].Test.Weak == "" {
		t.Errorf("below svc: %+v, error %v", below, err)
	}
	if _, err := project.Detect(project.Config{Files: files, Dir: "nowhere"}); err == nil {
		t.Error("a missing folder has projects")
	}
	if _, err := project.Detect(project.Config{}); err == nil {
		t.Error("nothing has projects")
	}
}

func TestDetectReplaced(t *testing.T) {
	t.Parallel()
	cfg := project.Config{Files: workspace(map[string]string{"go.mod": "module m\n"}), Scratch: "/s",
		Test: "go test -short ./...", Coverage: "make cover", CoverageFormat: project.FormatLCOV,
		CoverageFiles: []string{"lcov.info"}, Types: "-", Lint: "make lint"}
	found, err := project.Detect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := scripts(found[0]),
		"test go test -json -short ./... | coverage make cover | types  | lint make lint"; got != want {
		t.Errorf("commands %q, want %q", got, want)
	}
	if r := found[0].Coverage.Results[0]; r.Format != project.FormatLCOV || len(r.Files) != 1 {
		t.Errorf("coverage %+v", r)
	}
	cfg.Files, cfg.Test = workspace(map[string]string{"a.txt": ""}), "-"
	found, err = project.Detect(cfg)
	if err != nil || len(found) != 1 || found[0].Kind != "" || found[0].Test.Script != "" ||
		found[0].Lint.Script != "make lint" {
		t.Errorf("an unknown project: %+v, error %v", found, err)
	}
	cfg = project.Config{Files: cfg.Files}
	if found, err = project.Detect(cfg); err != nil || len(found) != 0 {
		t.Errorf("no project: %+v, error %v", found, err)
	}
}

// unreadable is a file system with a folder that cannot be read and must not hide the
// others.
type unreadable struct{ fstest.MapFS }

func (u unreadable) ReadDir(name string) ([]fs.DirEntry, error) {
	if name == "a" {
		return nil, fs.ErrPermission
	}
	return u.MapFS.ReadDir(name)
}

func TestDetectUnreadable(t *testing.T) {
	t.Parallel()
	found, err := project.Detect(
		project.Config{Files: unreadable{workspace(map[string]string{"a/go.mod": "module a\n", "b/go.mod": "module b\n"})}})
	if err != nil || len(found) != 1 || found[0].Dir != "b" {
		t.Errorf("%+v, error %v", found, err)
	}
}

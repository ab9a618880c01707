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
	return fmt.Sprintf("types %s | lint %s", p.Types.Script, p.Lint.Script)
}

func TestDetect(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string
		kind  project.Kind
		want  string
	}{
		{"go", map[string]string{"go.mod": "// x\nmodule example.com/m // y\n\ngo 1.24\n", "a.go": ""}, project.Go,
			"types go build -o /dev/null ./... | lint go vet ./..."},
		{"golangci-lint", map[string]string{"go.mod": "module m\n", ".golangci.yml": ""}, project.Go,
			"types go build -o /dev/null ./... | lint golangci-lint run ./..."},
		{"jest by script", map[string]string{
			"package.json":  `{"scripts":{"test":"jest --ci"},"devDependencies":{"jest":"29","typescript":"5","eslint":"9"}}`,
			"tsconfig.json": "{}", "eslint.config.js": ""}, project.Jest,
			"types npx --no-install tsc --noEmit --pretty false --incremental --tsBuildInfoFile /s/tsc.tsbuildinfo | lint " +
				"npx --no-install eslint --format json ."},
		{"vitest without script, biome", map[string]string{"package.json": `{"devDependencies":{"vitest":"2"}}`,
			"biome.json": ""}, project.Vitest, "types  | lint npx --no-install biome lint --reporter=github ."},
		{"mocha", map[string]string{"package.json": `{"scripts":{"test":"mocha"}}`}, project.Mocha, "types  | lint "},
		{"mocha by configuration", map[string]string{"package.json": `{}`, ".mocharc.yml": ""}, project.Mocha,
			"types  | lint "},
		{"node", map[string]string{"package.json": `{"scripts":{"test":"node --test"}}`}, project.Node, "types  | lint "},
		{"script of its own", map[string]string{"package.json": `{"scripts":{"test":"./check.sh"}}`}, project.NPM,
			"types  | lint "},
		{"pytest", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n[tool.mypy]\n[tool.ruff]\n",
			"uv.lock": ""}, project.Pytest,
			"types uv run python -m mypy --no-error-summary --cache-dir=/s/mypy . | lint uv run ruff check --no-cache " +
				"--output-format concise ."},
		{"pytest by conftest", map[string]string{"setup.py": "", "tests/conftest.py": "", ".flake8": ""}, project.Pytest,
			"types  | lint python -m flake8"},
		{"unittest", map[string]string{"setup.cfg": "[metadata]\n", "tests/test_a.py": ""}, project.Python,
			"types  | lint "},
		{"cargo", map[string]string{"Cargo.toml": "[workspace]\nmembers = []\n"}, project.Cargo,
			"types cargo check --all-targets --message-format short --workspace | lint cargo clippy --all-targets " +
				"--message-format short --workspace"},
		{"maven", map[string]string{"pom.xml": "<project/>", "mvnw": ""}, project.Maven,
			"types ./mvnw -B -q -DskipTests test-compile | lint "},
		{"gradle", map[string]string{"build.gradle.kts": "", "settings.gradle.kts": ""}, project.Gradle,
			"types gradle -q testClasses | lint "},
		{"rspec", map[string]string{"Gemfile": "gem 'rspec'\ngem \"rubocop\"\n"}, project.RSpec,
			"types  | lint bundle exec rubocop --cache false --format emacs"},
		{"minitest", map[string]string{"Gemfile": "gem 'minitest'\n"}, project.Ruby, "types  | lint "},
		{"dotnet", map[string]string{"shop.sln": "", "a.csproj": ""}, project.DotNet,
			"types dotnet build -v q --nologo | lint "},
		{"phpunit", map[string]string{"composer.json": `{"require-dev":{"phpunit/phpunit":"^11"}}`, "phpstan.neon": ""},
			project.PHPUnit, "types vendor/bin/phpstan analyse --no-progress --error-format=raw | lint "},
		{"deno", map[string]string{"deno.json": "{}"}, project.Deno,
			"types deno check . | lint deno lint --compact"},
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
			if p := found[0]; p.Kind != tt.kind || p.Dir != "." {
				t.Errorf("kind %q, folder %q", p.Kind, p.Dir)
			}
			if diff := cmp.Diff(tt.want, scripts(found[0])); diff != "" {
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
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s", p.Dir, p.Kind, p.Module)))
		if p.Types.Script != "" && p.Types.Dir != p.Dir {
			t.Errorf("%s is checked in %s", p.Dir, p.Types.Dir)
		}
	}
	want := []string{
		". go example.com/m",
		". php",
		"svc maven",
		"tools go example.com/m/tools",
		"web vitest",
		"svc/api maven",
		"a/b/c/d/e go deep",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
	below, err := project.Detect(project.Config{Files: files, Dir: "svc"})
	if err != nil || len(below) != 2 || below[0].Dir != "svc" {
		t.Errorf("below svc: %+v, error %v", below, err)
	}
	if _, err := project.Detect(project.Config{Files: files, Dir: "nowhere"}); err == nil {
		t.Error("a missing folder has projects")
	}
	if _, err := project.Detect(project.Config{}); err == nil {
		t.Error("nothing has projects")
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

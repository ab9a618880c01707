package project_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/project"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		".perdure/config.yaml": "perdure", "sub/.perdure/perdure.db": "perdure", ".claude/settings.json": "perdure",
		".claude/settings.local.json": "perdure", ".claude/commands/x.md": "other",
		".mcp.json": "other", "opencode.json": "perdure", ".codex/config.toml": "perdure", ".codex/hooks.json": "perdure",
		".gemini/settings.json": "perdure", ".gemini/extensions/a/hooks.json": "perdure",
		"state/.codex/sessions/.gitignore": "other",

		".github/workflows/ci.yml": "ci", ".GitHub/Workflows/ci.yml": "ci", ".github/dependabot.yml": "other",
		".gitlab-ci.yml": "ci", "Jenkinsfile": "ci", "ci/jenkinsfile": "ci",
		".circleci/config.yml": "ci", ".husky/pre-commit": "ci", "CODEOWNERS": "ci",

		".coveragerc": "coverage", "codecov.yml": "coverage", ".nycrc": "coverage", ".nycrc.json": "coverage",
		"nyc.config.js": "coverage",

		"jest.config.ts": "runner", "web/vitest.config.mts": "runner", "pytest.ini": "runner",
		"tests/conftest.py": "runner", "spec/spec_helper.rb": "runner", ".rspec": "runner",
		"phpunit.xml.dist": "runner", ".config/nextest.toml": "runner", "test.runsettings": "runner csharp",
		".mocharc.cjs": "runner", "src/test/resources/junit-platform.properties": "runner",

		".eslintrc": "lint", ".eslintrc.json": "lint", "eslint.config.mjs": "lint", ".golangci.yml": "lint",
		"tsconfig.json": "lint", "tsconfig.base.json": "lint", "ruff.toml": "lint",
		"mypy.ini": "lint", "phpstan.neon": "lint", "phpstan-baseline.neon": "lint", ".rubocop_todo.yml": "lint",
		".editorconfig": "lint", "src/GlobalSuppressions.cs": "lint csharp", "clippy.toml": "lint",
		"checkstyle.md": "other", "config/checkstyle/checkstyle.xml": "lint", ".pre-commit-config.yaml": "lint",

		"a/testdata/x.json": "snapshot", "a/testdata/phpunit.xml": "snapshot", "tests/fixtures/package.json": "snapshot",
		"src/__snapshots__/a.test.ts.snap": "snapshot", "tests/fixtures/a.py": "snapshot", "a.golden": "snapshot",
		"A.verified.txt": "snapshot", "src/test/resources/x.sql": "snapshot",

		"a_test.go": "test go", "a/b.test.tsx": "test typescript", "a/b.spec.js": "test javascript",
		"__tests__/a.js": "test javascript", "test/helper.ts": "test typescript", "cypress/e2e/a.cy.ts": "test typescript",
		"tests/test_a.py": "test python", "test_a.py": "test python", "a_test.py": "test python",
		"app/tests.py": "test python", "tests/helper.py": "test python",
		"src/test/java/com/acme/Cart.java": "test java", "src/main/java/com/acme/CartTest.java": "test java",
		"src/main/java/com/acme/Latest.java": "source java",
		"src/commonTest/kotlin/A.kt":         "test kotlin", "ATest.kt": "test kotlin", "tests/integ.rs": "test rust",
		"src/tests.rs": "test rust", "src/cart/cart_test.rs": "test rust",
		"spec/cart_spec.rb": "test ruby", "test/cart_test.rb": "test ruby", "spec/support/x.rb": "test ruby",
		"Shop.Tests/Cart.cs": "test csharp", "CartTests.cs": "test csharp", "src/UnitTests/Cart.cs": "test csharp",
		"tests/CartTest.php": "test php", "tests/TestCase.php": "test php", "tests/Helper.php": "test php",
		"tests/a.phpt": "test php",

		"package.json": "manifest", "web/package.json": "manifest", "pyproject.toml": "manifest", "Makefile": "manifest",
		"pom.xml": "manifest", "a.csproj": "manifest csharp", "build.gradle.kts": "manifest",
		"package-lock.json": "other", "my-package.json": "other",

		"main.go": "source go", "src/a.ts": "source typescript", "src/App.vue": "source javascript",
		"a.py": "source python", "A.java": "source java", "A.kt": "source kotlin", "lib.rs": "source rust",
		"a.rb": "source ruby", "A.cs": "source csharp", "a.php": "source php", "src/contest.go": "source go",
		"src/attest.py": "source python", "latest/main.go": "source go", "src/protest.ts": "source typescript",

		"README.md": "other", "": "other", "docs/testing.md": "other", "a.sql": "other", "tests/README.md": "other",
	}
	for name, want := range tests {
		for _, path := range []string{name, strings.ReplaceAll(name, "/", `\`)} {
			f := project.Classify(path)
			got := strings.TrimSpace(fmt.Sprintf("%s %s", f.Class, f.Language))
			if got != want {
				t.Errorf("%q is %q, want %q", path, got, want)
			}
			if f.Class.Protected() && f.Why == "" {
				t.Errorf("%q: nobody says why it is protected", path)
			}
		}
	}
}

func TestProtected(t *testing.T) {
	t.Parallel()
	var protected []project.Class
	for _, c := range []project.Class{project.OwnFile, project.CIConfig, project.CoverageConfig, project.RunnerConfig,
		project.LintConfig,
		project.Snapshot, project.TestFile, project.Manifest, project.Source, project.Other} {
		if c.Protected() {
			protected = append(protected, c)
		}
	}
	want := []project.Class{project.OwnFile, project.CIConfig, project.CoverageConfig, project.RunnerConfig,
		project.LintConfig}
	if diff := cmp.Diff(want, protected); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCountFindings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format, text     string
		errors, warnings int
		fails            bool
	}{
		{format: project.FormatLines, text: ""},
		{format: project.FormatLines, text: "# example.com/m\n./a.go:3:5: undefined: x\na.go:9: y\nvet: exit 1\n", errors: 2},
		{format: project.FormatLines, text: "src/a.ts(3,5): error TS2304: Cannot find name 'x'.\nFound 1 error.\n",
			errors: 1},
		{format: project.FormatLines, text: "a.py:1: error: x  [name-defined]\na.py:1: note: see\nb.py:2: warning: y\n",
			errors: 1, warnings: 1},
		{format: project.FormatLines, text: "src/lib.rs:3:5: warning: unused\nsrc/lib.rs:4:5: error[E0425]: x\n", errors: 1,
			warnings: 1},
		{format: project.FormatLines, text: "::error title=lint,file=a.ts,line=1::x\n::warning file=a.ts::y\n", errors: 1,
			warnings: 1},
		{format: project.FormatESLint,
			text:   `[{"filePath":"a","messages":[],"errorCount":2,"warningCount":1},{"errorCount":1,"warningCount":0}]`,
			errors: 3, warnings: 1},
		{format: project.FormatESLint, text: `[]`},
		{format: project.FormatESLint, text: "Oops\n", fails: true},
		{format: project.FormatESLint, text: `[{"errorCount":1}`, fails: true},
		{format: "x", text: "", fails: true},
	}
	for _, tt := range tests {
		errors, warnings, err := project.CountFindings(tt.format, strings.NewReader(tt.text))
		if errors != tt.errors || warnings != tt.warnings || (err != nil) != tt.fails {
			t.Errorf("%s %q: %d errors, %d warnings, %v", tt.format, tt.text, errors, warnings, err)
		}
	}
}
